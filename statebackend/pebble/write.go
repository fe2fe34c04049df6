package pebble

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/sstable"
)

// news is a row that the tree is to be told of, with the first bytes of its key as numbers, by which rows are sorted.
type news struct {
	high, low uint64
	row       *row
}

func newsOf(r *row) news {
	var head [16]byte
	copy(head[:], r.key())
	return news{binary.BigEndian.Uint64(head[:8]), binary.BigEndian.Uint64(head[8:]), r}
}

// compare compares by keys. Nearly always it need not look at the rows, which lie far apart.
func (n news) compare(o news) int {
	if n.high != o.high {
		return cmp.Compare(n.high, o.high)
	}
	if n.low != o.low {
		return cmp.Compare(n.low, o.low)
	}
	return bytes.Compare(n.row.key(), o.row.key())
}

// space is the part of the tree that the row is in.
func (n news) space() uint16 { return uint16(n.high >> 48) }

// write tells the tree of rows, in the order of their keys: of many by files that it takes over, of few by a batch, unless
// there are layers, which would have to be given up.
func (c *cache) write(rows []*row) error {
	c.store.trace(rows)
	c.news = c.news[:0]
	size := int64(0)
	for _, r := range rows {
		was := r.state
		r.state &^= dirty | known
		if r.is(live) {
			r.state |= known
		} else if was&known == 0 {
			continue // which the tree does not have
		}
		c.news = append(c.news, newsOf(r))
		size += int64(r.klen+r.vlen) + 32
	}
	slices.SortFunc(c.news, news.compare)
	var err error
	switch {
	case size > c.few || size > 0 && len(c.layers.all) > 0:
		err = c.writeFiles(c.news)
	case size > 0:
		err = c.writeBatch(c.news, size)
	}
	clear(c.news)
	if broken := c.store.tree.broken(); broken != nil {
		err = broken
	}
	if err != nil {
		return c.errWrite(err)
	}
	return nil
}

// writeBatch writes sorted rows to the memory table.
func (c *cache) writeBatch(rows []news, size int64) error {
	if err := c.giveUp(); err != nil {
		return err
	}
	c.pay(c.store.tree.fill(size))
	b := c.store.tree.NewBatch()
	set := func(key, value []byte) error { return b.Set(key, value, nil) }
	remove := func(key []byte) error { return b.Delete(key, nil) }
	for _, n := range rows {
		if err := c.tell(n.row, set, remove); err != nil {
			return errors.Join(err, b.Close())
		}
	}
	return errors.Join(b.Commit(pebble.NoSync), b.Close())
}

// tell writes a row by one of two functions.
func (c *cache) tell(r *row, set func(key, value []byte) error, remove func(key []byte) error) error {
	if !r.is(live) {
		return remove(r.key())
	}
	value, err := c.owners[r.owner].pack(c.buf[:0], r)
	c.buf = value[:0]
	if err != nil {
		return err
	}
	return set(r.key(), value)
}

// writeFiles writes sorted rows as files that the tree takes over: each space's rows apart, as bulk does, and as the memory
// table may have rows of other spaces.
func (c *cache) writeFiles(rows []news) error {
	for len(rows) > 0 {
		n := c.file(rows)
		if err := c.writeFile(rows[:n]); err != nil {
			return err
		}
		rows = rows[n:]
	}
	return c.settleLayers()
}

// writeFile writes sorted rows of a space as a file, a layer if there may be another one.
func (c *cache) writeFile(rows []news) error {
	t := c.store.tree
	memory, layered := c.room(rows)
	var filter bloomFilter
	if layered {
		filter = newBloom(len(rows))
	}
	path := filepath.Join(t.folder, fmt.Sprintf("rows-%d.sst", t.number()))
	err := t.writeTable(path, layered, func(w *sstable.Writer) error {
		set, remove := w.Set, w.Delete
		for _, n := range rows {
			if layered {
				filter.add(n.row.hash)
			}
			if err := c.tell(n.row, set, remove); err != nil {
				return err
			}
		}
		return nil
	})
	switch {
	case err != nil:
		if layered {
			c.giveBack(memory)
		}
		return err
	case layered:
		return c.takeLayer(path, &layer{space: rows[0].space(), filter: filter, memory: memory})
	}
	if err := c.giveUp(); err != nil {
		return err
	}
	return t.takeOver(path)
}

// file is how many of sorted rows make the next file: those of a space, but not many more than are usually written at once.
func (c *cache) file(rows []news) (n int) {
	size := int64(0)
	for n < len(rows) && rows[n].space() == rows[0].space() && size < max(c.store.tree.file, 2*c.limit/cleanShare) {
		size += int64(rows[n].row.klen + rows[n].row.vlen)
		n++
	}
	return n
}

// pay draws what the tree needs more on the budget. If that refuses, the cache gives spare memory up for it; what then still
// lacks is asked for again at the next write, when the cache will have more to spare.
func (c *cache) pay(need int64) {
	t := c.store.tree
	for need > 0 && t.extend(need) != nil && len(c.spare) > 1 {
		for freed := int64(0); freed < need && len(c.spare) > 1; {
			s := c.spare[len(c.spare)-1]
			c.spare = c.spare[:len(c.spare)-1]
			freed += s.bytes()
			c.scrap(s)
		}
	}
}
