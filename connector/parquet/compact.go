package parquet

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Types of values in the compact encoding of Thrift, in which Parquet keeps its metadata.
const (
	thriftTrue   = 1
	thriftFalse  = 2
	thriftByte   = 3
	thriftI16    = 4
	thriftI32    = 5
	thriftI64    = 6
	thriftDouble = 7
	thriftBinary = 8
	thriftList   = 9
	thriftSet    = 10
	thriftMap    = 11
	thriftStruct = 12
	thriftUUID   = 13
)

// maxDepth is how deep values may lie in values.
const maxDepth = 64

var (
	errShort   = errors.New("it ends within a value")
	errNumber  = errors.New("a number is none")
	errTooDeep = errors.New("values lie too deep in values")
)

// compact goes through values in the compact encoding of Thrift. The library's decoder takes memory for as many elements
// as a list says it has, before it looks for them; compact only looks whether there can be so many.
type compact struct {
	b  []byte
	at int
}

func (c *compact) take(n int) ([]byte, error) {
	if n > len(c.b)-c.at {
		return nil, errShort
	}
	p := c.b[c.at : c.at+n]
	c.at += n
	return p, nil
}

func (c *compact) byte() (byte, error) {
	p, err := c.take(1)
	if err != nil {
		return 0, err
	}
	return p[0], nil
}

func (c *compact) uvarint() (uint64, error) {
	n, size := binary.Uvarint(c.b[c.at:])
	if size == 0 {
		return 0, errShort
	}
	if size < 0 {
		return 0, errNumber
	}
	c.at += size
	return n, nil
}

// integer reads a signed number of any width but a byte's.
func (c *compact) integer() (int64, error) {
	n, err := c.uvarint()
	return int64(n>>1) ^ -int64(n&1), err
}

// length reads the length of something whose parts take a byte each, at least.
func (c *compact) length() (int, error) {
	n, err := c.uvarint()
	if err == nil && n > uint64(len(c.b)-c.at) {
		err = errShort
	}
	return int(n), err
}

// fields calls f for each field of a struct; f takes the value.
func (c *compact) fields(f func(id int16, typ byte) error) error {
	id := int16(0)
	for {
		head, err := c.byte()
		if err != nil {
			return err
		}
		typ := head & 0x0f
		if typ == 0 {
			return nil
		}
		if delta := head >> 4; delta != 0 {
			id += int16(delta)
		} else {
			n, err := c.integer()
			if err != nil {
				return err
			}
			id = int16(n)
		}
		if err := f(id, typ); err != nil {
			return err
		}
	}
}

// list reads the head of a list or set.
func (c *compact) list() (n int, typ byte, err error) {
	head, err := c.byte()
	if err != nil {
		return 0, 0, err
	}
	if n = int(head >> 4); n == 15 {
		n, err = c.length()
	} else if n > len(c.b)-c.at {
		err = errShort
	}
	return n, head & 0x0f, err
}

// skip goes behind a value of a type. In a field a bool is in the type; in a list it takes a byte.
func (c *compact) skip(typ byte, inList bool, depth int) (err error) {
	if depth > maxDepth {
		return errTooDeep
	}
	switch typ {
	case thriftTrue, thriftFalse:
		if inList {
			_, err = c.byte()
		}
	case thriftByte:
		_, err = c.byte()
	case thriftI16, thriftI32, thriftI64:
		_, err = c.uvarint()
	case thriftDouble:
		_, err = c.take(8)
	case thriftUUID:
		_, err = c.take(16)
	case thriftBinary:
		var n int
		if n, err = c.length(); err == nil {
			_, err = c.take(n)
		}
	case thriftList, thriftSet:
		err = c.skipList(depth)
	case thriftMap:
		err = c.skipMap(depth)
	case thriftStruct:
		err = c.fields(func(_ int16, typ byte) error { return c.skip(typ, false, depth+1) })
	default:
		err = fmt.Errorf("a value has the unknown type %d", typ)
	}
	return err
}

func (c *compact) skipList(depth int) error {
	n, typ, err := c.list()
	for ; err == nil && n > 0; n-- {
		err = c.skip(typ, true, depth+1)
	}
	return err
}

func (c *compact) skipMap(depth int) error {
	n, err := c.length()
	if err != nil || n == 0 {
		return err
	}
	types, err := c.byte()
	for ; err == nil && n > 0; n-- {
		if err = c.skip(types>>4, true, depth+1); err == nil {
			err = c.skip(types&0x0f, true, depth+1)
		}
	}
	return err
}
