package interval

import (
	"errors"
	"fmt"
	"unsafe"

	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/internal/operator/keyed"
	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/serde"
	"github.com/flott-dev/flott/watermark"
)

// The inputs.
const (
	left = iota
	right
)

// lateDropped is the metric that counts late elements that go nowhere.
const lateDropped = "numLateRecordsDropped"

// errNoTime is what is wrong with an element that can't be joined.
var errNoTime = errors.New("it has no timestamp: assign timestamps before the join")

// matcher is what a join does without knowing its elements' types: it refuses, drops or keeps what comes, and finds the
// partners.
type matcher struct {
	bounds  Bounds
	reaches [2]int64
	keys    *keyed.Keys
	rt      *operator.Runtime
	sides   [2]buffer
	late    [2]*process.SideBuffer // nil: nobody reads it
	tags    [2]string              // of late elements; "" drops them
	dropped int64                  // since the last count
	times   [2]int64               // of the pair at hand
	found   [2]func(t int64) error // by the input whose element looks for partners
	pair    func() error           // calls the user's function for the pair at hand
}

// open opens the buffers. Elements of the two sides that are found come to into.
func (m *matcher) open(rt *operator.Runtime, sides *operator.Sides, types [2]*serde.Handle, into [2]unsafe.Pointer) error {
	m.rt = rt
	m.found = [2]func(int64) error{m.withRight, m.withLeft}
	for input, name := range [2]string{"left buffer", "right buffer"} {
		m.reaches[input] = m.bounds.reach(input)
		err := m.sides[input].open(m.keys.Store(), name, types[input], m.bounds.shift(), into[input])
		if err != nil {
			return err
		}
		if tag := m.tags[input]; tag != "" {
			m.late[input] = sides.Buffer(tag)
		}
		if b := m.late[input]; b != nil && b.Column.Type.Handle.Type != types[input].Type {
			return fmt.Errorf("send late elements of type %s to side output %q: it is read as %s", types[input].Name, m.tags[input], b.Column.Type.Name)
		}
	}
	operator.Count(rt, lateDropped, 0)
	return nil
}

// accept takes element i of a run: false if it is late, else it is kept and its partners are given to pair. The element
// itself lies where its buffer puts what it finds.
func (m *matcher) accept(input int, r *frame.Run, i int) error {
	if i%nearRun == 0 {
		m.near(input, r, i)
	}
	m.keys.Current().Index = i
	t := r.Time(i)
	if t == frame.NoTime {
		return fmt.Errorf("join an element of the %s stream: %w", [2]string{"left", "right"}[input], errNoTime)
	}
	services := m.keys.Services()
	if t < services.Watermark() { // before the first watermark nothing is
		return m.reject(input, r, i)
	}
	first, err := m.sides[input].add(i, t, r.At(i))
	if err != nil {
		return err
	}
	if first {
		m.expire(services, watermark.Add(t, m.reaches[input]))
	}
	m.times[input] = t
	from, to := m.bounds.of(input, t)
	return m.sides[1-input].search(i, from, to, m.found[input])
}

// expire sets the timer that removes what is kept until then. What is kept until the end of time needs none.
func (m *matcher) expire(s process.Services, at int64) {
	if at != frame.MaxWatermark {
		s.Register(process.EventTime, at)
	}
}

func (m *matcher) withRight(t int64) error {
	m.times[right] = t
	return m.pair()
}

func (m *matcher) withLeft(t int64) error {
	m.times[left] = t
	return m.pair()
}

// reject sends a late element to its side output, or drops it.
func (m *matcher) reject(input int, r *frame.Run, i int) error {
	b := m.late[input]
	if b == nil {
		if m.tags[input] == "" {
			m.dropped++
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
func (m *matcher) count() {
	if m.dropped != 0 {
		operator.Count(m.rt, lateDropped, m.dropped)
		m.dropped = 0
	}
}

// nearRun is how many elements of a run are looked at ahead: what they need fits into what is near the processor.
const nearRun = 128

// near brings near what the elements of a run need, from element i on: the buckets of their own side, and those that they search.
// That the others have the times of element i is a guess, which costs little when it is wrong.
func (m *matcher) near(input int, r *frame.Run, i int) {
	t, to := r.Time(i), min(i+nearRun, r.N)
	if t == frame.NoTime {
		return
	}
	own, other := &m.sides[input], &m.sides[1-input]
	own.near(t>>own.shift, i, to)
	if first, last := m.bounds.of(input, t); first <= last {
		other.near(first>>other.shift, i, to)
		if first>>other.shift != last>>other.shift {
			other.near(last>>other.shift, i, to)
		}
	}
}

// cleanAll cleans for keys that are at hand as those of a run, each at a time.
func (m *matcher) cleanAll(at []int64) error {
	for i := range at {
		if i%nearRun == 0 {
			for input := range m.sides {
				b := &m.sides[input]
				b.near(watermark.Add(at[i], -m.reaches[input])>>b.shift, i, min(i+nearRun, len(at)))
			}
		}
		m.keys.Fires(i)
		if err := m.clean(i, at[i]); err != nil {
			return err
		}
	}
	return nil
}

// clean removes what key i keeps until at. Timers of both sides are one set: a time may be that of either.
func (m *matcher) clean(i int, at int64) error {
	for input := range m.sides {
		if err := m.sides[input].remove(i, watermark.Add(at, -m.reaches[input])); err != nil {
			return err
		}
	}
	return nil
}
