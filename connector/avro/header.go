package avro

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/flott-dev/flott/connector/file"
)

const (
	magic     = "Obj\x01"
	syncSize  = 16
	maxHeader = 1 << 24
)

// errShort says that more bytes are wanted.
var errShort = errors.New("it ends within a value")

// header is the begin of a file.
type header struct {
	schema, codec string
	sync          [syncSize]byte
}

// readHeader reads the header at the begin of an Input. Its errors are those of Fill, with the window as it was, and
// ErrDamaged.
func readHeader(in *file.Input) (*header, error) {
	for {
		h, n, err := parseHeader(in.Window())
		if err == nil {
			in.Advance(n)
			return h, nil
		}
		if !errors.Is(err, errShort) {
			return nil, fmt.Errorf("%w: header: %w", ErrDamaged, err)
		}
		if len(in.Window()) > maxHeader {
			return nil, fmt.Errorf("%w: a header of more than %d bytes", ErrDamaged, maxHeader)
		}
		if ferr := in.Fill(); ferr == io.EOF {
			return nil, fmt.Errorf("%w: header: %w", ErrDamaged, err)
		} else if ferr != nil {
			return nil, ferr
		}
	}
}

// parseHeader reads a header from bytes and tells its length.
func parseHeader(b []byte) (h *header, n int, err error) {
	c := cursor{b: b}
	if mark, err := c.take(int64(len(magic))); err != nil {
		return nil, 0, err
	} else if string(mark) != magic {
		return nil, 0, fmt.Errorf("the file begins with %q instead of %q", mark, magic)
	}
	h = &header{}
	if err := c.pairs(h.set); err != nil {
		return nil, 0, err
	}
	sync, err := c.take(syncSize)
	if err != nil {
		return nil, 0, err
	}
	copy(h.sync[:], sync)
	if h.schema == "" {
		return nil, 0, errors.New("it has no schema")
	}
	return h, c.at, nil
}

func (h *header) set(key, value []byte) {
	switch string(key) {
	case "avro.schema":
		h.schema = string(value)
	case "avro.codec":
		h.codec = string(value)
	}
}

// cursor reads Avro's primitive values from bytes.
type cursor struct {
	b  []byte
	at int
}

func (c *cursor) take(n int64) ([]byte, error) {
	if n < 0 {
		return nil, fmt.Errorf("a length of %d", n)
	}
	if n > maxBlock {
		return nil, errBlockSize
	}
	if n > int64(len(c.b)-c.at) {
		return nil, errShort
	}
	p := c.b[c.at : c.at+int(n)]
	c.at += int(n)
	return p, nil
}

func (c *cursor) long() (int64, error) {
	n, size := binary.Varint(c.b[c.at:])
	if size == 0 {
		return 0, errShort
	}
	if size < 0 {
		return 0, errors.New("a number of more than 64 bits")
	}
	c.at += size
	return n, nil
}

func (c *cursor) text() ([]byte, error) {
	n, err := c.long()
	if err != nil {
		return nil, err
	}
	return c.take(n)
}

// pairs reads a map of texts, which comes in portions.
func (c *cursor) pairs(f func(key, value []byte)) error {
	for {
		n, err := c.long()
		if err != nil || n == 0 {
			return err
		}
		if n < 0 { // then the length in bytes follows
			n = -n
			if _, err := c.long(); err != nil {
				return err
			}
		}
		for ; n > 0; n-- {
			key, err := c.text()
			if err != nil {
				return err
			}
			value, err := c.text()
			if err != nil {
				return err
			}
			f(key, value)
		}
	}
}
