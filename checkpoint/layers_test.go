package checkpoint

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/flott-dev/flott/internal/keygroup"
	"github.com/flott-dev/flott/internal/vfs"
	"github.com/flott-dev/flott/statebackend"
)

// mirror is the truth about one table: what each key holds, and the changes since the last checkpoint.
type mirror struct {
	info    statebackend.TableInfo
	held    map[string][]statebackend.Row // by key and namespace: value, elements, entries in their order
	order   []string                      // of the keys, as they came
	changes []statebackend.Row
}

func newMirror(i statebackend.TableInfo) *mirror {
	return &mirror{info: i, held: map[string][]statebackend.Row{}}
}

// apply changes the truth as a row of changes says.
func (m *mirror) apply(r statebackend.Row) {
	m.changes = append(m.changes, r)
	id := string(r.Key) + "|" + string(r.Namespace)
	had, known := m.held[id]
	if !known {
		m.order = append(m.order, id)
	}
	at := slices.IndexFunc(had, func(h statebackend.Row) bool { return string(h.MapKey) == string(r.MapKey) })
	switch {
	case r.Deleted && (m.info.Kind != "map" || r.MapKey == nil):
		had = nil
	case r.Deleted && at >= 0:
		had = slices.Delete(slices.Clone(had), at, at+1)
	case r.Deleted:
	case m.info.Kind == "list" || at < 0:
		had = append(slices.Clone(had), r)
	default:
		had = slices.Clone(had)
		had[at] = r
	}
	m.held[id] = had
}

// rows are all that is held.
func (m *mirror) rows() []statebackend.Row {
	var all []statebackend.Row
	for _, id := range m.order {
		all = append(all, m.held[id]...)
	}
	return all
}

// randomChange makes up a row of changes.
func (m *mirror) randomChange(t testing.TB, rnd *rand.Rand, groups int) statebackend.Row {
	key := le(rnd.Uint64N(40))
	if m.info.Key.String() == "string" {
		key = []byte(strings.Repeat("k", rnd.IntN(30)))
	}
	r := keyed(t, m.info, groups, key)
	if m.info.Namespace != nil {
		r.Namespace = le(rnd.Uint64N(3))
	}
	if m.info.Kind == "map" && rnd.IntN(12) > 0 {
		r.MapKey = []byte(strings.Repeat("m", rnd.IntN(12)))
	}
	if rnd.IntN(4) == 0 || m.info.Kind == "map" && r.MapKey == nil {
		r.Deleted = true
		return r
	}
	if m.info.TTL != nil {
		r.At = rnd.Int64N(1000)
	}
	r.Value = le(rnd.Uint64())
	return r
}

// matches compares the rows that subtasks of a parallelism get with what is held.
func (m *mirror) matches(f vfs.FS, s *Manifest, parallelism, groups int) error {
	got := map[string][]statebackend.Row{}
	for subtask := range parallelism {
		restored, _, err := s.Restore(f, op(1), subtask, parallelism, groups)
		if err != nil {
			return err
		}
		t, ok := restored.Table(m.info.Name)
		if !ok {
			return fmt.Errorf("no table %s", m.info.Name)
		}
		if batched, err := sameBatches(restored, m.info.Name); err != nil || batched != (m.info.Name == "values") {
			return fmt.Errorf("batches: %t, %w", batched, err)
		}
		group, last := -1, ""
		for r, err := range t.Rows {
			if err != nil {
				return err
			}
			id := string(r.Key) + "|" + string(r.Namespace)
			if r.Group < group || r.Deleted || id != last && got[id] != nil {
				return fmt.Errorf("row %+v of group %d after group %d, or not beside the others of its key", *r, r.Group, group)
			}
			group, last = r.Group, id
			got[id] = append(got[id], statebackend.Row{
				Group: r.Group, Key: slices.Clone(r.Key), Hash: r.Hash, Namespace: slices.Clone(r.Namespace), MapKey: slices.Clone(r.MapKey), At: r.At, Value: slices.Clone(r.Value),
			})
		}
	}
	for id, want := range m.held {
		if a, b := fmt.Sprint(want), fmt.Sprint(got[id]); a != b {
			return fmt.Errorf("key %q: got %s, want %s", id, b, a)
		}
		delete(got, id)
	}
	if len(got) > 0 {
		return fmt.Errorf("rows too many: %v", got)
	}
	return nil
}

// layeredJob writes checkpoints of tables, some whole and some as changes.
type layeredJob struct {
	t                   *testing.T
	rnd                 *rand.Rand
	fs                  vfs.FS
	storage             *Storage
	parallelism, groups int
	tables              []*mirror
	parts               []*Part // of the last checkpoint
	folder              string
	chained             bool // only the first checkpoint is whole
}

func (j *layeredJob) checkpoint(id int64) *Manifest {
	j.t.Helper()
	folder, err := j.storage.Begin(id)
	if err != nil {
		j.t.Fatal(err)
	}
	whole := make([]bool, len(j.tables))
	for i := range whole {
		whole[i] = j.parts == nil || !j.chained && j.rnd.IntN(5) == 0
	}
	w := &Writer{FS: j.fs, Folder: folder, InlineBytes: j.rnd.IntN(600), ChunkBytes: 300}
	var parts []*Part
	for subtask := range j.parallelism {
		first, last := keygroup.RangeOf(j.groups, j.parallelism, subtask)
		state := &State{EarlierFolder: j.folder}
		if j.parts != nil {
			state.Earlier = j.parts[subtask]
		}
		for _, i := range j.rnd.Perm(len(j.tables)) {
			m := j.tables[i]
			rows := m.changes
			if whole[i] {
				rows = m.rows()
			}
			t := table(m.info, slices.DeleteFunc(slices.Clone(rows), func(r statebackend.Row) bool { return r.Group < first || r.Group > last })...)
			t.Changes = !whole[i]
			state.Tables = append(state.Tables, t)
		}
		p, err := w.Write(j.t.Context(), op(1), subtask, first, last, state)
		if err != nil {
			j.t.Fatal(err)
		}
		if p, err = DecodePart(p.Encode()); err != nil {
			j.t.Fatal(err)
		}
		parts = append(parts, p)
	}
	for _, m := range j.tables {
		m.changes = nil
	}
	j.parts, j.folder = parts, folder
	m := &Manifest{Folder: folder, ID: id, HashSeed: seed, Operators: []Operator{{ID: op(1), Parallelism: j.parallelism, MaxParallelism: j.groups, Parts: parts}}}
	if _, err := j.storage.Complete(m); err != nil {
		j.t.Fatal(err)
	}
	if m, err = Load(j.fs, folder); err != nil {
		j.t.Fatal(err)
	}
	return m
}

func newLayeredJob(t *testing.T, seed uint64) *layeredJob {
	fs := vfs.NewMem()
	return &layeredJob{
		t: t, rnd: rand.New(rand.NewPCG(seed, 1)), fs: fs, storage: openStorage(t, fs), parallelism: 1 + int(seed%3), groups: 8,
		tables: []*mirror{
			newMirror(info(t, "values", "value", "int64", "int64", "", "", &statebackend.TTL{Millis: 5})),
			newMirror(info(t, "texts", "value", "string", "uint64", "", "int64", nil)),
			newMirror(info(t, "lists", "list", "string", "uint64", "", "int64", nil)),
			newMirror(info(t, "maps", "map", "int64", "uint64", "string", "", nil)),
		},
	}
}

// change makes up some changes.
func (j *layeredJob) change() {
	for _, m := range j.tables {
		for range j.rnd.IntN(60) {
			m.apply(m.randomChange(j.t, j.rnd, j.groups))
		}
	}
}

// TestLayersOfChangesAreReadAsTheWholeTables takes checkpoints that build one upon the other, whole and as changes, and
// restores each at several parallelisms, while earlier ones are discarded and litter is swept.
func TestLayersOfChangesAreReadAsTheWholeTables(t *testing.T) {
	layers := 0
	for s := range uint64(12) {
		j := newLayeredJob(t, s)
		var kept []*Manifest
		for id := range int64(14) {
			j.change()
			m := j.checkpoint(id)
			n, whole, changed := j.parts[0].Layers()
			for _, tab := range m.Operators[0].Tables() {
				if tab.Changes > tab.Rows || tab.InFiles || j.parallelism == 1 && n == 1 && tab.Changes > 0 {
					t.Errorf("seed %d, checkpoint %d: %+v", s, id, tab)
				}
			}
			if layers = max(layers, n); n > 1 != (changed > 0) || whole < 0 {
				t.Errorf("seed %d, checkpoint %d: %d layers with %d bytes, and %d of changes", s, id, n, whole, changed)
			}
			for _, parallelism := range []int{1, 2, 3, 8} {
				for _, tab := range j.tables {
					if err := tab.matches(j.fs, m, parallelism, j.groups); err != nil {
						t.Fatalf("seed %d, checkpoint %d, parallelism %d: table %s: %v", s, id, parallelism, tab.info.Name, err)
					}
				}
			}
			if kept = append(kept, m); len(kept) > 2 {
				if err := j.storage.Discard(kept[0]); err != nil {
					t.Fatal(err)
				}
				kept = kept[1:]
			}
			if err := j.storage.Sweep(); err != nil {
				t.Fatal(err)
			}
			for _, m := range kept {
				if err := m.Verify(j.fs); err != nil {
					t.Fatalf("seed %d, checkpoint %d, after %d: %v", s, m.ID, id, err)
				}
			}
		}
	}
	if layers < 5 {
		t.Errorf("at most %d layers: the test tests little", layers)
	}
}

// TestLongChainsAreReadAsTheWholeTables has more layers than are read in large pieces, of the same few keys.
func TestLongChainsAreReadAsTheWholeTables(t *testing.T) {
	j := newLayeredJob(t, 3)
	j.chained = true
	const layers = 5 * layersFew
	for id := range int64(layers) {
		j.change()
		m := j.checkpoint(id)
		if id%layersFew != layersFew-1 {
			continue
		}
		for _, tab := range j.tables {
			if err := tab.matches(j.fs, m, 2, j.groups); err != nil {
				t.Fatalf("%d layers: table %s: %v", id+1, tab.info.Name, err)
			}
		}
	}
	if n, _, _ := j.parts[0].Layers(); n != layers {
		t.Errorf("%d layers", n)
	}
}

func TestManyLayersShareWhatIsReadAhead(t *testing.T) {
	for layers := range 1000 {
		step := stepOf(layers)
		if layers <= layersFew && step != 0 || layers > layersFew && (step < leastRead || step > readBytes) {
			t.Errorf("%d layers are read in pieces of %d bytes", layers, step)
		}
		if all := layers * step * aheadBuffers; all > layersBytes && step > leastRead {
			t.Errorf("%d layers hold %d bytes", layers, all)
		}
	}
}

func TestDamageInAnyLayerNamesTheFile(t *testing.T) {
	j := newLayeredJob(t, 4)
	var m *Manifest
	for id := range int64(6) {
		j.change()
		m = j.checkpoint(id)
	}
	files := m.Files()
	if len(files) < 6 {
		t.Fatalf("%d files", len(files))
	}
	for _, file := range files {
		good, err := vfs.ReadFile(j.fs, file)
		if err != nil {
			t.Fatal(err)
		}
		b := slices.Clone(good)
		b[len(b)/2] ^= 0x10
		if err := vfs.WriteFile(j.fs, file, b); err != nil {
			t.Fatal(err)
		}
		var read error
		for _, tab := range j.tables {
			read = errors.Join(read, tab.matches(j.fs, m, 1, j.groups))
		}
		if damaged, ok := errors.AsType[*DamagedError](m.Verify(j.fs)); !ok || damaged.File != file {
			t.Errorf("%s: got %v", file, damaged)
		}
		if damaged, ok := errors.AsType[*DamagedError](read); ok && damaged.File != file || !ok && read != nil {
			t.Errorf("%s: got %v", file, read)
		}
		if err := vfs.WriteFile(j.fs, file, good); err != nil {
			t.Fatal(err)
		}
	}
}

func TestChangesWithoutWhatTheyLieUponAreRefused(t *testing.T) {
	fs := vfs.NewMem()
	counts := info(t, "counts", "value", "int64", "int64", "", "", nil)
	texts := info(t, "counts", "value", "int64", "string", "", "", nil)
	timers := info(t, "timers", "timers", "int64", "", "int64", "", nil)
	w := &Writer{FS: fs, Folder: "/s"}
	if err := fs.MkdirAll("/s"); err != nil {
		t.Fatal(err)
	}
	write := func(subtask int, s *State) (*Part, error) { return w.Write(t.Context(), op(1), subtask, 0, 3, s) }
	earlier, err := write(0, &State{Tables: []statebackend.FrozenTable{table(counts)}})
	if err != nil {
		t.Fatal(err)
	}
	inFiles, err := write(0, &State{Files: []*statebackend.FileSet{linesOf(nil)}, Tables: []statebackend.FrozenTable{changes(counts)}})
	if err != nil {
		t.Fatal(err)
	}
	part, err := write(0, &State{Files: []*statebackend.FileSet{linesOf(nil)}, Tables: []statebackend.FrozenTable{changes(timers)}})
	if err == nil {
		_, err = DecodePart(part.Encode())
	}
	if err != nil {
		t.Errorf("timers in files: %v", err)
	}
	other := changes(counts)
	other.Name = "others"
	deleted := statebackend.Row{Key: le(1), Deleted: true}
	for _, c := range []struct {
		subtask int
		state   State
		want    string
	}{
		{0, State{Tables: []statebackend.FrozenTable{changes(counts)}}, "no earlier part"},
		{0, State{Earlier: earlier, Tables: []statebackend.FrozenTable{other}}, "no such table"},
		{0, State{Earlier: earlier, Tables: []statebackend.FrozenTable{changes(texts)}}, "another kind of table"},
		{0, State{Earlier: earlier, Tables: []statebackend.FrozenTable{changes(timers)}}, "only values, lists and maps"},
		{1, State{Earlier: earlier, Tables: []statebackend.FrozenTable{changes(counts)}}, "another subtask"},
		{0, State{Earlier: inFiles, Tables: []statebackend.FrozenTable{changes(counts)}}, "files of a backend"},
		{0, State{Tables: []statebackend.FrozenTable{table(counts, deleted)}}, "a deleted row in a whole table"},
		{0, State{Files: []*statebackend.FileSet{linesOf(nil), linesOf(nil)}}, "an operator has one store"},
	} {
		c.state.EarlierFolder = "/s"
		if _, err := write(c.subtask, &c.state); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want %q", err, c.want)
		}
	}
}
