package pebble

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"github.com/cockroachdb/pebble/v2/objstorage/objstorageprovider"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// bulk puts many new rows into a tree. They are sorted in pieces, and each piece is written as files of the tree that it takes
// over: cheaper than to write them one by one. Rows that come about in the order of their keys end in the lowest level.
type bulk struct {
	tree *tree
	rows []heldRow
	data []byte
	any  bool // pieces were written
}

const (
	bulkBytes  = 8 << 20
	smallBytes = 128 << 10 // that are not worth files
)

func newBulk(t *tree) *bulk { return &bulk{tree: t} }

// add adds a row whose key the tree does not have.
func (b *bulk) add(key, value []byte) error {
	b.rows = append(b.rows, heldRow{at: len(b.data), klen: len(key), vlen: len(value), live: true})
	b.data = append(append(b.data, key...), value...)
	if len(b.data) < bulkBytes {
		return nil
	}
	return b.flush()
}

func (b *bulk) key(h heldRow) []byte   { return b.data[h.at : h.at+h.klen] }
func (b *bulk) value(h heldRow) []byte { return b.data[h.at+h.klen : h.at+h.klen+h.vlen] }

// flush puts the rows at hand into the tree: each space's in a file of its own, so that files overlap little.
func (b *bulk) flush() error {
	slices.SortFunc(b.rows, func(x, y heldRow) int { return bytes.Compare(b.key(x), b.key(y)) })
	var paths []string
	for from := 0; from < len(b.rows); {
		space := binary.BigEndian.Uint16(b.key(b.rows[from]))
		to := from
		for to < len(b.rows) && binary.BigEndian.Uint16(b.key(b.rows[to])) == space {
			to++
		}
		path := filepath.Join(b.tree.folder, fmt.Sprintf("bulk-%d.sst", b.tree.number()))
		err := b.tree.writeTable(path, false, func(w *sstable.Writer) error {
			for _, h := range b.rows[from:to] {
				if err := w.Set(b.key(h), b.value(h)); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		paths = append(paths, path)
		from = to
	}
	b.rows, b.data, b.any = b.rows[:0], b.data[:0], true
	return errors.Join(b.tree.takeOver(paths...), b.tree.broken())
}

// finish puts all rows that are left into the tree.
func (b *bulk) finish() error {
	if b.any || len(b.data) > smallBytes {
		if len(b.rows) == 0 {
			return nil
		}
		return b.flush()
	}
	b.tree.renew()
	batch := b.tree.NewBatch()
	for _, h := range b.rows {
		if err := batch.Set(b.key(h), b.value(h), nil); err != nil {
			return errors.Join(err, batch.Close())
		}
	}
	return errors.Join(batch.Commit(pebble.NoSync), batch.Close())
}

// writeTable writes a file that the tree can take over, one that iterators can leave out if it is to be a layer.
func (t *tree) writeTable(path string, layer bool, write func(w *sstable.Writer) error) error {
	f, err := t.fs.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	// As for level 0: in the lowest level, deletions are taken to hide nothing.
	o := t.options.MakeWriterOptions(0, t.TableFormat())
	if layer {
		o.BlockPropertyCollectors = []func() pebble.BlockPropertyCollector{func() pebble.BlockPropertyCollector { return marker{t.id} }}
	}
	w := sstable.NewWriter(objstorageprovider.NewFileWritable(f), o)
	if err := write(w); err != nil {
		return errors.Join(err, w.Close())
	}
	return w.Close()
}
