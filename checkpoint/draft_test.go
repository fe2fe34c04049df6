package checkpoint

import (
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/flott-dev/flott/internal/keygroup"
	"github.com/flott-dev/flott/internal/vfs"
	"github.com/flott-dev/flott/statebackend"
)

type totalV1 struct {
	Sum  int64
	Name string
}

type totalV2 struct {
	Name  string
	Sum   int64
	Count int32
}

// someDraft has a state of each kind.
func someDraft(t *testing.T, n int) *Draft {
	t.Helper()
	d := NewDraft("job")
	o := d.Operator("totals")
	totals := func(yield func(string, totalV1) bool) {
		for k := range n {
			if !yield(fmt.Sprint("key", k), totalV1{int64(k), "n"}) {
				return
			}
		}
	}
	if err := o.SetValues("total", totals); err != nil {
		t.Fatal(err)
	}
	if err := o.SetLists("seen", maps.All(map[string][]int64{"a": {3, 1, 2}, "b": {9}, "c": nil})); err != nil {
		t.Fatal(err)
	}
	if err := o.SetMaps("prices", maps.All(map[int32]map[string]float64{7: {"eggs": 1.5, "": 2}, 8: {"milk": 1}})); err != nil {
		t.Fatal(err)
	}
	if err := o.SetItems("rules", Broadcast, slices.Values([]string{"x", "y"})); err != nil {
		t.Fatal(err)
	}
	return d
}

func written(t *testing.T, d *Draft, f vfs.FS, folder string) *Snapshot {
	t.Helper()
	if err := d.Write(t.Context(), f, folder); err != nil {
		t.Fatal(err)
	}
	s, err := Open(f, folder)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Verify(f); err != nil {
		t.Error(err)
	}
	return s
}

// collected gathers entries by their keys.
func collected[K comparable, V any](t *testing.T, entries iter.Seq2[Entry[K, V], error]) map[K]V {
	t.Helper()
	all := map[K]V{}
	for e, err := range entries {
		if err != nil {
			t.Fatal(err)
		}
		if _, twice := all[e.Key]; twice {
			t.Errorf("key %v comes twice", e.Key)
		}
		all[e.Key] = e.Value
	}
	return all
}

func TestDraftIsReadAsWhatWasPutIn(t *testing.T) {
	mem := vfs.NewMem()
	s := written(t, someDraft(t, 300), mem, "/sp/one")
	totals := collected(t, s.Values[string, totalV1]("totals", "total"))
	if len(totals) != 300 || totals["key17"] != (totalV1{17, "n"}) {
		t.Errorf("%d totals, %v", len(totals), totals["key17"])
	}
	if got := fmt.Sprint(collected(t, s.Lists[string, int64]("totals", "seen"))); got != "map[a:[3 1 2] b:[9]]" {
		t.Error(got)
	}
	if got := fmt.Sprint(collected(t, s.Maps[int32, string, float64]("totals", "prices"))); got != "map[7:map[:2 eggs:1.5] 8:map[milk:1]]" {
		t.Error(got)
	}
	if got, err := s.Items[string]("totals", "rules"); err != nil || fmt.Sprint(got) != "[x y]" {
		t.Error(got, err)
	}
	for range s.Values[string, totalV1]("totals", "total") {
		break // early
	}
	// As the type is now.
	if v := collected(t, s.Values[string, totalV2]("totals", "total")); v["key3"] != (totalV2{"n", 3, 0}) {
		t.Errorf("got %v", v["key3"])
	}
}

func TestReadingWithTheWrongTypeSaysWhatIsThere(t *testing.T) {
	s := written(t, someDraft(t, 3), vfs.NewMem(), "/sp/one")
	for what, rows := range map[string]iter.Seq2[Entry[string, string], error]{
		"the snapshot has struct": s.Values[string, string]("totals", "total"),
		"the snapshot has a list": s.Values[string, string]("totals", "seen"),
		"the snapshot has a map":  s.Values[string, string]("totals", "prices"),
		"no such state":           s.Values[string, string]("totals", "sum"),
		"no operator":             s.Values[string, string]("others", "total"),
	} {
		n := 0
		for _, err := range rows {
			if n++; err == nil || !strings.Contains(err.Error(), what) {
				t.Errorf("got %v, want %q", err, what)
			}
		}
		if n != 1 {
			t.Errorf("%d entries", n)
		}
	}
	for _, err := range s.Values[int64, totalV1]("totals", "total") {
		if err == nil || !strings.Contains(err.Error(), "the snapshot has the key type string, the program int64") {
			t.Errorf("got %v", err)
		}
	}
	if _, err := s.Items[string]("totals", "none"); err == nil {
		t.Error("no error")
	}
}

// TestRepairChangesOneStateAndKeepsTheOthers begins with a checkpoint of a job at parallelism 2, layers and all.
func TestRepairChangesOneStateAndKeepsTheOthers(t *testing.T) {
	j := newJob(t, vfs.NewMem())
	m, err := j.checkpoint(openStorage(t, j.fs), 3)
	if err != nil {
		t.Fatal(err)
	}
	before, err := restoredState(j.fs, m, 2, j.groups)
	if err != nil {
		t.Fatal(err)
	}
	s, err := Open(j.fs, m.Folder)
	if err != nil {
		t.Fatal(err)
	}
	same := written(t, s.Draft(), j.fs, "/sp/same")
	if got, err := restoredState(j.fs, same.Manifest, 2, j.groups); err != nil || got != before {
		t.Errorf("%v: a draft of a snapshot differs from it\n%s\n%s", err, got, before)
	}
	for i, p := range same.Operators[0].Parts {
		if fmt.Sprint(p.Lists) != fmt.Sprint(m.Operators[0].Parts[i].Lists) {
			t.Errorf("subtask %d: lists %v", i, p.Lists)
		}
	}
	if same.Kind != Savepoint || string(same.Operators[0].Coordinator) != "c" || same.Operators[1].Name != "Map" {
		t.Errorf("got %+v", same.Operators)
	}

	d := s.Draft()
	o := d.Operator("the-counts")
	err = o.Update("counts", func(key, value int64) (string, bool) { return fmt.Sprint(value + 1), key%2 == 0 })
	if err != nil {
		t.Fatal(err)
	}
	o.Drop("all")
	d.Remove(op(2))
	repaired := written(t, d, j.fs, "/sp/repaired")
	counts := collected(t, repaired.Values[int64, string]("the-counts", "counts"))
	if len(counts) != 100 || counts[10] != "101" {
		t.Errorf("%d counts, %q", len(counts), counts[10])
	}
	words := func(m *Manifest) string {
		r, lists, err := m.Read(j.fs, op(1))
		if err != nil {
			t.Fatal(err)
		}
		w, _ := r.Table("words")
		text, err := dumpRows(w.Rows)
		return fmt.Sprint(text, err, len(lists))
	}
	if a, b := words(s.Manifest), words(repaired.Manifest); strings.TrimSuffix(a, "3") != strings.TrimSuffix(b, "2") {
		t.Errorf("words differ:\n%s\n%s", a, b)
	}
	if len(repaired.Operators) != 1 {
		t.Errorf("%d operators", len(repaired.Operators))
	}
}

// TestRekeyedStateLiesInTheGroupsOfItsNewKeys changes the keys of one operator, its UID and its max parallelism.
func TestRekeyedStateLiesInTheGroupsOfItsNewKeys(t *testing.T) {
	mem := vfs.NewMem()
	s := written(t, someDraft(t, 50), mem, "/sp/one")
	d := s.Draft()
	o := d.Operator("totals")
	err := o.SetValues("total", func(yield func(int64, totalV1) bool) {
		for e, err := range s.Values[string, totalV1]("totals", "total") {
			if err != nil {
				t.Error(err)
			}
			if !yield(e.Value.Sum, e.Value) {
				return
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	o.SetUID("sums")
	o.MaxParallelism = 16
	again := written(t, d, mem, "/sp/two")
	seen := 0
	for subtask := range 4 {
		r, _, err := again.Restore(mem, "sums", subtask, 4, 16)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range r.Tables() {
			frozen, _ := r.Table(name)
			for row, err := range frozen.Rows {
				if err != nil || row.Group/4 != subtask || row.Group != keygroup.Of(uint32(row.Hash), 16) {
					t.Errorf("%s: %+v, %v", name, row, err)
				}
				if name == "total" {
					seen++
				}
			}
		}
	}
	if seen != 50 {
		t.Errorf("%d totals", seen)
	}
	if got := fmt.Sprint(collected(t, again.Lists[string, int64]("sums", "seen"))); got != "map[a:[3 1 2] b:[9]]" {
		t.Error(got)
	}
}

func TestDraftsThatCannotBeWrittenLeaveNothing(t *testing.T) {
	mem := vfs.NewMem()
	twice := NewDraft("job")
	err := twice.Operator("o").SetValues("v", func(yield func(string, int) bool) { _ = yield("a", 1) && yield("a", 2) })
	if err != nil {
		t.Fatal(err)
	}
	if err := twice.Write(t.Context(), mem, "/sp/twice"); err == nil || !strings.Contains(err.Error(), "a key comes twice") {
		t.Errorf("got %v", err)
	}
	if _, err := mem.Stat("/sp/twice"); err == nil {
		t.Error("it left a folder")
	}
	faulty := vfs.NewFaulty(mem)
	faulty.Fail(vfs.OpRename, 1, fs.ErrInvalid)
	if err := someDraft(t, 10_000).Write(t.Context(), faulty, "/sp/failed"); err == nil {
		t.Error("no error")
	}
	if _, err := mem.Stat("/sp/failed"); err == nil {
		t.Error("it left a folder")
	}
	written(t, someDraft(t, 1), mem, "/sp/one")
	if err := someDraft(t, 1).Write(t.Context(), mem, "/sp/one"); err == nil || !strings.Contains(err.Error(), "lies there already") {
		t.Errorf("got %v", err)
	}
	if err := NewDraft("job").Operator("o").SetValues("f", maps.All(map[string]func(){"": nil})); err == nil {
		t.Error("a function is no state")
	}
}

var _ statebackend.RestoredFiles = (*restoredOperator)(nil)
