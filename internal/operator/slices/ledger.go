package slices

import (
	"fmt"

	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/statebackend"
)

// ledger accounts for the memory of a driver against the process's budget. Memory behind accumulators (maps, slices, texts)
// can't be seen and is not counted.
type ledger struct {
	rt   *operator.Runtime
	held int64
}

// reserve must succeed before n bytes are allocated.
func (l *ledger) reserve(n int64) error {
	if m := l.rt.Memory; m != nil {
		if err := m.Reserve(n); err != nil {
			return fmt.Errorf("operator %q: windows: %w: the operator's windows hold %d bytes and need %d more; "+
				"give the process more memory or raise the parallelism: %w", l.rt.Name, statebackend.ErrOutOfMemory, l.held, n, err)
		}
	}
	l.held += n
	return nil
}

// release gives back n reserved bytes.
func (l *ledger) release(n int64) {
	l.held -= n
	if m := l.rt.Memory; m != nil {
		m.Release(n)
	}
}
