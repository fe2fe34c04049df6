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
			return l.refused(n, 0, err)
		}
	}
	l.held += n
	l.store.held += n
	return nil
}

// refused is the error of a reservation of n bytes; kept bytes are there for a snapshot.
func (l *ledger) refused(n, kept int64, err error) error {
	also := ""
	if kept > 0 {
		also = fmt.Sprintf(", %d more are kept for a snapshot,", kept)
	}
	return fmt.Errorf("operator %q: state %q: %w: the operator's state holds %d bytes%s and needs %d more; "+
		"give the process more memory or use a disk backend: %w",
		l.store.Operator, l.state, statebackend.ErrOutOfMemory, l.store.held, also, n, err)
}

// transfer moves n reserved bytes to a snapshot.
func (l *ledger) transfer(f *frozen, n int64) {
	l.held -= n
	l.store.held -= n
	f.held.Add(n)
}

// leave leaves n reserved bytes to an open snapshot, to its very end; if there is none it gives them back.
func (l *ledger) leave(n int64) {
	for i := len(l.store.open) - 1; i >= 0; i-- {
		if f := l.store.open[i]; f.keep(n) {
			l.held -= n
			l.store.held -= n
			return
		}
	}
	l.release(n)
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
