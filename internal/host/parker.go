package host

import (
	"runtime"
	"sync/atomic"
	"time"

	"github.com/flott-dev/flott/internal/clock"
)

// Parker is the Waiter of production: the subtask's goroutine parks on a channel. A wake-up costs one atomic addition
// while the subtask is running.
type Parker struct {
	clock  clock.Clock
	seq    atomic.Uint64 // wake-ups so far
	parked atomic.Bool
	seen   uint64 // the subtask's own
	token  chan struct{}
	timer  *time.Timer
	turn   int64 // when it began, ms; the subtask's own
}

// NewParker returns a Parker that reads deadlines against c.
func NewParker(c clock.Clock) *Parker {
	return &Parker{clock: c, token: make(chan struct{}, 1)}
}

// Wait implements Waiter: set the flag, look again, then wait, so that no wake-up is lost.
func (p *Parker) Wait(_ Reason, deadline int64) {
	if p.caughtUp() {
		return
	}
	p.parked.Store(true)
	if p.caughtUp() {
		p.parked.Store(false)
		return
	}
	if deadline == Forever {
		<-p.token
	} else {
		p.waitUntil(deadline)
	}
	p.parked.Store(false)
	p.seen = p.seq.Load()
}

// caughtUp reports, and takes note of, wake-ups since the last look.
func (p *Parker) caughtUp() bool {
	if s := p.seq.Load(); s != p.seen {
		p.seen = s
		return true
	}
	return false
}

// longest is how far one wait reaches, in ms: what a time.Duration can say, rounded down. A wait until a later deadline
// ends for no reason and is repeated.
const longest = 1 << 42

func (p *Parker) waitUntil(deadline int64) {
	now := p.clock.Millis()
	if deadline <= now {
		return
	}
	d := time.Duration(min(deadline, now+longest)-now) * time.Millisecond
	if p.timer == nil {
		p.timer = time.NewTimer(d)
	} else {
		p.timer.Reset(d)
	}
	select {
	case <-p.token:
		p.timer.Stop()
	case <-p.timer.C:
	}
}

// Yield implements Waiter: once in a millisecond others that are ready get the processor. Go takes it away only after 10 ms, and
// what is read at a barrier, say, would come out that much later.
func (p *Parker) Yield(now int64) {
	if now > p.turn {
		runtime.Gosched()
		p.turn = p.clock.Millis()
	}
}

// Wake implements Waiter.
func (p *Parker) Wake() {
	p.seq.Add(1)
	if p.parked.Load() && p.parked.Swap(false) {
		select {
		case p.token <- struct{}{}:
		default:
		}
	}
}
