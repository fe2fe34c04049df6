package windows

import (
	"fmt"
	"iter"
	"math/bits"
	"unsafe"

	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/host"
	"github.com/flott-dev/flott/internal/keygroup"
	"github.com/flott-dev/flott/serde"
	"github.com/flott-dev/flott/statebackend"
)

// Frozen is a snapshot of accumulators by key: copies that are made at once, of keys and accumulators as they lie in memory,
// and become rows when they are read, on another goroutine. It implements statebackend.Frozen. Drivers that keep
// accumulators in memory of their own fill it.
type Frozen struct {
	// K are the kernels, Key the type of the keys, Seed the job's hash seed and Groups the number of key groups.
	K      *Incremental
	Key    *serde.Key
	Seed   uint64
	Groups int
	// Memory is the budget that the copies draw on; nil: without limit.
	Memory *host.Memory
	// Spare gives memory for the copies, and gets it back at the release; nil: all memory is new.
	Spare *Spare

	spare  *copies // of Spare; nil: nothing was asked for
	own    copies  // what goes back
	held   int64
	keys   unsafe.Pointer
	n      int // keys
	tables []frozenTable

	// By key, of those that have an accumulator; made when the first rows are read.
	names []name
	canon []byte
}

// name is what rows say of a key.
type name struct {
	hash  uint64
	from  uint64
	len   uint32
	group uint16
	used  bool
}

// frozenTable is a table and its parts.
type frozenTable struct {
	info  statebackend.TableInfo
	parts []*Part
}

// Part is some accumulators of a table.
type Part struct {
	// Label completes the row of entry j: namespace and map key, which are valid until the next call. What it returns is the
	// value's beginning, before the accumulator.
	Label func(j int, row *statebackend.Row) []byte

	ids  []uint32 // the keys of the entries; nil: bits has them
	bits []uint64
	accs unsafe.Pointer // by place, or encoded by entry
	code []byte
	ends []int
}

// reserve draws on the budget.
func (f *Frozen) reserve(n int64) error {
	if f.Memory != nil {
		if err := f.Memory.Reserve(n); err != nil {
			return fmt.Errorf("copy windows for a snapshot: %w: %w", statebackend.ErrOutOfMemory, err)
		}
	}
	f.held += n
	return nil
}

// Release implements statebackend.Frozen.
func (f *Frozen) Release() {
	if f.Memory != nil && f.held != 0 {
		f.Memory.Release(f.held)
	}
	f.held, f.tables, f.keys, f.names, f.canon = 0, nil, nil, nil, nil
	if f.Spare != nil && len(f.own.arrays) > 0 {
		f.Spare.put(&copies{f.own.arrays})
	}
	f.spare, f.own = nil, copies{}
}

// array gives memory for n values, which holds anything.
func (f *Frozen) array(of *Memory, n int) unsafe.Pointer {
	if f.Spare == nil {
		return of.New(n)
	}
	if f.spare == nil {
		f.spare = f.Spare.take()
	}
	a := f.spare.array(of, n)
	f.own.arrays = append(f.own.arrays, a)
	return a.p
}

// CopyKeys copies the n keys of an array; entries name them by number.
func (f *Frozen) CopyKeys(keys unsafe.Pointer, n int) error {
	m := &f.K.Keys
	if err := f.reserve(int64(n) * int64(m.Size)); err != nil {
		return err
	}
	f.keys, f.n = f.array(m, max(n, 1)), n
	if n > 0 {
		m.Move(f.keys, keys, n)
	}
	return nil
}

// MakeKeys gives memory for up to n keys, which holds anything; SetKeys says how many it has.
func (f *Frozen) MakeKeys(n int) unsafe.Pointer {
	f.keys = f.array(&f.K.Keys, n)
	return f.keys
}

// SetKeys makes the first n keys of what MakeKeys gave those of the snapshot.
func (f *Frozen) SetKeys(n int) { f.n = n }

// Table adds a table, whose number it returns.
func (f *Frozen) Table(info statebackend.TableInfo) int {
	f.tables = append(f.tables, frozenTable{info: info})
	return len(f.tables) - 1
}

// AddDense copies accumulators that lie by key: those of the keys whose bits are set.
func (f *Frozen) AddDense(table int, accs unsafe.Pointer, set []uint64, label func(int, *statebackend.Row) []byte) error {
	if f.K.Acc.Layout == serde.Encoded {
		var ids []uint32
		for w, word := range set {
			for ; word != 0; word &= word - 1 {
				ids = append(ids, uint32(w<<6+bits.TrailingZeros64(word)))
			}
		}
		return f.AddListed(table, accs, ids, ids, label)
	}
	size := 64 * len(set)
	if err := f.reserve(int64(size)*int64(f.K.Accs.Size) + 8*int64(len(set))); err != nil {
		return err
	}
	p := &Part{Label: label, bits: append([]uint64(nil), set...), accs: f.array(&f.K.Accs, size)}
	f.K.Accs.Move(p.accs, accs, size)
	f.add(table, p)
	return nil
}

// AddListed copies the accumulators at places at[j] of an array, that of entry j with the key ids[j].
func (f *Frozen) AddListed(table int, accs unsafe.Pointer, ids, at []uint32, label func(int, *statebackend.Row) []byte) error {
	m := &f.K.Accs
	p := &Part{Label: label, ids: append([]uint32(nil), ids...)}
	if f.K.Acc.Layout != serde.Encoded {
		if err := f.reserve(int64(len(ids)) * int64(m.Size+4)); err != nil {
			return err
		}
		p.accs = f.array(m, max(len(ids), 1))
		for j, place := range at {
			m.Move(m.At(p.accs, j), m.At(accs, int(place)), 1)
		}
		f.add(table, p)
		return nil
	}
	for _, place := range at { // what is behind pointers changes: it is encoded now
		var err error
		if p.code, err = f.K.Acc.Append(p.code, m.At(accs, int(place))); err != nil {
			return fmt.Errorf("encode an accumulator for a snapshot: %w", err)
		}
		p.ends = append(p.ends, len(p.code))
	}
	f.add(table, p)
	return f.reserve(int64(cap(p.code)) + 12*int64(len(ids)))
}

func (f *Frozen) add(table int, p *Part) {
	t := &f.tables[table]
	t.parts = append(t.parts, p)
}

// Tables implements statebackend.Frozen: those that have rows.
func (f *Frozen) Tables() []statebackend.FrozenTable {
	var all []statebackend.FrozenTable
	for i := range f.tables {
		if t := &f.tables[i]; len(t.parts) > 0 {
			all = append(all, statebackend.FrozenTable{TableInfo: t.info, Rows: f.rows(t)})
		}
	}
	return all
}

// entry is an accumulator: number j of a part, at a place, of a key.
type entry struct {
	part      int
	j, id, at uint32
}

// each calls visit for all entries, part by part.
func (t *frozenTable) each(visit func(e entry)) {
	for i, p := range t.parts {
		if p.ids != nil {
			for j, id := range p.ids {
				visit(entry{i, uint32(j), id, uint32(j)})
			}
			continue
		}
		j := uint32(0)
		for w, word := range p.bits {
			for ; word != 0; word &= word - 1 {
				id := uint32(w<<6 + bits.TrailingZeros64(word))
				visit(entry{i, j, id, id})
				j++
			}
		}
	}
}

// rows gives the entries key group by key group, those of a group in their order.
func (f *Frozen) rows(t *frozenTable) iter.Seq2[*statebackend.Row, error] {
	return func(yield func(*statebackend.Row, error) bool) {
		if err := f.index(); err != nil {
			yield(nil, err)
			return
		}
		next := make([]int, f.Groups+1)
		n := 0
		t.each(func(e entry) {
			next[int(f.names[e.id].group)+1]++
			n++
		})
		for g := range f.Groups {
			next[g+1] += next[g]
		}
		order := make([]entry, n)
		t.each(func(e entry) {
			g := f.names[e.id].group
			order[next[g]] = e
			next[g]++
		})
		var row statebackend.Row
		var value []byte
		for i := range order {
			var err error
			if value, err = f.row(t, &order[i], &row, value); err != nil {
				yield(nil, err)
				return
			}
			if !yield(&row, nil) {
				return
			}
		}
	}
}

// row makes the row of an entry; buf is for its value.
func (f *Frozen) row(t *frozenTable, e *entry, row *statebackend.Row, buf []byte) (_ []byte, err error) {
	p, n := t.parts[e.part], &f.names[e.id]
	*row = statebackend.Row{Group: int(n.group), Hash: n.hash, Key: f.canon[n.from : n.from+uint64(n.len) : n.from+uint64(n.len)]}
	buf = append(buf[:0], p.Label(int(e.j), row)...)
	if p.ends == nil {
		if buf, err = f.K.Acc.Append(buf, f.K.Accs.At(p.accs, int(e.at))); err != nil {
			return buf, fmt.Errorf("encode an accumulator: %w", err)
		}
	} else {
		from := 0
		if e.j > 0 {
			from = p.ends[e.j-1]
		}
		buf = append(buf, p.code[from:p.ends[e.j]]...)
	}
	row.Value = buf
	return buf, nil
}

// index finds out what rows say of the keys that have an accumulator.
func (f *Frozen) index() error {
	if f.names != nil {
		return nil
	}
	f.names = make([]name, f.n)
	var used []uint32
	for i := range f.tables {
		f.tables[i].each(func(e entry) {
			if n := &f.names[e.id]; !n.used {
				n.used = true
				used = append(used, e.id)
			}
		})
	}
	m := &f.K.Keys
	keys, hashes := m.New(frame.MaxLen), make([]uint64, frame.MaxLen)
	var scratch serde.KeyScratch
	for len(used) > 0 {
		part := used[:min(len(used), frame.MaxLen)]
		used = used[len(part):]
		for i, id := range part {
			m.Move(m.At(keys, i), m.At(f.keys, int(id)), 1)
		}
		canon, err := f.Key.Canon(serde.Column{P: keys, N: len(part), Stride: m.Size}, &scratch)
		if err != nil {
			return fmt.Errorf("take the keys of windows: %w", err)
		}
		f.Key.Hash(&canon, f.Seed, hashes)
		for i, id := range part {
			b := canon.Bytes(i)
			f.names[id] = name{
				hash: hashes[i], from: uint64(len(f.canon)), len: uint32(len(b)),
				group: uint16(keygroup.Of(uint32(hashes[i]), f.Groups)), used: true,
			}
			f.canon = append(f.canon, b...)
		}
	}
	return nil
}
