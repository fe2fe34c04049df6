package pebble

import (
	"bytes"
	"errors"
	"hash/maphash"
	"slices"

	"github.com/cockroachdb/pebble/v2"
)

// batch reads rows of one kind that the cache does not have, in the order of their keys: an iterator that only goes forward
// opens each file and block once, where reads one by one open them again and again.
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

// fewWants are read one by one: an iterator costs something.
const fewWants = 4

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
	if len(b.wants) < fewWants {
		for _, w := range b.wants {
			r, err := c.get(l, b.key(w), what)
			if err != nil {
				return err
			}
			found(w.place, r)
		}
		return nil
	}
	slices.SortFunc(b.wants, func(x, y want) int { return bytes.Compare(b.key(x), b.key(y)) })
	it, err := c.store.tree.NewIter(&pebble.IterOptions{UseL6Filters: c.absent > c.present/8})
	if err != nil {
		return l.unread(err)
	}
	err = b.seek(c, l, what, it, found)
	if err = errors.Join(err, it.Close()); err != nil {
		return l.unread(err)
	}
	return nil
}

func (b *batch) seek(c *cache, l *ledger, what uint8, it *pebble.Iterator, found func(place int, r *row)) error {
	if c.present+c.absent > 1<<12 {
		c.present, c.absent = c.present/2, c.absent/2
	}
	var last []byte
	var r *row
	for _, w := range b.wants {
		key := b.key(w)
		if r != nil && bytes.Equal(key, last) {
			found(w.place, r) // the key comes twice
			continue
		}
		last = key
		var err error
		if it.SeekPrefixGE(key) {
			c.present++
			var value []byte
			if value, err = it.ValueAndErr(); err == nil {
				r, err = c.load(l, w.hash, key, value, what)
			}
		} else if err = it.Error(); err == nil {
			c.absent++
			r, err = c.add(l, w.hash, key, what, c.leastRoom(l, what))
		}
		if err != nil {
			return err
		}
		found(w.place, r)
	}
	return nil
}
