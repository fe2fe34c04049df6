package pebble

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/flott-dev/flott/internal/keygroup"
	"github.com/flott-dev/flott/serde"
	"github.com/flott-dev/flott/statebackend"
)

// fileSets is what a store begins with: file sets, and rows.
type fileSets struct {
	sets []statebackend.RestoredFileSet
	rows map[string]statebackend.FrozenTable
}

func (r *fileSets) Files() []statebackend.RestoredFileSet { return r.sets }
func (r *fileSets) Table(name string) (statebackend.FrozenTable, bool) {
	t, ok := r.rows[name]
	return t, ok
}

func (r *fileSets) Tables() (names []string) {
	for name := range r.rows {
		names = append(names, name)
	}
	return names
}

// shelf is where files of snapshots are kept, by name.
type shelf map[string][]byte

// put keeps the files of a snapshot that it does not have yet, as the container does, and gives what a store restores.
func (s shelf) put(t testing.TB, f statebackend.FrozenFiles, first, last int) (set statebackend.RestoredFileSet, written int) {
	t.Helper()
	files, err := f.Files()
	fatal(t, err)
	set = statebackend.RestoredFileSet{FileSet: *files, FirstGroup: first, LastGroup: last, Tables: f.Tables()}
	for i := range set.Files {
		file := &set.Files[i]
		r, err := file.Open()
		fatal(t, err)
		b, err := io.ReadAll(r)
		fatal(t, err)
		fatal(t, r.Close())
		if int64(len(b)) != file.Size {
			t.Errorf("file %s has %d bytes, said to be %d", file.Name, len(b), file.Size)
		}
		if old, ok := s[file.Name]; !ok {
			s[file.Name] = b
			written += len(b)
		} else if !bytes.Equal(old, b) {
			t.Fatalf("file %s is not what it was", file.Name)
		}
		body := s[file.Name]
		file.Open = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	}
	return set, written
}

// world is a store with a table of each kind.
type world struct {
	t           *testing.T
	store       *store
	first, last int
	values      statebackend.Table
	numbers     statebackend.Table
	lists       statebackend.ListTable
	maps        statebackend.MapTable
	key         *serde.Key
	scratch     serde.KeyScratch
}

func openWorld(t *testing.T, folder string, first, last int, from statebackend.Restored) *world {
	t.Helper()
	key, err := serde.KeyOf[string]()
	fatal(t, err)
	s, err := Backend{Folder: folder, CacheBytes: leastCache}.Open(statebackend.Options{
		Key: key, Seed: 5, MaxParallelism: 64, FirstGroup: first, LastGroup: last, Operator: "world",
		Now: func() int64 { return 7 }, Restored: from,
	})
	fatal(t, err)
	return &world{t: t, store: s.(*store), first: first, last: last, key: key}
}

// open opens the tables.
func (w *world) open() *world {
	w.t.Helper()
	text, err := serde.Of[string]()
	fatal(w.t, err)
	number, err := serde.Of[[3]int32]()
	fatal(w.t, err)
	ns, err := serde.KeyOf[int64]()
	fatal(w.t, err)
	ttl := &statebackend.TTL{Millis: 1000}
	w.values, err = w.store.Table(statebackend.TableSpec{Name: "values", Value: text, TTL: ttl})
	fatal(w.t, err)
	w.numbers, err = w.store.Table(statebackend.TableSpec{Name: "numbers", Value: number, Namespace: ns})
	fatal(w.t, err)
	w.lists, err = w.store.List(statebackend.TableSpec{Name: "lists", Value: text, List: true})
	fatal(w.t, err)
	w.maps, err = w.store.Map(statebackend.TableSpec{Name: "maps", Value: number, MapKey: ns})
	fatal(w.t, err)
	return w
}

// step does some things with keys of the store's groups.
func (w *world) step(r *rand.Rand, keys, n int) {
	w.t.Helper()
	for range n {
		k := []string{fmt.Sprint("key-", r.IntN(keys))}
		c, err := w.key.Canon(serde.Column{P: unsafe.Pointer(&k[0]), N: 1, Stride: unsafe.Sizeof(k[0])}, &w.scratch)
		fatal(w.t, err)
		hash := []uint64{w.key.HashOne(c.Bytes(0), 5)}
		if g := keygroup.Of(uint32(hash[0]), 64); g < w.first || g > w.last {
			continue
		}
		w.store.BeginRun(&c, hash)
		text, number, mk := strings.Repeat("x", r.IntN(60)), [3]int32{r.Int32(), 2, 3}, r.Int64N(5)
		w.numbers.SetNamespace([]byte(fmt.Sprintf("%08d", r.IntN(3))))
		switch r.IntN(12) {
		case 0:
			fatal(w.t, w.values.Delete(0))
		case 1:
			fatal(w.t, w.numbers.Delete(0))
		case 2:
			fatal(w.t, w.lists.Delete(0))
		case 3:
			_, err := w.maps.Remove(0, unsafe.Pointer(&mk))
			fatal(w.t, err)
		case 4:
			fatal(w.t, w.maps.Delete(0))
		case 5, 6:
			fatal(w.t, w.numbers.Save(0, unsafe.Pointer(&number)))
		case 7, 8:
			fatal(w.t, w.lists.Append(0, unsafe.Pointer(&text)))
		case 9, 10:
			fatal(w.t, w.maps.Save(0, unsafe.Pointer(&mk), unsafe.Pointer(&number)))
		default:
			fatal(w.t, w.values.Save(0, unsafe.Pointer(&text)))
		}
	}
}

// rowsOf reads all rows, sorted but for the order in lists and maps. They must be of key groups first to last, group by group.
func rowsOf(t *testing.T, f statebackend.Frozen, first, last int) (all []string) {
	t.Helper()
	for _, table := range f.Tables() {
		of, group := map[string]string{}, first
		for r, err := range table.Rows {
			fatal(t, err)
			if r.Group < group || r.Group > last {
				t.Fatalf("a row of %s is of group %d, behind one of group %d, of groups %d to %d", table.Name, r.Group, group, first, last)
			}
			group = r.Group
			of[fmt.Sprintf("%s %d %x %q %q", table.Name, r.Group, r.Hash, r.Key, r.Namespace)] += fmt.Sprintf(" %q@%d=%q", r.MapKey, r.At, r.Value)
		}
		for k, v := range of {
			all = append(all, k+v)
		}
	}
	slices.Sort(all)
	return all
}

// moment freezes a store twice: as rows, which it reads, and as files.
func (w *world) moment() (rows []string, f *frozen) {
	w.t.Helper()
	whole, err := w.store.Freeze(statebackend.Freezing{})
	fatal(w.t, err)
	files, err := w.store.Freeze(statebackend.Freezing{Anchor: true})
	fatal(w.t, err)
	rows = rowsOf(w.t, whole, w.first, w.last)
	whole.Release()
	return rows, files.(*frozen)
}

func (w *world) check(what string, want []string) {
	w.t.Helper()
	f, err := w.store.Freeze(statebackend.Freezing{})
	fatal(w.t, err)
	if got := rowsOf(w.t, f, w.first, w.last); !slices.Equal(got, want) {
		n := 0
		for n < min(len(got), len(want)) && got[n] == want[n] {
			n++
		}
		w.t.Fatalf("%s: %d rows, want %d; from row %d on: %.300s, want %.300s",
			what, len(got), len(want), n, strings.Join(got[n:min(n+2, len(got))], "; "), strings.Join(want[n:min(n+2, len(want))], "; "))
	}
	f.Release()
}

func (w *world) close() {
	w.t.Helper()
	fatal(w.t, w.store.Close())
}

// lens are the tables' own counts.
func (w *world) lens() [4]int {
	return [4]int{w.values.Len(), w.numbers.Len(), w.lists.Len(), w.maps.Len()}
}

// TestFilesHoldTheStateOfTheMoment gathers the files of snapshots long after their moments, restores them, goes on, and so on:
// with rows in memory tables, and in layers. With the race detector the library notes a stack whenever it looks at a file, so
// that there are fewer rows and rounds then: what goroutines meet in is the same.
func TestFilesHoldTheStateOfTheMoment(t *testing.T) {
	folder := t.TempDir()
	steps, rounds := 2500, uint64(4)
	if Raced {
		steps, rounds = 1000, 3
	}
	for seed := range uint64(2) {
		r := rand.New(rand.NewPCG(seed, 1))
		s := shelf{}
		layered := false
		w := openWorld(t, folder, 0, 63, nil).open()
		for range rounds - 2*seed {
			if seed == 1 {
				w.store.cache.few, w.store.cache.mostLayered = 0, 1<<20
			}
			w.step(r, 2000, steps)
			layered = layered || len(w.store.cache.layers.hidden) > 0
			want, f := w.moment()
			lens := w.lens()
			w.step(r, 2000, r.IntN(steps))
			done := make(chan struct{})
			var set statebackend.RestoredFileSet
			go func() {
				defer close(done)
				set, _ = s.put(t, f, 0, 63)
			}()
			w.step(r, 2000, r.IntN(steps))
			<-done
			f.Release()
			w.close()
			kept := openWorld(t, folder, 0, 63, &fileSets{sets: []statebackend.RestoredFileSet{set}})
			kept.check("not opened", want)
			kept.close()
			w = openWorld(t, folder, 0, 63, &fileSets{sets: []statebackend.RestoredFileSet{set}}).open()
			if w.lens() != lens {
				t.Errorf("lengths %v, want %v", w.lens(), lens)
			}
			w.check("restored", want)
			checkReader(t, folder, &set, want)
		}
		if layered != (seed == 1) {
			t.Errorf("seed %d: there are layers: %v", seed, layered)
		}
		w.close()
	}
	if left, err := os.ReadDir(folder); err != nil || len(left) > 0 {
		t.Errorf("%d folders are left, %v", len(left), err)
	}
}

// checkReader reads the files as tools do.
func checkReader(t *testing.T, folder string, set *statebackend.RestoredFileSet, want []string) {
	t.Helper()
	key, err := serde.KeyOf[string]()
	fatal(t, err)
	var tables []statebackend.FrozenTable
	for _, table := range set.Tables {
		rows := Files{Folder: folder}.Rows(&set.FileSet, table.TableInfo, 0, 63)
		tables = append(tables, statebackend.FrozenTable{TableInfo: table.TableInfo, Rows: func(yield func(*statebackend.Row, error) bool) {
			for r, err := range rows {
				if err == nil {
					r.Hash = key.HashOne(r.Key, 5)
				}
				if !yield(r, err) {
					return
				}
			}
		}})
	}
	if got := rowsOf(t, frozenTables(tables), 0, 63); !slices.Equal(got, want) {
		t.Errorf("the reader of files finds %d rows, want %d", len(got), len(want))
	}
}

type frozenTables []statebackend.FrozenTable

func (f frozenTables) Tables() []statebackend.FrozenTable { return f }
func (frozenTables) Release()                             {}

// TestOnlyNewFilesAreWritten takes two snapshots with few changes in between.
func TestOnlyNewFilesAreWritten(t *testing.T) {
	s := shelf{}
	w := openWorld(t, t.TempDir(), 0, 63, nil).open()
	r := rand.New(rand.NewPCG(9, 1))
	var wrote []int
	for _, n := range []int{30_000, 200} {
		w.step(r, 20_000, n)
		if n > 1000 { // all in the lowest level, which few changes leave alone
			fatal(t, w.store.tree.Compact(t.Context(), []byte{0}, []byte{255}, false))
		}
		_, f := w.moment()
		set, n := s.put(t, f, 0, 63)
		wrote = append(wrote, n)
		dir := f.folder
		f.Release()
		if _, err := os.Stat(dir); !os.IsNotExist(err) {
			t.Errorf("the links are there after the release: %v", err)
		}
		if len(set.Files) < 2 {
			t.Fatalf("%d files", len(set.Files))
		}
	}
	if wrote[1]*3 > wrote[0] {
		t.Errorf("wrote %v bytes", wrote)
	}
	w.close()
}

// TestFilesMoveToOtherKeyGroups goes from one subtask to three, two and one.
func TestFilesMoveToOtherKeyGroups(t *testing.T) {
	folder, s := t.TempDir(), shelf{}
	r := rand.New(rand.NewPCG(3, 1))
	w := openWorld(t, folder, 0, 63, nil).open()
	w.step(r, 2000, 8000)
	want, f := w.moment()
	set, _ := s.put(t, f, 0, 63)
	f.Release()
	w.close()
	sets := []statebackend.RestoredFileSet{set}
	for _, ranges := range [][][2]int{{{0, 20}, {21, 42}, {43, 63}}, {{0, 31}, {32, 63}}, {{0, 63}}} {
		var next []statebackend.RestoredFileSet
		var all []string
		for i, g := range ranges {
			from := &fileSets{}
			for _, set := range sets {
				if set.FirstGroup <= g[1] && set.LastGroup >= g[0] {
					c := set
					c.FirstGroup, c.LastGroup = max(set.FirstGroup, g[0]), min(set.LastGroup, g[1])
					from.sets = append(from.sets, c)
				}
			}
			w := openWorld(t, folder, g[0], g[1], from)
			if i != 1 {
				w.open() // one keeps what it does not open
			}
			rows, f := w.moment()
			all = append(all, rows...)
			set, _ := s.put(t, f, g[0], g[1])
			next = append(next, set)
			f.Release()
			w.close()
		}
		slices.Sort(all)
		if !slices.Equal(all, want) {
			t.Fatalf("%v: %d rows, want %d", ranges, len(all), len(want))
		}
		sets = next
	}
}

func TestFilesOfAnotherBackendAreRefused(t *testing.T) {
	key, err := serde.KeyOf[string]()
	fatal(t, err)
	from := &fileSets{sets: []statebackend.RestoredFileSet{{FileSet: statebackend.FileSet{Format: "leveldb/3"}}}}
	folder := t.TempDir()
	_, err = Backend{Folder: folder}.Open(statebackend.Options{
		Key: key, MaxParallelism: 64, LastGroup: 63, Operator: "world", Restored: from,
	})
	if err == nil || !strings.Contains(err.Error(), `"leveldb/3"`) || !strings.Contains(err.Error(), "savepoint") ||
		!strings.Contains(err.Error(), `"world"`) {
		t.Errorf("got %v", err)
	}
	if left, err := os.ReadDir(folder); err != nil || len(left) > 0 {
		t.Errorf("%d folders are left, %v", len(left), err)
	}
}
