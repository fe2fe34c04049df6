package heap

import (
	"fmt"
	"unsafe"

	"github.com/flott-dev/flott/statebackend"
)

// ledger accounts for the memory of one table.
type ledger struct {
	store *store
	state string
	held  int64
}

// reserve must succeed before n bytes are allocated.
func (l *ledger) reserve(n int64) error {
	if l.store.Memory != nil {
		if err := l.store.Memory.Reserve(n); err != nil {
			return fmt.Errorf("operator %q: state %q: %w: the operator's state holds %d bytes and needs %d more; "+
				"give the process more memory or use a disk backend: %w",
				l.store.Operator, l.state, statebackend.ErrOutOfMemory, l.store.held, n, err)
		}
	}
	l.held += n
	l.store.held += n
	return nil
}

// release gives back n reserved bytes.
func (l *ledger) release(n int64) {
	l.held -= n
	l.store.held -= n
	if l.store.Memory != nil {
		l.store.Memory.Release(n)
	}
}

// memory allocates n reserved bytes, zero and without pointers, n a multiple of 8.
func memory(n uintptr) unsafe.Pointer {
	return unsafe.Pointer(unsafe.SliceData(make([]uint64, n/8)))
}

func roundUp(n uintptr) uintptr { return (n + 7) &^ 7 }
