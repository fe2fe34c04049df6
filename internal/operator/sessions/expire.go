package sessions

import (
	"unsafe"

	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/window"
)

// alarm is the one callback that processing time needs.
type alarm struct {
	callbacks *operator.Callbacks
	ring      func(at int64) error
	next      *operator.Callback
	at        int64
}

// set makes sure that it rings once the clock is past at, or before.
func (a *alarm) set(at int64, ok bool) {
	if !ok || a.next != nil && a.at <= at {
		return
	}
	a.cancel()
	a.next, a.at = a.callbacks.Schedule(at, a.ring), at
}

func (a *alarm) cancel() {
	if a.next != nil {
		a.callbacks.Cancel(a.next)
		a.next = nil
	}
}

// advance fires the sessions that have ended at upTo, in order of their ends, and lets go of those that are kept no longer.
func (o *driver) advance(upTo int64) error {
	if o.domain == process.EventTime {
		o.watermark = upTo // what fires and is kept is in it
	}
	loaded := int64(noTime)
	for {
		at, name, c := o.wheel.pop(upTo)
		if c == nil {
			break
		}
		if at > loaded {
			loaded = o.load(c, at, upTo)
		}
		if err := o.expire(c.ids[:c.n], at); err != nil {
			return err
		}
		o.wheel.freeNear(name, c)
	}
	o.wheel.rest(upTo)
	return nil
}

// load loads the nodes of the entries in c and of some that come up after them, until upTo, together, so that they need not
// be waited for one by one. It returns the time of the last.
func (o *driver) load(c *nearChunk, at, upTo int64) int64 {
	nodes, sum := o.nodes, int64(0)
	for n := 0; ; {
		for {
			for _, id := range c.ids[:c.n] {
				sum += nodes[id].due
			}
			n += int(c.n)
			if c.next == 0 {
				break
			}
			c = o.wheel.nearChunk(c.next)
		}
		if at == upTo || n >= block {
			break
		}
		u, ok := o.wheel.nearest(ordered(at) + 1)
		if !ok || unordered(u) > upTo {
			break
		}
		at, c = unordered(u), o.wheel.nearChunk(o.wheel.near[u%nearSlots].head)
	}
	o.touched = sum
	return at
}

// expire handles entries of the wheel of one time. One that counts is that of a session that ends there, or has become longer
// since it entered, or, if it has fired, is kept until there. They are sorted without a branch, which would be too random to
// be predicted.
func (o *driver) expire(ids []uint32, at int64) error {
	var grown, ended [nearLen]uint32
	g, e := 0, 0
	for _, id := range ids {
		s := &o.nodes[id]
		grown[g], ended[e] = id, id
		counts, longer := one(s.due == at), one(s.end-1 > at)
		g += counts & longer
		e += counts &^ longer
	}
	for _, id := range grown[:g] {
		s := &o.nodes[id]
		if s.due == at { // else it is here twice
			s.due = s.end - 1
			o.wheel.add(s.due, id)
		}
	}
	for _, id := range ended[:e] {
		if err := o.end(id, at); err != nil {
			return err
		}
	}
	return nil
}

// end handles a session that has ended at a time, or before.
func (o *driver) end(id uint32, at int64) error {
	s := &o.nodes[id]
	if s.due != at {
		return nil // it was here twice
	}
	if o.deep { // making a result may change what is behind pointers
		if err := o.shadows.Keep(id); err != nil {
			return err
		}
	}
	last := s.end - 1
	if last == at || o.lateness == 0 {
		if err := o.emit(id); err != nil {
			return err
		}
	}
	if until := o.cleanup(last); until > at {
		s.due = until
		o.wheel.add(until, id)
		return nil
	}
	return o.leave(id)
}

// emit emits the result of a session.
func (o *driver) emit(id uint32) error {
	if o.emitter.Column.Room() == 0 {
		if err := o.emitter.Flush(); err != nil {
			return err
		}
	}
	s := &o.nodes[id]
	o.window = window.Time{Start: s.start, End: s.end}
	o.k.Emit(o.emitter.Column, o.keys.at(id), unsafe.Pointer(&o.window), o.accs.at(id), s.end-1)
	return nil
}
