package heap

import (
	"iter"
	"testing"

	"github.com/flott-dev/flott/statebackend"
)

// interrupted is a snapshot whose reader does something before one of its rows.
type interrupted struct {
	statebackend.Frozen
	row int
	do  func()
}

func (i *interrupted) Tables() []statebackend.FrozenTable {
	tables := i.Frozen.Tables()
	for j := range tables {
		tables[j].Rows, tables[j].Batches = i.rows(rowsOf(tables[j])), nil
	}
	return tables
}

func (i *interrupted) rows(rows iter.Seq2[*statebackend.Row, error]) iter.Seq2[*statebackend.Row, error] {
	n := 0
	return func(yield func(*statebackend.Row, error) bool) {
		for r, err := range rows {
			if n == i.row {
				i.do()
			}
			n++
			if !yield(r, err) {
				return
			}
		}
	}
}

// What changes after it was read is not copied any more, and the rest is.
func TestNothingIsKeptOfPagesThatWereRead(t *testing.T) {
	keys := make([]int64, 100*block)
	for i := range keys {
		keys[i] = int64(i)
	}
	t.Run("narrow", func(t *testing.T) {
		c := newCounter[int64](t)
		testPassed(t, c.kit, len(keys), func() {
			for at := 0; at < len(keys); at += block {
				c.count(keys[at : at+block])
			}
		})
	})
	t.Run("wide", func(t *testing.T) {
		a := newAccounts(t, len(keys))
		testPassed(t, a.kit, len(keys), func() {
			for at := 0; at < len(keys); at += block {
				a.update(keys[at : at+block])
			}
		})
	})
}

func testPassed(t *testing.T, k *kit[int64], keys int, update func()) {
	t.Helper()
	k.store.MaxParallelism, k.store.LastGroup = 1, 0 // short stretches
	update()
	want := freeze(t, k.store)
	for _, c := range []struct{ row, least, most int }{{0, 60, 100}, {keys / 2, 25, 75}, {keys - 1, 0, 15}} {
		f, err := k.store.Freeze(statebackend.Freezing{})
		ok(t, err)
		sh := f.(*frozen).shadows[0]
		var entries int
		got := readAll(t, &interrupted{f, c.row, func() {
			update()
			entries = int(sh.n) << sh.shift
		}})
		for _, name := range want.names {
			sameRows(t, got.tables[name], want.tables[name])
		}
		// An entry is copied with others of its unit, live or not.
		if sh.shift == 0 && (entries*100 < c.least*keys || entries*100 > c.most*keys) {
			t.Errorf("%d of %d entries were copied when %d had been read", entries, keys, c.row)
		}
		k.run(0)
		want = freeze(t, k.store)
	}
	k.checkClosed()
}

// Batches hold what rows hold, and tables that have more than keys and plain values have none.
func TestBatchesAreTheRows(t *testing.T) {
	a := newAccounts(t, 3*block)
	c := newCounter[int32](t)
	keys := make([]int32, block)
	for i := range keys {
		keys[i] = int32(i) * 7 // 0 is in no page
	}
	c.count(keys)
	texts := newCounter[string](t)
	texts.count([]string{"a", "b"})
	for _, c := range []struct {
		name    string
		store   *store
		batches bool
	}{{"wide", a.store, true}, {"narrow", c.store, true}, {"text keys", texts.store, false}} {
		t.Run(c.name, func(t *testing.T) {
			batched := freeze(t, c.store)
			f, err := c.store.Freeze(statebackend.Freezing{})
			ok(t, err)
			for _, table := range f.Tables() {
				if (table.Batches != nil) != c.batches {
					t.Errorf("batches: %v, want %v", table.Batches != nil, c.batches)
				}
				table.Batches = nil
				sameRows(t, &heldTable{table.TableInfo, readRows(t, table)}, batched.tables[table.Name])
			}
			f.Release()
		})
	}
}
