package sessions

import (
	"unsafe"

	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/watermark"
)

// block is the number of elements whose nodes are loaded together.
const block = 256

// stretch is the elements of a run that have found their sessions but are not folded in yet: [from, ...) of ids and fresh,
// as Incremental.AddColumn takes them.
type stretch struct {
	from  int
	ids   []uint32
	fresh []bool
	news  bool // settle has set one of fresh, in this block
}

func (s *stretch) open() {
	s.ids, s.fresh = make([]uint32, frame.MaxLen), make([]bool, frame.MaxLen)
}

// put puts each element of a run into the session of its key. Most elements make the latest one longer or open the first;
// what else there is goes to settle.
func (o *driver) put(r *frame.Run) error {
	o.folding.from = 0
	for from := 0; from < r.N; from += block {
		to := min(r.N, from+block)
		o.folding.news = false
		o.touch(o.keyer.latest[from:to])
		if o.shadows != nil {
			if err := o.keep(o.keyer.latest[from:to]); err != nil {
				return err
			}
		}
		if err := o.putBlock(r, from, to); err != nil {
			return err
		}
		o.fold(r, to, o.folding.news || o.opens > 0)
		o.enterOpened()
	}
	return nil
}

// touch loads the nodes of a block together, so that they need not be waited for one by one.
func (o *driver) touch(latest []unsafe.Pointer) {
	nodes, sum := o.nodes, int64(0)
	for _, p := range latest {
		sum += nodes[*(*uint32)(p)].due
	}
	o.touched = sum // or the loads would be left out
}

// keep lets snapshots have the sessions of a block.
func (o *driver) keep(latest []unsafe.Pointer) error {
	ids := o.opened[:len(latest)]
	for i, p := range latest {
		ids[i] = *(*uint32)(p)
	}
	return o.shadows.Keep(ids...)
}

// putBlock does not branch on whether a session is opened or grows, which is too random to be predicted: an empty node becomes
// the element's window in the same way as a session grows. It branches on what is rare: elements before their session or
// apart from it, windows that the watermark has passed, and sessions whose entry is too late.
func (o *driver) putBlock(r *frame.Run, from, to int) error {
	n := to - from
	starts, ends, latest := o.starts[from:to], o.ends[from:to][:n], o.keyer.latest[from:to][:n]
	ids, fresh, opened := o.folding.ids[from:to][:n], o.folding.fresh[from:to][:n], o.opened[:n]
	nodes, scale, fired, opens := o.nodes, o.accs.scale, watermark.Add(o.watermark, 1), 0
	for i, start := range starts {
		id := *(*uint32)(latest[i])
		s := &nodes[id]
		end := max(s.end, ends[i])
		empty := one(s.start > s.end)
		apart := one(uint64(start-s.start) > uint64(s.end-s.start)) // the differences may be all that 64 bits hold
		if apart&^empty != 0 || end <= fired || s.due >= end {
			if err := o.settle(r, from+i); err != nil {
				return err
			}
			nodes = o.nodes
			continue
		}
		s.start, s.end = min(s.start, start), end
		ids[i], fresh[i] = id*scale, empty != 0
		opened[opens] = id
		opens += empty
	}
	o.opens = opens
	return nil
}

// enterOpened enters the sessions that a block has opened into the wheel.
func (o *driver) enterOpened() {
	for _, id := range o.opened[:o.opens] {
		o.idle--
		o.live++
		if s := &o.nodes[id]; s.due == noTime && !s.empty() { // it is neither entered nor merged meanwhile
			s.due = s.end - 1
			o.wheel.add(s.due, id)
		}
	}
	o.opens = 0
}

// one is 1 for true; the compiler makes it without a branch.
func one(b bool) int {
	n := 0
	if b {
		n = 1
	}
	return n
}

// settle places an element that needs more than a look at the latest session of its key.
func (o *driver) settle(r *frame.Run, i int) (err error) {
	start, end := o.assigner.starts[i], o.assigner.ends[i]
	latest := (*uint32)(o.keyer.latest[i])
	if *latest == 0 {
		if err = o.meet(latest, i); err != nil {
			return err
		}
	}
	id, newer := o.find(*latest, start, end)
	o.folding.fresh[i] = id == 0
	o.folding.news = o.folding.news || id == 0
	switch {
	case id == 0 && o.cleanup(end-1) <= o.watermark:
		o.fold(r, i, true)
		o.folding.from = i + 1
		return o.reject(r, i)
	case id == 0:
		if id, err = o.begin(latest, newer, start, end); err != nil {
			return err
		}
	default:
		if oldest := o.oldest(id, start); oldest != id {
			o.fold(r, i, true)
			if err := o.merge(latest, oldest, id); err != nil {
				return err
			}
			id = oldest
		}
		if err := o.extend(id, start, end); err != nil {
			return err
		}
	}
	o.folding.ids[i] = id * o.accs.scale
	if o.nodes[id].end-1 <= o.watermark {
		o.fold(r, i+1, true)
		return o.emit(id)
	}
	return nil
}

// meet gives a key that is new, that of element i, its first node.
func (o *driver) meet(latest *uint32, i int) error {
	id, err := o.alloc()
	if err != nil {
		return err
	}
	*latest = id
	o.idle++
	return o.keyer.decode(i, o.keys.at(id))
}

// fold adds the elements before to that are not folded in yet to their accumulators. news says that some of these may be
// fresh.
func (o *driver) fold(r *frame.Run, to int, news bool) {
	f := &o.folding
	if f.from < to {
		fresh := f.fresh[f.from:to]
		if !news {
			fresh = nil
		}
		o.k.AddColumn(o.accs.base, f.ids[f.from:to], fresh, r, f.from)
	}
	f.from = to
}

// reject sends an element whose window is late to the side output, or drops it. An element that is not late itself is
// dropped without being counted.
func (o *driver) reject(r *frame.Run, i int) error {
	if watermark.Add(o.assigner.starts[i], o.lateness) > o.watermark {
		return nil
	}
	return o.late.Reject(r, i)
}
