package filesink

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Committable is a closed hidden file that is to become visible, or one that is no longer needed.
type Committable struct {
	// Bucket is the folder below the sink's.
	Bucket string
	// Temp is the file's hidden name.
	Temp string
	// Name is the file's visible name; "": the hidden file is removed.
	Name string
	// Size is the file's size in bytes.
	Size int64

	// fresh says that the file was prepared by this process and not committed by an earlier one: it must be there.
	fresh bool
}

// The first byte of committables and of states tells their version. States of the versions before are read.
const (
	committableVersion = 1
	stateVersion       = 2
)

// errCut says that bytes end too early.
var errCut = errors.New("the bytes end too early")

// AppendBinary implements encoding.BinaryAppender.
func (c Committable) AppendBinary(b []byte) ([]byte, error) {
	b = append(b, committableVersion)
	for _, text := range []string{c.Bucket, c.Temp, c.Name} {
		b = appendText(b, text)
	}
	return binary.AppendUvarint(b, uint64(c.Size)), nil
}

// MarshalBinary implements encoding.BinaryMarshaler.
func (c Committable) MarshalBinary() ([]byte, error) { return c.AppendBinary(nil) }

// UnmarshalBinary implements encoding.BinaryUnmarshaler.
func (c *Committable) UnmarshalBinary(b []byte) error {
	d := decoder{rest: b}
	d.version(committableVersion)
	*c = Committable{Bucket: d.text(), Temp: d.text(), Name: d.text(), Size: d.size()}
	if err := d.end(); err != nil {
		return fmt.Errorf("read a committable of a file sink: %w", err)
	}
	return nil
}

func appendText(b []byte, text string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(text))), text...)
}

// decoder reads what the functions above write; its first error stays.
type decoder struct {
	rest []byte
	err  error
}

func (d *decoder) fail(err error) {
	if d.err == nil {
		d.rest, d.err = nil, err
	}
}

// version reads the version, from 1 to newest.
func (d *decoder) version(newest byte) byte {
	if len(d.rest) == 0 {
		d.fail(errCut)
		return 0
	}
	v := d.rest[0]
	if v < 1 || v > newest {
		d.fail(fmt.Errorf("version %d is not known, %d is", v, newest))
		return 0
	}
	d.rest = d.rest[1:]
	return v
}

func (d *decoder) number() uint64 {
	v, n := binary.Uvarint(d.rest)
	if n <= 0 {
		d.fail(errCut)
		return 0
	}
	d.rest = d.rest[n:]
	return v
}

// size is a number that is not negative.
func (d *decoder) size() int64 {
	v := d.number()
	if v > 1<<63-1 {
		d.fail(fmt.Errorf("%d is too large", v))
		return 0
	}
	return int64(v)
}

// count is a number of things of at least one byte each that follow.
func (d *decoder) count() int {
	v := d.number()
	if v > uint64(len(d.rest)) {
		d.fail(errCut)
		return 0
	}
	return int(v)
}

// time is a number with a sign.
func (d *decoder) time() int64 {
	v, n := binary.Varint(d.rest)
	if n <= 0 {
		d.fail(errCut)
		return 0
	}
	d.rest = d.rest[n:]
	return v
}

func (d *decoder) text() string {
	n := d.count()
	text := string(d.rest[:n])
	d.rest = d.rest[n:]
	return text
}

// end is the first error; bytes that are left are one.
func (d *decoder) end() error {
	if d.err == nil && len(d.rest) > 0 {
		d.fail(fmt.Errorf("%d bytes are left", len(d.rest)))
	}
	return d.err
}
