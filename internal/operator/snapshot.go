package operator

import (
	"fmt"
	"unsafe"

	"github.com/flott-dev/flott/checkpoint"
	"github.com/flott-dev/flott/internal/host"
	"github.com/flott-dev/flott/serde"
	"github.com/flott-dev/flott/statebackend"
)

// Snapshotter is implemented by operators that have state. The task calls Snapshot on the subtask's goroutine after the
// barrier has passed the whole chain, so that everything before it has left the operator or is in its state.
type Snapshotter interface {
	// Snapshot adds the state of this moment to s. What is quick to freeze and slow to write (tables) is added frozen: it
	// is written by another goroutine later. An error declines the checkpoint and fails the task.
	Snapshot(s *Snapshot) error
}

// CheckpointListener is implemented by operators that act when a checkpoint is complete: sinks that commit. Calls come on
// the subtask's goroutine, in the order of ids; a call for an id stands for all lower ones.
type CheckpointListener interface {
	CheckpointCompleted(id int64) error
	CheckpointAborted(id int64) error
}

// Snapshot collects the state of one operator of one subtask.
type Snapshot struct {
	// ID is the checkpoint.
	ID int64
	// Savepoint says that the snapshot is a user's.
	Savepoint bool
	// Stops says that nothing is to be emitted any more unless the snapshot is given up.
	Stops bool
	// Groups is the number of key groups.
	Groups int
	// Freezing is how stores are frozen: whole, or what has changed since the last one.
	Freezing statebackend.Freezing
	// Stores are frozen stores: their tables are state by key.
	Stores []statebackend.Frozen
	// Tables are more state by key: timers, slices, sessions. The rows are those of the moment of the call, or are copied
	// by it; they are read on another goroutine.
	Tables []statebackend.FrozenTable
	// Lists are state of the operator.
	Lists []checkpoint.List
	// Held is set by an operator that adds a list later, on the subtask's goroutine, and calls Complete then, or Fail if it
	// can't, which declines the checkpoint. Until it has, or the checkpoint is given up, the snapshot goes nowhere.
	Held     bool
	Complete func()
	Fail     func(err error)

	memory  *host.Memory
	charged int64
}

// Charge has Release give n bytes back to the process's budget, which hold what was added.
func (s *Snapshot) Charge(m *host.Memory, n int64) {
	s.memory = m
	s.charged += n
}

// Freeze adds the tables of a store.
func (s *Snapshot) Freeze(store statebackend.Store) error {
	frozen, err := store.Freeze(s.Freezing)
	if err != nil {
		return fmt.Errorf("snapshot keyed state: %w", err)
	}
	s.Stores = append(s.Stores, frozen)
	return nil
}

// Release gives back what the snapshot holds, written or not.
func (s *Snapshot) Release() {
	s.memory.Release(s.charged)
	s.charged = 0
	for _, f := range s.Stores {
		f.Release()
	}
}

// Restored is the state of a snapshot that one operator of one subtask begins with; nil: there is none, it begins afresh.
// Operators look at it in Open. State by key has the subtask's key groups only.
type Restored struct {
	// Checkpoint is the id of the snapshot.
	Checkpoint int64
	// Store is what the operator's store begins with; it is passed on to the backend.
	Store statebackend.Restored
	// Lists are the operator's lists, redistributed.
	Lists []checkpoint.List
}

// List gives the items of a list; nil if there are none.
func (r *Restored) List(name string) *checkpoint.List {
	if r == nil {
		return nil
	}
	for i := range r.Lists {
		if r.Lists[i].Name == name {
			return &r.Lists[i]
		}
	}
	return nil
}

// Table gives a table that is not a value, list or map of a store; nil if there is none. It is an error if the table was
// written as another kind of table, or with other types of keys, which can't change.
func (r *Restored) Table(want *statebackend.TableInfo) (*statebackend.FrozenTable, error) {
	if r == nil || r.Store == nil {
		return nil, nil
	}
	t, ok := r.Store.Table(want.Name)
	if !ok {
		return nil, nil
	}
	if t.Kind != want.Kind {
		return nil, fmt.Errorf("table %q of the snapshot holds %s, not %s", want.Name, t.Kind, want.Kind)
	}
	for _, part := range []struct {
		what     string
		old, now *serde.Schema
	}{{"key", t.Key, want.Key}, {"namespace", t.Namespace, want.Namespace}, {"map key", t.MapKey, want.MapKey}} {
		if was, is := schemaText(part.old), schemaText(part.now); was != is {
			return nil, fmt.Errorf("the snapshot has the %s type %s, the program %s: types of keys can't change", part.what, was, is)
		}
	}
	return &t, nil
}

// Without is an error if the snapshot has one of these tables: the operator has no use for them, and what is in them would
// be lost.
func (r *Restored) Without(tables ...string) error {
	if r == nil || r.Store == nil {
		return nil
	}
	for _, name := range tables {
		if _, ok := r.Store.Table(name); ok {
			return fmt.Errorf("the snapshot has the table %q, of an operator that works in another way: keep what decides it "+
				"(for windows the assigner, the trigger and the function), or give the operator another UID", name)
		}
	}
	return nil
}

// Decoder is the way from values of a snapshot, written under a schema (nil: the handle's own), to Go values. It takes all
// of src.
func Decoder(h *serde.Handle, old *serde.Schema) (func(src []byte, v unsafe.Pointer) error, error) {
	read := h.Read
	if old != nil {
		r, err := h.Reader(old)
		if err != nil {
			return nil, err
		}
		read = r.Read
	}
	return func(src []byte, v unsafe.Pointer) error {
		n, err := read(src, v)
		if err == nil && n != len(src) {
			err = fmt.Errorf("a value of %d bytes has %d too many", len(src), len(src)-n)
		}
		return err
	}, nil
}

func schemaText(s *serde.Schema) string {
	if s == nil {
		return "(none)"
	}
	return s.String()
}
