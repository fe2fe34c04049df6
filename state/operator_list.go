package state

import (
	"fmt"
	"iter"
	"unsafe"

	"github.com/flott-dev/flott/serde"
)

// Redistribution says who gets the elements of an operator list when a job is restored, perhaps with another parallelism.
type Redistribution uint8

const (
	// Split deals the elements of all subtasks out to the new ones, each to one.
	Split Redistribution = iota
	// Union gives all elements to each new subtask.
	Union
)

// String gives the word that plans use.
func (r Redistribution) String() string {
	if r == Union {
		return "union"
	}
	return "split"
}

// OperatorListDescriptor declares a list that belongs to an operator's subtask, not to a key. It is immutable and may be
// shared.
type OperatorListDescriptor[V any] struct {
	name  string
	mode  Redistribution
	value *serde.Handle
	err   error
}

// NewOperatorList declares an operator list. The name is unique in its operator and lives on in snapshots. A mistake is
// kept for Err. It can't have a TTL.
func NewOperatorList[V any](name string, mode Redistribution, opts ...Option) *OperatorListDescriptor[V] {
	d := &OperatorListDescriptor[V]{name: name, mode: mode}
	o, err := plainOptions(opts)
	if err == nil {
		d.value, err = serde.Of[V](o.value...)
	}
	if err != nil {
		d.err = fmt.Errorf("operator state %q: %w", name, err)
	}
	return d
}

// Name is the name of the state.
func (d *OperatorListDescriptor[V]) Name() string { return d.name }

// Redistribution says who gets the elements after a restore.
func (d *OperatorListDescriptor[V]) Redistribution() Redistribution { return d.mode }

// Err is the mistake in the declaration, or nil.
func (d *OperatorListDescriptor[V]) Err() error { return d.err }

// Schema describes an item of a snapshot: an element.
func (d *OperatorListDescriptor[V]) Schema() *serde.Schema { return d.value.Schema() }

// Open makes an empty list for a subtask; Err must be nil. The engine calls it. fail takes the errors of accesses, such as
// a value that can't be encoded; it must fail the task.
func (d *OperatorListDescriptor[V]) Open(fail func(error)) *OperatorList[V] {
	return &OperatorList[V]{d: d, fail: fail}
}

// OperatorList is a list that belongs to an operator's subtask: a source's splits and offsets, a sink's pending files.
// It lies in memory whatever the state backend is. It has value semantics: Add copies in, All gives values that are the
// caller's.
type OperatorList[V any] struct {
	d     *OperatorListDescriptor[V]
	fail  func(error)
	items []V
}

func (l *OperatorList[V]) report(err error) {
	l.fail(fmt.Errorf("operator state %q: %w", l.d.name, err))
}

// Add appends x. The list keeps a copy.
func (l *OperatorList[V]) Add(x V) {
	kept, err := copyOf(l.d.value, &x)
	if err != nil {
		l.report(err)
		return
	}
	l.items = append(l.items, kept)
}

// Set replaces the list by a copy of xs.
func (l *OperatorList[V]) Set(xs []V) {
	l.items = nil // not cut: an iteration may be under way, and xs may come from one
	for _, x := range xs {
		l.Add(x)
	}
}

// All iterates over the elements in order, as they are when the iteration begins.
func (l *OperatorList[V]) All() iter.Seq[V] {
	return func(yield func(V) bool) {
		items := l.items
		for i := range items {
			x, err := copyOf(l.d.value, &items[i])
			if err != nil {
				l.report(err)
				return
			}
			if !yield(x) {
				return
			}
		}
	}
}

// Len is the number of elements.
func (l *OperatorList[V]) Len() int { return len(l.items) }

// Clear removes all elements.
func (l *OperatorList[V]) Clear() { l.items = nil }

// AppendItems appends the elements as items of a snapshot, each the encoding of one, since a restore may deal them out.
// They share no memory with the state. The engine calls it at the barrier.
func (l *OperatorList[V]) AppendItems(items [][]byte) ([][]byte, error) {
	var p packer
	for i := range l.items {
		bytes, err := l.d.value.Append(p.room(), unsafe.Pointer(&l.items[i]))
		if err != nil {
			return items, fmt.Errorf("snapshot operator state %q: %w", l.d.name, err)
		}
		items = append(items, p.take(bytes))
	}
	return items, nil
}

// RestoreItems replaces all elements by those of a snapshot that was taken under a schema; nil stands for the
// descriptor's own. The type may have changed as schemas may. The engine calls it before the first element.
func (l *OperatorList[V]) RestoreItems(items [][]byte, old *serde.Schema) error {
	if err := l.restore(items, old); err != nil {
		return fmt.Errorf("restore operator state %q: %w", l.d.name, err)
	}
	return nil
}

func (l *OperatorList[V]) restore(items [][]byte, old *serde.Schema) error {
	read, err := evolve(l.d.value, old)
	if err != nil {
		return err
	}
	restored := make([]V, len(items))
	for i, item := range items {
		n, err := read(item, unsafe.Pointer(&restored[i]))
		if err == nil && n != len(item) {
			err = fmt.Errorf("%d bytes too many", len(item)-n)
		}
		if err != nil {
			return fmt.Errorf("element %d: %w", i, err)
		}
	}
	l.items = restored
	return nil
}
