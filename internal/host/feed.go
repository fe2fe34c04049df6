package host

import (
	"context"
	"sync"
)

// Batch is what a Feed hands over: something that is filled little by little.
type Batch interface {
	// Empty reports whether there is nothing to hand over.
	Empty() bool
}

// Feed hands batches from goroutines of user code to a subtask, in order. The goroutines fill one open batch in turn; it
// is handed over when it is full or, at once, when the subtask has nothing else to do: no timer is needed and nothing
// waits for company. Producers wait while the subtask has enough to do; the subtask never waits.
type Feed[B Batch] struct {
	ctx    context.Context
	waiter Waiter
	fresh  func() B
	limit  int
	room   chan struct{} // capacity 1: "look again"

	section sync.Mutex // held by a producer's section, and by Freeze

	mu     sync.Mutex
	open   B
	isOpen bool
	full   []B
	spare  []B
	hungry bool // the subtask waits for anything
	queue  int  // producers that wait for room
	urgent bool // Freeze waits for a section to end: its producer finds room
	ended  bool
	err    error
}

// NewFeed returns a feed that wakes w and holds at most limit full batches; fresh makes an empty one. When ctx ends,
// producers are turned away.
func NewFeed[B Batch](ctx context.Context, w Waiter, limit int, fresh func() B) *Feed[B] {
	return &Feed[B]{ctx: ctx, waiter: w, fresh: fresh, limit: limit, room: make(chan struct{}, 1)}
}

// Begin gives a producer the open batch, after waiting for room; the producer must call Done soon, from the same
// goroutine. ok is false, and Done must not be called, once the feed has ended or its context has.
func (f *Feed[B]) Begin() (batch B, ok bool) {
	f.mu.Lock()
	for len(f.full) >= f.limit && !f.urgent && !f.ended && f.ctx.Err() == nil {
		f.queue++
		f.mu.Unlock()
		select {
		case <-f.room:
		case <-f.ctx.Done():
		}
		f.mu.Lock()
		f.queue--
	}
	if f.ended || f.ctx.Err() != nil {
		f.mu.Unlock()
		f.passRoom()
		return batch, false
	}
	if !f.isOpen {
		f.isOpen = true
		if n := len(f.spare); n > 0 {
			f.open, f.spare = f.spare[n-1], f.spare[:n-1]
		} else {
			f.open = f.fresh()
		}
	}
	return f.open, true
}

// Done gives the open batch back; full says that it must be handed over.
func (f *Feed[B]) Done(full bool) {
	if full {
		f.full = append(f.full, f.open)
		f.isOpen = false
	}
	if f.queue > 0 && (f.urgent || len(f.full) < f.limit) { // one word of room reaches one producer, which passes it on
		f.passRoom()
	}
	wake := f.hungry
	f.hungry = false
	f.mu.Unlock()
	if wake {
		f.waiter.Wake()
	}
}

// Section runs do, which may call Begin and Done, so that no Freeze comes in between. Producers have one section at a time.
func (f *Feed[B]) Section(do func()) {
	f.section.Lock()
	defer f.section.Unlock()
	do()
}

// Freeze runs do in a section of its own and then shows what waits to be taken, the open batch as well, from the oldest. It
// waits for the section of a producer to end, which finds room meanwhile, however much waits. Subtask only.
func (f *Feed[B]) Freeze(do func() error, see func(B) error) error {
	f.press(true)
	f.section.Lock()
	defer f.section.Unlock()
	f.press(false)
	if err := do(); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, b := range f.full {
		if err := see(b); err != nil {
			return err
		}
	}
	if f.isOpen && !f.open.Empty() {
		return see(f.open)
	}
	return nil
}

func (f *Feed[B]) press(urgent bool) {
	f.mu.Lock()
	f.urgent = urgent
	f.mu.Unlock()
	f.passRoom()
}

// passRoom lets the next producer that waits look again.
func (f *Feed[B]) passRoom() {
	select {
	case f.room <- struct{}{}:
	default:
	}
}

// End says that nothing follows, or why. Producers are turned away from now on.
func (f *Feed[B]) End(err error) {
	f.mu.Lock()
	if !f.ended {
		f.ended, f.err = true, err
	}
	f.mu.Unlock()
	f.passRoom()
	f.waiter.Wake()
}

// Take returns the oldest batch, the open one if there is no full one; ok is false if there is none now. ended is true
// once there will be none, with the error given to End. Subtask only.
func (f *Feed[B]) Take() (batch B, ok, ended bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case len(f.full) > 0:
		batch = f.full[0]
		f.full = append(f.full[:0], f.full[1:]...)
		f.passRoom()
		return batch, true, false, nil
	case f.isOpen && !f.open.Empty():
		f.isOpen = false
		return f.open, true, false, nil
	}
	f.hungry = !f.ended
	return batch, false, f.ended, f.err
}

// Return gives a taken batch, emptied, back for reuse. Subtask only.
func (f *Feed[B]) Return(batch B) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.spare) <= f.limit {
		f.spare = append(f.spare, batch)
	}
}
