package pebble

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
	return s.forsake(t.spec().Name)
}

// refill is the way of rows into a table.
type refill struct {
	s    *store
	t    keeper
	spec *statebackend.TableSpec
	key  *serde.Key
	read func(src []byte, v unsafe.Pointer) (int, error)
	old  *statebackend.TTL // nil unless the time to live ends with this restore
	now  int64
	// The row at hand: its value and map key as Go values, its key as a run of one.
	v, k   unsafe.Pointer
	bytes  []uint64
	text   [1]string
	hashes [1]uint64
	canon  serde.Canon
	ns     []byte // the selected one
}

// newRefill checks that the rows of a snapshot fit a table.
func newRefill(s *store, t keeper, old *statebackend.FrozenTable) (*refill, error) {
	spec := t.spec()
	read, err := old.Reader(spec, s.Key)
	if err != nil {
		return nil, err
	}
	r := &refill{s: s, t: t, spec: spec, key: s.Key, read: read.Read, v: spec.Value.New()}
	if spec.MapKey != nil {
		r.k = spec.MapKey.New()
	}
	if s.Now != nil {
		r.now = s.Now()
		if spec.TTL == nil {
			r.old = old.TTL
		}
	}
	r.canon = serde.Canon{N: 1, Width: s.Key.Width, Stride: s.Key.Width}
	if s.Key.Width == 0 {
		r.canon.Text = r.text[:]
	} else {
		r.bytes = make([]uint64, roundUp(s.Key.Width)/8)
		r.canon.P = unsafe.Pointer(&r.bytes[0])
	}
	return r, nil
}

// rows puts all rows into the table. The store's run is the caller's again afterwards.
func (r *refill) rows(old statebackend.FrozenTable) error {
	keys, hashes := r.s.keys, r.s.hashes
	defer func() { r.s.keys, r.s.hashes = keys, hashes }()
	dated := old.TTL != nil
	for row, err := range old.Rows {
		if err != nil {
			return err
		}
		at := row.At
		if r.spec.TTL != nil && !dated {
			at = r.now
		}
		if ttl := r.spec.TTL; ttl != nil && ttl.Expired(at, r.now) || r.old != nil && r.old.Expired(at, r.now) {
			continue
		}
		if err := r.row(row, at); err != nil {
			return err
		}
	}
	return nil
}

// row puts one row into the table.
func (r *refill) row(row *statebackend.Row, at int64) error {
	if r.key.Width == 0 {
		r.text[0] = unsafe.String(unsafe.SliceData(row.Key), len(row.Key))
	} else {
		if uintptr(len(row.Key)) != r.key.Width {
			return fmt.Errorf("a key of %d bytes: %s takes %d", len(row.Key), r.key.Name, r.key.Width)
		}
		copy(bytesAt(r.canon.P, r.key.Width), row.Key)
	}
	h := r.key.HashOne(row.Key, r.s.Seed)
	if g := keygroup.Of(uint32(h), r.s.MaxParallelism); g < r.s.FirstGroup || g > r.s.LastGroup {
		return fmt.Errorf("a key of group %d: the subtask has groups %d to %d of %d", g, r.s.FirstGroup, r.s.LastGroup, r.s.MaxParallelism)
	}
	if n, err := r.read(row.Value, r.v); err != nil {
		return err
	} else if n != len(row.Value) {
		return fmt.Errorf("a value of %d bytes has %d too many", len(row.Value), len(row.Value)-n)
	}
	if r.k != nil {
		if err := r.spec.MapKey.Decode(row.MapKey, r.k); err != nil {
			return err
		}
	}
	if r.spec.Namespace != nil && (r.ns == nil || !bytes.Equal(r.ns, row.Namespace)) {
		if w := r.spec.Namespace.Width; w > 0 && uintptr(len(row.Namespace)) != w {
			return fmt.Errorf("a namespace of %d bytes: %s takes %d", len(row.Namespace), r.spec.Namespace.Name, w)
		}
		r.ns = append(append(r.ns[:0], row.Namespace...), 0)[:len(row.Namespace)] // not nil
		r.t.SetNamespace(r.ns)
	}
	r.hashes[0] = h
	r.s.keys, r.s.hashes = &r.canon, r.hashes[:]
	return r.t.adopt(r.k, r.v, at)
}
