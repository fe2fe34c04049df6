package checkpoint

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/flott-dev/flott/internal/vfs"
	"github.com/flott-dev/flott/statebackend"
)

// sameBatches compares the batches of a table, if it has some, with its rows.
func sameBatches(restored statebackend.Restored, name string) (ok bool, err error) {
	batches, ok := restored.(statebackend.RestoredBatches).Batches(name)
	if !ok {
		return false, nil
	}
	t, _ := restored.Table(name)
	var want, got []statebackend.Row
	for r, err := range t.Rows {
		if err != nil {
			return true, err
		}
		want = append(want, statebackend.Row{Group: r.Group, Key: slices.Clone(r.Key), At: r.At, Value: slices.Clone(r.Value)})
	}
	for b, err := range batches {
		if err != nil {
			return true, err
		}
		for i := range b.N {
			r := statebackend.Row{Group: b.Group, Key: slices.Clone(b.Keys.At(i)), Value: slices.Clone(b.Values.At(i))}
			if (len(b.Times.B) > 0) != (t.TTL != nil) {
				return true, fmt.Errorf("table %q: %d bytes of times", name, len(b.Times.B))
			}
			if t.TTL != nil {
				r.At = int64(binary.LittleEndian.Uint64(b.Times.At(i)))
			}
			got = append(got, r)
		}
	}
	if a, b := fmt.Sprint(got), fmt.Sprint(want); a != b {
		return true, fmt.Errorf("table %q: batches have\n%.2000s\nrows\n%.2000s", name, a, b)
	}
	return true, nil
}

func TestOnlyValuesOfFixedWidthComeInBatches(t *testing.T) {
	fs, w := folder(t)
	for _, c := range []struct {
		i    statebackend.TableInfo
		want bool
	}{
		{info(t, "t", "value", "int64", "int64", "", "", nil), true},
		{info(t, "t", "value", "struct{A int8;B time}", "[3]float64", "", "", &statebackend.TTL{Millis: 1}), true},
		{info(t, "t", "value", "string", "int64", "", "", nil), false},
		{info(t, "t", "value", "int64", "string", "", "", nil), false},
		{info(t, "t", "value", "int64", "", "", "", nil), false},
		{info(t, "t", "value", "int64", "int64", "", "int64", nil), false},
		{info(t, "t", "list", "int64", "int64", "", "", nil), false},
		{info(t, "t", "map", "int64", "int64", "int64", "", nil), false},
		{info(t, "t", "timers", "int64", "int64", "", "", nil), false},
	} {
		p, err := w.Write(t.Context(), op(1), 0, 0, 7, &State{Tables: []statebackend.FrozenTable{table(c.i)}})
		if err != nil {
			t.Fatal(err)
		}
		r, _, err := one("/s", p, 8).Restore(fs, op(1), 0, 1, 8)
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := r.(statebackend.RestoredBatches).Batches("t"); ok != c.want {
			t.Errorf("%v of %v by %v: batches %t", c.i.Kind, c.i.Value, c.i.Key, ok)
		}
	}
}

// A block that holds no whole rows is the same error, whoever reads it.
func TestBatchesTellWhatIsWrongWithABlock(t *testing.T) {
	narrow, wide := info(t, "t", "value", "int64", "int8", "", "", nil), info(t, "t", "value", "int64", "int64", "", "", nil)
	fs, w := folder(t)
	row := keyed(t, narrow, 8, le(1))
	row.Value = []byte{1}
	p, err := w.Write(t.Context(), op(1), 0, 0, 7, &State{Tables: []statebackend.FrozenTable{table(narrow, row)}})
	if err != nil {
		t.Fatal(err)
	}
	p.Tables[0] = wide // the manifest says something else
	r, _, err := one("/s", p, 8).Restore(fs, op(1), 0, 1, 8)
	if err != nil {
		t.Fatal(err)
	}
	frozen, _ := r.Table("t")
	_, want := dumpRows(frozen.Rows)
	batches, _ := r.(statebackend.RestoredBatches).Batches("t")
	var got error
	for _, err := range batches {
		got = err
	}
	if want == nil || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("batches: %v\nrows: %v", got, want)
	}
}

func TestBatchesEndWithTheirConsumer(t *testing.T) {
	fs := vfs.NewMem()
	m, err := newJob(t, fs).checkpoint(openStorage(t, fs), 1)
	if err != nil {
		t.Fatal(err)
	}
	r, _, err := m.Restore(fs, op(1), 0, 1, 16)
	if err != nil {
		t.Fatal(err)
	}
	batches, ok := r.(statebackend.RestoredBatches).Batches("counts")
	n := 0
	for b, err := range batches {
		if err != nil {
			t.Fatal(err)
		}
		n += b.N
		break
	}
	if all := r.(statebackend.RestoredBatches).Expect("counts"); !ok || n == 0 || int64(n) >= all {
		t.Errorf("%d rows of %d", n, all)
	}
}

func TestExpectedRows(t *testing.T) {
	fs := vfs.NewMem()
	j := newJob(t, fs)
	j.parallelism = 3
	m, err := j.checkpoint(openStorage(t, fs), 1)
	if err != nil {
		t.Fatal(err)
	}
	words := int64(0)
	for k := range j.keys {
		words += int64(k % 4)
	}
	for _, parallelism := range []int{1, 2, 3, 5} {
		sums := map[string]int64{}
		for subtask := range parallelism {
			r, _, err := m.Restore(fs, op(1), subtask, parallelism, j.groups)
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range []string{"counts", "words", "none"} {
				sums[name] += r.(statebackend.RestoredBatches).Expect(name)
			}
		}
		for name, want := range map[string]int64{"counts": int64(j.keys), "words": words, "none": 0} {
			if got := sums[name]; got > want || got < want-int64(2*j.groups) {
				t.Errorf("parallelism %d: %d rows of %s are expected, there are %d", parallelism, got, name, want)
			}
		}
	}
	// What a manifest claims takes no more memory than its files could fill.
	for i := range m.Operators {
		for _, p := range m.Operators[i].Parts {
			for c := range p.chunks {
				for s := range p.chunks[c].sections {
					p.chunks[c].sections[s].rows = math.MaxInt32
				}
			}
		}
	}
	r, _, err := m.Restore(fs, op(1), 0, 1, j.groups)
	if err != nil {
		t.Fatal(err)
	}
	if got := r.(statebackend.RestoredBatches).Expect("counts"); got > int64(3*j.keys) {
		t.Errorf("%d rows are expected of a manifest that claims too many", got)
	}
}
