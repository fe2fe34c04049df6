package slices

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/internal/operator/windows"
	"github.com/flott-dev/flott/serde"
	"github.com/flott-dev/flott/statebackend"
	"github.com/flott-dev/flott/window"
)

// The tables of a snapshot. A row is the accumulator of a key in a slice, which is the namespace. The map key says how far
// windows had fired, and, of tangled keys, which group of the key it is.
const (
	slicesName  = "slices"
	tangledName = "slices/tangled"
)

// place is the map key of a tangled row.
type place struct {
	Passed int64
	Number int64
}

// tables describes the tables.
func (o *driver) tables() (plain, tangled statebackend.TableInfo, err error) {
	span, err := serde.KeyOf[window.Time]()
	if err != nil {
		return plain, tangled, err
	}
	passed, err := serde.KeyOf[int64]()
	if err != nil {
		return plain, tangled, err
	}
	at, err := serde.KeyOf[place]()
	if err != nil {
		return plain, tangled, err
	}
	plain = statebackend.TableInfo{
		Name: slicesName, Kind: slicesName, Key: o.spec.Key.Schema(), Namespace: span.Schema(), MapKey: passed.Schema(),
		Value: o.k.Acc.Schema(),
	}
	tangled = plain
	tangled.Name, tangled.MapKey = tangledName, at.Schema()
	return plain, tangled, nil
}

// Snapshot implements operator.Snapshotter: columns and keys are shared with the snapshot, and what changes is kept for it.
func (o *driver) Snapshot(s *operator.Snapshot) error {
	plain, tangled, err := o.tables()
	if err != nil {
		return fmt.Errorf("snapshot windows: %w", err)
	}
	f := windows.NewFrozen(o.k, o.spec.Key.Key, o.RT.Seed, s.Groups, o.RT.Memory)
	s.Stores = append(s.Stores, f) // released with the snapshot, whatever happens
	f.Table(plain)
	f.Table(tangled)
	if err := o.reunite(); err != nil { // else rows could not be told apart
		return err
	}
	f.ShareKeys(&o.keys.shadows, o.keys.keys, o.keys.limit)
	var knots []knot
	for i := range o.hidden {
		e := &o.hidden[i]
		knots = o.freeze(f, &e.shelf, e.tangles, e.until, knots)
	}
	knots = o.freeze(f, &o.shelf, o.tangles, o.passed, knots)
	if len(knots) > 0 {
		p := &windows.Part{}
		f.Add(1, p)
		f.Prepare = func() error { return knit(o.k, f, p, knots) }
	}
	return nil
}

// freeze adds slices of which the windows up to passed have fired, and their tangled keys to the knots.
func (o *driver) freeze(f *windows.Frozen, h *shelf, t *tangles, passed int64, knots []knot) []knot {
	for _, s := range h.list {
		if s.n != 0 {
			o.columns.freeze(f, 0, &s.column, &windows.Part{Label: labelOf(s.stretch, passed)})
		}
	}
	if t != nil && len(t.list) > 0 {
		knots = append(knots, t.freeze(f, passed))
	}
	return knots
}

// appendSpan appends the canonical form of a slice.
func appendSpan(b []byte, s stretch) []byte {
	end := int64(uint64(s.lo) + s.width)
	if end < s.lo {
		end = math.MaxInt64 // the end of time is in it
	}
	return binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(b, uint64(s.lo)), uint64(end))
}

func labelOf(s stretch, passed int64) func(int, *statebackend.Row) []byte {
	span := appendSpan(nil, s)
	at := binary.LittleEndian.AppendUint64(nil, uint64(passed))
	return func(_ int, row *statebackend.Row) []byte {
		row.Namespace, row.MapKey = span, at
		return nil
	}
}
