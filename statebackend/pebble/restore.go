package pebble

import (
	"errors"
	"fmt"

	"github.com/flott-dev/flott/statebackend"
)

// refill gives a table that was just opened what the snapshot has for it: its part of the tree, if its rows lie there as the
// table's would, and rows.
func (s *store) refill(t keeper) error {
	if err := s.refillRows(t, t.base()); err != nil {
		return fmt.Errorf("operator %q: restore state %q: %w", s.Operator, t.spec().Name, err)
	}
	return nil
}

func (s *store) refillRows(t keeper, l *ledger) error {
	var olds []statebackend.FrozenTable
	taken := s.take(l)
	if taken == nil {
		l.shape.give(s)
	}
	last := uint64(0)
	if taken != nil {
		var err error
		if l.n, err = s.count(taken); err != nil {
			return err
		}
		if _, err := taken.Reader(&l.s, s.Key); err != nil {
			return err
		}
		last = taken.last
	}
	for _, k := range s.kept {
		if k.Name == l.s.Name {
			olds = append(olds, statebackend.FrozenTable{TableInfo: k.TableInfo, Rows: k.rows(s, 0, scanOf(s.tree))})
			last = max(last, k.last)
		}
	}
	if s.Restored != nil && !s.frozen {
		if old, ok := s.Restored.Table(l.s.Name); ok {
			olds = append(olds, old)
		}
	}
	for i := range olds {
		b := newBulk(s.tree)
		x, err := newLoader(l, last, &olds[i].TableInfo, b)
		if err == nil {
			err = errors.Join(x.all(&olds[i]), b.finish())
			last = x.last
		}
		if err != nil {
			return err
		}
	}
	t.begin(last)
	s.forsake(l.s.Name)
	return s.failed
}

// take gives a table the part of the tree that a kept one has, if the rows in it are as the table's would be.
func (s *store) take(l *ledger) *keptTable {
	for i, k := range s.kept {
		if k.Name == l.s.Name && k.like(l.shape) && k.Kind == l.s.Kind() && k.Value != nil && k.Value.String() == l.s.Value.Schema().String() {
			l.shape.spaces = k.spaces
			s.kept = append(s.kept[:i:i], s.kept[i+1:]...)
			return k
		}
	}
	return nil
}

// give gives a table parts of the tree of its own.
func (sh *shape) give(s *store) {
	for i := range sh.used() {
		sh.spaces[i] = s.space()
	}
}

// count is the number of values, lists or map entries of a kept table.
func (s *store) count(k *keptTable) (n int, err error) {
	if k.n >= 0 {
		return k.n, nil
	}
	space := k.entries()
	if k.kind == lists {
		space = k.spaces[0]
	}
	from, to := bounds(space)
	err = scan(s.tree, from, to, func(_, _ []byte) (bool, error) { n++; return true, nil })
	return n, err
}
