package pebble

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/sstable"
)

// layers are the files of rows that the cache has written and the tree has not merged with others yet. They are parts of the
// tree: snapshots and scans see them there. Reads of single rows look into them first, from the newest on, and then into the
// rest of the tree, by an iterator that leaves them out: Pebble would ask each of them, which costs it as much as the read.
//
// That is right as long as rows in layers are newer than those in the rest. Where rows are written in another way, layers are
// given up, and reads ask the whole tree until it has merged them all.
type layers struct {
	all    []*layer
	hidden map[uint64]bool // the tree's numbers of the files that iterators can leave out
	given  bool            // up
}

// layer is a file of rows.
type layer struct {
	number uint64
	space  uint16 // of all its rows
	filter bloomFilter
	file   *sstable.Reader
	it     sstable.Iterator
	memory int64
}

const (
	// mostFiles bounds how many layers there are: the filters of those of a space are asked for each row that is not in the
	// cache. Level 0 of the tree has as many layers of each space as stopLayers at most.
	mostFiles = 3 * stopLayers
	// layerShare is the part of the cache's memory that layers may take.
	layerShare = 4
	// layerBytes is about what the reader of a layer takes, apart from its index, and indexShare the part of a file that is
	// its index.
	layerBytes = 8 << 10
	indexShare = 200
)

// open opens the file of a layer before the tree takes it over.
func (y *layer) open(t *tree, path string) error {
	f, err := t.fs.Open(path)
	if err != nil {
		return err
	}
	readable, err := sstable.NewSimpleReadable(f)
	if err != nil {
		return errors.Join(err, f.Close())
	}
	if y.file, err = sstable.NewReader(context.Background(), readable, t.options.MakeReaderOptions()); err != nil {
		return errors.Join(err, readable.Close())
	}
	if y.it, err = y.file.NewIter(sstable.NoTransforms, nil, nil, sstable.AssertNoBlobHandles); err != nil {
		return errors.Join(err, y.file.Close())
	}
	return nil
}

func (y *layer) close() error { return errors.Join(y.it.Close(), y.file.Close()) }

// find looks for a row, which may be one that says that it was deleted. The value is good until the next call.
func (y *layer) find(hash uint32, key []byte) (value []byte, found, live bool, err error) {
	if !y.filter.has(hash) {
		return nil, false, false, nil
	}
	kv := y.it.SeekGE(key, 0)
	if kv == nil {
		return nil, false, false, y.it.Error()
	}
	if !bytes.Equal(kv.K.UserKey, key) {
		return nil, false, false, nil
	}
	if kv.K.Kind() == pebble.InternalKeyKindDelete {
		return nil, true, false, nil
	}
	value, _, err = kv.Value(nil)
	return value, true, true, err
}

// fetch reads a row that the cache does not have.
func (c *cache) fetch(l *ledger, hash uint32, key []byte, what uint8) (*row, error) {
	space := binary.BigEndian.Uint16(key)
	for i := len(c.layers.all) - 1; i >= 0; i-- {
		if c.layers.all[i].space != space {
			continue
		}
		value, found, live, err := c.layers.all[i].find(hash, key)
		switch {
		case err != nil:
			return nil, l.unread(err)
		case live:
			return c.fetched(l, hash, key, value, what)
		case found:
			return c.add(l, hash, key, what, c.leastRoom(l, what))
		}
	}
	if c.present+c.absent > 1<<12 {
		c.present, c.absent = c.present/2, c.absent/2
	}
	it, err := c.store.tree.reader(c.absent > c.present/8, !c.layers.given && len(c.layers.hidden) > 0)
	if err != nil {
		return nil, l.unread(err)
	}
	if it.SeekPrefixGE(key) {
		c.present++
		value, err := it.ValueAndErr()
		if err != nil {
			return nil, l.unread(err)
		}
		return c.fetched(l, hash, key, value, what)
	}
	if err := it.Error(); err != nil {
		return nil, l.unread(err)
	}
	c.absent++
	return c.add(l, hash, key, what, c.leastRoom(l, what))
}

func (c *cache) fetched(l *ledger, hash uint32, key, value []byte, what uint8) (*row, error) {
	r, err := c.load(l, hash, key, value, what)
	if err != nil {
		return nil, l.unread(err)
	}
	return r, nil
}

// room draws the memory of a layer of rows on the budget, if there may be another one.
func (c *cache) room(rows []news) (memory int64, ok bool) {
	if c.layers.given || len(c.layers.all) >= mostFiles {
		return 0, false
	}
	size := int64(0)
	for _, n := range rows {
		size += int64(n.row.klen + n.row.vlen)
	}
	memory = bloomBytes(len(rows)) + size/indexShare + layerBytes
	return memory, c.layered+memory <= c.mostLayered && c.reserve(memory) == nil
}

// takeLayer lets the tree take over the file of a layer, whose memory is drawn.
func (c *cache) takeLayer(path string, y *layer) error {
	t := c.store.tree
	err := y.open(t, path)
	if err == nil {
		if err = t.takeOver(path); err != nil {
			err = errors.Join(err, y.close())
		}
	}
	if err != nil {
		c.giveBack(y.memory)
		return err
	}
	y.number = t.taken
	if c.layers.hidden == nil {
		c.layers.hidden = map[uint64]bool{}
	}
	c.layers.hidden[y.number] = true
	c.layers.all = append(c.layers.all, y)
	c.layered += y.memory
	return nil
}

// settleLayers forgets layers that the tree has merged with others.
func (c *cache) settleLayers() error {
	if len(c.layers.hidden) == 0 {
		return nil
	}
	levels, err := c.store.tree.SSTables()
	if err != nil {
		return err
	}
	there := map[uint64]bool{}
	for _, tables := range levels {
		for i := range tables {
			if n := uint64(tables[i].FileNum); c.layers.hidden[n] {
				there[n] = true
			}
		}
	}
	c.layers.hidden = there
	kept := c.layers.all[:0]
	for _, y := range c.layers.all {
		if there[y.number] {
			kept = append(kept, y)
		} else {
			err = errors.Join(err, c.closeLayer(y))
		}
	}
	clear(c.layers.all[len(kept):])
	c.layers.all = kept
	if len(there) == 0 {
		c.layers.given = false
	}
	return err
}

func (c *cache) closeLayer(y *layer) error {
	c.layered -= y.memory
	c.giveBack(y.memory)
	return y.close()
}

// giveUp gives layers up, as rows are about to be written in another way.
func (c *cache) giveUp() (err error) {
	for _, y := range c.layers.all {
		err = errors.Join(err, c.closeLayer(y))
	}
	c.layers.all, c.layers.given = nil, len(c.layers.hidden) > 0
	c.store.tree.renew()
	return err
}

// layerProperty is the property of files by which iterators leave layers out. Its value is the id of the tree: another tree
// that has such a file, from a snapshot, sees a file like any other.
const layerProperty = "flott.layer"

// marker gives a file the property.
type marker struct{ id string }

// Name implements pebble.BlockPropertyCollector.
func (m marker) Name() string { return layerProperty }

// AddPointKey implements pebble.BlockPropertyCollector.
func (m marker) AddPointKey(pebble.InternalKey, []byte) error { return nil }

// AddRangeKeys implements pebble.BlockPropertyCollector.
func (m marker) AddRangeKeys(sstable.Span) error { return nil }

// AddCollectedWithSuffixReplacement implements pebble.BlockPropertyCollector.
func (m marker) AddCollectedWithSuffixReplacement([]byte, []byte, []byte) error {
	return errors.New("keys have no suffixes")
}

// SupportsSuffixReplacement implements pebble.BlockPropertyCollector.
func (m marker) SupportsSuffixReplacement() bool { return false }

// FinishDataBlock implements pebble.BlockPropertyCollector.
func (m marker) FinishDataBlock(b []byte) ([]byte, error) { return b, nil }

// AddPrevDataBlockToIndexBlock implements pebble.BlockPropertyCollector.
func (m marker) AddPrevDataBlockToIndexBlock() {}

// FinishIndexBlock implements pebble.BlockPropertyCollector.
func (m marker) FinishIndexBlock(b []byte) ([]byte, error) { return b, nil }

// FinishTable implements pebble.BlockPropertyCollector.
func (m marker) FinishTable(b []byte) ([]byte, error) { return append(b, m.id...), nil }

// Intersects implements pebble.BlockPropertyFilter: an iterator sees files of other trees, and the blocks of any.
func (m marker) Intersects(property []byte) (bool, error) { return string(property) != m.id, nil }

// SyntheticSuffixIntersects implements pebble.BlockPropertyFilter.
func (m marker) SyntheticSuffixIntersects(property, _ []byte) (bool, error) {
	return m.Intersects(property)
}
