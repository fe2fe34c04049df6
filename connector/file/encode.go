package file

import (
	"encoding/binary"
	"fmt"
	"unicode/utf16"
	"unicode/utf8"
)

// In writes the records in another charset than UTF-8; what is no valid UTF-8 becomes U+FFFD. Latin1 has no room for most
// characters: an element with one of those fails the job. UTF16 is big-endian and each file begins with a byte order mark, as
// in Java; UTF16LE and UTF16BE files have none.
func (e Encoding[T]) In(c Charset) Encoding[T] {
	if err := c.check(); err != nil {
		if e.Err == nil {
			e.Err = err
		}
		return e
	}
	if c.same() {
		return e
	}
	if e.Delimiter == "" {
		e.Delimiter = "\n"
	}
	delimiter, err := c.append(nil, []byte(e.Delimiter))
	begin, berr := c.append(c.mark(), []byte(e.Begin))
	if err == nil {
		err = berr
	}
	if e.Err == nil && err != nil {
		e.Err = err
	}
	e.Delimiter, e.Begin = string(delimiter), string(begin)
	open := e.Open
	e.Open = func() func([]byte, T) ([]byte, error) {
		encode := open()
		var text []byte
		return func(dst []byte, x T) (_ []byte, err error) {
			if text, err = encode(text[:0], x); err != nil {
				return dst, err
			}
			return c.append(dst, text)
		}
	}
	return e
}

// mark is what a text begins with.
func (c Charset) mark() []byte {
	if c.upper() == UTF16 {
		return []byte{0xfe, 0xff}
	}
	return nil
}

// append appends UTF-8 text in the charset.
func (c Charset) append(dst, text []byte) ([]byte, error) {
	for len(text) > 0 {
		r, n := utf8.DecodeRune(text)
		text = text[n:]
		switch c.upper() {
		case Latin1:
			if r > 0xff {
				return dst, fmt.Errorf("character %q can't be written in %s", r, Latin1)
			}
			dst = append(dst, byte(r))
		case UTF16LE:
			dst = appendUTF16(dst, r, binary.LittleEndian)
		default:
			dst = appendUTF16(dst, r, binary.BigEndian)
		}
	}
	return dst, nil
}

func appendUTF16(dst []byte, r rune, order binary.AppendByteOrder) []byte {
	if utf16.RuneLen(r) == 1 {
		return order.AppendUint16(dst, uint16(r))
	}
	high, low := utf16.EncodeRune(r)
	return order.AppendUint16(order.AppendUint16(dst, uint16(high)), uint16(low))
}
