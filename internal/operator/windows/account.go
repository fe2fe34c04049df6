package windows

import (
	"fmt"
	"math"
	"sync/atomic"

	"github.com/flott-dev/flott/internal/host"
	"github.com/flott-dev/flott/statebackend"
)

// account is the memory that a snapshot holds of the budget. The subtask draws on it while another goroutine reads, and may
// close it, at any moment.
type account struct {
	memory *host.Memory // nil: without limit
	held   atomic.Int64 // negative: it is closed
}

// draw reserves n bytes; false if the snapshot has been released: nothing is needed for it.
func (a *account) draw(n int64) (bool, error) {
	if err := a.memory.Reserve(n); err != nil {
		return false, fmt.Errorf("keep windows for a snapshot that is being written: %w: it holds %d bytes and needs %d more; "+
			"give the process more memory or raise the parallelism: %w", statebackend.ErrOutOfMemory, max(0, a.held.Load()), n, err)
	}
	for {
		held := a.held.Load()
		if held < 0 {
			a.memory.Release(n)
			return false, nil
		}
		if a.held.CompareAndSwap(held, held+n) {
			return true, nil
		}
	}
}

// close gives everything back.
func (a *account) close() {
	if held := a.held.Swap(math.MinInt64); held > 0 {
		a.memory.Release(held)
	}
}

func (a *account) closed() bool { return a.held.Load() < 0 }

// loan is memory that its driver has no use for any more, but snapshots have. The last of them gives it back to the budget.
type loan struct {
	memory *host.Memory
	bytes  int64
	refs   atomic.Int32
}

func (l *loan) drop() {
	if l.refs.Add(-1) == 0 {
		l.memory.Release(l.bytes)
	}
}

// borrower is one snapshot's use of an array of a driver.
type borrower struct {
	loan atomic.Pointer[loan]
	gone loan // stands for no loan, for ever
}

// take takes part in a loan; false if the snapshot has been released.
func (b *borrower) take(l *loan) bool {
	l.refs.Add(1)
	if b.loan.CompareAndSwap(nil, l) {
		return true
	}
	l.refs.Add(-1)
	return false
}

// giveBack ends the use.
func (b *borrower) giveBack() {
	if l := b.loan.Swap(&b.gone); l != nil && l != &b.gone {
		l.drop()
	}
}

// newLoan is one that nobody takes part in yet.
func newLoan(m *host.Memory, bytes int64) *loan {
	l := &loan{memory: m, bytes: bytes}
	l.refs.Store(1)
	return l
}

// made ends the taking; false if nobody takes part any more: the memory is the driver's still.
func (l *loan) made() bool { return l.refs.Add(-1) != 0 }
