package csv

import (
	"bytes"
	"errors"
	"unsafe"

	"github.com/flott-dev/flott/connector/file"
)

const (
	// maxErrorText is how much of a bad field an error shows.
	maxErrorText = 100
	// textBlock is the memory for unquoted fields that is taken at once.
	textBlock = 64 << 10
)

// errSkip says that a row is no element: a comment, an empty line.
var errSkip = errors.New("row to skip")

// rows reads the rows of one split into structs.
type rows struct {
	*options
	plan    *plan
	records *file.Records
	in      *file.Input
	comma1  byte     // the field delimiter if it is one byte
	single  bool     // the field delimiter is one byte
	bad     []byte   // the row that failed
	targets []target // of the header that comes next
	heading bool     // the next row is the header
	headEnd int64    // rows before are comments and the header
	text    []byte   // fields without their doubled quotes; strings point into it

	// The row at hand. It begins where the window does; positions are in the window.
	line []byte // up to the end of the row as far as it is known, without delimiter
	next int    // the row behind
	at   int    // the next field
	col  int
}

// fault is what is wrong with a row.
type fault struct {
	column int // from 0; -1: the row as a whole
	text   string
	err    error
}

// Error implements error.
func (f *fault) Error() string { return f.err.Error() }

func newRows(o *options, p *plan, in *file.Input) *rows {
	r := &rows{options: o, plan: p, in: in, records: file.NewRecords(in, o.delimiter, o.maxRow)}
	r.single, r.comma1 = len(o.comma) == 1, o.comma[0]
	return r
}

// read reads one row into p and takes it off the window. It returns errSkip or a *fault for rows that give no element,
// other errors with the window as it was.
func (r *rows) read(p unsafe.Pointer) error {
	if err := r.begin(); err != nil {
		return err
	}
	for r.col = 0; ; r.col++ {
		text, quoted, more, err := r.field()
		if err != nil {
			return r.failed(err)
		}
		if r.col < len(r.plan.at) && r.plan.at[r.col] >= 0 {
			if err := r.set(p, &r.plan.targets[r.plan.at[r.col]], text, quoted); err != nil {
				return r.failed(&fault{r.col, string(text), err})
			}
		}
		if !more {
			break
		}
		if r.col >= r.plan.last && (!r.multiLine() || bytes.IndexByte(r.line[r.at:], r.quote) < 0) {
			break // what follows is not looked at
		}
	}
	if r.col < r.plan.last {
		return r.failed(&fault{-1, "", ErrFieldCount})
	}
	r.records.Take(len(r.line), r.next)
	return nil
}

// begin finds the line of the next row.
func (r *rows) begin() error {
	if err := r.records.Ready(); err != nil {
		return err
	}
	end, next, err := r.records.End(0)
	if err != nil {
		return err
	}
	r.next, r.at = next, 0
	line := r.records.Trim(r.in.Window()[:end])
	r.line = line
	if r.in.Offset() < r.headEnd || r.comment != "" && len(line) >= len(r.comment) && string(line[:len(r.comment)]) == r.comment ||
		len(line) == 0 && (r.plan == nil || r.plan.last > 0) {
		r.records.Take(len(line), r.next)
		return errSkip
	}
	return nil
}

// set converts a field.
func (r *rows) set(p unsafe.Pointer, t *target, text []byte, quoted bool) error {
	if len(text) == 0 && (t.nullable && !quoted || r.zero && !t.verbatim) {
		return nil // the row was cleared before
	}
	err := t.set(p, text)
	if err != nil && r.nilBad && t.nullable {
		return nil
	}
	return err
}

// field reads the field at hand and goes behind its delimiter; more says that there is one.
func (r *rows) field() (text []byte, quoted, more bool, err error) {
	line := r.line[r.at:]
	if r.quote != 0 && len(line) > 0 && line[0] == r.quote {
		text, more, err = r.quotedField()
		return text, true, more, err
	}
	i, n := 0, 1
	if r.single {
		i = bytes.IndexByte(line, r.comma1)
	} else {
		i, n = bytes.Index(line, []byte(r.comma)), len(r.comma)
	}
	if i < 0 {
		r.at = len(r.line)
		return line, false, false, nil
	}
	r.at += i + n
	return line[:i], false, true, nil
}

// failed takes a bad row off the window: up to the end of the line on which it was found to be bad. If a quote is never
// closed, that is the line of the quote, as the rest of the file is likely to be fine.
func (r *rows) failed(err error) error {
	if _, ok := err.(*fault); ok {
		r.bad = r.records.Take(len(r.line), r.next)
	}
	return err
}

// report hands a bad row to the input and returns what it makes of it; other errors it returns.
func (r *rows) report(err error) error {
	f, ok := err.(*fault)
	if !ok {
		return err
	}
	return r.in.Bad(r.records.Begin(), r.bad, func(line int64) error {
		e := &Error{Path: r.in.Path(), Line: line, Column: f.column + 1, Text: f.text, Err: f.err}
		if len(e.Text) > maxErrorText {
			e.Text = e.Text[:maxErrorText] + "..."
		}
		if f.column >= 0 && f.column < len(r.plan.at) && r.plan.at[f.column] >= 0 {
			e.Field = r.plan.targets[r.plan.at[f.column]].name
		}
		return e
	})
}
