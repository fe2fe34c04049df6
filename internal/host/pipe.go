package host

import (
	"context"
	"sync"
)

// Pipe hands items from one goroutine of user code to a subtask: bounded, in order. The goroutine waits in Put, the
// subtask never waits in Take.
type Pipe[T any] struct {
	waiter Waiter
	mu     sync.Mutex
	items  []T
	limit  int
	room   chan struct{} // capacity 1: "look again"
	ended  bool
	err    error
}

// NewPipe returns a pipe for at most limit items that wakes w.
func NewPipe[T any](w Waiter, limit int) *Pipe[T] {
	return &Pipe[T]{waiter: w, limit: limit, room: make(chan struct{}, 1)}
}

// Put hands an item over, waiting while the pipe is full. It returns the context's error when that ends first.
func (p *Pipe[T]) Put(ctx context.Context, item T) error {
	for {
		p.mu.Lock()
		if len(p.items) < p.limit {
			p.items = append(p.items, item)
			p.mu.Unlock()
			p.waiter.Wake()
			return nil
		}
		p.mu.Unlock()
		select {
		case <-p.room:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// End says that nothing follows, or why.
func (p *Pipe[T]) End(err error) {
	p.mu.Lock()
	p.ended, p.err = true, err
	p.mu.Unlock()
	p.waiter.Wake()
}

// Take returns the oldest item; ok is false if there is none now. ended is true once there will be none, with the error
// given to End.
func (p *Pipe[T]) Take() (item T, ok, ended bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.items) == 0 {
		return item, false, p.ended, p.err
	}
	item = p.items[0]
	var zero T
	p.items[0] = zero
	p.items = p.items[1:]
	select {
	case p.room <- struct{}{}:
	default:
	}
	return item, true, false, nil
}
