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
	for {
		name, c := o.wheel.pop(upTo)
		if c == nil {
			break
		}
		touched := int64(0)
		for _, id := range c.id[:c.n] {
			touched += o.nodes[id].due
		}
		o.touched = touched
		for i, id := range c.id[:c.n] {
			if err := o.expire(id, c.at[i]); err != nil {
				return err
			}
		}
		o.wheel.freeChunk(name, c)
	}
	o.wheel.rest(upTo)
	return o.wheel.err
}

// expire handles an entry of the wheel. One that counts is that of a session that ends there, or has become longer since it
// entered, or, if it has fired, is kept until there.
func (o *driver) expire(id uint32, at int64) error {
	s := &o.nodes[id]
	if s.due != at {
		return nil
	}
	last := s.end - 1
	if last > at {
		s.due = last
		o.wheel.add(last, id)
		return nil
	}
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
	o.leave(id)
	return nil
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
