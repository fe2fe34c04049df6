package timers

import (
	"fmt"

	"github.com/flott-dev/flott/statebackend"
)

// ledger accounts for the memory of a queue.
type ledger struct {
	memory   statebackend.Budget // nil: without limit
	operator string
	seen     int // size when it was last accounted for
	held     int64
}

// size changes when the queue's memory grows.
func (q *queue) size() int {
	return len(q.slab.pages) + q.index.pages + len(q.wheel.chunks) + int(q.arena.held)
}

// account draws on the budget what the queue has grown by. If the budget refuses and there is a store behind the queue, timers
// go there, and what lacks is asked for again when the queue grows the next time.
func (q *queue) account() error {
	l := &q.ledger
	l.seen = q.size()
	more := q.memory() - l.held
	if more <= 0 {
		return nil
	}
	if l.memory != nil {
		if err := l.memory.Reserve(more); err != nil {
			if h := &q.horizon; h.set != nil && h.bytes > h.least {
				h.bytes = max(h.least, min(h.bytes, l.held)*3/4)
				return nil
			}
			return fmt.Errorf("operator %q: timers: %w: they hold %d bytes and need %d more; give the process more memory, "+
				"raise the parallelism or use a state backend on disk: %w", l.operator, statebackend.ErrOutOfMemory, l.held, more, err)
		}
	}
	l.held += more
	return nil
}

// settle gives everything back.
func (l *ledger) settle() {
	if l.memory != nil {
		l.memory.Release(l.held)
	}
	l.held = 0
}
