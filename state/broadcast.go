package state

import (
	"errors"
	"fmt"
	"iter"
	"unsafe"

	"github.com/flott-dev/flott/serde"
)

// BroadcastDescriptor declares a broadcast state: the operator's two sides and the stream name it by one descriptor. It
// is immutable and may be shared.
type BroadcastDescriptor[K comparable, V any] struct {
	name  string
	key   *serde.Key
	value *serde.Handle
	err   error
}

// NewBroadcast declares a broadcast state. The name is unique in its operator and lives on in snapshots. K must be usable
// as a key of a stream (see serde.KeyOf). A mistake is kept for Err. It can't have a TTL.
func NewBroadcast[K comparable, V any](name string, opts ...Option) *BroadcastDescriptor[K, V] {
	d := &BroadcastDescriptor[K, V]{name: name}
	o, err := plainOptions(opts)
	if err == nil {
		d.key, err = serde.KeyOf[K](o.key...)
	}
	if err == nil {
		d.value, err = serde.Of[V](o.value...)
	}
	if err != nil {
		d.err = fmt.Errorf("broadcast state %q: %w", name, err)
	}
	return d
}

// plainOptions applies options of a state without a table.
func plainOptions(opts []Option) (d declaration, err error) {
	for _, o := range opts {
		o(&d)
	}
	switch {
	case d.err != nil:
		return d, d.err
	case d.ttl != nil:
		return d, errors.New("only keyed state can have a time to live")
	case d.initial != nil:
		return d, errors.New("only a value can have a default")
	}
	return d, nil
}

// Name is the name of the state.
func (d *BroadcastDescriptor[K, V]) Name() string { return d.name }

// Err is the mistake in the declaration, or nil.
func (d *BroadcastDescriptor[K, V]) Err() error { return d.err }

// Schema describes an item of a snapshot: a key and its value.
func (d *BroadcastDescriptor[K, V]) Schema() *serde.Schema {
	return &serde.Schema{Kind: serde.Struct, Fields: []serde.Field{
		{Name: "Key", Schema: d.key.Schema()}, {Name: "Value", Schema: d.value.Schema()},
	}}
}

// Open makes an empty state for a subtask; Err must be nil. The engine calls it. fail takes the errors of accesses, such
// as a value that can't be encoded; it must fail the task.
func (d *BroadcastDescriptor[K, V]) Open(fail func(error)) *Broadcast[K, V] {
	return &Broadcast[K, V]{d: d, fail: fail, index: map[string]int{}}
}

// BroadcastItems is a Broadcast of whatever types, as snapshots see it.
type BroadcastItems interface {
	// AppendItems appends the entries as items of a snapshot.
	AppendItems(items [][]byte) ([][]byte, error)
	// RestoreItems replaces all entries by those of a snapshot that was taken under a schema; nil: the descriptor's own.
	RestoreItems(items [][]byte, old *serde.Schema) error
}

// OpenItems is Open for those who don't know the types: the engine.
func (d *BroadcastDescriptor[K, V]) OpenItems(fail func(error)) BroadcastItems { return d.Open(fail) }

// Broadcast is a map of which every subtask of an operator holds a copy, changed by the elements of a broadcast stream
// only, in the same way in every subtask. It lies in memory whatever the state backend is. It has value semantics: Put
// copies in, Get gives a value that is the caller's. Iteration is in the order in which keys were first put.
type Broadcast[K comparable, V any] struct {
	d       *BroadcastDescriptor[K, V]
	fail    func(error)
	index   map[string]int // position in items by canonical key
	items   []broadcastItem[K, V]
	live    int // items that are not removed
	walks   int // iterations under way
	scratch serde.KeyScratch
	key     K
}

type broadcastItem[K comparable, V any] struct {
	key     K
	value   V
	removed bool
}

// canonical gives the identity of a key; it is valid until the next call.
func (b *Broadcast[K, V]) canonical(k K) ([]byte, bool) {
	b.key = k
	c, err := b.d.key.Canon(serde.Column{P: unsafe.Pointer(&b.key), N: 1, Stride: unsafe.Sizeof(k)}, &b.scratch)
	if err != nil {
		b.report(err)
		return nil, false
	}
	return c.Bytes(0), true
}

func (b *Broadcast[K, V]) report(err error) {
	b.fail(fmt.Errorf("broadcast state %q: %w", b.d.name, err))
}

// find gives the position of a key's item.
func (b *Broadcast[K, V]) find(k K) (i int, ok bool) {
	c, ok := b.canonical(k)
	if !ok {
		return 0, false
	}
	i, ok = b.index[string(c)]
	return i, ok
}

// Get gives the value of k, or the zero value. The value is the caller's.
func (b *Broadcast[K, V]) Get(k K) V {
	v, _ := b.Lookup(k)
	return v
}

// Lookup gives the value of k and says whether there is one. The value is the caller's.
func (b *Broadcast[K, V]) Lookup(k K) (v V, ok bool) {
	i, ok := b.find(k)
	if !ok {
		return v, false
	}
	v, err := copyOf(b.d.value, &b.items[i].value)
	if err != nil {
		b.report(err)
	}
	return v, err == nil
}

// Put makes v the value of k. The state keeps a copy.
func (b *Broadcast[K, V]) Put(k K, v V) {
	c, ok := b.canonical(k)
	if !ok {
		return
	}
	kept, err := copyOf(b.d.value, &v)
	if err != nil {
		b.report(err)
		return
	}
	if i, ok := b.index[string(c)]; ok {
		b.items[i].value = kept
		return
	}
	b.index[string(c)] = len(b.items)
	b.items = append(b.items, broadcastItem[K, V]{key: k, value: kept})
	b.live++
}

// copyOf makes a copy that shares no memory with v that could change.
func copyOf[V any](h *serde.Handle, v *V) (out V, err error) {
	if h.Layout != serde.Encoded {
		return *v, nil
	}
	err = h.Clone(unsafe.Pointer(&out), unsafe.Pointer(v))
	return out, err
}

// Contains says whether k has a value.
func (b *Broadcast[K, V]) Contains(k K) bool {
	_, ok := b.find(k)
	return ok
}

// Remove removes the entry of k, if there is one.
func (b *Broadcast[K, V]) Remove(k K) {
	c, ok := b.canonical(k)
	if !ok {
		return
	}
	i, ok := b.index[string(c)]
	if !ok {
		return
	}
	delete(b.index, string(c))
	b.items[i] = broadcastItem[K, V]{removed: true}
	b.live--
	b.shrink()
}

// shrink closes the gaps of removed items, unless an iteration counts on positions.
func (b *Broadcast[K, V]) shrink() {
	if b.walks > 0 || len(b.items) <= 2*b.live+16 {
		return
	}
	kept := make([]broadcastItem[K, V], 0, b.live)
	for _, item := range b.items {
		if item.removed {
			continue
		}
		c, _ := b.canonical(item.key)
		b.index[string(c)] = len(kept)
		kept = append(kept, item)
	}
	b.items = kept
}

// Len is the number of entries.
func (b *Broadcast[K, V]) Len() int { return b.live }

// Clear removes all entries.
func (b *Broadcast[K, V]) Clear() {
	clear(b.index)
	for i := range b.items {
		b.items[i] = broadcastItem[K, V]{removed: true}
	}
	b.live = 0
	b.shrink()
}

// All iterates over the entries in the order in which their keys were first put. The state may be changed meanwhile:
// entries removed before their turn are not shown, added ones are.
func (b *Broadcast[K, V]) All() iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		b.walks++
		defer func() { b.walks-- }()
		for i := 0; i < len(b.items); i++ {
			item := &b.items[i]
			if item.removed {
				continue
			}
			v, err := copyOf(b.d.value, &item.value)
			if err != nil {
				b.report(err)
				return
			}
			if !yield(item.key, v) {
				return
			}
		}
	}
}

// Range calls f for every entry in the order of All until f returns false.
func (b *Broadcast[K, V]) Range(f func(K, V) bool) { b.All()(f) }

// View gives the state without the means to change it, for the side that is not broadcast.
func (b *Broadcast[K, V]) View() *BroadcastView[K, V] { return &BroadcastView[K, V]{b} }

// AppendItems appends the entries as items of a snapshot, in their order: each is a key's and its value's encoding, as
// the descriptor's Schema says. They share no memory with the state. The engine calls it at the barrier.
func (b *Broadcast[K, V]) AppendItems(items [][]byte) ([][]byte, error) {
	var p packer
	for i := range b.items {
		item := &b.items[i]
		if item.removed {
			continue
		}
		bytes, err := b.d.key.Append(p.room(), unsafe.Pointer(&item.key))
		if err == nil {
			bytes, err = b.d.value.Append(bytes, unsafe.Pointer(&item.value))
		}
		if err != nil {
			return items, fmt.Errorf("snapshot broadcast state %q: %w", b.d.name, err)
		}
		items = append(items, p.take(bytes))
	}
	return items, nil
}

// RestoreItems replaces all entries by those of a snapshot that was taken under a schema; nil stands for the descriptor's
// own. Values may have changed as schemas may, keys may not. The engine calls it before the first element.
func (b *Broadcast[K, V]) RestoreItems(items [][]byte, old *serde.Schema) error {
	if err := b.restore(items, old); err != nil {
		return fmt.Errorf("restore broadcast state %q: %w", b.d.name, err)
	}
	return nil
}

func (b *Broadcast[K, V]) restore(items [][]byte, old *serde.Schema) error {
	read, err := b.d.reader(old)
	if err != nil {
		return err
	}
	b.Clear()
	for i, item := range items {
		var (
			k K
			v V
		)
		n, err := b.d.key.Read(item, unsafe.Pointer(&k))
		if err == nil {
			var used int
			used, err = read(item[n:], unsafe.Pointer(&v))
			n += used
		}
		if err == nil && n != len(item) {
			err = fmt.Errorf("%d bytes too many", len(item)-n)
		}
		if err != nil {
			return fmt.Errorf("entry %d: %w", i, err)
		}
		b.Put(k, v)
	}
	return nil
}

// reader checks the schema of a snapshot and gives the way from its values to V.
func (d *BroadcastDescriptor[K, V]) reader(old *serde.Schema) (func([]byte, unsafe.Pointer) (int, error), error) {
	if old == nil {
		return d.value.Read, nil
	}
	if old.Kind != serde.Struct || len(old.Fields) != 2 {
		return nil, fmt.Errorf("the snapshot has %s, not a key and a value: give the new state another name", old)
	}
	if was, is := old.Fields[0].Schema.String(), d.key.Schema().String(); was != is {
		return nil, fmt.Errorf("the snapshot has the key type %s, the program %s: types of keys can't change: "+
			"keep the old one, or give the new state another name", was, is)
	}
	return evolve(d.value, old.Fields[1].Schema)
}

// BroadcastView is a Broadcast that can't be changed.
type BroadcastView[K comparable, V any] struct{ b *Broadcast[K, V] }

// Get gives the value of k, or the zero value. The value is the caller's.
func (w *BroadcastView[K, V]) Get(k K) V { return w.b.Get(k) }

// Lookup gives the value of k and says whether there is one. The value is the caller's.
func (w *BroadcastView[K, V]) Lookup(k K) (V, bool) { return w.b.Lookup(k) }

// Contains says whether k has a value.
func (w *BroadcastView[K, V]) Contains(k K) bool { return w.b.Contains(k) }

// Len is the number of entries.
func (w *BroadcastView[K, V]) Len() int { return w.b.Len() }

// All iterates over the entries in the order in which their keys were first put.
func (w *BroadcastView[K, V]) All() iter.Seq2[K, V] { return w.b.All() }
