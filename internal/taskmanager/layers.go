package taskmanager

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/flott-dev/flott/checkpoint"
	"github.com/flott-dev/flott/internal/control"
	"github.com/flott-dev/flott/statebackend"
)

// maxLayers ends a chain of checkpoints of one task, so that the next one is whole. It ends as well when the changes hold more than
// the whole does: docs/decisions/0018-chains-end-when-changes-outweigh-the-whole.md.
const maxLayers = 64

// layers decides which snapshots of one task hold all of its state and which the changes since the one before. The task's
// goroutine asks it, its writers and the job manager tell it what became of the snapshots.
type layers struct {
	mu   sync.Mutex
	tip  *layer           // the last snapshot that changes may build upon; nil: the next one is whole
	ids  []int64          // of the tip and all that lie below it
	open map[int64]*layer // taken and not yet being written
}

// layer is one snapshot of the task.
type layer struct {
	id      int64
	on      *layer        // what its changes build upon; nil: it is whole
	written chan struct{} // closed when it is known what became of it
	// Valid once written is closed.
	folder string
	parts  []*checkpoint.Part // nil: it was not written
}

// freeze says how the stores are frozen for checkpoint id. whole is asked for by the user.
func (l *layers) freeze(id int64, whole bool) statebackend.Freezing {
	l.mu.Lock()
	defer l.mu.Unlock()
	next := &layer{id: id, written: make(chan struct{})}
	if l.tip != nil && !whole && !l.tip.full() {
		next.on = l.tip
	} else {
		l.ids = l.ids[:0]
	}
	l.ids = append(l.ids, id)
	if l.open == nil {
		l.open = map[int64]*layer{}
	}
	l.tip, l.open[id] = next, next
	return statebackend.Freezing{Anchor: true, Changes: next.on != nil}
}

// full reports whether enough layers lie one on the other. One that is being written counts as the one below it.
func (l *layer) full() bool {
	for ; l != nil; l = l.on {
		select {
		case <-l.written:
			return l.parts == nil || l.heavy()
		default:
		}
	}
	return false
}

// heavy reports whether a restore would read more than twice the whole, or too many layers. Files of backends are shared, and pile
// up nothing.
func (l *layer) heavy() bool {
	var whole, changes int64
	for _, p := range l.parts {
		n, w, c := p.Layers()
		if n >= maxLayers {
			return true
		}
		whole, changes = whole+w, changes+c
	}
	return changes > whole
}

// take gives the layer of a snapshot that is about to be written; nil: nothing will build upon it.
func (l *layers) take(id int64) *layer {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := l.open[id]
	delete(l.open, id)
	return n
}

// wrote tells what became of a layer; parts is nil if it was not written.
func (l *layers) wrote(n *layer, folder string, parts []*checkpoint.Part) {
	if n == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	n.folder, n.parts = folder, parts
	close(n.written)
	if parts == nil {
		l.drop(n.id)
	} else {
		n.on = nil // its parts name all that is below
	}
}

// aborted tells that a checkpoint was given up: its files go, so that nothing may build upon it.
func (l *layers) aborted(id int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.drop(id)
}

// drop makes the next snapshot whole if the present chain has layer id.
func (l *layers) drop(id int64) {
	if slices.Contains(l.ids, id) {
		l.tip, l.ids = nil, l.ids[:0]
	}
}

// below waits for the layer that n builds upon. The error says that it was not written.
func (n *layer) below(done <-chan struct{}) (*layer, error) {
	if n == nil || n.on == nil {
		return nil, nil
	}
	on := n.on
	select {
	case <-on.written:
	case <-done:
		return nil, errors.New("write the snapshot: the task is over")
	}
	if on.parts == nil {
		return nil, fmt.Errorf("write the snapshot: it holds the changes since checkpoint %d, which could not be written", on.id)
	}
	return on, nil
}

// freezing is asked by the task how to freeze its stores for a snapshot.
func (s *scribe) freezing(b control.Barrier) statebackend.Freezing {
	if !s.c.Incremental || b.Kind != control.Checkpoint {
		return statebackend.Freezing{}
	}
	return s.layers.freeze(b.ID, b.Full)
}
