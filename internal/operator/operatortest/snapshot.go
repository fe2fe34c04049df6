package operatortest

import (
	"cmp"
	"slices"
	"testing"

	"github.com/flott-dev/flott/checkpoint"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/statebackend"
)

// Taken is the state of an operator at a moment. Its rows are read when it is first restored, after whatever the operator
// did in between.
type Taken struct {
	t      testing.TB
	state  operator.Snapshot
	tables []statebackend.FrozenTable
	read   bool
}

// Take takes a snapshot of an operator whose runtime is one of this package's; nothing if it has no state.
func Take(t testing.TB, op operator.Operator) *Taken {
	t.Helper()
	k := &Taken{t: t, state: operator.Snapshot{ID: 1, Groups: groups}}
	if s, ok := op.(operator.Snapshotter); ok {
		Must(t, s.Snapshot(&k.state))
	}
	t.Cleanup(func() {
		if !k.read {
			k.state.Release()
		}
	})
	return k
}

// Restored is what a new operator begins with. It may be asked for several times.
func (k *Taken) Restored() *operator.Restored {
	k.t.Helper()
	if !k.read {
		k.read = true
		k.load()
	}
	return &operator.Restored{Checkpoint: k.state.ID, Store: restoredTables(k.tables), Lists: slices.Clone(k.state.Lists)}
}

// List is a list of the snapshot; nil if there is none.
func (k *Taken) List(name string) *checkpoint.List {
	return (&operator.Restored{Lists: k.state.Lists}).List(name)
}

func (k *Taken) load() {
	defer k.state.Release()
	frozen := slices.Clone(k.state.Tables)
	for _, f := range k.state.Stores {
		frozen = append(frozen, f.Tables()...)
	}
	for _, table := range frozen {
		var rows []statebackend.Row
		for row, err := range table.Rows {
			Must(k.t, err)
			if row.Group < 0 || row.Group >= groups {
				k.t.Fatalf("table %q: a row of group %d", table.Name, row.Group)
			}
			rows = append(rows, statebackend.Row{
				Group: row.Group, Key: slices.Clone(row.Key), Hash: row.Hash, Namespace: slices.Clone(row.Namespace),
				MapKey: slices.Clone(row.MapKey), At: row.At, Value: slices.Clone(row.Value),
			})
		}
		slices.SortStableFunc(rows, func(a, b statebackend.Row) int { return cmp.Compare(a.Group, b.Group) }) // as a Restored has them
		table.Batches = nil
		table.Rows = func(yield func(*statebackend.Row, error) bool) {
			for i := range rows {
				if !yield(&rows[i], nil) {
					return
				}
			}
		}
		k.tables = append(k.tables, table)
	}
}

// restoredTables implement statebackend.Restored.
type restoredTables []statebackend.FrozenTable

// Table implements statebackend.Restored.
func (r restoredTables) Table(name string) (statebackend.FrozenTable, bool) {
	for _, t := range r {
		if t.Name == name {
			return t, true
		}
	}
	return statebackend.FrozenTable{}, false
}

// Tables implements statebackend.Restored.
func (r restoredTables) Tables() (names []string) {
	for _, t := range r {
		names = append(names, t.Name)
	}
	return names
}
