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
		err = r.all(old)
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
	n       int
	values  unsafe.Pointer // Go values, stride apart
	stride  uintptr
	encoded bool           // instead of them, encodings
	raw     []byte         // side by side
	rawEnds []int          // of raw
	mapKey  unsafe.Pointer // of the only one
	at      []int64        // when they were written
	slots   []unsafe.Pointer
}

// encoding is that of value i.
func (a *arrivals) encoding(i int) []byte {
	from := 0
	if i > 0 {
		from = a.rawEnds[i-1]
	}
	return a.raw[from:a.rawEnds[i]]
}

// refill is the way of rows into a table.
type refill struct {
	s     *store
	t     keeper
	spec  *statebackend.TableSpec
	read  func(src []byte, v unsafe.Pointer) (int, error) // nil: bytes are taken as they are
	plain bool                                            // read copies
	dated bool                                            // rows bear a time
	old   *statebackend.TTL                               // nil unless the time to live ends with this restore
	now   int64
	limit int // rows that go in together
	arrivals
	buffer unsafe.Pointer // of values
	keys   []byte         // side by side
	ends   []int          // of keys
	canon  serde.Canon
	text   []string // behind canon
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
	r.encoded = h.Layout == serde.Encoded || r.spec.List && h.Layout != serde.Fixed
	if r.encoded = r.encoded && old.String() == h.Schema().String(); !r.encoded {
		r.read, r.plain = reader.Read, reader.Plain()
	}
	r.stride, r.buffer = roundUp(h.Size), h.New()
	if r.spec.Kind() == "value" && (h.Layout == serde.Fixed || r.encoded) {
		r.limit = block
	}
	if h.Layout == serde.Fixed {
		r.buffer = memory(max(8, r.stride) * uintptr(r.limit))
	}
	r.values = r.buffer
	if r.spec.MapKey != nil {
		r.mapKey = r.spec.MapKey.New()
	}
	r.at, r.slots = make([]int64, r.limit), make([]unsafe.Pointer, r.limit)
	r.hashes, r.groups = make([]uint64, r.limit), make([]uint16, r.limit)
	r.text = make([]string, r.limit)
}

// all puts all rows into the table. The store's run is the caller's again afterwards.
func (r *refill) all(old statebackend.FrozenTable) error {
	run := r.s.run
	r.s.run = source{}
	defer func() {
		r.s.run = run
		r.t.begin(run.canon.N)
	}()
	batched, ok := r.s.Restored.(statebackend.RestoredBatches)
	if !ok || r.s.frozen {
		return r.rows(old)
	}
	if r.spec.TTL == nil && r.old == nil { // nothing is left out
		r.t.expect(batched.Expect(r.spec.Name))
	}
	if r.s.Key.Width > 0 && r.spec.Kind() == "value" && r.spec.Value.Layout == serde.Fixed {
		if batches, ok := batched.Batches(r.spec.Name); ok {
			return r.batches(batches)
		}
	}
	return r.rows(old)
}

// rows puts rows into the table.
func (r *refill) rows(old statebackend.FrozenTable) error {
	for row, err := range old.Rows {
		if err == nil {
			err = r.row(row)
		}
		if err != nil {
			return err
		}
	}
	return r.flush()
}

// written is when the value of a row was written, for which the snapshot has a time or none, and whether it has expired since.
func (r *refill) written(at int64) (_ int64, expired bool) {
	if r.spec.TTL != nil && !r.dated {
		at = r.now
	}
	return at, r.spec.TTL != nil && r.spec.TTL.Expired(at, r.now) || r.old != nil && r.old.Expired(at, r.now)
}

// row takes one row along.
func (r *refill) row(row *statebackend.Row) error {
	at, expired := r.written(row.At)
	if expired {
		return nil
	}
	if err := r.checkWidth(len(row.Key)); err != nil {
		return err
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
	if err := r.value(row.Value); err != nil {
		return err
	}
	r.at[r.n] = at
	r.keys = append(r.keys, row.Key...)
	r.ends = append(r.ends, len(r.keys))
	r.n++
	return nil
}

func (r *refill) checkWidth(n int) error {
	if w := r.s.Key.Width; w > 0 && uintptr(n) != w {
		return fmt.Errorf("a key of %d bytes: %s takes %d", n, r.s.Key.Name, w)
	}
	return nil
}

// value takes the value of the next row along.
func (r *refill) value(b []byte) error {
	if r.encoded {
		r.raw = append(r.raw, b...)
		r.rawEnds = append(r.rawEnds, len(r.raw))
		return nil
	}
	n, err := r.read(b, unsafe.Add(r.buffer, uintptr(r.n)*r.stride))
	if err == nil && n != len(b) {
		err = fmt.Errorf("a value of %d bytes has %d too many", len(b), len(b)-n)
	}
	return err
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
	w := r.s.Key.Width
	r.canon = serde.Canon{N: r.n, P: unsafe.Pointer(unsafe.SliceData(r.keys)), Width: w, Stride: w, Text: r.text}
	if w == 0 {
		from := 0
		for i, end := range r.ends {
			r.text[i] = unsafe.String(unsafe.SliceData(r.keys[from:]), end-from)
			from = end
		}
	}
	err := r.adopt()
	r.n, r.keys, r.ends = 0, r.keys[:0], r.ends[:0]
	r.raw, r.rawEnds = r.raw[:0], r.rawEnds[:0]
	return err
}

// adopt puts arrivals with the keys of canon into the table.
func (r *refill) adopt() error {
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
	return r.t.adopt(&r.arrivals)
}
