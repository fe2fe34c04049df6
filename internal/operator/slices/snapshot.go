package slices

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/internal/operator/windows"
	"github.com/flott-dev/flott/statebackend"
)

// tables describes the tables of snapshots.
func (o *driver) tables() (plain, tangled, whole statebackend.TableInfo, err error) {
	return windows.SliceTables(o.spec.Key.Schema(), o.k.Acc.Schema())
}

// Snapshot implements operator.Snapshotter: columns and keys are shared with the snapshot, and what changes is kept for it.
func (o *driver) Snapshot(s *operator.Snapshot) error {
	plain, tangled, whole, err := o.tables()
	if err != nil {
		return fmt.Errorf("snapshot windows: %w", err)
	}
	f := windows.NewFrozen(o.k, o.spec.Key.Key, o.RT.Seed, s.Groups, o.RT.Memory)
	s.Stores = append(s.Stores, f) // released with the snapshot, whatever happens
	f.Table(plain)
	f.Table(tangled)
	f.Table(whole)
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
			o.columns.freeze(f, 0, &s.column, &windows.Part{Label: rowOf(s.lo, s.end(), passed)})
		}
	}
	for _, x := range h.wholes {
		o.columns.freeze(f, 2, &x.column, &windows.Part{Label: rowOf(x.Start, x.End, passed)})
	}
	if t != nil && len(t.list) > 0 {
		knots = append(knots, t.freeze(f, passed))
	}
	return knots
}

// end is the end of a slice as rows have it.
func (s *stretch) end() int64 {
	if end := int64(uint64(s.lo) + s.width); end >= s.lo {
		return end
	}
	return math.MaxInt64 // the end of time is in it
}

// appendSpan appends the canonical form of a slice.
func appendSpan(b []byte, s stretch) []byte {
	return binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(b, uint64(s.lo)), uint64(s.end()))
}

// rowOf completes the rows of a slice or window, of the windows up to passed having fired.
func rowOf(start, end, passed int64) func(int, *statebackend.Row) []byte {
	b := binary.LittleEndian.AppendUint64(make([]byte, 0, 24), uint64(start))
	b = binary.LittleEndian.AppendUint64(b, uint64(end))
	b = binary.LittleEndian.AppendUint64(b, uint64(passed))
	return func(_ int, row *statebackend.Row) []byte {
		row.Namespace, row.MapKey = b[:16:16], b[16:]
		return nil
	}
}
