package heap

import (
	"bytes"
	"fmt"
	"unsafe"

	"github.com/flott-dev/flott/internal/keygroup"
	"github.com/flott-dev/flott/serde"
	"github.com/flott-dev/flott/statebackend"
)

// refill gives a table that was just opened the rows that the snapshot has for it.
func (s *store) refill(t keeper) error {
	old, ok := s.restored(t.spec().Name)
	if !ok {
		return nil
	}
	r, err := newRefill(s, t, &old)
	if err == nil {
		err = r.rows(old)
	}
	if err != nil {
		return fmt.Errorf("operator %q: restore state %q: %w", s.Operator, t.spec().Name, err)
	}
	s.forsake(t.spec().Name)
	return nil
}

// restored gives the rows of a table that nobody has opened yet.
func (s *store) restored(name string) (statebackend.FrozenTable, bool) {
	if s.Restored == nil {
		return statebackend.FrozenTable{}, false
	}
	if !s.frozen {
		return s.Restored.Table(name)
	}
	for _, k := range s.kept {
		if k.Name == name {
			return k.table(), true
		}
	}
	return statebackend.FrozenTable{}, false
}

// forsake drops the kept rows of a table that has them now.
func (s *store) forsake(name string) {
	for i, k := range s.kept {
		if k.Name == name {
			k.close()
			s.kept = append(s.kept[:i:i], s.kept[i+1:]...)
			return
		}
	}
}

// arrivals are rows on their way into a table: keys of the store's run, in the selected namespace.
type arrivals struct {
	n      int
	values unsafe.Pointer // Go values, stride apart
	stride uintptr
	raw    []byte         // instead of them, the encoding of the only one
	mapKey unsafe.Pointer // of the only one
	at     []int64        // when they were written
	slots  []unsafe.Pointer
	fresh  []bool
}

// refill is the way of rows into a table.
type refill struct {
	s     *store
	t     keeper
	spec  *statebackend.TableSpec
	read  func(src []byte, v unsafe.Pointer) (int, error) // nil: bytes are taken as they are
	dated bool                                            // rows bear a time
	old   *statebackend.TTL                               // nil unless the time to live ends with this restore
	now   int64
	limit int // rows that go in together
	arrivals
	keys   []byte // side by side
	ends   []int  // of keys
	canon  serde.Canon
	hashes []uint64
	groups []uint16
	ns     []byte // the selected one
}

// newRefill checks that the rows of a snapshot fit a table.
func newRefill(s *store, t keeper, old *statebackend.FrozenTable) (*refill, error) {
	spec := t.spec()
	read, err := old.Reader(spec, s.Key)
	if err != nil {
		return nil, err
	}
	if err := keygroup.Validate(s.MaxParallelism, 1); err != nil {
		return nil, err
	}
	r := &refill{s: s, t: t, spec: spec, limit: 1, dated: old.TTL != nil}
	if s.Now != nil {
		r.now = s.Now()
		if spec.TTL == nil {
			r.old = old.TTL
		}
	}
	r.prepare(old.Value, read)
	return r, nil
}

// prepare finds the way of values of an old schema.
func (r *refill) prepare(old *serde.Schema, reader *serde.Reader) {
	h := r.spec.Value
	kept := h.Layout == serde.Encoded || r.spec.List && h.Layout != serde.Fixed // as encodings
	if !kept || old.String() != h.Schema().String() {
		r.read = reader.Read
	}
	r.stride, r.values = roundUp(h.Size), h.New()
	if h.Layout == serde.Fixed && r.spec.Kind() == "value" {
		r.limit = block
		r.values = memory(max(8, r.stride) * block)
	}
	if r.spec.MapKey != nil {
		r.mapKey = r.spec.MapKey.New()
	}
	r.at, r.slots, r.fresh = make([]int64, r.limit), make([]unsafe.Pointer, r.limit), make([]bool, r.limit)
	r.hashes, r.groups = make([]uint64, r.limit), make([]uint16, r.limit)
	r.canon = serde.Canon{Width: r.s.Key.Width, Stride: r.s.Key.Width, Text: make([]string, r.limit)}
}

// rows puts all rows into the table. The store's run is the caller's again afterwards.
func (r *refill) rows(old statebackend.FrozenTable) error {
	run := r.s.run
	r.s.run = source{}
	defer func() {
		r.s.run = run
		r.t.begin(run.canon.N)
	}()
	for row, err := range old.Rows {
		if err != nil {
			return err
		}
		at := row.At
		if r.spec.TTL != nil && !r.dated {
			at = r.now
		}
		if ttl := r.spec.TTL; ttl != nil && ttl.Expired(at, r.now) || r.old != nil && r.old.Expired(at, r.now) {
			continue
		}
		if err := r.row(row, at); err != nil {
			return err
		}
	}
	return r.flush()
}

// row takes one row along.
func (r *refill) row(row *statebackend.Row, at int64) error {
	if w := r.s.Key.Width; w > 0 && uintptr(len(row.Key)) != w {
		return fmt.Errorf("a key of %d bytes: %s takes %d", len(row.Key), r.s.Key.Name, w)
	}
	if r.n == r.limit || r.spec.Namespace != nil && (r.ns == nil || !bytes.Equal(r.ns, row.Namespace)) {
		if err := r.flush(); err != nil {
			return err
		}
	}
	if r.spec.Namespace != nil && r.n == 0 {
		if err := r.choose(row.Namespace); err != nil {
			return err
		}
	}
	if r.mapKey != nil {
		if err := r.spec.MapKey.Decode(row.MapKey, r.mapKey); err != nil {
			return err
		}
	}
	if r.read == nil {
		r.raw = append(r.raw[:0], row.Value...)
	} else if n, err := r.read(row.Value, unsafe.Add(r.values, uintptr(r.n)*r.stride)); err != nil {
		return err
	} else if n != len(row.Value) {
		return fmt.Errorf("a value of %d bytes has %d too many", len(row.Value), len(row.Value)-n)
	}
	r.at[r.n] = at
	r.keys = append(r.keys, row.Key...)
	r.ends = append(r.ends, len(r.keys))
	r.n++
	return nil
}

// choose selects the namespace of the next rows.
func (r *refill) choose(ns []byte) error {
	if w := r.spec.Namespace.Width; w > 0 && uintptr(len(ns)) != w {
		return fmt.Errorf("a namespace of %d bytes: %s takes %d", len(ns), r.spec.Namespace.Name, w)
	}
	r.ns = append(append(r.ns[:0], ns...), 0)[:len(ns)] // not nil
	r.t.SetNamespace(r.ns)
	return nil
}

// flush puts the rows that were taken along into the table.
func (r *refill) flush() error {
	if r.n == 0 {
		return nil
	}
	r.canon.N, r.canon.P = r.n, unsafe.Pointer(unsafe.SliceData(r.keys))
	if r.canon.Width == 0 {
		from := 0
		for i, end := range r.ends {
			r.canon.Text[i] = unsafe.String(unsafe.SliceData(r.keys[from:]), end-from)
			from = end
		}
	}
	hashes := r.hashes[:r.n]
	r.s.Key.Hash(&r.canon, r.s.Seed, hashes)
	keygroup.Groups(hashes, uint32(r.s.MaxParallelism), r.groups)
	for _, g := range r.groups[:r.n] {
		if int(g) < r.s.FirstGroup || int(g) > r.s.LastGroup {
			return fmt.Errorf("a key of group %d: the subtask has groups %d to %d of %d", g, r.s.FirstGroup, r.s.LastGroup, r.s.MaxParallelism)
		}
	}
	r.s.run.set(&r.canon, hashes)
	r.t.begin(r.n)
	err := r.t.adopt(&r.arrivals)
	r.n, r.keys, r.ends = 0, r.keys[:0], r.ends[:0]
	return err
}
