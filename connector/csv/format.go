package csv

import (
	"errors"
	"fmt"
	"reflect"
	"unsafe"

	"github.com/flott-dev/flott/connector"
	"github.com/flott-dev/flott/connector/file"
)

// Format reads rows into elements of type T. A row that can't be read is an *Error; see the methods SkipBad and OnBad of
// file.Source for others ways. Rows may have more fields than are read. Empty lines are skipped, unless T is a single
// column: then they are an empty field.
//
// Strings of elements point into the text that was read, which lives as long as one of them does.
func Format[T any](opts ...Option) file.Format[T] {
	f := &format[T]{options: newOptions(opts)}
	f.targets, f.plan, f.err = prepare(reflect.TypeFor[T](), f.options)
	return f
}

// Source reads the files at paths; it is short for file.New with a Format without options.
func Source[T any](paths ...string) *file.Source[T] { return file.New(Format[T](), paths...) }

type format[T any] struct {
	options *options
	targets []target
	plan    *plan // nil with Header
	err     error
}

func prepare(t reflect.Type, o *options) ([]target, *plan, error) {
	if err := o.check(); err != nil {
		return nil, nil, fmt.Errorf("csv format: %w", err)
	}
	targets, err := compile(t, o)
	if err != nil {
		return nil, nil, fmt.Errorf("csv format: %w", err)
	}
	if o.header == nameHeader && (o.names != nil || o.placed) {
		return nil, nil, errors.New("csv format: Header excludes Columns, Positions and Include")
	}
	if o.header == nameHeader {
		if t.Kind() != reflect.Struct || scalar(t) {
			return nil, nil, fmt.Errorf("csv format: type %s has no names for a header", t)
		}
		return targets, nil, nil
	}
	p, err := place(targets, o)
	if err != nil {
		return nil, nil, fmt.Errorf("csv format: %w", err)
	}
	return targets, p, nil
}

// Check implements file.Format.
func (f *format[T]) Check() error { return f.err }

// Splittable implements file.Format.
func (f *format[T]) Splittable() bool {
	return !f.options.multiLine() && file.SplittableAt(f.options.delimiter)
}

// Decoder implements file.Format.
func (f *format[T]) Decoder(in *file.Input) (file.Decoder[T], error) {
	r := newRows(f.options, f.plan, in)
	if err := r.openHeader(f.targets); err != nil {
		return nil, err
	}
	return &decoder[T]{rows: r}, nil
}

// decoder is what must be compiled per type.
type decoder[T any] struct {
	rows *rows
	row  T
}

// Position implements file.Decoder.
func (d *decoder[T]) Position() int64 { return d.rows.records.Position() }

// Decode implements file.Decoder.
func (d *decoder[T]) Decode(out *connector.Output[T]) error {
	if err := d.rows.header(); err != nil {
		return err
	}
	var zero T
	for n := out.Room(); n > 0; n-- {
		d.row = zero
		err := d.rows.read(unsafe.Pointer(&d.row))
		if err == nil {
			out.Emit(d.row)
			continue
		}
		if err == errSkip {
			continue
		}
		if err := d.rows.report(err); err != nil {
			return err
		}
	}
	return nil
}
