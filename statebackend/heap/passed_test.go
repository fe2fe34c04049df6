package heap

import (
	"iter"
	"testing"

	"github.com/flott-dev/flott/statebackend"
)

// interrupted is a snapshot whose reader does something before the first row of a key group.
type interrupted struct {
	statebackend.Frozen
	group int
	do    func()
}

func (i *interrupted) Tables() []statebackend.FrozenTable {
	tables := i.Frozen.Tables()
	for j := range tables {
		tables[j].Rows = i.rows(tables[j].Rows)
	}
	return tables
}

func (i *interrupted) rows(rows iter.Seq2[*statebackend.Row, error]) iter.Seq2[*statebackend.Row, error] {
	done := false
	return func(yield func(*statebackend.Row, error) bool) {
		for r, err := range rows {
			if err == nil && r.Group >= i.group && !done {
				done = true
				i.do()
			}
			if !yield(r, err) {
				return
			}
		}
	}
}

// What changes after it was read is not copied any more, and the rest is.
func TestNothingIsKeptOfKeyGroupsThatWereRead(t *testing.T) {
	keys := make([]int64, 20*block)
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
	update()
	want := freeze(t, k.store)
	for _, c := range []struct{ group, least, most int }{{1, 80, 100}, {64, 25, 75}, {127, 0, 15}} {
		f, err := k.store.Freeze(statebackend.Freezing{})
		ok(t, err)
		sh := f.(*frozen).shadows[0]
		var entries int
		got := readAll(t, &interrupted{f, c.group, func() {
			update()
			entries = int(sh.n) << sh.shift
		}})
		for _, name := range want.names {
			sameRows(t, got.tables[name], want.tables[name])
		}
		// An entry is copied with others of its unit, live or not.
		if sh.shift == 0 && (entries*100 < c.least*keys || entries*100 > c.most*keys) || entries == 0 {
			t.Errorf("%d of %d entries were copied when the groups below %d had been read", entries, keys, c.group)
		}
		k.run(0)
		want = freeze(t, k.store)
	}
	k.checkClosed()
}
