package sessions

import (
	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/internal/operator/windows"
)

// stretch is the elements of a run that have found their sessions but are not folded in yet: [from, ...) of ids and fresh,
// as Incremental.AddColumn takes them.
type stretch struct {
	from  int
	ids   []uint32
	fresh []bool
}

func (s *stretch) open() {
	s.ids, s.fresh = make([]uint32, frame.MaxLen), make([]bool, frame.MaxLen)
}

// put puts each element of a run into the session of its key. Most elements make the latest one longer or open the first;
// what else there is goes to settle.
func (o *driver) put(r *frame.Run) error {
	o.folding.from = 0
	starts, ends := o.assigner.starts[:r.N], o.assigner.ends[:r.N]
	latest, ids, fresh := o.keyer.latest[:r.N], o.folding.ids[:r.N], o.folding.fresh[:r.N]
	nodes, watermark, scale := o.nodes, o.watermark, o.accs.scale
	touched := int64(0)
	for _, p := range latest {
		id := *(*uint32)(p)
		touched += nodes[id].end
	}
	o.touched = touched
	for i, start := range starts {
		end, id := ends[i], *(*uint32)(latest[i])
		s := &nodes[id]
		switch {
		case start <= s.end && end >= s.start && s.end-1 > watermark && (s.older == 0 || start >= s.start):
			s.start, s.end = min(s.start, start), max(s.end, end)
			ids[i], fresh[i] = id*scale, false
		case s.start > s.end && id != 0 && end-1 > watermark:
			s.start, s.end, s.due = start, end, end-1
			o.wheel.add(end-1, id)
			o.idle--
			o.live++
			ids[i], fresh[i] = id*scale, true
		default:
			if err := o.settle(r, i); err != nil {
				return err
			}
			nodes = o.nodes
		}
	}
	o.fold(r, r.N)
	return nil
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
	switch {
	case id == 0 && o.cleanup(end-1) <= o.watermark:
		o.fold(r, i)
		o.folding.from = i + 1
		return o.reject(r, i)
	case id == 0:
		if id, err = o.begin(latest, newer, start, end); err != nil {
			return err
		}
	default:
		if oldest := o.oldest(id, start); oldest != id {
			o.fold(r, i)
			o.merge(latest, oldest, id)
			id = oldest
		}
		o.extend(id, start, end)
	}
	o.folding.ids[i] = id * o.accs.scale
	if o.nodes[id].end-1 <= o.watermark {
		o.fold(r, i+1)
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

// fold adds the elements before to that are not folded in yet to their accumulators.
func (o *driver) fold(r *frame.Run, to int) {
	f := &o.folding
	if f.from < to {
		o.k.AddColumn(o.accs.base, f.ids[f.from:to], f.fresh[f.from:to], r, f.from)
	}
	f.from = to
}

// reject sends an element whose window is late to the side output, or drops it. An element that is not late itself is
// dropped without being counted.
func (o *driver) reject(r *frame.Run, i int) error {
	if plus(o.assigner.starts[i], o.lateness) > o.watermark {
		return nil
	}
	b := o.late
	if b == nil {
		if o.spec.Late == "" {
			o.dropped++
		}
		return nil
	}
	if b.Column.Room() == 0 {
		if b.Err == nil {
			b.Err = b.Flush()
		}
		b.Column.Reset()
	}
	b.Column.Append(r, i, i+1)
	return b.Err
}

// count tells the metric what was dropped since the last call.
func (o *driver) count() {
	if o.dropped != 0 {
		operator.Count(o.RT, windows.LateDropped, o.dropped)
		o.dropped = 0
	}
}
