package windowing

import (
	"unsafe"

	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/serde"
	"github.com/flott-dev/flott/statebackend"
	"github.com/flott-dev/flott/window"
)

// arrivalsName is the table of when and where the elements of windows with an evictor came.
const arrivalsName = "window arrivals"

// arrival is what evictors are told of an element.
type arrival struct {
	Time  int64
	Input int64
}

// elements are contents that keep all elements, those of each input in a list. With an evictor, a list beside them keeps
// the elements' timestamps and the order of the inputs.
type elements struct {
	chosen
	types    []*frame.Type                          // of the inputs
	evict    *evictor                               // nil: there is none
	apply    func(w *view, shown []frame.Run) error // hands elements, by input, to the user
	e        *engine
	lists    []statebackend.ListTable
	arrivals statebackend.ListTable
	arrived  arrival
	bufs     []buffer
	shown    []frame.Run // scratch: what is handed through a closure must not be a local

	eviction window.Eviction
	times    []int64 // of the elements in bufs, in order of arrival
	inputs   []uint8
	noted    func() bool
}

func (c *elements) open(e *engine) error {
	c.e, c.typ = e, e.windows.namespace()
	names := [...]string{contentsName, "second " + contentsName}
	c.bufs, c.shown = make([]buffer, len(c.types)), make([]frame.Run, len(c.types))
	for i, t := range c.types {
		list, err := e.keys.Store().List(statebackend.TableSpec{Name: names[i], Value: t.Handle, Namespace: c.typ, List: true})
		if err != nil {
			return err
		}
		c.lists = append(c.lists, list)
		c.bufs[i].open(t)
	}
	if c.evict == nil {
		return nil
	}
	c.noted = func() bool {
		c.times, c.inputs = append(c.times, c.arrived.Time), append(c.inputs, uint8(c.arrived.Input))
		return true
	}
	h, err := serde.Of[arrival]()
	if err != nil {
		return err
	}
	c.arrivals, err = e.keys.Store().List(statebackend.TableSpec{Name: arrivalsName, Value: h, Namespace: c.typ, List: true})
	return err
}

func (c *elements) choose(state *view) {
	if !c.differs(state.b) {
		return
	}
	for _, l := range c.lists {
		l.SetNamespace(c.at)
	}
	if c.arrivals != nil {
		c.arrivals.SetNamespace(c.at)
	}
}

func (c *elements) add(input int, r *frame.Run, i int) (bool, error) {
	err := c.lists[input].Append(i, r.At(i))
	if err == nil && c.arrivals != nil {
		c.arrived = arrival{Time: r.Time(i), Input: int64(input)}
		err = c.arrivals.Append(i, unsafe.Pointer(&c.arrived))
	}
	return false, err
}

func (c *elements) clear() error {
	i := c.e.run.Index
	for _, l := range c.lists {
		if err := l.Delete(i); err != nil {
			return err
		}
	}
	if c.arrivals == nil {
		return nil
	}
	return c.arrivals.Delete(i)
}

func (c *elements) merge(into *view, from *row) error {
	i := c.e.run.Index
	for k := range from.n {
		v := from.view(&c.e.windows, k)
		c.choose(&v)
		for _, l := range c.lists {
			if err := l.MoveTo(i, into.b); err != nil {
				return err
			}
		}
		if c.arrivals != nil {
			if err := c.arrivals.MoveTo(i, into.b); err != nil {
				return err
			}
		}
	}
	c.choose(into)
	return nil
}

func (c *elements) fire(w *view) error {
	n := 0
	for input := range c.bufs {
		got, err := c.bufs[input].load(c.lists[input], c.e.run.Index)
		if err != nil {
			return err
		}
		n += got
	}
	var err error
	switch {
	case n == 0:
	case c.evict == nil:
		for input := range c.bufs {
			c.shown[input] = c.bufs[input].col.Run()
		}
		err = c.apply(w, c.shown)
	default:
		err = c.fireEvicting(w)
	}
	for input := range c.bufs {
		c.bufs[input].reset()
	}
	return err
}

// fireEvicting lets the evictor have its say before and after the function, which is shown copies: it may put them into
// another order.
func (c *elements) fireEvicting(w *view) error {
	c.times, c.inputs = c.times[:0], c.inputs[:0]
	if err := c.arrivals.Each(c.e.run.Index, unsafe.Pointer(&c.arrived), c.noted); err != nil {
		return err
	}
	before := c.ask(c.evict.before)
	for input := range c.bufs {
		c.shown[input] = c.bufs[input].copied()
	}
	if err := c.apply(w, c.shown); err != nil {
		return err
	}
	if after := c.ask(c.evict.after); !before && !after {
		return nil
	}
	return c.replace()
}

// ask lets the evictor choose, removes what it has evicted from the buffers and says whether that was anything.
func (c *elements) ask(evict func(*window.Eviction, *frame.Run)) bool {
	ev := &c.eviction
	ev.Reset(c.times)
	ev.ProcessingTime, ev.Watermark = c.e.rt.Now, c.e.watermark
	run := &c.bufs[0].run
	*run = c.bufs[0].col.Run()
	evict(ev, run)
	if ev.Left() == len(c.times) {
		return false
	}
	for input := range c.bufs {
		c.bufs[input].sift()
	}
	var at [2]int
	n := 0
	for k, input := range c.inputs {
		if !ev.Evicted(k) {
			c.bufs[input].keep(at[input])
			c.times[n], c.inputs[n] = c.times[k], input
			n++
		}
		at[input]++
	}
	c.times, c.inputs = c.times[:n], c.inputs[:n]
	return true
}

// replace makes what is in the buffers the contents.
func (c *elements) replace() error {
	if err := c.clear(); err != nil {
		return err
	}
	i := c.e.run.Index
	for input := range c.bufs {
		run := c.bufs[input].col.Run()
		for k := range run.N {
			if err := c.lists[input].Append(i, run.At(k)); err != nil {
				return err
			}
		}
	}
	for k, t := range c.times {
		c.arrived = arrival{Time: t, Input: int64(c.inputs[k])}
		if err := c.arrivals.Append(i, unsafe.Pointer(&c.arrived)); err != nil {
			return err
		}
	}
	return nil
}
