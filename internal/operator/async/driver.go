// Package async holds the driver of asynchronous operators: a function that waits for the outside world is called for
// many elements at a time, each call on a goroutine of its own, and the results go on in the order of the elements or as
// they come, never past a watermark. The package owns the queue of the calls under way; goroutines and waiting are
// package host's, time is the subtask's.
//
// A full queue is backpressure: the operator waits inside Push at the subtask's one waiting point. It is the head of its
// task, so that nothing above it is at work meanwhile; while it waits it opens the subtask's letters and runs its timers
// as the task does between runs.
package async

import (
	"context"
	"fmt"
	"math"
	"sync/atomic"
	"unsafe"

	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/host"
	"github.com/flott-dev/flott/internal/operator"
)

// driver is the part of the operator that does not look at elements.
type driver struct {
	operator.Unary
	order    Order
	capacity int

	queue    *Queue
	ended    *host.Pipe[outcome] // what goroutines bring back; it has room for all of the queue
	posted   atomic.Bool         // a letter that takes care of ended is on its way
	letter   func() error        // bound once: a method value would be allocated at each use
	flush    func() error
	draining bool
	unsent   bool // something was emitted since the last flush of the task's frames

	backlog []waiting                              // what was under way at the snapshot and has not found room yet
	again   func(element []byte, time int64) error // puts an element of the backlog into the queue
	read    func([]byte, unsafe.Pointer) error     // of elements of the backlog

	ctx    context.Context // of all calls: ends with the operator
	cancel context.CancelFunc
}

// outcome is what a goroutine brings back to the subtask.
type outcome interface{ settle() error }

func (o *driver) open(rt *operator.Runtime, flush func() error) error {
	err := o.Unary.Open(rt)
	o.queue = NewQueue(o.order, o.capacity)
	o.ended = host.NewPipe[outcome](rt.Waiter, o.capacity)
	o.letter = func() error {
		rt.At, rt.Run = rt, nil
		return o.drain()
	}
	o.flush = flush
	o.ctx, o.cancel = context.WithCancel(rt.Ctx)
	return err
}

// Close ends the contexts of the calls that are still under way; what they return is dropped.
func (o *driver) Close() error {
	if o.cancel != nil {
		o.cancel()
	}
	return nil
}

// deliver is called by a call's goroutine as its last act.
func (o *driver) deliver(a outcome) {
	// The pipe is full only of calls that went on after their timeout; whoever waits then waits for the subtask or for
	// the operator's end.
	if o.ended.Put(o.ctx, a) == nil && o.posted.CompareAndSwap(false, true) {
		o.RT.Mailbox.Post(o.letter)
	}
}

// drain settles the calls that have ended and emits what may be emitted. An emission can lead back here, when an
// operator further down the chain waits and opens letters: the outer call goes on until nothing is left.
func (o *driver) drain() error {
	if o.draining {
		return nil
	}
	o.draining = true
	defer func() { o.draining = false }()
	for {
		o.posted.Store(false)
		if err := o.settle(); err != nil {
			return err
		}
		more, err := o.emit()
		if err != nil {
			return err
		}
		begun, err := o.refill()
		if err != nil || !more && !begun {
			return err
		}
	}
}

func (o *driver) settle() error {
	for {
		a, ok, _, _ := o.ended.Take()
		if !ok {
			return nil
		}
		// Of a cancelled task's calls nothing is known: they may have failed because of the cancellation.
		if err := o.cancelled(); err != nil {
			return err
		}
		if err := a.settle(); err != nil {
			return err
		}
	}
}

func (o *driver) cancelled() error {
	if err := o.RT.Ctx.Err(); err != nil {
		return fmt.Errorf("wait for the calls under way: %w", err)
	}
	return nil
}

// emit sends everything that can be; more is false if that was nothing.
func (o *driver) emit() (more bool, err error) {
	for e := o.queue.Pop(); e != nil; e = o.queue.Pop() {
		more = true
		o.unsent = true
		if e.Call != nil {
			e.Call.Emit()
			continue
		}
		if err := o.flush(); err != nil {
			return more, err
		}
		if err := o.Out.Mark(e.Mark); err != nil {
			return more, err
		}
	}
	return more, o.flush()
}

// admit puts an entry into the queue once there is room for it.
func (o *driver) admit(e *Entry) error {
	for len(o.backlog) > 0 || !o.queue.TryPut(e) {
		if err := o.drain(); err != nil {
			return err
		}
		if len(o.backlog) == 0 && !o.queue.Full() {
			continue
		}
		if err := o.wait(host.Backpressured); err != nil {
			return err
		}
	}
	return nil
}

// wait waits for a call to end, and does what the task does between runs.
func (o *driver) wait(reason host.Reason) error {
	if err := o.cancelled(); err != nil {
		return err
	}
	rt := o.RT
	run := rt.Run
	if o.unsent { // as the task does when its input runs dry; that may have waited, so the caller looks again first
		o.unsent = false
		return rt.Flush()
	}
	deadline := int64(host.Forever)
	if at, ok := rt.Timers.Next(); ok && at != math.MaxInt64 {
		deadline = at + 1
	}
	rt.Waiter.Wait(reason, deadline)
	rt.Now = rt.Clock.Millis()
	for _, letter := range rt.Mailbox.Take() {
		if err := letter(); err != nil {
			return err
		}
	}
	if err := rt.Timers.Run(rt.Now - 1); err != nil {
		return err
	}
	rt.At, rt.Run = rt, run
	return nil
}

// Mark implements operator.Input. Marks of event time keep their place among the elements; the end waits for all calls;
// barriers and latency markers pass at once.
func (o *driver) Mark(m frame.Mark) error {
	switch m.Kind {
	case frame.Watermark, frame.Idle, frame.Active, frame.Probe:
		if o.queue.Len() == 0 {
			break
		}
		if err := o.admit(&Entry{Mark: m}); err != nil {
			return err
		}
		return o.drain()
	case frame.End:
		if err := o.finish(); err != nil {
			return err
		}
	}
	return o.Out.Mark(m)
}

// finish waits until nothing is under way.
func (o *driver) finish() error {
	for {
		if err := o.drain(); err != nil {
			return err
		}
		if o.queue.Len() == 0 && len(o.backlog) == 0 {
			return nil
		}
		if err := o.wait(host.Idle); err != nil {
			return err
		}
	}
}
