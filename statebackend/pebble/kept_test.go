package pebble

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/flott-dev/flott/statebackend"
)

// copied are the tables of a snapshot with copies of the rows of some key groups, to be restored.
func copied(t *testing.T, f statebackend.Frozen, first, last int) *fileSets {
	t.Helper()
	r := &fileSets{rows: map[string]statebackend.FrozenTable{}}
	for _, table := range f.Tables() {
		var rows []statebackend.Row
		for row, err := range table.Rows {
			fatal(t, err)
			if row.Group >= first && row.Group <= last {
				c := *row
				for _, part := range []*[]byte{&c.Key, &c.Namespace, &c.MapKey, &c.Value} {
					*part = bytes.Clone(*part)
				}
				rows = append(rows, c)
			}
		}
		r.rows[table.Name] = statebackend.FrozenTable{TableInfo: table.TableInfo, Rows: func(yield func(*statebackend.Row, error) bool) {
			for i := range rows {
				if !yield(&rows[i], nil) {
					return
				}
			}
		}}
	}
	return r
}

// stopped reads some rows of each table, and no more.
func (w *world) stopped() {
	w.t.Helper()
	f, err := w.store.Freeze(statebackend.Freezing{})
	fatal(w.t, err)
	defer f.Release()
	for _, table := range f.Tables() {
		n := 0
		for _, err := range table.Rows {
			fatal(w.t, err)
			if n++; n == 3 {
				break
			}
		}
	}
}

// State that the program does not open goes from snapshot to snapshot, as rows first and then in files, over every number of
// subtasks, until somebody opens it.
func TestStateThatNobodyOpensMovesToOtherKeyGroups(t *testing.T) {
	folder, s := t.TempDir(), shelf{}
	w := openWorld(t, folder, 0, 63, nil).open()
	w.step(rand.New(rand.NewPCG(4, 1)), 500, 3000)
	want, f := w.moment()
	f.Release()
	halves := [][2]int{{0, 31}, {32, 63}}
	var sets []statebackend.RestoredFileSet
	var all []string
	for _, g := range halves {
		rows, err := w.store.Freeze(statebackend.Freezing{})
		fatal(t, err)
		kept := openWorld(t, folder, g[0], g[1], copied(t, rows, g[0], g[1]))
		rows.Release()
		kept.stopped()
		held, f := kept.moment()
		all = append(all, held...)
		set, _ := s.put(t, f, g[0], g[1])
		sets = append(sets, set)
		f.Release()
		kept.close()
	}
	w.close()
	if slices.Sort(all); !slices.Equal(all, want) {
		t.Fatalf("kept as rows: %d rows, want %d", len(all), len(want))
	}
	for _, ranges := range [][][2]int{{{0, 63}}, {{0, 20}, {21, 42}, {43, 63}}, halves, {{0, 63}}} {
		var next []statebackend.RestoredFileSet
		all = nil
		for _, g := range ranges {
			kept := openWorld(t, folder, g[0], g[1], overlapping(sets, g))
			kept.stopped()
			held, f := kept.moment()
			all = append(all, held...)
			set, _ := s.put(t, f, g[0], g[1])
			next = append(next, set)
			f.Release()
			kept.close()
			opened := openWorld(t, folder, g[0], g[1], overlapping(sets, g)).open()
			opened.check("opened", held)
			opened.close()
		}
		if slices.Sort(all); !slices.Equal(all, want) {
			t.Fatalf("kept in files, %v: %d rows, want %d", ranges, len(all), len(want))
		}
		sets = next
	}
}

// overlapping are the parts of file sets that are of some key groups.
func overlapping(sets []statebackend.RestoredFileSet, g [2]int) *fileSets {
	from := &fileSets{}
	for _, set := range sets {
		if set.FirstGroup <= g[1] && set.LastGroup >= g[0] {
			set.FirstGroup, set.LastGroup = max(set.FirstGroup, g[0]), min(set.LastGroup, g[1])
			from.sets = append(from.sets, set)
		}
	}
	return from
}

var errSpoiled = errors.New("spoiled")

// Files that are not whole, or not those of the snapshot, are refused when the store is opened, and nothing is left behind.
func TestFilesThatAreNotWholeAreRefused(t *testing.T) {
	folder, s := t.TempDir(), shelf{}
	w := openWorld(t, folder, 0, 63, nil).open()
	w.step(rand.New(rand.NewPCG(4, 1)), 500, 3000)
	_, f := w.moment()
	set, _ := s.put(t, f, 0, 63)
	f.Release()
	w.close()
	changes := statebackend.FrozenTable{TableInfo: set.Tables[0].TableInfo, Changes: true}
	for name, c := range map[string]struct {
		spoil func(set *statebackend.RestoredFileSet)
		want  string
	}{
		"a file is missing":        {func(set *statebackend.RestoredFileSet) { set.Files = set.Files[1:] }, "the snapshot has no file"},
		"a file is longer":         {func(set *statebackend.RestoredFileSet) { set.Files[0].Size++ }, "bytes and should have"},
		"a table is not described": {func(set *statebackend.RestoredFileSet) { set.Tables = set.Tables[1:] }, "the snapshot does not say what state"},
		"there are changes on top": {func(set *statebackend.RestoredFileSet) {
			changes.Rows = func(yield func(*statebackend.Row, error) bool) { yield(&statebackend.Row{}, nil) }
			set.Tables[0] = changes
		}, "the snapshot has changes to the files of the disk store"},
		"changes can't be read": {func(set *statebackend.RestoredFileSet) {
			changes.Rows = func(yield func(*statebackend.Row, error) bool) { yield(nil, errSpoiled) }
			set.Tables[0] = changes
		}, errSpoiled.Error()},
		"what they say of themselves is damaged": {func(set *statebackend.RestoredFileSet) { set.Meta = set.Meta[1:] }, "damaged"},
	} {
		for _, sets := range []int{1, 2} { // laid down as they are, and merged
			from := &fileSets{}
			for range sets {
				c := set
				c.Files, c.Tables = slices.Clone(set.Files), slices.Clone(set.Tables)
				from.sets = append(from.sets, c)
			}
			c.spoil(&from.sets[sets-1])
			_, err := Backend{Folder: folder, CacheBytes: leastCache}.Open(statebackend.Options{
				Key: w.key, Seed: 5, MaxParallelism: 64, LastGroup: 63, Operator: "world", Now: func() int64 { return 7 }, Restored: from,
			})
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), `operator "world": open pebble state`) {
				t.Errorf("%s, %d sets: %v", name, sets, err)
			}
		}
	}
	if left, err := w.store.tree.fs.List(folder); err != nil || len(left) > 0 {
		t.Errorf("%v are left, %v", left, err)
	}
}
