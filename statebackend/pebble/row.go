package pebble

import (
	"fmt"
	"unsafe"
)

// row is a row of the tree as the cache holds it, or the knowledge that there is none: this head, then the value, then the
// key, in the memory of a segment. The value begins at a multiple of 8 bytes, and has room to grow to vcap.
//
// Fields are apart by who looks at them: the goroutine that reads a snapshot looks at stamp, klen and vcap of rows that were
// there at its moment, and at state, vlen, value and key of those whose stamp is older than it. See touch.
type row struct {
	hash  uint32
	seg   uint32 // number of its segment
	lent  uint32 // the owner's epoch in which its address was given away
	stamp uint32 // the store's generation in which it was last about to change
	klen  uint32
	vlen  uint32
	vcap  uint32
	owner uint16 // among the cache's owners
	state uint8
	heat  uint8 // how often it was used since the cache last looked, to maxHeat
}

// What is to be said of a row.
const (
	live  = 1 << iota // the row exists
	dirty             // the tree must be told
	known             // the tree may have a row of this key
	dead              // it is another row by now, or somewhere else
	slot              // the value begins with a Go value in its memory, of owner.size bytes
)

const (
	headBytesOfRow = unsafe.Sizeof(row{})
	headWords      = int(headBytesOfRow / 8)
	maxHeat        = 3
)

// wordsFor is how many words a row takes.
func wordsFor(klen, vcap int) int { return headWords + vcap/8 + (klen+7)/8 }

func (r *row) words() int { return wordsFor(int(r.klen), int(r.vcap)) }

func (r *row) is(what uint8) bool { return r.state&what != 0 }

// value is the value as it is in the cache; empty if there is none.
func (r *row) value() []byte {
	return unsafe.Slice((*byte)(unsafe.Add(unsafe.Pointer(r), headBytesOfRow)), int(r.vcap))[:r.vlen]
}

// address is where the value begins.
func (r *row) address() unsafe.Pointer { return unsafe.Add(unsafe.Pointer(r), headBytesOfRow) }

func (r *row) key() []byte {
	return unsafe.Slice((*byte)(unsafe.Add(unsafe.Pointer(r), headBytesOfRow+uintptr(r.vcap))), int(r.klen))
}

// pack appends the value of a row as the tree has it: a Go value in its encoding, the rest as it is.
func (l *ledger) pack(dst []byte, r *row) ([]byte, error) {
	v := r.value()
	if r.state&slot == 0 {
		return append(dst, v...), nil
	}
	dst, err := l.s.Value.Append(dst, r.address())
	if err != nil {
		return dst, err
	}
	return append(dst, v[l.size:]...), nil
}

// unpacked is the size that a value of the tree has in the cache.
func (l *ledger) unpacked(value []byte, what uint8) (int, error) {
	if what&slot == 0 {
		return len(value), nil
	}
	if len(value) < l.width {
		return 0, fmt.Errorf("a row of %d bytes: a value takes %d", len(value), l.width)
	}
	return len(value) - l.width + int(l.size), nil
}

// unpack writes a value of the tree into a row that has room for it.
func (l *ledger) unpack(r *row, value []byte) error {
	if r.state&slot == 0 {
		copy(r.value(), value)
		return nil
	}
	n, err := l.s.Value.Read(value[:l.width], r.address())
	if err == nil && n != l.width {
		err = fmt.Errorf("a value of %d bytes takes %d", l.width, n)
	}
	if err != nil {
		return err
	}
	copy(r.value()[l.size:], value[l.width:])
	return nil
}
