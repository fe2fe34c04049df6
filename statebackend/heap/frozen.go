package heap

import (
	"cmp"
	"fmt"
	"iter"
	"slices"

	"github.com/flott-dev/flott/internal/keygroup"
	"github.com/flott-dev/flott/serde"
	"github.com/flott-dev/flott/statebackend"
)

// frozen is a snapshot of a store.
type frozen struct {
	tables []statebackend.FrozenTable
}

// Tables implements statebackend.Frozen.
func (f *frozen) Tables() []statebackend.FrozenTable { return f.tables }

// Release implements statebackend.Frozen.
func (f *frozen) Release() {}

// Freeze implements statebackend.Store.
func (s *store) Freeze() (statebackend.Frozen, error) {
	if err := keygroup.Validate(s.MaxParallelism, 1); err != nil {
		return nil, fmt.Errorf("operator %q: freeze state: %w", s.Operator, err)
	}
	if err := s.keepUnopened(); err != nil {
		return nil, err
	}
	f := &frozen{}
	for _, t := range s.tables {
		rows, err := s.copyRows(t)
		if err != nil {
			return nil, fmt.Errorf("operator %q: freeze state %q: %w", s.Operator, t.spec().Name, err)
		}
		f.tables = append(f.tables, statebackend.FrozenTable{TableInfo: infoOf(s.Key, t.spec()), Rows: rows})
	}
	for _, k := range s.kept {
		f.tables = append(f.tables, k.table())
	}
	return f, nil
}

// infoOf describes the rows of a table.
func infoOf(key *serde.Key, spec *statebackend.TableSpec) statebackend.TableInfo {
	info := statebackend.TableInfo{Name: spec.Name, Kind: spec.Kind(), Key: key.Schema(), Value: spec.Value.Schema()}
	if spec.MapKey != nil {
		info.MapKey = spec.MapKey.Schema()
	}
	if spec.Namespace != nil {
		info.Namespace = spec.Namespace.Schema()
	}
	if spec.TTL != nil {
		ttl := *spec.TTL
		info.TTL = &ttl
	}
	return info
}

func (s *store) copyRows(t keeper) (iter.Seq2[*statebackend.Row, error], error) {
	var rows []statebackend.Row
	var failed error
	value := t.spec().Value
	v := value.New()
	err := t.Range(func(e *statebackend.Entry) bool {
		if failed = e.Load(v); failed != nil {
			return false
		}
		var b []byte
		if b, failed = value.Append(nil, v); failed != nil {
			return false
		}
		row := statebackend.Row{
			Group: keygroup.Of(uint32(e.Hash), s.MaxParallelism), Key: slices.Clone(e.Key), Hash: e.Hash, At: e.At, Value: b,
		}
		if t.spec().Namespace != nil {
			row.Namespace = append([]byte{}, e.Namespace...)
		}
		if t.spec().MapKey != nil {
			row.MapKey = append([]byte{}, e.MapKey...)
		}
		rows = append(rows, row)
		return true
	})
	if err == nil {
		err = failed
	}
	slices.SortStableFunc(rows, func(a, b statebackend.Row) int { return cmp.Compare(a.Group, b.Group) })
	return func(yield func(*statebackend.Row, error) bool) {
		for i := range rows {
			if !yield(&rows[i], nil) {
				return
			}
		}
	}, err
}
