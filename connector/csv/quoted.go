package csv

import (
	"bytes"
	"errors"
	"io"

	"github.com/flott-dev/flott/connector/file"
)

// quotedField reads the field at hand, which begins with a quote.
func (r *rows) quotedField() (text []byte, more bool, err error) {
	open := r.at
	closing, doubled, err := r.closing(open + 1)
	if err != nil {
		return nil, false, err
	}
	if closing > len(r.line) { // there were line ends in the field
		end, next, err := r.records.End(closing + 1)
		if err != nil {
			return nil, false, err
		}
		r.line, r.next = r.records.Trim(r.in.Window()[:end]), next
	}
	text = r.line[open+1 : closing]
	if doubled {
		text = r.unescape(text)
	}
	rest := r.line[closing+1:]
	if len(rest) == 0 {
		r.at = len(r.line)
		return text, false, nil
	}
	if len(rest) < len(r.comma) || string(rest[:len(r.comma)]) != r.comma {
		return nil, false, &fault{r.col, string(r.line[open:]), ErrAfterQuote}
	}
	r.at = closing + 1 + len(r.comma)
	return text, true, nil
}

// closing finds the quote that ends a field, from a position in it on. doubled says that there were doubled quotes.
func (r *rows) closing(from int) (at int, doubled bool, err error) {
	for {
		text := r.line
		if r.quoting == Doubled {
			text = r.in.Window()
		}
		i := bytes.IndexByte(text[from:], r.quote)
		at = from + i
		switch {
		case i < 0 && r.quoting != Doubled:
			return 0, false, r.open()
		case i >= 0 && r.quoting == Backslash:
			if text[at-1] != '\\' {
				return at, false, nil
			}
			from = at + 1
		case i >= 0 && at+1 < len(text):
			if text[at+1] != r.quote {
				return at, doubled, nil
			}
			doubled, from = true, at+2
		case i >= 0 && r.quoting == DoubledInLine:
			return at, doubled, nil
		default:
			from = len(text) // what was looked at
			if i >= 0 {
				from = at // the next byte decides
			}
			if err := r.records.More(); err == io.EOF && i >= 0 {
				return at, doubled, nil
			} else if err == io.EOF || errors.Is(err, file.ErrTooLong) {
				return 0, false, r.open()
			} else if err != nil {
				return 0, false, err
			}
		}
	}
}

// open is the fault of a field that is not closed.
func (r *rows) open() error {
	return &fault{r.col, string(r.line[r.at:]), ErrQuote}
}

// unescape makes one quote of each doubled one.
func (r *rows) unescape(text []byte) []byte {
	if cap(r.text)-len(r.text) < len(text) {
		r.text = make([]byte, 0, max(textBlock, len(text)))
	}
	from := len(r.text)
	for {
		i := bytes.IndexByte(text, r.quote)
		if i < 0 {
			break
		}
		r.text = append(r.text, text[:i+1]...)
		text = text[i+2:]
	}
	r.text = append(r.text, text...)
	return r.text[from:len(r.text):len(r.text)]
}
