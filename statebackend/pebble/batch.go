package pebble

import (
	"bytes"
	"hash/maphash"
	"slices"
)

// batch reads rows of one kind that the cache does not have, in the order of their keys: who only goes forward opens each file
// and block once.
type batch struct {
	wants []want
	keys  []byte
}

// want is a row that is to be read: its key lies at from in keys.
type want struct {
	hash     uint32
	place    int // in what was asked for
	from, to int
}

// look gives the row of a key if the cache has it; nil if not, and notes to read it.
func (b *batch) look(c *cache, key []byte, place int) *row {
	hash := uint32(maphash.Bytes(c.seed, key))
	if r := c.find(hash, key); r != nil {
		if r.heat < maxHeat {
			r.heat++
		}
		return r
	}
	from := len(b.keys)
	b.keys = append(b.keys, key...)
	b.wants = append(b.wants, want{hash, place, from, len(b.keys)})
	return nil
}

func (b *batch) key(w want) []byte { return b.keys[w.from:w.to] }

// read reads what was noted and calls found for each place.
func (b *batch) read(c *cache, l *ledger, what uint8, found func(place int, r *row)) error {
	defer func() { b.wants, b.keys = b.wants[:0], b.keys[:0] }()
	slices.SortFunc(b.wants, func(x, y want) int { return bytes.Compare(b.key(x), b.key(y)) })
	var last []byte
	var r *row
	for _, w := range b.wants {
		if key := b.key(w); r == nil || !bytes.Equal(key, last) { // else the key comes twice
			var err error
			if r, err = c.fetch(l, w.hash, key, what); err != nil {
				return err
			}
			last = key
		}
		found(w.place, r)
	}
	return nil
}
