package windowing

import (
	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/window"
)

// FireIn implements keyed.SpacedHandler: a timer of the trigger or the one that removes a window, or both.
func (e *engine) FireIn(d process.Domain, key, namespace []byte, at int64) error {
	e.canon, e.decoded, e.looked = key, false, false
	err := e.timer(d, namespace, at)
	e.canon = nil
	return err
}

func (e *engine) timer(d process.Domain, namespace []byte, at int64) error {
	if err := e.fire(namespace); err != nil {
		return err
	}
	state := &e.at
	if e.merging != nil {
		if err := e.merging.load(0); err != nil {
			return err
		}
		s, err := e.merging.state(e.at.p)
		if err != nil {
			return err
		}
		if s == nil {
			return nil // the trigger has left a timer behind of a window that is gone
		}
		state = s
	}
	e.contents.choose(state)
	e.space.choose(&e.at)
	var answer window.TriggerResult
	var err error
	if d == process.EventTime {
		answer, err = e.trig.time.OnEventTime(e.ctx, at)
	} else {
		answer, err = e.trig.time.OnProcessingTime(e.ctx, at)
	}
	if err != nil {
		return err
	}
	if err := e.answer(answer); err != nil {
		return err
	}
	if d != e.domain || at != e.cleanup {
		return nil
	}
	return e.remove()
}

// fire puts the window of a timer at hand.
func (e *engine) fire(namespace []byte) error {
	f := &e.fired
	if e.windows.Size != 0 {
		if err := e.windows.Decode(namespace, f.p); err != nil {
			return e.errorf("decode the window of a timer: %w", err)
		}
	}
	f.maxes = e.windows.maxes(f.maxes[:0], f.p, 1)
	e.at, e.looked = view{p: f.p, b: namespace, max: f.maxes[0]}, true
	e.cleanup = e.cleanupTime(e.at.max)
	return nil
}

// remove removes the window at hand, whose time is over: contents, state, and the window itself.
func (e *engine) remove() error {
	if err := e.contents.clear(); err != nil {
		return err
	}
	if err := e.clearTrigger(onClear); err != nil {
		return err
	}
	if err := e.user.clear(&e.at); err != nil {
		return err
	}
	if e.merging == nil {
		return nil
	}
	if err := e.merging.retire(e.at.p); err != nil {
		return err
	}
	return e.merging.store(0)
}

// clearTrigger clears what the trigger has of the window at hand.
func (e *engine) clearTrigger(p phase) error {
	e.space.choose(&e.at)
	e.phase = p
	err := e.trig.time.Clear(e.ctx)
	e.phase = atTime
	return err
}
