package slices

import (
	"math"
	"slices"
	"unsafe"

	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/operator/windows"
)

// tangles are the keys whose elements came out of the order of their slices, of functions for which the order matters:
// what merging slices in the order of time gives is not what elements in order of arrival give. Such a key leaves the
// slices: its elements are grouped by arrival, each group the elements that came one after the other and fell into one
// slice, and windows merge its groups. When what is out of order is gone, the key comes back.
type tangles struct {
	o      *driver
	newest []int64 // by id: the start of the youngest slice that it has elements in; tangled keys are always out of order
	list   []*tangle
	at     map[uint32]int // in list
	// shadows are the snapshots that need tangles, which are those with an earlier mark.
	shadows windows.Shadows
	mark    uint32
}

// tangle is a tangled key.
type tangle struct {
	id     uint32
	mark   uint32
	groups []stretch
	accs   unsafe.Pointer // by group
	room   int
}

func newTangles(o *driver) *tangles { return &tangles{o: o, at: map[uint32]int{}} }

// tangled stands for a slice that is younger than any.
const tangled = math.MaxInt64

// ordered is how many of the ids, of elements that fell into the slice that starts at lo, are in order, up to the first that
// is not.
func (t *tangles) ordered(ids []uint32, lo int64) (int, error) {
	if err := t.reach(t.o.keys.limit); err != nil {
		return 0, err
	}
	if lo == tangled { // the last instant of all may be a slice of its own; tangles are right for any
		return 0, nil
	}
	newest := t.newest
	for i, id := range ids {
		if lo < newest[id] {
			return i, nil
		}
		newest[id] = lo
	}
	return len(ids), nil
}

// reach makes room for ids.
func (t *tangles) reach(limit int) error {
	n := limit - len(t.newest)
	if n <= 0 {
		return nil
	}
	if err := t.o.columns.reserve(8 * int64(n)); err != nil {
		return err
	}
	for range n {
		t.newest = append(t.newest, math.MinInt64)
	}
	return nil
}

// add adds element e of r, which is out of order, to its key.
func (t *tangles) add(id uint32, s *slice, r *frame.Run, e int) (*tangle, error) {
	i, ok := t.at[id]
	if !ok {
		if err := t.enter(id); err != nil {
			return nil, err
		}
		i = t.at[id]
	}
	x, err := t.own(i)
	if err != nil {
		return nil, err
	}
	fresh := len(x.groups) == 0 || x.groups[len(x.groups)-1].lo != s.lo
	if fresh {
		if err := t.group(x, s.stretch); err != nil {
			return nil, err
		}
	}
	k := t.o.k
	k.Add(k.Accs.At(x.accs, len(x.groups)-1), fresh, r, e)
	return x, nil
}

// group appends a group without an accumulator.
func (t *tangles) group(x *tangle, s stretch) error {
	k := t.o.k
	if len(x.groups) == x.room {
		room := max(4, 2*x.room)
		if err := t.o.columns.reserve(t.bytes(room - x.room)); err != nil {
			return err
		}
		accs := k.Accs.New(room)
		if x.room > 0 {
			k.Accs.Move(accs, x.accs, x.room)
		}
		x.accs, x.room = accs, room
		x.groups = append(make([]stretch, 0, room), x.groups...)
	}
	x.groups = append(x.groups, s)
	return nil
}

func (t *tangles) bytes(groups int) int64 {
	return int64(groups) * (int64(t.o.k.Accs.Size) + int64(unsafe.Sizeof(stretch{})))
}

// enter takes a key, whose elements were in order so far, out of the slices.
func (t *tangles) enter(id uint32) error {
	o := t.o
	x := &tangle{id: id, mark: t.mark}
	if err := o.cover.remove(id); err != nil {
		return err
	}
	for _, s := range o.shelf.list {
		at, ok := o.columns.find(&s.column, id)
		if !ok {
			continue
		}
		if err := t.group(x, s.stretch); err != nil {
			return err
		}
		m := &o.k.Accs
		m.Move(m.At(x.accs, len(x.groups)-1), m.At(s.accs, int(at)), 1)
		if err := o.columns.remove(&s.column, id, at); err != nil {
			return err
		}
	}
	t.at[id] = len(t.list)
	t.list = append(t.list, x)
	t.newest[id] = tangled
	return nil
}

// append puts a group behind those that its key has.
func (t *tangles) append(id uint32, s stretch, acc unsafe.Pointer) error {
	if err := t.reach(t.o.keys.limit); err != nil {
		return err
	}
	i, ok := t.at[id]
	if !ok {
		if err := t.enter(id); err != nil {
			return err
		}
		i = t.at[id]
	}
	x, err := t.own(i)
	if err != nil {
		return err
	}
	if err := t.group(x, s); err != nil {
		return err
	}
	m := &t.o.k.Accs
	m.Move(m.At(x.accs, len(x.groups)-1), acc, 1)
	return nil
}

// take appends the groups of others.
func (t *tangles) take(others *tangles) error {
	for n := range others.list {
		x, err := others.own(n)
		if err != nil {
			return err
		}
		for i, g := range x.groups {
			if err := t.append(x.id, g, t.o.k.Accs.At(x.accs, i)); err != nil {
				return err
			}
		}
		t.o.columns.release(t.bytes(x.room))
	}
	t.o.columns.release(8 * int64(len(others.newest)))
	return nil
}

// reset forgets what was known of the ids that are not in live.
func (t *tangles) reset(live []uint64) {
	for id := range t.newest {
		if live[id>>6]>>(id&63)&1 == 0 {
			t.newest[id] = math.MinInt64
		}
	}
}

// forget drops the groups of slices that are gone, those up to lo, and lets keys go back to the slices that are in order
// again.
func (t *tangles) forget(lo int64) error {
	for i := 0; i < len(t.list); i++ {
		if !slices.ContainsFunc(t.list[i].groups, func(g stretch) bool { return g.lo <= lo }) {
			continue
		}
		x, err := t.own(i)
		if err != nil {
			return err
		}
		if t.without(x, lo); !inOrder(x.groups) {
			continue
		}
		last := t.list[len(t.list)-1]
		t.list[i], t.at[last.id] = last, i
		t.list = slices.Delete(t.list, len(t.list)-1, len(t.list))
		delete(t.at, x.id)
		i--
		if err := t.leave(x); err != nil {
			return err
		}
	}
	return nil
}

// inOrder says whether groups follow each other in time, no two of one slice: they would have to be merged.
func inOrder(groups []stretch) bool {
	for i := 1; i < len(groups); i++ {
		if groups[i].lo <= groups[i-1].lo {
			return false
		}
	}
	return true
}

// without drops the groups of slices up to lo.
func (t *tangles) without(x *tangle, lo int64) {
	m := &t.o.k.Accs
	n := 0
	for i, g := range x.groups {
		if g.lo <= lo {
			continue
		}
		if n != i {
			m.Move(m.At(x.accs, n), m.At(x.accs, i), 1)
			x.groups[n] = g
		}
		n++
	}
	m.Zero(m.At(x.accs, n), len(x.groups)-n)
	x.groups = x.groups[:n]
}

// leave puts a key back into the slices.
func (t *tangles) leave(x *tangle) error {
	o := t.o
	m := &o.k.Accs
	t.newest[x.id] = math.MinInt64
	for i, g := range x.groups {
		s := o.shelf.at(g.lo)
		at, _, err := o.columns.insert(&s.column, x.id, o.keys.limit)
		if err != nil {
			return err
		}
		m.Move(m.At(s.accs, int(at)), m.At(x.accs, i), 1)
		t.newest[x.id] = g.lo
	}
	o.columns.release(t.bytes(x.room))
	return o.cover.adopt(x.id)
}

// fold merges the groups of a window, in the order of arrival, into the accumulator at acc, which is none yet; false if there
// is none.
func (t *tangles) fold(x *tangle, w *span, acc unsafe.Pointer) (bool, error) {
	m := &t.o.k.Accs
	there, err := t.o.first(w, x.id, acc)
	if err != nil {
		return false, err
	}
	if there && t.o.base != nil {
		t.o.left[x.id>>6] &^= 1 << (x.id & 63)
	}
	for i := range x.groups {
		if !w.covers(x.groups[i].lo) {
			continue
		}
		if err := t.o.sums.mergeOne(acc, there, m.At(x.accs, i)); err != nil {
			return false, err
		}
		there = true
	}
	return there, nil
}

// emit emits the results of a window that fires.
func (t *tangles) emit(w *span) error {
	for _, x := range t.list {
		if err := t.emitOne(x, w); err != nil {
			return err
		}
	}
	return nil
}

func (t *tangles) emitOne(x *tangle, w *span) error {
	o := t.o
	there, err := t.fold(x, w, o.acc)
	if there && err == nil {
		err = o.sendOne(x.id, w, o.acc)
	}
	o.k.Accs.Zero(o.acc, 1)
	return err
}
