package csv

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"unsafe"

	"github.com/flott-dev/flott/connector/file"
)

var (
	// ErrNil says that a field to be written is nil.
	ErrNil = errors.New("nil field; NilEmpty writes it as an empty one")
	// ErrUnwritable says that a field holds text that can't be written so that it is read as the same.
	ErrUnwritable = errors.New("field can't be written with these delimiters and quotes")
)

// Sink writes elements as rows to the file, or the folder of files, at path; see file.Sink for what happens where.
// Columns are those that Format reads. The options Comma, RowDelimiter, Quote, Quotes, TimeLayouts (the first one),
// Header, Columns, NilEmpty and QuoteAll have a meaning for it. Fields are quoted where they must be; what can't be read
// back is an error.
func Sink[T any](path string, opts ...Option) *file.Sink[T] {
	return file.NewSink(path, Encoding[T](opts...))
}

// Encoding is that of Sink, for sinks of files with more to say than a path.
func Encoding[T any](opts ...Option) file.Encoding[T] {
	e, err := newEncoder(reflect.TypeFor[T](), newOptions(opts))
	if err != nil {
		return file.Encoding[T]{Err: fmt.Errorf("csv sink: %w", err)}
	}
	return file.Encoding[T]{Begin: e.begin, Delimiter: e.delimiter, Open: func() func([]byte, T) ([]byte, error) {
		var row T // one per writer: the address of an argument would be an allocation per element
		var scratch []byte
		return func(dst []byte, x T) (_ []byte, err error) {
			row = x
			dst, scratch, err = e.row(dst, scratch, unsafe.Pointer(&row))
			return dst, err
		}
	}}
}

// encoder writes rows of one type. It is shared by writers.
type encoder struct {
	*options
	columns []source
	special string // characters because of which a field is quoted
	begin   string
}

func newEncoder(t reflect.Type, o *options) (*encoder, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	if o.placed {
		return nil, errors.New("Positions and Include have no meaning for a sink")
	}
	cs, err := columnsOf(t)
	if err != nil {
		return nil, err
	}
	if o.names != nil {
		if cs, err = choose(cs, o.names); err != nil {
			return nil, err
		}
	}
	e := &encoder{options: o, special: "\r\n" + o.comma[:1] + o.delimiter[:1] + string(rune(o.quote))}
	var names []string
	for i := range cs {
		s, err := newSource(&cs[i], o)
		if err != nil {
			return nil, err
		}
		e.columns, names = append(e.columns, s), append(names, cs[i].name)
	}
	if o.header == nameHeader {
		return e, e.heading(names)
	}
	return e, nil
}

// choose takes columns by name.
func choose(cs []column, names []string) ([]column, error) {
	var chosen []column
	for _, name := range names {
		found := false
		for _, c := range cs {
			if c.name == name {
				chosen, found = append(chosen, c), true
			}
		}
		if !found {
			return nil, fmt.Errorf("the type has no column %q", name)
		}
	}
	return chosen, nil
}

func (e *encoder) heading(names []string) error {
	var b []byte
	for i, name := range names {
		if name == "" {
			return errors.New("a type that is no struct has no names for a header")
		}
		if i > 0 {
			b = append(b, e.comma...)
		}
		var err error
		if b, err = e.text(b, []byte(name), false); err != nil {
			return fmt.Errorf("header: %w", err)
		}
	}
	e.begin = string(b) + e.delimiter
	return nil
}

// row appends the row at p. scratch is memory for a field.
func (e *encoder) row(dst, scratch []byte, p unsafe.Pointer) (row, memory []byte, err error) {
	for i := range e.columns {
		c := &e.columns[i]
		if i > 0 {
			dst = append(dst, e.comma...)
		}
		if c.bare {
			dst, err = c.append(dst, unsafe.Add(p, c.offset))
		} else if scratch, err = c.append(scratch[:0], unsafe.Add(p, c.offset)); err == nil {
			dst, err = e.text(dst, scratch, c.quoted)
		}
		if errors.Is(err, errNilField) {
			err = ErrNil
			if e.nilEmpty {
				err = nil
			}
		}
		if err != nil {
			return dst, scratch, fmt.Errorf("column %d (%s): %w", i+1, c.name, err)
		}
	}
	return dst, scratch, nil
}

// text appends a field of any text. A field that is not nil but empty is quoted where nil is empty, too.
func (e *encoder) text(dst, field []byte, nullable bool) ([]byte, error) {
	broken := bytes.ContainsAny(field, "\r\n") || bytes.Contains(field, []byte(e.delimiter))
	if broken && (e.quote == 0 || e.quoting != Doubled) {
		return dst, fmt.Errorf("%w: line break in %.100q", ErrUnwritable, field)
	}
	must := e.quoteAll || bytes.ContainsAny(field, e.special) || nullable && len(field) == 0 && e.nilEmpty ||
		e.comment != "" && strings.HasPrefix(string(field), e.comment)
	switch {
	case !must:
		return append(dst, field...), nil
	case e.quote == 0 && bytes.Contains(field, []byte(e.comma)):
		return dst, fmt.Errorf("%w: delimiter in %.100q", ErrUnwritable, field)
	case e.quote == 0:
		return append(dst, field...), nil
	case e.quoting == Backslash && (bytes.IndexByte(field, e.quote) >= 0 || bytes.HasSuffix(field, []byte{'\\'})):
		return dst, fmt.Errorf("%w: quote in %.100q", ErrUnwritable, field)
	}
	dst = append(dst, e.quote)
	for {
		i := bytes.IndexByte(field, e.quote)
		if i < 0 {
			break
		}
		dst = append(append(dst, field[:i+1]...), e.quote)
		field = field[i+1:]
	}
	return append(append(dst, field...), e.quote), nil
}
