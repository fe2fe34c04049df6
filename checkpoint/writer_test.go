package checkpoint

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/flott-dev/flott/internal/vfs"
	"github.com/flott-dev/flott/statebackend"
)

// folder is a memory file system with a begun snapshot.
func folder(t testing.TB) (*vfs.Mem, *Writer) {
	t.Helper()
	fs := vfs.NewMem()
	if err := BeginSnapshot(fs, "/s"); err != nil {
		t.Fatal(err)
	}
	return fs, &Writer{FS: fs, Folder: "/s", InlineBytes: -1}
}

func names(t testing.TB, fs vfs.FS, dir string) []string {
	t.Helper()
	entries, err := fs.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

// one is a manifest of one operator with one subtask.
func one(folder string, p *Part, groups int) *Manifest {
	return &Manifest{Folder: folder, HashSeed: seed, Operators: []Operator{
		{ID: op(1), UID: "u", Name: "Op", Parallelism: 1, MaxParallelism: groups, Parts: []*Part{p}},
	}}
}

func TestWriterRefusesWhatItCouldNotReadBack(t *testing.T) {
	plain := info(t, "t", "value", "int64", "int64", "", "", nil)
	row := func(group int, key, namespace, mapKey, value string) statebackend.Row {
		r := statebackend.Row{Group: group, Key: []byte(key), Value: []byte(value)}
		if namespace != "" {
			r.Namespace = []byte(namespace)
		}
		if mapKey != "" {
			r.MapKey = []byte(mapKey)
		}
		return r
	}
	good := row(3, "12345678", "", "", "12345678")
	broken := errors.New("the page is gone")
	for _, c := range []struct {
		name  string
		op    string
		state State
		want  string
	}{
		{"no id", "counts", State{}, `operator id "counts" is not 32 lower-case hex digits`},
		{"upper case", strings.ToUpper(op(10)), State{}, "is not 32 lower-case hex digits"},
		{"no key schema", op(1), State{Tables: []statebackend.FrozenTable{table(statebackend.TableInfo{Name: "t"})}}, `table "t" has no schema of its keys`},
		{"twice", op(1), State{Tables: []statebackend.FrozenTable{table(plain), table(plain)}}, `table "t" is there twice`},
		{"list twice", op(1), State{Lists: []List{{Name: "l"}, {Name: "l", Mode: Union}}}, `list "l" is there twice`},
		{"mode", op(1), State{Lists: []List{{Name: "l", Mode: 3}}}, `list "l": unknown mode 3`},
		{"too low", op(1), State{Tables: []statebackend.FrozenTable{table(plain, row(1, "12345678", "", "", "12345678"))}}, "a row of key group 1, but the subtask has 2 ... 9"},
		{"too high", op(1), State{Tables: []statebackend.FrozenTable{table(plain, row(10, "12345678", "", "", "12345678"))}}, "a row of key group 10, but the subtask has 2 ... 9"},
		{"key", op(1), State{Tables: []statebackend.FrozenTable{table(plain, row(3, "1234567", "", "", "12345678"))}}, "a row has a key of 7 bytes, where its schema says 8"},
		{"value", op(1), State{Tables: []statebackend.FrozenTable{table(plain, row(3, "12345678", "", "", "123456789"))}}, "a row has a value of 9 bytes, where its schema says 8"},
		{"namespace", op(1), State{Tables: []statebackend.FrozenTable{table(plain, row(3, "12345678", "n", "", "12345678"))}}, "a row has a namespace of 1 bytes, but the table has no schema of namespaces"},
		{"map key", op(1), State{Tables: []statebackend.FrozenTable{table(plain, row(3, "12345678", "", "m", "12345678"))}}, "a row has a map key of 1 bytes, but the table has no schema of map keys"},
		{"error of the rows", op(1), State{Tables: []statebackend.FrozenTable{{TableInfo: plain, Rows: func(yield func(*statebackend.Row, error) bool) {
			_ = yield(&good, nil) && yield(nil, broken)
		}}}}, "the page is gone"},
	} {
		t.Run(c.name, func(t *testing.T) {
			fs, w := folder(t)
			w.ChunkBytes = 1
			p, err := w.Write(t.Context(), c.op, 0, 2, 9, &c.state)
			if p != nil || err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, %v; want %q", p, err, c.want)
			}
			if left := names(t, fs, "/s"); len(left) > 0 {
				t.Errorf("it left %q", left)
			}
		})
	}
	fs, w := folder(t)
	if _, err := w.Write(t.Context(), op(1), 0, 9, 2, &State{}); err == nil {
		t.Error("key groups 9 ... 2 were accepted")
	}
	_ = fs
}

func TestSmallPartsGoIntoTheManifest(t *testing.T) {
	fs, w := folder(t)
	w.InlineBytes = 0
	small := &State{Tables: []statebackend.FrozenTable{counts(t, 100, 16, func(int) bool { return true })}}
	p, err := w.Write(t.Context(), op(1), 0, 0, 15, small)
	if err != nil || p.Bytes() == 0 {
		t.Fatal(p.Bytes(), err)
	}
	if left := names(t, fs, "/s"); len(left) > 0 {
		t.Errorf("%d bytes made files %q", p.Bytes(), left)
	}
	large := &State{Lists: []List{{Name: "l", Items: [][]byte{make([]byte, DefaultInlineBytes)}}}}
	if p, err = w.Write(t.Context(), op(1), 0, 0, 15, large); err != nil {
		t.Fatal(err)
	}
	own, earlier := p.Files("/s")
	if want := []string{"/s/" + op(1) + "-0-1.chunk"}; !slices.Equal(own, want) || len(earlier) > 0 {
		t.Errorf("%d bytes made files %q, %q", p.Bytes(), own, earlier)
	}
	if p, err = w.Write(t.Context(), op(1), 1, 0, 15, &State{}); err != nil || p.Bytes() != 0 || p.Subtask != 1 {
		t.Errorf("no state: %+v, %v", p, err)
	}
}

func TestChunksEndBetweenKeyGroups(t *testing.T) {
	fs, w := folder(t)
	w.ChunkBytes = 1000
	state := &State{
		Tables: []statebackend.FrozenTable{counts(t, 1000, 16, func(int) bool { return true }), words(t, 100, 16, func(int) bool { return true })},
		Lists:  []List{{Name: "l", Items: items("i", 10)}},
	}
	p, err := w.Write(t.Context(), op(1), 0, 0, 15, state)
	if err != nil {
		t.Fatal(err)
	}
	met := map[string]bool{}
	for i := range p.chunks {
		c := &p.chunks[i]
		if last := i == len(p.chunks)-1; c.size < 1000 && !last || c.size > 12_000 {
			t.Errorf("chunk %d has %d bytes", i, c.size)
		}
		if f, err := fs.Stat(inFolder("/s", c.path)); err != nil || f.Size() != c.size {
			t.Errorf("chunk %d should have %d bytes: %v, %v", i, c.size, f, err)
		}
		for _, s := range c.sections {
			for _, g := range s.groups {
				at := fmt.Sprint(s.index, "/", g.group)
				if met[at] {
					t.Errorf("group %s is in two chunks", at)
				}
				met[at] = true
			}
		}
	}
	if len(p.chunks) < 10 || len(met) < 30 {
		t.Errorf("%d chunks, %d groups", len(p.chunks), len(met))
	}
}

// Rows that come in stretches, each in the order of its groups, come back in that order.
func TestStretchesComeBackInTheOrderOfGroups(t *testing.T) {
	everything := func(int) bool { return true }
	for _, chunkBytes := range []int64{1, 1000, 1 << 20} {
		fs, w := folder(t)
		w.ChunkBytes = chunkBytes
		whole := counts(t, 1000, 16, everything)
		want, err := dumpRows(whole.Rows)
		if err != nil {
			t.Fatal(err)
		}
		stretched := whole
		stretched.Rows = func(yield func(*statebackend.Row, error) bool) {
			for stretch := range uint64(7) {
				for r := range whole.Rows {
					if r.Hash%7 == stretch && !yield(r, nil) {
						return
					}
				}
			}
		}
		p, err := w.Write(t.Context(), op(1), 0, 0, 15, &State{Tables: []statebackend.FrozenTable{stretched}})
		if err != nil {
			t.Fatal(err)
		}
		if err := p.check(); err != nil {
			t.Fatal(err)
		}
		var got string
		for subtask := range 3 {
			r, _, err := one("/s", p, 16).Restore(fs, op(1), subtask, 3, 16)
			if err != nil {
				t.Fatal(err)
			}
			table, _ := r.Table("counts")
			groups := -1
			rows, err := dumpRows(func(yield func(*statebackend.Row, error) bool) {
				for r, err := range table.Rows {
					if err == nil && r.Group < groups {
						t.Fatalf("group %d after %d", r.Group, groups)
					}
					groups = r.Group
					if !yield(r, err) {
						return
					}
				}
			})
			if err != nil {
				t.Fatal(err)
			}
			got += rows
		}
		if sortedLines(got) != sortedLines(want) {
			t.Errorf("chunks of %d bytes: the rows that come back are others", chunkBytes)
		}
	}
}

func sortedLines(s string) string {
	lines := strings.Split(s, "\n")
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func TestWriterOverwritesNoFile(t *testing.T) {
	fs, w := folder(t)
	state := func() *State { return &State{Lists: []List{{Name: "l", Items: items("i", 3)}}} }
	first, err := w.Write(t.Context(), op(1), 0, 0, 15, state())
	if err != nil {
		t.Fatal(err)
	}
	second, err := w.Write(t.Context(), op(1), 0, 0, 15, state())
	if err != nil {
		t.Fatal(err)
	}
	a, _ := first.Files("/s")
	b, _ := second.Files("/s")
	if slices.Equal(a, b) || len(names(t, fs, "/s")) != 2 {
		t.Errorf("%q, %q", a, b)
	}
	for _, p := range []*Part{first, second} {
		if err := one("/s", p, 16).Verify(fs); err != nil {
			t.Error(err)
		}
	}
}

func TestWriterEndsWithItsContext(t *testing.T) {
	fs, w := folder(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	aborted := errors.New("checkpoint 4 was aborted")
	plain := info(t, "t", "value", "string", "string", "", "", nil)
	rows := iter.Seq2[*statebackend.Row, error](func(yield func(*statebackend.Row, error) bool) {
		r := statebackend.Row{Key: []byte("k"), Value: make([]byte, 100_000)}
		for i := range 1000 {
			if !yield(&r, nil) {
				return
			}
			if i == 20 { // some are in a file by now
				cancel(aborted)
			}
		}
		t.Error("it read all rows")
	})
	_, err := w.Write(ctx, op(1), 0, 0, 15, &State{Tables: []statebackend.FrozenTable{{TableInfo: plain, Rows: rows}}})
	if !errors.Is(err, aborted) {
		t.Errorf("got %v", err)
	}
	if left := names(t, fs, "/s"); len(left) > 0 {
		t.Errorf("it left %q", left)
	}
}

func TestRowsOfAllShapesComeBack(t *testing.T) {
	ttl := &statebackend.TTL{Millis: 9, ReturnExpired: true}
	big := strings.Repeat("x", 300<<10)
	for _, c := range []struct {
		info statebackend.TableInfo
		rows []statebackend.Row
	}{
		{info(t, "fixed", "value", "int32", "struct{A int16;B [2]uint8}", "", "", nil), []statebackend.Row{{Key: []byte("abcd"), Value: []byte("wxyz")}}},
		{info(t, "time", "value", "time", "time", "", "", nil), []statebackend.Row{{Key: []byte("123456789012"), Value: []byte("1234567890123456")}}},
		{info(t, "empty key", "value", "string", "struct{}", "", "", nil), []statebackend.Row{{Key: []byte{}, Value: []byte{}}}},
		{info(t, "timers", "timers", "string", "", "int64", "string", nil), []statebackend.Row{{Key: []byte("k"), Namespace: []byte{}, MapKey: le(5), Value: []byte{}}}},
		{info(t, "no value schema", "value", "bool", "", "", "", nil), []statebackend.Row{{Key: []byte{1}, Value: []byte("anything")}}},
		{info(t, "ttl", "value", "string", "int8", "", "", ttl), []statebackend.Row{{Key: []byte("k"), At: -7, Value: []byte{1}}, {Key: []byte("l"), At: 1 << 60, Value: []byte{2}}}},
		{info(t, "long", "value", "string", "string", "", "", nil), []statebackend.Row{{Key: []byte(big), Value: []byte(big + big)}, {Key: []byte("k"), Value: []byte(big)}}},
		{info(t, "wide", "value", "[70000]uint8", "[80000]uint8", "", "", nil), []statebackend.Row{{Key: make([]byte, 70000), Value: make([]byte, 80000)}}},
		{info(t, "lists", "list", "string", "string", "", "", nil), []statebackend.Row{
			{Key: []byte{}, Value: []byte("0")},
			{Key: []byte{}, Value: []byte(big)},
			{Key: []byte{}, Value: []byte("2")},
			{Key: []byte("a"), Value: []byte("3")},
			{Key: []byte("a"), Value: []byte{}},
			{Key: []byte("b"), Value: []byte("4")},
		}},
		{info(t, "maps", "map", "int64", "string", "int16", "bool", ttl), []statebackend.Row{
			{Key: le(1), Namespace: []byte{0}, MapKey: []byte("ab"), Value: []byte("0")},
			{Key: le(1), Namespace: []byte{1}, MapKey: []byte("ab"), At: 4, Value: []byte("1")},
			{Key: le(1), Namespace: []byte{1}, MapKey: []byte("cd"), At: 5, Value: []byte("2")},
			{Key: le(2), Namespace: []byte{1}, MapKey: []byte("cd"), At: 6, Value: []byte("3")},
		}},
	} {
		t.Run(c.info.Name, func(t *testing.T) {
			for i := range c.rows {
				c.rows[i].Hash = keyed(t, c.info, 1, c.rows[i].Key).Hash
			}
			want, _ := dumpRows(each(c.rows))
			for _, inline := range []int{-1, 10 << 20} {
				fs, w := folder(t)
				w.InlineBytes = inline
				p, err := w.Write(t.Context(), op(1), 0, 0, 0, &State{Tables: []statebackend.FrozenTable{table(c.info, c.rows...)}})
				if err != nil {
					t.Fatal(err)
				}
				m := one("/s", p, 1)
				r, _, err := m.Read(fs, "u")
				if err != nil {
					t.Fatal(err)
				}
				back, ok := r.Table(c.info.Name)
				if !ok || !sameTable(&back.TableInfo, &c.info) {
					t.Errorf("got table %+v, %v", back.TableInfo, ok)
				}
				for range 2 {
					if got, err := dumpRows(back.Rows); err != nil || got != want {
						t.Errorf("%v\ngot  %.3000s\nwant %.3000s", err, got, want)
					}
				}
				if err := m.Verify(fs); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

func TestElementsOfAListShareTheirKey(t *testing.T) {
	_, w := folder(t)
	i := info(t, "lists", "list", "string", "int8", "", "", nil)
	var rows []statebackend.Row
	key := bytes.Repeat([]byte("k"), 1000)
	for range 100 {
		rows = append(rows, statebackend.Row{Key: key, Value: []byte{1}})
	}
	p, err := w.Write(t.Context(), op(1), 0, 0, 0, &State{Tables: []statebackend.FrozenTable{table(i, rows...)}})
	if err != nil || p.Bytes() > 1000+100*2+100 {
		t.Errorf("%d bytes, %v", p.Bytes(), err)
	}
}

func TestWritingAllocatesNothingPerRow(t *testing.T) {
	plain := info(t, "t", "map", "string", "string", "int64", "int64", nil)
	r := statebackend.Row{Key: []byte("some key"), Namespace: le(1), MapKey: le(2), Value: []byte("some value")}
	write := func(n int) float64 {
		rows := iter.Seq2[*statebackend.Row, error](func(yield func(*statebackend.Row, error) bool) {
			for range n {
				if !yield(&r, nil) {
					return
				}
			}
		})
		return testing.AllocsPerRun(3, func() {
			w := &Writer{FS: discard{}, Folder: "x"}
			if _, err := w.Write(t.Context(), op(1), 0, 0, 0, &State{Tables: []statebackend.FrozenTable{{TableInfo: plain, Rows: rows}}}); err != nil {
				t.Fatal(err)
			}
		})
	}
	if few, many := write(50_000), write(150_000); many > few+10 {
		t.Errorf("50000 rows: %v allocations, 150000 rows: %v", few, many)
	}
}

func TestFilesOfAPartLieInItsFolder(t *testing.T) {
	fs, w := folder(t)
	p, err := w.Write(t.Context(), op(1), 3, 0, 0, &State{Lists: []List{{Name: "l", Items: items("i", 1)}}})
	if err != nil {
		t.Fatal(err)
	}
	own, _ := p.Files("/s")
	if path.Base(own[0]) != names(t, fs, "/s")[0] {
		t.Errorf("%q", own)
	}
	for _, c := range []struct{ from, to, path, want string }{
		{"/s", "/t", "../s/" + path.Base(own[0]), own[0]},
		{"/a/s", "/a/t", "../s/" + path.Base(own[0]), "/a" + own[0]},
		{"/a/s", "/b/c/t", "../../../a/s/" + path.Base(own[0]), "/a" + own[0]},
		{"s", "t", "../s/" + path.Base(own[0]), own[0][1:]},
		{"../x/s", "../x/t", "../s/" + path.Base(own[0]), "../x" + own[0]},
	} {
		again, err := p.Reuse(c.from, c.to)
		if err != nil {
			t.Fatal(err)
		}
		own, earlier := again.Files(c.to)
		if len(own) > 0 || !slices.Equal(earlier, []string{c.want}) || again.chunks[0].path != c.path {
			t.Errorf("%q seen from %q: %q, %q, %q, want %q", c.from, c.to, again.chunks[0].path, own, earlier, c.want)
		}
		if back, err := again.Reuse(c.to, c.from); err != nil || back.chunks[0].path != p.chunks[0].path {
			t.Errorf("back in its folder: %q, %v", back.chunks[0].path, err)
		}
	}
	for _, c := range [][2]string{{"/s", "t"}, {"s", "/t"}, {"s", "../t"}} {
		if again, err := p.Reuse(c[0], c[1]); err == nil {
			t.Errorf("%q seen from %q: %q", c[0], c[1], again.chunks[0].path)
		}
	}
}
