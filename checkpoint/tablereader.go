package checkpoint

import (
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"

	"github.com/flott-dev/flott/serde"
	"github.com/flott-dev/flott/statebackend"
)

// errEnough ends the reading of a table whose consumer has enough. Nobody sees it.
var errEnough = errors.New("the consumer has enough")

// tableReader reads the rows of one table.
type tableReader struct {
	r       *restoredOperator
	layout  rowLayout
	changes rowLayout // of layers of changes
	hasher  serde.Hasher
	row     statebackend.Row
	yield   func(*statebackend.Row, error) bool
	batches *batcher // nil: rows are given one by one
}

// rows reads the rows of a table from one part after the other, which is the order of the key groups.
func (r *restoredOperator) rows(info statebackend.TableInfo) iter.Seq2[*statebackend.Row, error] {
	return r.reading(info, func(t *tableReader) error { return t.read(info.Name) })
}

// changesIn reads the changes of a table that lies in files of a backend.
func (r *restoredOperator) changesIn(p *Part, table int) iter.Seq2[*statebackend.Row, error] {
	return r.reading(p.Tables[table], func(t *tableReader) error { return t.readChanges(p, table) })
}

// reading gives the rows that read yields.
func (r *restoredOperator) reading(info statebackend.TableInfo, read func(*tableReader) error) iter.Seq2[*statebackend.Row, error] {
	return func(yield func(*statebackend.Row, error) bool) {
		t := &tableReader{r: r, yield: yield}
		err := t.prepare(&info)
		if err == nil {
			err = read(t)
		}
		if err != nil && !errors.Is(err, errEnough) {
			yield(nil, t.failed(info.Name, err))
		}
	}
}

// prepare finds out how the rows of a table stand in blocks.
func (t *tableReader) prepare(info *statebackend.TableInfo) (err error) {
	if t.layout, err = layoutOf(info); err != nil {
		return err
	}
	t.changes = t.layout
	t.changes.changes = true
	t.hasher = (&serde.Key{Width: uintptr(t.layout.key.width)}).Hasher(t.r.seed)
	return nil
}

// failed is the error of reading a table.
func (t *tableReader) failed(table string, err error) error {
	return fmt.Errorf("read table %q of %s: %w", table, t.r.operator.label(), err)
}

func (t *tableReader) read(name string) error {
	for _, p := range t.r.operator.Parts {
		if !t.r.overlaps(p) {
			continue
		}
		index := slices.IndexFunc(p.Tables, func(i statebackend.TableInfo) bool { return i.Name == name })
		if index < 0 || p.base(index).files && !t.r.offline {
			continue
		}
		if err := t.part(p, index); err != nil {
			return err
		}
	}
	return nil
}

// cursors are those of a table in the layers of a part: the whole table and the changes, the later ones last.
func (t *tableReader) cursors(p *Part, table int) (whole *cursor, changes []*cursor) {
	whole = &cursor{fs: t.r.fs, folder: t.r.folder, audit: t.r.audit}
	for i := range p.chunks {
		layer := p.chunks[i].layer
		if i > 0 && p.chunks[i-1].layer == layer {
			continue
		}
		pieces := p.pieces(table, layer, t.r.groups)
		switch {
		case len(pieces) == 0:
		case p.changes(table, layer):
			changes = append(changes, &cursor{fs: t.r.fs, folder: t.r.folder, audit: t.r.audit, pieces: pieces})
		default:
			whole.pieces = pieces
		}
	}
	for _, c := range changes {
		c.step = stepOf(len(changes))
	}
	return whole, changes
}

// part reads the rows of the table in a part.
func (t *tableReader) part(p *Part, table int) (err error) {
	whole, changes := t.cursors(p, table)
	defer func() { err = errors.Join(err, whole.close(), closeAll(changes)) }()
	m := merger{t: t, changes: changes, list: p.Tables[table].Kind == "list", single: p.Tables[table].Kind == "value"}
	if p.base(table).files {
		err = t.files(p, table, &m)
	} else {
		err = t.whole(whole, &m)
	}
	if err != nil {
		return err
	}
	return m.advance(math.MaxInt)
}

// whole reads a whole table past its changes.
func (t *tableReader) whole(c *cursor, m *merger) error {
	for {
		group, ok := c.group()
		if !ok {
			return nil
		}
		if err := m.advance(group); err != nil {
			return err
		}
		yield := t.yield
		if m.busy {
			yield = m.row
		}
		for {
			b, ok, err := c.block(group)
			switch {
			case err != nil || !ok:
			case t.batches != nil:
				err = t.blockInBatches(c.reader, &b, m)
			default:
				err = t.block(c.reader, &b, &t.layout, yield)
			}
			if err != nil {
				return err
			}
			if !ok {
				break
			}
		}
	}
}

// block gives the rows of a block.
func (t *tableReader) block(reader *chunkReader, b *block, layout *rowLayout, yield func(*statebackend.Row, error) bool) error {
	row, rest := &t.row, b.payload
	row.Group, row.Deleted = b.group, false
	for i := range b.rows {
		var ok bool
		if rest, ok = layout.read(rest, row, i == 0); !ok {
			return reader.damaged("row %d of the block at byte %d is cut or malformed", i+1, b.at)
		}
		row.Hash = t.hasher.One(row.Key)
		if !yield(row, nil) {
			return errEnough
		}
	}
	if len(rest) > 0 {
		return reader.damaged("the block at byte %d has %d bytes behind its %d rows", b.at, len(rest), b.rows)
	}
	return nil
}

// readChanges gives the changes of a table as they are, group by group and layer by layer.
func (t *tableReader) readChanges(p *Part, table int) (err error) {
	_, changes := t.cursors(p, table)
	defer func() { err = errors.Join(err, closeAll(changes)) }()
	for {
		group := lowest(changes)
		if group == math.MaxInt {
			return nil
		}
		for _, c := range changes {
			for {
				b, ok, err := c.block(group)
				if err == nil && ok {
					err = t.block(c.reader, &b, &t.changes, t.yield)
				}
				if err != nil {
					return err
				}
				if !ok {
					break
				}
			}
		}
	}
}

// lowest is the lowest key group that cursors come to next; math.MaxInt if they are at their ends.
func lowest(all []*cursor) int {
	least := math.MaxInt
	for _, c := range all {
		if group, ok := c.group(); ok {
			least = min(least, group)
		}
	}
	return least
}
