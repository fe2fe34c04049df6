package checkpoint

import (
	"encoding/binary"
	"errors"
	"iter"
	"slices"

	"github.com/flott-dev/flott/statebackend"
)

// Batches implements statebackend.RestoredBatches: rows that all have the same number of bytes are columns as they stand in
// their block.
func (r *restoredOperator) Batches(name string) (iter.Seq2[*statebackend.RowBatch, error], bool) {
	i, ok := r.tables[name]
	if !ok || r.inFiles[name] || r.infos[i].Kind != "value" {
		return nil, false
	}
	info := r.infos[i]
	if l, err := layoutOf(&info); err != nil || l.stride(false) == 0 {
		return nil, false
	}
	return func(yield func(*statebackend.RowBatch, error) bool) {
		t := &tableReader{r: r}
		t.batches, t.yield = &batcher{yield: yield}, t.alone
		err := t.prepare(&info)
		if err == nil {
			err = t.read(name)
		}
		if err != nil && !errors.Is(err, errEnough) {
			yield(nil, t.failed(info.Name, err))
		}
	}, true
}

// batcher gives rows in batches.
type batcher struct {
	yield func(*statebackend.RowBatch, error) bool
	batch statebackend.RowBatch
	at    [stampBytes]byte
	row   statebackend.Row // that changes are asked about
}

// stampBytes are those of the time of a row.
const stampBytes = 8

// alone gives a row as a batch of one.
func (t *tableReader) alone(row *statebackend.Row, _ error) bool {
	b := &t.batches.batch
	*b = statebackend.RowBatch{Group: row.Group, N: 1, Keys: column(row.Key, 0, len(row.Key)), Values: column(row.Value, 0, len(row.Value))}
	if t.layout.stamped {
		at := &t.batches.at
		binary.LittleEndian.PutUint64(at[:], uint64(row.At))
		b.Times = column(at[:], 0, stampBytes)
	}
	return t.batches.yield(b, nil)
}

func column(b []byte, stride, width int) statebackend.ByteColumn {
	return statebackend.ByteColumn{B: b, Stride: stride, Width: width}
}

// blockInBatches gives the rows of a block past the changes of the group.
func (t *tableReader) blockInBatches(reader *chunkReader, b *block, m *merger) error {
	stride := t.layout.stride(false)
	if int64(len(b.payload)) != int64(b.rows)*int64(stride) {
		return t.block(reader, b, &t.layout, t.yield) // it tells what is wrong
	}
	if !m.busy {
		return t.stretch(b, 0, int(b.rows))
	}
	from, row := 0, &t.batches.row
	for i := range int(b.rows) {
		row.Key = b.payload[i*stride:][:t.layout.key.width]
		row.Hash = t.hasher.One(row.Key)
		if !m.over.has(row.Hash) {
			continue
		}
		c := m.over.find(row)
		if c == nil {
			continue
		}
		if err := t.stretch(b, from, i); err != nil {
			return err
		}
		if !m.rest(c) {
			return errEnough
		}
		from = i + 1
	}
	return t.stretch(b, from, int(b.rows))
}

// stretch gives rows [from, to) of a block of rows that have all the same number of bytes.
func (t *tableReader) stretch(b *block, from, to int) error {
	if from == to {
		return nil
	}
	l, stride := &t.layout, t.layout.stride(false)
	rows := b.payload[from*stride : to*stride]
	out := &t.batches.batch
	*out = statebackend.RowBatch{Group: b.group, N: to - from, Keys: column(rows, stride, l.key.width)}
	rows = rows[l.key.width:]
	if l.stamped {
		out.Times = column(rows, stride, stampBytes)
		rows = rows[stampBytes:]
	}
	out.Values = column(rows, stride, l.value.width)
	if !t.batches.yield(out, nil) {
		return errEnough
	}
	return nil
}

// Expect implements statebackend.RestoredBatches.
func (r *restoredOperator) Expect(name string) int64 {
	i, ok := r.tables[name]
	if !ok {
		return 0
	}
	l, err := layoutOf(&r.infos[i])
	if err != nil {
		return 0
	}
	least, n := max(1, l.least()), int64(0)
	for _, p := range r.operator.Parts {
		table := slices.IndexFunc(p.Tables, func(i statebackend.TableInfo) bool { return i.Name == name })
		if table < 0 || !r.overlaps(p) {
			continue
		}
		for k := range p.chunks {
			for j := range p.chunks[k].sections {
				if s := &p.chunks[k].sections[j]; s.place == table && !p.changes(table, p.chunks[k].layer) {
					n += r.share(s, int64(least))
				}
			}
		}
	}
	return n
}

// share is about how many rows of a section are of the operator's key groups; each has at least so many bytes.
func (r *restoredOperator) share(s *section, least int64) int64 {
	own, all := int64(0), int64(0)
	for _, g := range s.groups {
		all += g.bytes
		if r.groups.Contains(g.group) {
			own += g.bytes
		}
	}
	if own == 0 {
		return 0
	}
	return min(int64(float64(s.rows)*(float64(own)/float64(all))), own/least)
}

// stride is the number of bytes of each row of a table of values without namespaces, or of each Deleted one; 0 if rows differ.
func (l *rowLayout) stride(deleted bool) int {
	if l.key.width == 0 || l.value.width == 0 || !l.namespace.absent || !l.mapKey.absent || l.repeats {
		return 0
	}
	n := l.least()
	if deleted {
		n = l.key.width
	}
	if l.changes {
		n++
	}
	return n
}

// fits says whether a batch is one of rows of the layout, which has a stride.
func (l *rowLayout) fits(b *statebackend.RowBatch) error {
	switch {
	case b.Keys.Width != l.key.width:
		return l.key.misfit("key", b.Keys.At(0))
	case b.Deleted && !l.changes:
		return errDeleted
	case b.Deleted && len(b.Values.B)+len(b.Times.B) > 0:
		return errors.New("a batch of deleted rows has values or times")
	case b.Deleted:
		return nil
	case b.Values.Width != l.value.width:
		return l.value.misfit("value", b.Values.At(0))
	case l.stamped != (len(b.Times.B) > 0):
		return errors.New("a batch of rows has no times, or the table no time to live")
	}
	return nil
}

// put writes rows [from, to) of a batch, which fits, to out, which has their size.
func (l *rowLayout) put(out []byte, b *statebackend.RowBatch, from, to int) {
	how := 0 // bytes in front
	if l.changes {
		how = 1
	}
	if b.Deleted {
		for i := from; i < to; i++ {
			out[0] = rowDeleted
			out = out[how+copy(out[how:], b.Keys.At(i)):]
		}
		return
	}
	if pairs := adjoining(&b.Keys, &b.Values); pairs.Width > 0 && !l.stamped {
		if how == 0 && pairs.Stride == pairs.Width {
			copy(out, pairs.B[from*pairs.Stride:])
			return
		}
		for i := from; i < to; i++ {
			out[0] = rowNew
			out = out[how+copy(out[how:], pairs.At(i)):]
		}
		return
	}
	for i := from; i < to; i++ {
		out[0] = rowNew
		n := how + copy(out[how:], b.Keys.At(i))
		if l.stamped {
			n += copy(out[n:], b.Times.At(i))
		}
		n += copy(out[n:], b.Values.At(i))
		out = out[n:]
	}
}

// adjoining is two columns as one if each piece of the second lies right behind one of the first; else it has no width.
func adjoining(a, b *statebackend.ByteColumn) statebackend.ByteColumn {
	all, n := a.B[:cap(a.B)], a.Width+len(b.B)
	if a.Stride != b.Stride || len(b.B) == 0 || len(all) < n || &all[a.Width] != &b.B[0] {
		return statebackend.ByteColumn{}
	}
	return statebackend.ByteColumn{B: all[:n], Stride: a.Stride, Width: a.Width + b.Width}
}

// least is the number of bytes that a row has at least.
func (l *rowLayout) least() int {
	n := l.mapKey.least() + l.value.least()
	if !l.repeats {
		n += l.key.least() + l.namespace.least()
	}
	if l.stamped {
		n += stampBytes
	}
	return n
}

func (f fieldLayout) least() int {
	switch {
	case f.width > 0:
		return f.width
	case f.absent:
		return 0
	}
	return 1
}
