package host

import (
	"sync"
	"testing"

	"github.com/flott-dev/flott/internal/clock"
)

// A subtask that asks and waits gets every answer: none of the wake-ups of the two sides is lost.
func TestParkerLosesNoWakeUp(t *testing.T) {
	c := clock.NewSystem()
	a, b := NewParker(c), NewParker(c)
	ma, mb := NewMailbox(a), NewMailbox(b)
	const rounds = 20_000
	side := func(w *Parker, own, other *Mailbox, first bool) {
		got := 0
		if first {
			other.Post(func() error { return nil })
		}
		for got < rounds {
			if letters := own.Take(); letters != nil {
				got += len(letters)
				for range letters {
					other.Post(func() error { return nil })
				}
				continue
			}
			w.Wait(Idle, Forever)
		}
	}
	var group sync.WaitGroup
	group.Go(func() { side(a, ma, mb, true) })
	group.Go(func() { side(b, mb, ma, false) })
	group.Wait()
}
