package checkpoint

import (
	"flag"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/flott-dev/flott/internal/vfs"
	"github.com/flott-dev/flott/statebackend"
)

var rewrite = flag.Bool("rewrite", false, "rewrite the golden files of the present version")

// sample takes checkpoint 8 of a job with everything that the format knows, and part of checkpoint 7, which 8 shares.
func sample(t *testing.T, fs vfs.FS) (plain, onTop *Manifest) {
	t.Helper()
	window := func(start, end uint64) []byte { return append(le(start), le(end)...) }
	row := func(i statebackend.TableInfo, key string, r statebackend.Row) statebackend.Row {
		k := keyed(t, i, 4, []byte(key))
		r.Group, r.Key = k.Group, k.Key
		return r
	}
	ttl := &statebackend.TTL{Millis: 3_600_000, OnRead: true}
	total := info(t, "total", "value", "string", "struct{Sum int64;Name string}", "", "", ttl)
	seen := info(t, "seen", "list", "string", "string", "", "struct{Start int64;End int64}", nil)
	prices := info(t, "prices", "map", "string", "float64", "string", "", nil)
	timers := info(t, "timers/event", "timers", "string", "", "int64", "struct{Start int64;End int64}", nil)
	state := func(owner func(group int) bool) *State {
		own := func(i statebackend.TableInfo, rows ...statebackend.Row) statebackend.FrozenTable {
			var mine []statebackend.Row
			for _, r := range rows {
				if owner(r.Group) {
					mine = append(mine, r)
				}
			}
			return table(i, mine...)
		}
		return &State{
			Tables: []statebackend.FrozenTable{
				own(
					total, row(total, "ada", statebackend.Row{At: 1000, Value: append(le(7), "\x03Ada"...)}),
					row(total, "bob", statebackend.Row{At: 2000, Value: append(le(1<<40), "\x00"...)}),
					row(total, "", statebackend.Row{At: -1, Value: append(le(0), "\x02??"...)}),
				),
				own(
					seen, row(seen, "ada", statebackend.Row{Namespace: window(0, 60_000), Value: []byte("\x01x")}),
					row(seen, "ada", statebackend.Row{Namespace: window(0, 60_000), Value: []byte("\x01y")}),
					row(seen, "ada", statebackend.Row{Namespace: window(60_000, 120_000), Value: []byte("\x00")}),
				),
				own(
					prices, row(prices, "bob", statebackend.Row{MapKey: []byte("eggs"), Value: []byte("\x00\x00\x00\x00\x00\x00\xf8\x3f")}),
					row(prices, "bob", statebackend.Row{MapKey: []byte("milk"), Value: []byte("\x00\x00\x00\x00\x00\x00\xf0\x3f")}),
				),
				own(timers, row(timers, "ada", statebackend.Row{Namespace: window(0, 60_000), MapKey: le(59_999)})),
			},
			Lists: []List{
				{Name: "channels", Mode: Union, Items: [][]byte{{1, 2, 3}}},
				{Name: "splits", Schema: schema(t, "string"), Items: [][]byte{[]byte("\x06file-1"), []byte("\x06file-2")}},
				{Name: "rules", Mode: Broadcast, Schema: schema(t, "int16"), Items: [][]byte{{5, 0}}},
			},
		}
	}
	write := func(folder string, inline, subtask int) *Part {
		if err := fs.MkdirAll(folder); err != nil {
			t.Fatal(err)
		}
		w := &Writer{FS: fs, Folder: folder, InlineBytes: inline, ChunkBytes: 100}
		p, err := w.Write(t.Context(), op(0xabc), subtask, 2*subtask, 2*subtask+1, state(func(g int) bool { return g/2 == subtask }))
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	shared, err := write("v2/chk-7", -1, 0).Reuse("v2/chk-7", "v2/chk-8")
	if err != nil {
		t.Fatal(err)
	}
	m := &Manifest{
		Folder: "v2/chk-8", ID: 8, JobID: "00112233445566778899aabbccddeeff", JobName: "Prices", Time: 1_770_000_000_000, HashSeed: seed,
		Operators: []Operator{
			{ID: op(0xdef), Name: "Source: files", Parallelism: 1, MaxParallelism: 128, Coordinator: []byte("next: file-3"), Parts: []*Part{{Finished: true}}},
			{
				ID: op(0xabc), UID: "prices", Name: "Totals", Parallelism: 2, MaxParallelism: 4,
				Parts: []*Part{shared, write("v2/chk-8", 135, 1)},
			},
		},
	}
	storage := &Storage{fs: fs, complete: map[string][]string{}, named: map[string]int{}}
	if _, err := storage.Complete(m); err != nil {
		t.Fatal(err)
	}
	return m, layered(t, storage, m)
}

// layered takes checkpoint 9: changes of checkpoint 8, and an operator whose tables lie in files of a backend.
func layered(t *testing.T, storage *Storage, m *Manifest) *Manifest {
	t.Helper()
	next := *m
	next.ID, next.Folder = 9, "v2/chk-9"
	if err := storage.fs.MkdirAll(next.Folder); err != nil {
		t.Fatal(err)
	}
	var total, prices statebackend.TableInfo
	for _, i := range m.Operators[1].Parts[0].Tables {
		switch i.Name {
		case "total":
			total = i
		case "prices":
			prices = i
		}
	}
	write := func(operator string, subtask int, state *State) *Part {
		w := &Writer{FS: storage.fs, Folder: next.Folder, InlineBytes: 150}
		p, err := w.Write(t.Context(), operator, subtask, 2*subtask, 2*subtask+1, state)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	bob, cy := []byte("bob"), []byte("cy")
	onTop := write(op(0xabc), 0, &State{
		Earlier: m.Operators[1].Parts[0], EarlierFolder: m.Folder,
		Tables: []statebackend.FrozenTable{
			changes(
				prices, statebackend.Row{Key: bob, MapKey: []byte("eggs"), Deleted: true},
				statebackend.Row{Key: bob, MapKey: []byte("ham"), Value: []byte("\x00\x00\x00\x00\x00\x00\x00\x40")},
				statebackend.Row{Key: cy, Deleted: true},
			),
			changes(
				total, statebackend.Row{Key: bob, At: 3000, Value: append(le(8), "\x03Bob"...)},
				statebackend.Row{Key: []byte(""), Deleted: true},
			),
		},
		Lists: []List{{Name: "channels", Mode: Union, Items: [][]byte{{4}}}},
	})
	next.Operators = append([]Operator(nil), m.Operators...)
	o := &next.Operators[1]
	kept, err := m.Operators[1].Parts[1].Reuse(m.Folder, next.Folder)
	if err != nil {
		t.Fatal(err)
	}
	o.Parts = []*Part{onTop, kept}
	counts := info(t, "counts", "value", "string", "int64", "", "", nil)
	row := keyed(t, counts, 4, bob)
	row.Value = le(5)
	inFiles := write(op(0x123), 0, &State{
		Files:  []*statebackend.FileSet{linesOf(map[string][]byte{"1.lines": line(&counts, &row)})},
		Tables: []statebackend.FrozenTable{changes(counts, statebackend.Row{Group: 1, Key: []byte("ada"), Value: le(6)})},
	})
	next.Operators = append(next.Operators, Operator{ID: op(0x123), UID: "counts", Name: "Counts", Parallelism: 2, MaxParallelism: 4, Parts: []*Part{inFiles}})
	if _, err := storage.Complete(&next); err != nil {
		t.Fatal(err)
	}
	return &next
}

// show writes what a snapshot holds as text.
func show(t *testing.T, fs vfs.FS, location string) string {
	t.Helper()
	m, err := Load(fs, location)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Verify(fs); err != nil {
		t.Error(err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%v %d of job %s %q, ms %d, seed %d\n", m.Kind, m.ID, m.JobID, m.JobName, m.Time, m.HashSeed)
	for i := range m.Operators {
		o := &m.Operators[i]
		fmt.Fprintf(&b, "operator %s %q %q, parallelism %d of %d, coordinator %q\n", o.ID, o.UID, o.Name, o.Parallelism, o.MaxParallelism, o.Coordinator)
		for _, p := range o.Parts {
			own, earlier := p.Files(m.Folder)
			fmt.Fprintf(&b, "  subtask %d: finished %v, key groups %d ... %d, %d bytes, %d files here, %d earlier\n", p.Subtask, p.Finished, p.FirstGroup, p.LastGroup, p.Bytes(), len(own), len(earlier))
		}
		r, lists, err := m.Read(fs, o.ID, lines{})
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range r.Tables() {
			showTable(t, &b, r, name)
		}
		for _, l := range lists {
			fmt.Fprintf(&b, "  list %s %v %v:", l.Name, l.Mode, l.Schema)
			for _, item := range l.Items {
				text, _, err := AppendJSON(nil, l.Schema, item)
				if err != nil {
					t.Error(err)
				}
				fmt.Fprintf(&b, " %s", text)
			}
			b.WriteString("\n")
		}
	}
	return b.String()
}

func showTable(t *testing.T, b *strings.Builder, r statebackend.Restored, name string) {
	t.Helper()
	frozen, _ := r.Table(name)
	fmt.Fprintf(b, "  table %s %s, key %v, value %v, map key %v, namespace %v", name, frozen.Kind, frozen.Key, frozen.Value, frozen.MapKey, frozen.Namespace)
	if frozen.TTL != nil {
		fmt.Fprintf(b, ", ttl %+v", *frozen.TTL)
	}
	b.WriteString("\n")
	for row, err := range frozen.Rows {
		if err != nil {
			t.Fatal(err)
		}
		key, err := AppendKeyJSON(nil, frozen.Key, row.Key)
		fmt.Fprintf(b, "    group %d hash %016x key %s", row.Group, row.Hash, key)
		if err == nil && frozen.Namespace != nil {
			key, err = AppendKeyJSON(nil, frozen.Namespace, row.Namespace)
			fmt.Fprintf(b, " namespace %s", key)
		}
		if err == nil && frozen.MapKey != nil {
			key, err = AppendKeyJSON(nil, frozen.MapKey, row.MapKey)
			fmt.Fprintf(b, " map key %s", key)
		}
		if err == nil {
			key, _, err = AppendJSON(nil, frozen.Value, row.Value)
			fmt.Fprintf(b, " at %d value %s\n", row.At, key)
		}
		if err != nil {
			t.Error(err)
		}
	}
}

// TestSnapshotGolden holds the format of docs/formats/snapshot.md in place: a sample is written as the golden files are, and
// the golden files of every version are read as what they were written from.
func TestSnapshotGolden(t *testing.T) {
	fs := vfs.NewMem()
	plain, onTop := sample(t, fs)
	text := ""
	for _, m := range []*Manifest{plain, onTop} {
		for _, file := range append(m.Files(), path.Join(m.Folder, ManifestName)) {
			b, err := vfs.ReadFile(fs, file)
			if err != nil {
				t.Fatal(err)
			}
			golden(t, filepath.Join("testdata", file), b)
		}
		text += show(t, fs, m.Folder)
	}
	golden(t, "testdata/v2/dump.txt", []byte(text))
	if again := show(t, nil, "testdata/v2/chk-8") + show(t, nil, "testdata/v2/chk-9"); again != text {
		t.Errorf("the golden files of version 2 are read as\n%s\nand not as\n%s", again, text)
	}
}

func TestSnapshotsOfEarlierVersionsAreRead(t *testing.T) {
	want, err := os.ReadFile("testdata/v1/dump.txt")
	if err != nil {
		t.Fatal(err)
	}
	if got := show(t, nil, "testdata/v1/chk-8"); got != string(want) {
		t.Errorf("the golden files of version 1 are read as\n%s\nand not as\n%s", got, want)
	}
}

func golden(t *testing.T, file string, b []byte) {
	t.Helper()
	if *rewrite {
		if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, b, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(want) != string(b) {
		t.Errorf("%s changed: this is a durable format, whose changes need a new version\ngot  %x\nwant %x", file, b, want)
	}
}
