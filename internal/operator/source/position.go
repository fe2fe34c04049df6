package source

import (
	"encoding/binary"
	"fmt"

	"github.com/flott-dev/flott/checkpoint"
	"github.com/flott-dev/flott/internal/operator"
)

// positionName is the list of a snapshot that says what collections, sequences, generators and iterators have still to
// emit: an item for each subtask, all of which every new subtask sees.
const positionName = "source/position"

// stretch is a part of what a source has still to emit; what the two numbers mean is the source's own.
type stretch struct{ from, to int64 }

// snapshotStretches adds what the subtask has still to emit.
func snapshotStretches(s *operator.Snapshot, rt *operator.Runtime, parts []stretch) {
	b := binary.AppendUvarint(nil, uint64(rt.Subtask))
	b = binary.AppendUvarint(b, uint64(rt.Parallelism))
	for _, p := range parts {
		b = binary.AppendVarint(binary.AppendVarint(b, p.from), p.to)
	}
	s.Lists = append(s.Lists, checkpoint.List{Name: positionName, Mode: checkpoint.Union, Items: [][]byte{b}})
}

// position is what an old subtask had still to emit.
type position struct {
	subtask, parallelism int
	parts                []stretch
}

// positions are those of the snapshot; restored is false if it has none.
func positions(rt *operator.Runtime) (all []position, restored bool, err error) {
	l := rt.Restored.List(positionName)
	if l == nil {
		return nil, false, nil
	}
	for _, item := range l.Items {
		p, err := decodePosition(item)
		if err != nil {
			return nil, false, err
		}
		all = append(all, p)
	}
	return all, true, nil
}

func decodePosition(b []byte) (p position, err error) {
	malformed := fmt.Errorf("restore the position of a source: the item is malformed: %x", b)
	for _, n := range []*int{&p.subtask, &p.parallelism} {
		v, used := binary.Uvarint(b)
		if used <= 0 || v > 1<<20 {
			return p, malformed
		}
		*n, b = int(v), b[used:]
	}
	for len(b) > 0 {
		var s stretch
		for _, n := range []*int64{&s.from, &s.to} {
			v, used := binary.Varint(b)
			if used <= 0 {
				return p, malformed
			}
			*n, b = v, b[used:]
		}
		p.parts = append(p.parts, s)
	}
	return p, nil
}

// restoreStretches gives what the subtask has to emit after a restore. If there are as many subtasks as before, each goes on
// where it was; else cut gives the i-th of n parts of each stretch of subtask number of.
func restoreStretches(rt *operator.Runtime, cut func(s stretch, of, i, n int) (stretch, bool)) (parts []stretch, restored bool, err error) {
	all, restored, err := positions(rt)
	for _, p := range all {
		if p.parallelism == rt.Parallelism {
			if p.subtask == rt.Subtask {
				parts = p.parts
			}
			continue
		}
		for _, s := range p.parts {
			if part, ok := cut(s, p.subtask, rt.Subtask, rt.Parallelism); ok {
				parts = append(parts, part)
			}
		}
	}
	return parts, restored, err
}

// cutRange is the cut of a range of numbers, both ends included.
func cutRange(s stretch, _, i, n int) (stretch, bool) {
	if s.from > s.to {
		return s, false
	}
	from, to := part(s.from, s.to, uint64(i), uint64(n))
	return stretch{from, to}, from <= to
}

// queued are ranges of numbers that come one after the other.
type queued struct{ rest []stretch }

// next is the range at hand, shortened by what was emitted; ok is false if there is none.
func (q *queued) next() (s *stretch, ok bool) {
	for len(q.rest) > 0 && q.rest[0].from > q.rest[0].to {
		q.rest = q.rest[1:]
	}
	if len(q.rest) == 0 {
		return nil, false
	}
	return &q.rest[0], true
}

// pass leaves out the first n numbers of the range at hand, which has as many.
func (s *stretch) pass(n int) {
	if last := int64(uint64(s.from) + uint64(n) - 1); last == s.to {
		s.from, s.to = 1, 0
	} else {
		s.from = last + 1
	}
}

// upTo is how many numbers of the range may be emitted at once, n at most.
func (s *stretch) upTo(n int) int {
	if left := uint64(s.to) - uint64(s.from); left < uint64(n) {
		return int(left) + 1
	}
	return n
}
