package taskmanager

import (
	"iter"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/flott-dev/flott/internal/clock"
	"github.com/flott-dev/flott/statebackend"
)

// courtesy lets the goroutines that write snapshots of a task step back for those that handle elements, which step back for each
// other once in a millisecond: Go takes the processor away from a goroutine only after 10 ms, however long others have been ready.
// A writer that was away for long, as the processors are all in use, then keeps its own for three quarters of that, or a third if that
// is more than a millisecond: it gets a share, or the snapshot would never end.
type courtesy struct {
	clock clock.Clock
	next  atomic.Int64 // when to step back, on the clock
}

// How long a writer works before it steps back.
const (
	leastTurn = 100 * time.Microsecond
	shortTurn = time.Millisecond
	mostTurn  = 5 * time.Millisecond
	turnRows  = 512 // how often it looks at the clock, which takes a microsecond on some machines
)

// yield steps back if it is time to. It may be called from any goroutine.
func (c *courtesy) yield() {
	away := c.clock.Nanos()
	if away < c.next.Load() {
		return
	}
	runtime.Gosched()
	back := c.clock.Nanos()
	c.next.Store(back + turn(back-away))
}

// turn is how long a writer works that was away for so many ns.
func turn(away int64) int64 {
	return min(max(min(away*3/4, int64(shortTurn)), away/3, int64(leastTurn)), int64(mostTurn))
}

// rows steps back between the rows of a table.
func (c *courtesy) rows(rows iter.Seq2[*statebackend.Row, error]) iter.Seq2[*statebackend.Row, error] {
	if rows == nil {
		return nil
	}
	return func(yield func(*statebackend.Row, error) bool) {
		n := 0
		for r, err := range rows {
			if n++; n%turnRows == 0 {
				c.yield()
			}
			if !yield(r, err) {
				return
			}
		}
	}
}

// batches steps back between the batches of a table.
func (c *courtesy) batches(batches iter.Seq2[*statebackend.RowBatch, error]) iter.Seq2[*statebackend.RowBatch, error] {
	if batches == nil {
		return nil
	}
	return func(yield func(*statebackend.RowBatch, error) bool) {
		n := 0
		for b, err := range batches {
			if b != nil {
				n += b.N
			}
			if n >= turnRows {
				n = 0
				c.yield()
			}
			if !yield(b, err) {
				return
			}
		}
	}
}
