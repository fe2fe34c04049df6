package slices

import (
	"encoding/binary"
	"slices"

	"github.com/flott-dev/flott/internal/operator/windows"
	"github.com/flott-dev/flott/statebackend"
)

// knot is the tangled keys of a snapshot, whose windows up to passed had fired. The tangles don't change any more: the driver
// goes on with copies.
type knot struct {
	list   []*tangle
	passed int64
}

// freeze makes what there is a knot of a snapshot.
func (t *tangles) freeze(f *windows.Frozen, passed int64) knot {
	f.Shadow(&t.shadows, 0, nil)
	t.mark++
	return knot{slices.Clone(t.list), passed}
}

// own gives the tangle at place i of the list for changes: it is none that a snapshot needs.
func (t *tangles) own(i int) (*tangle, error) {
	x := t.list[i]
	if x.mark == t.mark {
		return x, nil
	}
	if !t.shadows.Open() {
		x.mark = t.mark
		return x, nil
	}
	if err := t.shadows.Draw(t.bytes(x.room)); err != nil {
		return nil, err
	}
	k := t.o.k
	y := &tangle{id: x.id, mark: t.mark, room: x.room, groups: append(make([]stretch, 0, x.room), x.groups...)}
	if x.room > 0 {
		y.accs = k.Accs.New(x.room)
	}
	for g := range x.groups {
		if err := t.o.sums.one(k.Accs.At(y.accs, g), k.Accs.At(x.accs, g)); err != nil {
			return nil, err
		}
	}
	t.list[i] = y
	return y, nil
}

// labelBytes is what the rows of knots say beside the key: start and end of the slice, how far windows had fired, and the
// group's number.
const labelBytes = 32

// knit makes a part of knots.
func knit(k *windows.Incremental, f *windows.Frozen, p *windows.Part, knots []knot) error {
	n := 0
	for _, knot := range knots {
		for _, x := range knot.list {
			n += len(x.groups)
		}
	}
	if err := f.Draw(int64(n) * int64(k.Accs.Size+labelBytes+4)); err != nil {
		return err
	}
	p.IDs, p.Accs = make([]uint32, 0, n), k.Accs.New(max(n, 1))
	labels := make([]byte, 0, n*labelBytes)
	for _, knot := range knots {
		for _, x := range knot.list {
			if len(x.groups) > 0 {
				k.Accs.Move(k.Accs.At(p.Accs, len(p.IDs)), x.accs, len(x.groups))
			}
			for i, g := range x.groups {
				p.IDs = append(p.IDs, x.id)
				labels = appendSpan(labels, g)
				labels = binary.LittleEndian.AppendUint64(labels, uint64(knot.passed))
				labels = binary.LittleEndian.AppendUint64(labels, uint64(i))
			}
		}
	}
	p.Label = func(j int, row *statebackend.Row) []byte {
		b := labels[j*labelBytes : (j+1)*labelBytes]
		row.Namespace, row.MapKey = b[:16:16], b[16:]
		return nil
	}
	return nil
}
