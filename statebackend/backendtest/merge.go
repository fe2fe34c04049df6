package backendtest

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/flott-dev/flott/statebackend"
)

// merged is what a snapshot and the changes after it come to, by the rules of statebackend.FrozenTable.
type merged struct {
	names  []string
	tables map[string]mergedTable
}

// owner is what has a value, list or map.
type owner struct{ key, ns string }

type mergedTable struct {
	statebackend.TableInfo
	rows map[owner][]statebackend.Row
}

// after applies a snapshot to an earlier one; nil if there is none.
func (m *merged) after(t testing.TB, h *held, changes map[string]bool) *merged {
	t.Helper()
	out := &merged{names: h.names, tables: map[string]mergedTable{}}
	for _, name := range h.names {
		table := mergedTable{TableInfo: h.tables[name].TableInfo, rows: map[owner][]statebackend.Row{}}
		if changes[name] {
			earlier, known := mergedTable{}, false
			if m != nil {
				earlier, known = m.tables[name]
			}
			if !known {
				t.Fatalf("table %q: changes of nothing", name)
			}
			for o, rows := range earlier.rows {
				table.rows[o] = slices.Clone(rows)
			}
		}
		checkTogether(t, h.tables[name])
		for _, r := range h.tables[name].rows {
			if r.Deleted && (!changes[name] || len(r.Value) > 0) {
				t.Fatalf("table %q: key %q is deleted, with a value of %d bytes, in a whole table: %v", name, r.Key, len(r.Value), !changes[name])
			}
			table.apply(&r)
		}
		out.tables[name] = table
	}
	return out
}

// apply applies a row.
func (m *mergedTable) apply(r *statebackend.Row) {
	o := owner{string(r.Key), string(r.Namespace)}
	rows := m.rows[o]
	at := slices.IndexFunc(rows, func(x statebackend.Row) bool { return string(x.MapKey) == string(r.MapKey) })
	switch {
	case r.Deleted && r.MapKey == nil:
		rows = nil
	case r.Deleted && at >= 0:
		rows = slices.Delete(rows, at, at+1)
	case r.Deleted:
	case m.Kind != "list" && at >= 0:
		rows[at] = *r
	default:
		rows = append(rows, *r)
	}
	if m.rows[o] = rows; len(rows) == 0 {
		delete(m.rows, o)
	}
}

// checkTogether checks that what is put for a key is together.
func checkTogether(t testing.TB, h *heldTable) {
	t.Helper()
	seen := map[owner]bool{}
	var last owner
	for _, r := range h.rows {
		o := owner{string(r.Key), string(r.Namespace)}
		if r.Deleted {
			continue
		}
		if o != last && seen[o] {
			t.Fatalf("table %q: the rows of key %q are not together", h.Name, r.Key)
		}
		last, seen[o] = o, true
	}
}

// held gives the rows as a store is restored with.
func (m *merged) held() *held {
	out := &held{names: m.names, tables: map[string]*heldTable{}}
	for name, table := range m.tables {
		h := &heldTable{TableInfo: table.TableInfo}
		owners := slices.SortedFunc(maps.Keys(table.rows), func(a, b owner) int {
			if c := table.rows[a][0].Group - table.rows[b][0].Group; c != 0 {
				return c
			}
			return strings.Compare(a.key+"/"+a.ns, b.key+"/"+b.ns)
		})
		for _, o := range owners {
			h.rows = append(h.rows, table.rows[o]...)
		}
		out.tables[name] = h
	}
	return out
}

// alive gives the rows that have not expired at a time.
func (h *heldTable) alive(now int64) (rows []statebackend.Row) {
	for _, r := range h.rows {
		if h.TTL == nil || !h.TTL.Expired(r.At, now) {
			rows = append(rows, r)
		}
	}
	return rows
}

// readChanges reads a frozen store and releases it.
func readChanges(t testing.TB, f statebackend.Frozen) (h *held, changes map[string]bool) {
	t.Helper()
	changes = map[string]bool{}
	for _, table := range f.Tables() {
		changes[table.Name] = table.Changes
	}
	return readAll(t, f), changes
}
