package windows

import (
	"fmt"
	"math/bits"
	"unsafe"

	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/host"
	"github.com/flott-dev/flott/internal/keygroup"
	"github.com/flott-dev/flott/serde"
	"github.com/flott-dev/flott/statebackend"
)

// Frozen is a snapshot of accumulators by key: the arrays of a driver as they are at the moment, of which the driver's Shadows
// keep what changes, and which become rows when they are read, on another goroutine. It implements statebackend.Frozen.
// Drivers that keep accumulators in memory of their own fill it.
type Frozen struct {
	// K are the kernels, Key the type of the keys, Seed the job's hash seed and Groups the number of key groups.
	K      *Incremental
	Key    *serde.Key
	Seed   uint64
	Groups int
	// Prepare, if it is set, is called before rows are read, by who reads them. It may set keys and complete parts.
	Prepare func() error

	account account
	shadows []*Shadow
	keys    unsafe.Pointer
	n       int // keys
	tables  []frozenTable

	// Made when the first rows are read.
	prepared bool
	names    []name // by key, of those that have an accumulator
	canon    []byte
	order    []uint32 // these keys, group by group
	starts   []uint32 // by group: where its keys begin
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
	// Label completes the row of the accumulator at a place, or that of entry j where there are IDs: namespace and map key,
	// which are valid until the next call. What it returns is the value's beginning, before the accumulator.
	Label func(j int, row *statebackend.Row) []byte
	// IDs are the keys of entries; those that are NoKey are left out. Nil: Bits has a bit for each key with an accumulator, whose
	// place is the key's number. Neither changes any more.
	IDs  []uint32
	Bits []uint64
	// Places are those of the entries' accumulators; nil: entry j is at place j. They rise.
	Places []uint32
	// Shadow has the accumulators in a lane, in each value from Offset bytes on. Nil: they lie at Accs and are the snapshot's.
	Shadow *Shadow
	Lane   int
	Offset uintptr
	Accs   unsafe.Pointer
}

// Holds says whether there is an accumulator at a place, or an entry.
func (p *Part) Holds(at uint32) bool {
	if p.IDs != nil {
		return p.IDs[at] != NoKey
	}
	return p.Bits[at>>6]>>(at&63)&1 != 0
}

// NoKey stands for an entry that is not there any more.
const NoKey = ^uint32(0)

// NewFrozen returns an empty snapshot that draws on a budget.
func NewFrozen(k *Incremental, key *serde.Key, seed uint64, groups int, memory *host.Memory) *Frozen {
	return &Frozen{K: k, Key: key, Seed: seed, Groups: groups, account: account{memory: memory}}
}

// Release implements statebackend.Frozen.
func (f *Frozen) Release() {
	for _, s := range f.shadows {
		s.body.Store(nil)
		s.giveBack()
	}
	f.account.close()
	f.shadows, f.tables, f.keys, f.names, f.canon, f.order, f.Prepare = nil, nil, nil, nil, nil, nil, nil
}

// Shadow makes that of arrays with n places and adds it to the driver's. present, for lanes that are encoded, says where there
// is a value; it is called by the updater, before that place is changed.
func (f *Frozen) Shadow(to *Shadows, n int, present func(place uint32) bool, lanes ...Lane) *Shadow {
	to.reap()
	s := &Shadow{}
	s.body.Store(newShade(&f.account, n, present, lanes))
	f.shadows = append(f.shadows, s)
	*to = append(*to, s)
	return s
}

// ShareKeys makes the n keys of an array those of the snapshot; entries name them by number. The driver must not change those
// that have an accumulator: it lends the array, when it makes another one.
func (f *Frozen) ShareKeys(to *Shadows, keys unsafe.Pointer, n int) {
	f.Shadow(to, 0, nil)
	f.SetKeys(keys, n)
}

// SetKeys makes the n keys of an array that belongs to the snapshot those of the entries.
func (f *Frozen) SetKeys(keys unsafe.Pointer, n int) { f.keys, f.n = keys, n }

// Accumulators is a lane of accumulators.
func (f *Frozen) Accumulators(accs unsafe.Pointer) Lane {
	l := Lane{Memory: &f.K.Accs, Values: accs, Pointers: f.K.Acc.Pointers}
	if f.K.Acc.Layout == serde.Encoded {
		l.Code = f.K.Acc
	}
	return l
}

// Draw reserves n bytes that the snapshot holds until its release.
func (f *Frozen) Draw(n int64) error {
	_, err := f.account.draw(n)
	return err
}

// Table adds a table, whose number it returns.
func (f *Frozen) Table(info statebackend.TableInfo) int {
	f.tables = append(f.tables, frozenTable{info: info})
	return len(f.tables) - 1
}

// Add adds accumulators to a table.
func (f *Frozen) Add(table int, p *Part) {
	t := &f.tables[table]
	t.parts = append(t.parts, p)
}

// Tables implements statebackend.Frozen: those that have parts.
func (f *Frozen) Tables() []statebackend.FrozenTable {
	var all []statebackend.FrozenTable
	for i := range f.tables {
		if t := &f.tables[i]; len(t.parts) > 0 {
			all = append(all, statebackend.FrozenTable{TableInfo: t.info, Rows: f.rows(t)})
		}
	}
	return all
}

// each calls visit for all accumulators: its entry, or place, and its key.
func (p *Part) each(visit func(j, id uint32)) {
	if p.IDs != nil {
		for j, id := range p.IDs {
			if id != NoKey {
				visit(uint32(j), id)
			}
		}
		return
	}
	for w, word := range p.Bits {
		for ; word != 0; word &= word - 1 {
			id := uint32(w<<6 + bits.TrailingZeros64(word))
			visit(id, id)
		}
	}
}

// index finds out what rows say of the keys that have an accumulator, and sorts them.
func (f *Frozen) index() error {
	if f.prepared {
		return nil
	}
	if f.account.closed() {
		return errReleased
	}
	f.prepared = true
	if f.Prepare != nil {
		if err := f.Prepare(); err != nil {
			return err
		}
	}
	if err := f.Draw(int64(f.n) * int64(unsafe.Sizeof(name{}))); err != nil {
		return err
	}
	f.names = make([]name, f.n)
	n := 0
	for i := range f.tables {
		for _, p := range f.tables[i].parts {
			p.each(func(_, id uint32) {
				if k := &f.names[id]; !k.used {
					k.used = true
					n++
				}
			})
		}
	}
	if err := f.Draw(8*int64(n) + 4*int64(f.Groups)); err != nil {
		return err
	}
	used := make([]uint32, 0, n)
	for id := range f.names {
		if f.names[id].used {
			used = append(used, uint32(id))
		}
	}
	if err := f.name(used); err != nil {
		return err
	}
	f.starts, f.order = sortByGroup(f.Groups, len(used), func(visit func(x, group uint32)) {
		for _, id := range used {
			visit(id, uint32(f.names[id].group))
		}
	})
	return f.Draw(int64(cap(f.canon)))
}

// name names keys.
func (f *Frozen) name(ids []uint32) error {
	m := &f.K.Keys
	keys, hashes := m.New(frame.MaxLen), make([]uint64, frame.MaxLen)
	var scratch serde.KeyScratch
	for len(ids) > 0 {
		part := ids[:min(len(ids), frame.MaxLen)]
		ids = ids[len(part):]
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

// sortByGroup sorts n things, which all visits twice in the same order, by their groups: those of a group stay in their order.
func sortByGroup(groups, n int, all func(visit func(x, group uint32))) (starts, sorted []uint32) {
	starts, sorted = make([]uint32, groups+1), make([]uint32, n)
	all(func(_, g uint32) { starts[g]++ })
	sum := uint32(0)
	for g, n := range starts {
		starts[g] = sum
		sum += n
	}
	all(func(x, g uint32) {
		sorted[starts[g]] = x
		starts[g]++
	})
	copy(starts[1:], starts)
	starts[0] = 0
	return starts, sorted
}
