package sessions

import (
	"fmt"

	"github.com/flott-dev/flott/internal/host"
	"github.com/flott-dev/flott/statebackend"
)

// ledger accounts for the memory of one operator's sessions.
type ledger struct {
	memory   *host.Memory // nil: without limit
	operator string
	held     int64
}

// reserve must succeed before n bytes are allocated.
func (l *ledger) reserve(n int64) error {
	if l.memory != nil {
		if err := l.memory.Reserve(n); err != nil {
			return fmt.Errorf("operator %q: session windows: %w: the open sessions hold %d bytes and need %d more; "+
				"give the process more memory or raise the parallelism: %w", l.operator, statebackend.ErrOutOfMemory, l.held, n, err)
		}
	}
	l.held += n
	return nil
}

// give gives n bytes back.
func (l *ledger) give(n int64) {
	l.memory.Release(n)
	l.held -= n
}

// release gives everything back.
func (l *ledger) release() {
	if l.memory != nil {
		l.memory.Release(l.held)
	}
	l.held = 0
}
