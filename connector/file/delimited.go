package file

import (
	"io"

	"github.com/flott-dev/flott/connector"
)

// Delimited is the format of records that end with a delimiter and are decoded by a function.
type Delimited[T any] struct {
	// Delimiter ends a record, as in Text.
	Delimiter string
	// MaxRecord is the length in bytes from which a record is an error; 0: DefaultMaxRecord.
	MaxRecord int
	// Decode makes an element of a record. It is called concurrently by subtasks. The bytes never change, so the element
	// may point into them. An error is a bad record: the job fails unless the source skips such records.
	Decode func(record []byte) (T, error)
}

// Check implements Format.
func (f Delimited[T]) Check() error {
	if f.Decode == nil {
		return errNoDecode
	}
	return CheckDelimiter(f.Delimiter)
}

// Splittable implements Format.
func (f Delimited[T]) Splittable() bool { return SplittableAt(f.Delimiter) }

// Decoder implements Format.
func (f Delimited[T]) Decoder(in *Input) (Decoder[T], error) {
	return &delimitedDecoder[T]{Records: NewRecords(in, f.Delimiter, f.MaxRecord), in: in, decode: f.Decode}, nil
}

type delimitedDecoder[T any] struct {
	*Records
	in     *Input
	decode func([]byte) (T, error)
}

// Decode implements Decoder.
func (d *delimitedDecoder[T]) Decode(out *connector.Output[T]) error {
	for n := out.Room(); n > 0; n-- {
		record, err := d.Next()
		if err != nil {
			return err
		}
		x, err := d.decode(record)
		if err == nil {
			out.Emit(x)
			continue
		}
		if err := d.in.BadAt(d.Begin(), record, err); err != nil {
			return err
		}
	}
	return nil
}

// BadAt is Bad with an *Error around a cause that is known already.
func (in *Input) BadAt(at int64, record []byte, cause error) error {
	return in.Bad(at, record, func(line int64) error {
		return &Error{Path: in.path, Line: line, Offset: at, Err: cause}
	})
}

// Contents is a file as one element.
type Contents struct {
	Path string // of the file
	Data []byte // the text of the file, decompressed and as UTF-8
}

// Whole is the format that makes one element of each file, of empty ones, too. Files that are larger than 2 GiB are
// errors.
type Whole struct{}

// Check implements Format.
func (Whole) Check() error { return nil }

// Splittable implements Format.
func (Whole) Splittable() bool { return false }

// Decoder implements Format.
func (Whole) Decoder(in *Input) (Decoder[Contents], error) { return &wholeDecoder{in}, nil }

const maxWhole = 2 << 30

type wholeDecoder struct{ in *Input }

// Decode implements Decoder.
func (d *wholeDecoder) Decode(out *connector.Output[Contents]) error {
	if out.Room() == 0 {
		return nil
	}
	for {
		err := d.in.Fill()
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		if len(d.in.Window()) > maxWhole {
			return &Error{Path: d.in.path, Err: ErrTooLong}
		}
	}
	out.Emit(Contents{Path: d.in.path, Data: d.in.Window()})
	return io.EOF // in the same call, so that no checkpoint comes in between: an empty file has no position behind it
}

// Position implements Decoder.
func (d *wholeDecoder) Position() int64 { return d.in.Offset() }
