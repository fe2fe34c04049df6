package windows

import (
	"errors"
	"fmt"
	"iter"
	"unsafe"

	"github.com/flott-dev/flott/statebackend"
)

// readMost is how many accumulators are read together.
const readMost = 128

// reader makes the rows of a table.
type reader struct {
	f     *Frozen
	t     *frozenTable
	yield func(*statebackend.Row, error) bool
	row   statebackend.Row
	value []byte

	// What is in parts with IDs, group by group: which part, and which entry.
	starts         []uint32
	parts, entries []uint32

	ids, numbers, places []uint32       // of a stretch of a part: keys, what Label is asked for, places
	accs                 unsafe.Pointer // readMost accumulators
	code                 []byte
	ends                 []int
}

// rows gives the accumulators key group by key group, those of a group part by part and in their order there.
func (f *Frozen) rows(t *frozenTable) iter.Seq2[*statebackend.Row, error] {
	return func(yield func(*statebackend.Row, error) bool) {
		err := f.index()
		if err == nil {
			r := &reader{f: f, t: t, yield: yield, accs: f.K.Accs.New(readMost)}
			if err = r.list(); err == nil {
				var more bool
				if more, err = r.all(); !more && err == nil {
					return
				}
			}
		}
		if err != nil {
			yield(nil, err)
		}
	}
}

// list sorts what is in parts with IDs by group.
func (r *reader) list() error {
	n := 0
	for _, p := range r.t.parts {
		if p.IDs != nil {
			p.each(func(_, _ uint32) { n++ })
		}
	}
	if err := r.f.Draw(8*int64(n) + 8*int64(r.f.Groups)); err != nil {
		return err
	}
	each := func(visit func(part, j, group uint32)) {
		for i, p := range r.t.parts {
			if p.IDs != nil {
				p.each(func(j, id uint32) { visit(uint32(i), j, uint32(r.f.names[id].group)) })
			}
		}
	}
	r.starts, r.parts = sortByGroup(r.f.Groups, n, func(visit func(x, group uint32)) {
		each(func(part, _, g uint32) { visit(part, g) })
	})
	_, r.entries = sortByGroup(r.f.Groups, n, func(visit func(x, group uint32)) {
		each(func(_, j, g uint32) { visit(j, g) })
	})
	return nil
}

// all makes all rows; false if nobody wants more.
func (r *reader) all() (bool, error) {
	for g := range r.f.Groups {
		keys := r.f.order[r.f.starts[g]:r.f.starts[g+1]]
		if len(keys) == 0 {
			continue
		}
		at, end := r.starts[g], r.starts[g+1]
		for i, p := range r.t.parts {
			r.ids, r.numbers, r.places = r.ids[:0], r.numbers[:0], r.places[:0]
			if p.IDs == nil {
				r.dense(p, keys)
			} else {
				for ; at < end && r.parts[at] == uint32(i); at++ {
					r.entry(p, r.entries[at])
				}
			}
			if more, err := r.stretch(p); !more || err != nil {
				return more, err
			}
		}
	}
	return true, nil
}

// dense takes those of the keys whose bits are set.
func (r *reader) dense(p *Part, keys []uint32) {
	for _, id := range keys {
		if w := int(id >> 6); w < len(p.Bits) && p.Bits[w]>>(id&63)&1 != 0 {
			r.ids, r.numbers, r.places = append(r.ids, id), append(r.numbers, id), append(r.places, id)
		}
	}
}

// entry takes an entry.
func (r *reader) entry(p *Part, j uint32) {
	place := j
	if p.Places != nil {
		place = p.Places[j]
	}
	r.ids, r.numbers, r.places = append(r.ids, p.IDs[j]), append(r.numbers, j), append(r.places, place)
}

// stretch makes the rows of what was taken of a part.
func (r *reader) stretch(p *Part) (bool, error) {
	for from := 0; from < len(r.places); {
		n, base, err := r.read(p, r.places[from:min(len(r.places), from+readMost)])
		if err != nil {
			return false, err
		}
		for k := range n {
			k0 := &r.f.names[r.ids[from+k]]
			key := r.f.canon[k0.from : k0.from+uint64(k0.len) : k0.from+uint64(k0.len)]
			r.row = statebackend.Row{Group: int(k0.group), Hash: k0.hash, Key: key}
			r.value = append(r.value[:0], p.Label(int(r.numbers[from+k]), &r.row)...)
			if base == nil {
				begin := 0
				if k > 0 {
					begin = r.ends[k-1]
				}
				r.value = append(r.value, r.code[begin:r.ends[k]]...)
			} else if r.value, err = r.f.K.Acc.Append(r.value, r.f.K.Accs.At(base, k)); err != nil {
				return false, fmt.Errorf("encode an accumulator: %w", err)
			}
			r.row.Value = r.value
			if !r.yield(&r.row, nil) {
				return false, nil
			}
		}
		from += n
	}
	return true, nil
}

// read gives the accumulators at the first n places: at base, or encoded (no base).
func (r *reader) read(p *Part, places []uint32) (n int, base unsafe.Pointer, err error) {
	m := &r.f.K.Accs
	if p.Shadow == nil {
		for k, place := range places {
			m.Move(m.At(r.accs, k), m.At(p.Accs, int(place)), 1)
		}
		return len(places), r.accs, nil
	}
	s := p.Shadow.body.Load()
	if s == nil {
		return 0, nil, errReleased
	}
	if s.lanes[p.Lane].Code != nil {
		r.code, r.ends, err = s.encode(p.Lane, places[:min(len(places), encodedUnit)], r.code[:0], r.ends[:0])
		return len(r.ends), nil, err
	}
	return s.read(p.Lane, p.Offset, m, r.f.K.Acc.Pointers, places, r.accs), r.accs, nil
}

var errReleased = errors.New("read a snapshot of windows: it has been released")
