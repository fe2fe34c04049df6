// Package timers keeps the timers of a keyed operator: two sets (event time, processing time) of key, namespace and
// time, fired in time order. It owns the timers' memory, which holds no pointers, and one processing-time callback of
// the subtask; it knows nothing of user code, state or watermark marks. Keyed drivers call it on the subtask's goroutine:
// they register and delete timers while they handle elements, advance the watermark when a mark comes, and add the timers to
// snapshots by Freeze.
//
// Timers are a set: one per domain, key, namespace and time, however often it is registered. A timer that fires is taken
// out before the call; what the call registers and is due already fires in the same pass. So 100,000 overdue timers
// drain in one pass, in time order. Among equal times the order is free. The clock of processing time may go back: timers wait
// until it is past them again, and those that have fired are gone.
//
// # Structure
//
// A timer is a flat record in a slab, named by a number. A hash index over (key, namespace, time) finds it again: pages
// of 4096 slots that split alone, so that a million timers grow without a pause. The order is kept by a wheel of 8 levels
// of 256 slots over all 64 bits of the time: a timer stands in the slot of the highest byte in which its time differs
// from the wheel's base, and moves down, whole slots at a time, when time comes near. Slots hold (time, number,
// generation) in chunks; a deleted timer leaves its entry behind, which is swept a chunk at a time once there are more
// dead entries than timers (session windows move a timer with every element). Registering, deleting and firing allocate
// nothing once the memory has grown to the number of timers; memory is kept, not given back.
//
// A state backend that keeps timers (statebackend.TimerStore) has those for which memory has no room: all timers before a
// horizon are in memory, the later ones in the store (horizon.go).
package timers

import (
	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/statebackend"
)

// Fire is called for a timer. key and namespace are valid during the call; the call may register and delete timers, but
// not advance the watermark.
type Fire func(key []byte, hash uint64, namespace []byte, at int64) error

// Options are what a service needs of its operator.
type Options struct {
	// Callbacks is the subtask's queue; the service keeps at most one callback in it, for its earliest processing-time
	// timer. The timer of time t fires when the task runs callbacks of t, which is once the clock is past t.
	Callbacks *operator.Callbacks
	// OnProcessingTime is called for each processing-time timer that fires.
	OnProcessingTime Fire
	// Inline is the number of bytes that a record keeps in place for key and namespace together, from 8 to 32: their
	// length if it is fixed. Longer ones go to an arena. 0 means 24: a key of 8 bytes and a window.
	Inline int
	// Store keeps the timers that memory has no room for; nil: all are in memory.
	Store statebackend.TimerStore
	// Memory is what the timers in memory draw on; nil: without limit. Operator is named in errors.
	Memory   statebackend.Budget
	Operator string
}

// Service holds the timers of one operator in one subtask. It belongs to the subtask's goroutine.
type Service struct {
	queues    [2]queue // by process.Domain
	watermark int64

	callbacks *operator.Callbacks
	process   Fire
	run       func(at int64) error // runProcessing, bound once: a method value would be allocated at each use
	store     statebackend.TimerStore
	next      *operator.Callback
	nextAt    int64
	draining  bool // the pass at hand schedules the next callback at its end
}

// New returns a service without timers, at frame.MinWatermark.
func New(o Options) *Service {
	s := &Service{watermark: frame.MinWatermark, callbacks: o.Callbacks, process: o.OnProcessingTime, store: o.Store}
	s.run = s.runProcessing
	inline := o.Inline
	if inline == 0 {
		inline = 24
	}
	for i := range s.queues {
		s.queues[i].init(min(max(inline, 8), 32))
		s.queues[i].ledger = ledger{memory: o.Memory, operator: o.Operator}
	}
	return s
}

// Register sets a timer, if there is none like it. hash is the key's hash; key and namespace are copied. A timer that is due
// already fires with the next AdvanceWatermark, also to the present watermark, or the next run of the subtask's callbacks.
// The error is one of memory or of the store behind: the task can't go on.
func (s *Service) Register(d process.Domain, key []byte, hash uint64, namespace []byte, at int64) (err error) {
	q := &s.queues[d]
	if q.horizon.beyond(at) {
		err = q.registerFar(key, hash, namespace, at)
	} else {
		q.register(key, hash, namespace, at)
	}
	if q.size() != q.ledger.seen && err == nil {
		err = q.account()
	}
	if q.full() && err == nil {
		err = q.shed()
	}
	if d == process.ProcessingTime && !s.draining {
		s.schedule(at)
	}
	return err
}

// Delete takes a timer back, if there is one. The error is one of the store behind: the task can't go on.
func (s *Service) Delete(d process.Domain, key []byte, hash uint64, namespace []byte, at int64) error {
	q := &s.queues[d]
	if !q.remove(key, hash, namespace, at) && q.horizon.beyond(at) {
		return q.removeFar(key, hash, namespace, at)
	}
	return nil
}

// Watermark is the operator's event time: what AdvanceWatermark set, during its calls already.
func (s *Service) Watermark() int64 { return s.watermark }

// AdvanceWatermark sets the watermark, unless it is there already, and fires every event-time timer with a time <= it.
// After an error of fire the timers not yet fired are still set.
func (s *Service) AdvanceWatermark(t int64, fire Fire) error {
	s.watermark = max(s.watermark, t)
	return s.queues[process.EventTime].fire(s.watermark, fire)
}

// Count is the number of timers, over all keys. It looks at every timer of the store behind, if there is one; if that fails,
// which the next call tells, it is too low.
func (s *Service) Count(d process.Domain) int {
	n := s.queues[d].live
	_ = s.eachFar(d, func([]byte, uint64, []byte, int64) error { n++; return nil })
	return n
}

// CountIn is the number of timers with this namespace, over all keys. It looks at every timer; see Count.
func (s *Service) CountIn(d process.Domain, namespace []byte) int {
	n := 0
	_ = s.ForEach(d, func(_ []byte, _ uint64, ns []byte, _ int64) error {
		if string(ns) == string(namespace) {
			n++
		}
		return nil
	})
	return n
}

// ForEach calls f for every timer, in no order, until it returns an error. f may not register or delete timers.
func (s *Service) ForEach(d process.Domain, f Fire) error {
	var err error
	q := &s.queues[d]
	q.slab.each(func(r *record) bool {
		key, ns := q.payload(r)
		err = f(key, r.hash, ns, r.at)
		return err == nil
	})
	if err != nil {
		return err
	}
	return s.eachFar(d, f)
}

// NextProcessing is the time of the callback that the service has in the subtask's queue, which no processing-time timer is
// before: that of the earliest, of one that was deleted since, or of the horizon. ok is false if there is none.
func (s *Service) NextProcessing() (at int64, ok bool) { return s.nextAt, s.next != nil }

// MemoryBytes is the memory that the timers hold, used or not.
func (s *Service) MemoryBytes() int64 {
	return s.queues[0].memory() + s.queues[1].memory()
}

// Close takes the service's callback back and gives its memory back: no timer fires any more.
func (s *Service) Close() {
	for i := range s.queues {
		s.queues[i].ledger.settle()
	}
	if s.next != nil {
		s.callbacks.Cancel(s.next)
		s.next = nil
	}
}

// schedule makes sure that the callback comes at the latest at that time.
func (s *Service) schedule(at int64) {
	if s.next != nil {
		if s.nextAt <= at {
			return
		}
		s.callbacks.Cancel(s.next)
	}
	s.next, s.nextAt = s.callbacks.Schedule(at, s.run), at
}

func (s *Service) runProcessing(at int64) error {
	s.next, s.draining = nil, true
	q := &s.queues[process.ProcessingTime]
	err := q.fire(at, s.process)
	s.draining = false
	if next, ok := q.earliest(); ok && err == nil {
		s.schedule(next)
	}
	return err
}
