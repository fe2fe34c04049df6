package backendtest

import (
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/flott-dev/flott/serde"
	"github.com/flott-dev/flott/statebackend"
)

// held is a snapshot read into memory: what a restored store begins with.
type held struct {
	names  []string
	tables map[string]*heldTable
}

type heldTable struct {
	statebackend.TableInfo
	rows []statebackend.Row
}

// readAll reads a frozen store and releases it.
func readAll(t testing.TB, f statebackend.Frozen) *held {
	t.Helper()
	h := &held{tables: map[string]*heldTable{}}
	for _, table := range f.Tables() {
		h.names = append(h.names, table.Name)
		h.tables[table.Name] = &heldTable{table.TableInfo, readRows(t, table)}
	}
	f.Release()
	return h
}

func readRows(t testing.TB, table statebackend.FrozenTable) (rows []statebackend.Row) {
	t.Helper()
	for r, err := range rowsOf(table) {
		ok(t, err)
		c := *r
		for _, b := range []*[]byte{&c.Key, &c.Namespace, &c.MapKey, &c.Value} {
			if *b != nil {
				*b = append([]byte{}, *b...)
			}
		}
		rows = append(rows, c)
	}
	slices.SortStableFunc(rows, func(a, b statebackend.Row) int { return a.Group - b.Group })
	return rows
}

// rowsOf gives the rows of a table as they are written into snapshots: those of its batches, if it has any.
func rowsOf(table statebackend.FrozenTable) iter.Seq2[*statebackend.Row, error] {
	if table.Batches == nil {
		return table.Rows
	}
	return func(yield func(*statebackend.Row, error) bool) {
		for b, err := range table.Batches {
			if err != nil {
				yield(nil, err)
				return
			}
			hasher := (&serde.Key{Width: uintptr(b.Keys.Width)}).Hasher(testSeed)
			for i := range b.N {
				r := statebackend.Row{Group: b.Group, Key: b.Keys.At(i), Deleted: b.Deleted}
				if !b.Deleted {
					r.Value = b.Values.At(i)
				}
				if r.Hash = hasher.One(r.Key); !yield(&r, nil) {
					return
				}
			}
		}
	}
}

func freeze(t testing.TB, s statebackend.Store) *held {
	t.Helper()
	f, err := s.Freeze(statebackend.Freezing{})
	ok(t, err)
	return readAll(t, f)
}

// Table implements statebackend.Restored.
func (h *held) Table(name string) (statebackend.FrozenTable, bool) {
	t, ok := h.tables[name]
	if !ok {
		return statebackend.FrozenTable{}, false
	}
	return statebackend.FrozenTable{TableInfo: t.TableInfo, Rows: func(yield func(*statebackend.Row, error) bool) {
		for i := range t.rows {
			r := t.rows[i]
			if !yield(&r, nil) {
				return
			}
		}
	}}, true
}

// Tables implements statebackend.Restored.
func (h *held) Tables() []string { return h.names }

// of gives the rows of some key groups.
func (h *held) of(first, last int) *held {
	out := &held{names: h.names, tables: map[string]*heldTable{}}
	for name, t := range h.tables {
		c := &heldTable{TableInfo: t.TableInfo}
		for _, r := range t.rows {
			if r.Group >= first && r.Group <= last {
				c.rows = append(c.rows, r)
			}
		}
		out.tables[name] = c
	}
	return out
}

// sameRows compares the rows of tables; those of one key group may be in any order of keys.
func sameRows(t testing.TB, got, want *heldTable) {
	t.Helper()
	g, w := texts(got), texts(want)
	if !slices.Equal(g, w) {
		t.Errorf("table %q: %d rows %.500v, want %d %.500v", want.Name, len(g), g, len(w), w)
	}
}

// texts gives the rows as comparable texts, sorted; of lists and maps one text per key.
func texts(h *heldTable) (out []string) {
	of := map[string]*strings.Builder{}
	for _, r := range h.rows {
		key := fmt.Sprintf("%d/%d/%q/%q", r.Group, r.Hash, r.Key, r.Namespace)
		if of[key] == nil {
			of[key] = new(strings.Builder)
		}
		fmt.Fprintf(of[key], " %q@%d=%q", r.MapKey, r.At, r.Value)
	}
	for key, text := range of {
		out = append(out, key+text.String())
	}
	slices.Sort(out)
	return out
}
