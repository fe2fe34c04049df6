package file

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/flott-dev/flott/connector"
)

// Prefix is how the length of a binary record is written before it.
type Prefix uint8

const (
	// Uint32 is four bytes, the highest first.
	Uint32 Prefix = iota
	// Uvarint is a base-128 varint, as encoding/binary and protobuf write it.
	Uvarint
)

var (
	errNoDecode  = errors.New("format without a Decode function")
	errCut       = errors.New("the file ends within a record")
	errBadPrefix = errors.New("the length of a record is no varint")
)

// Prefixed is the format of binary records that follow their lengths. Files are not cut. A file that ends within a
// record, or a length that can't be, is an error even if the source skips bad records, as nothing behind can be found.
type Prefixed[T any] struct {
	// Prefix is how lengths are written; the default is Uint32.
	Prefix Prefix
	// MaxRecord is the length in bytes from which a record is an error; 0: DefaultMaxRecord.
	MaxRecord int
	// Decode makes an element of a record, as in Delimited.
	Decode func(record []byte) (T, error)
}

// Bytes is the Decode function for elements that are the records themselves.
func Bytes(record []byte) ([]byte, error) { return record, nil }

// Check implements Format.
func (f Prefixed[T]) Check() error {
	if f.Decode == nil {
		return errNoDecode
	}
	if f.Prefix > Uvarint {
		return fmt.Errorf("unknown prefix %d", f.Prefix)
	}
	return nil
}

// Splittable implements Format.
func (f Prefixed[T]) Splittable() bool { return false }

// Decoder implements Format.
func (f Prefixed[T]) Decoder(in *Input) (Decoder[T], error) {
	if f.MaxRecord == 0 {
		f.MaxRecord = DefaultMaxRecord
	}
	return &prefixedDecoder[T]{in: in, Prefixed: f}, nil
}

type prefixedDecoder[T any] struct {
	Prefixed[T]
	in *Input
}

// Position implements Decoder.
func (d *prefixedDecoder[T]) Position() int64 { return d.in.Offset() }

// Decode implements Decoder.
func (d *prefixedDecoder[T]) Decode(out *connector.Output[T]) error {
	for n := out.Room(); n > 0; n-- {
		record, at, err := nextPrefixed(d.in, d.Prefix, d.MaxRecord)
		if err != nil {
			return err
		}
		x, err := d.Prefixed.Decode(record)
		if err == nil {
			out.Emit(x)
			continue
		}
		if err := d.in.BadAt(at, record, err); err != nil {
			return err
		}
	}
	return nil
}

// nextPrefixed takes a record off the window only when it is there as a whole.
func nextPrefixed(in *Input, prefix Prefix, most int) (record []byte, at int64, err error) {
	at = in.Offset()
	for {
		window := in.Window()
		length, size := readPrefix(window, prefix)
		switch {
		case size < 0:
			return nil, at, &Error{Path: in.path, Offset: at, Err: errBadPrefix}
		case size > 0 && length > uint64(most):
			return nil, at, &Error{Path: in.path, Offset: at, Err: fmt.Errorf("%w: %d bytes of at most %d", ErrTooLong, length, most)}
		case size > 0 && uint64(len(window)-size) >= length:
			end := size + int(length)
			in.Advance(end)
			return window[size:end:end], at, nil
		}
		if err := in.Fill(); err == io.EOF && len(window) > 0 {
			return nil, at, &Error{Path: in.path, Offset: at, Err: errCut}
		} else if err != nil {
			return nil, at, err
		}
	}
}

// readPrefix gives size 0 if the prefix is not complete and less if it is none.
func readPrefix(window []byte, prefix Prefix) (length uint64, size int) {
	if prefix == Uvarint {
		return binary.Uvarint(window)
	}
	if len(window) < 4 {
		return 0, 0
	}
	return uint64(binary.BigEndian.Uint32(window)), 4
}
