package checkpoint

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"testing"

	"github.com/flott-dev/flott/internal/vfs"
	"github.com/flott-dev/flott/statebackend"
)

// filed is a job of two subtasks whose table lies in files of a backend, with changes upon them.
type filed struct {
	t      *testing.T
	fs     vfs.FS
	counts statebackend.TableInfo
	files  [2]map[string][]byte
}

// row is a row of subtask i, of 2, in key group 2*i or 2*i+1.
func (f *filed) row(key, value uint64) statebackend.Row {
	r := keyed(f.t, f.counts, 4, le(key))
	r.Value = le(value)
	return r
}

// write takes a checkpoint with changes of key 1000+id upon the files.
func (f *filed) write(folder string, earlier *Manifest) *Manifest {
	f.t.Helper()
	if err := f.fs.MkdirAll(folder); err != nil {
		f.t.Fatal(err)
	}
	m := &Manifest{Folder: folder, HashSeed: seed, Operators: []Operator{{ID: op(1), UID: "u", Parallelism: 2, MaxParallelism: 4}}}
	for i := range 2 {
		state := &State{Files: []*statebackend.FileSet{linesOf(f.files[i])}}
		var rows []statebackend.Row
		for k := range uint64(10) {
			if r := f.row(k, 100+k); r.Group/2 == i {
				rows = append(rows, r)
			}
		}
		rows[0].Deleted, rows[0].Value = true, nil
		state.Tables = []statebackend.FrozenTable{changes(f.counts, rows...)}
		if earlier != nil {
			state.Earlier, state.EarlierFolder = earlier.Operators[0].Parts[i], earlier.Folder
		}
		p, err := (&Writer{FS: f.fs, Folder: folder}).Write(f.t.Context(), op(1), i, 2*i, 2*i+1, state)
		if err != nil {
			f.t.Fatal(err)
		}
		if p, err = DecodePart(p.Encode()); err != nil {
			f.t.Fatal(err)
		}
		m.Operators[0].Parts = append(m.Operators[0].Parts, p)
	}
	return m
}

func newFiled(t *testing.T) *filed {
	f := &filed{t: t, fs: vfs.NewMem(), counts: info(t, "counts", "value", "int64", "int64", "", "", nil)}
	f.files = [2]map[string][]byte{{}, {}}
	for k := range uint64(40) {
		r := f.row(k, k)
		name := fmt.Sprintf("%d.lines", k%3)
		f.files[r.Group/2][name] = append(f.files[r.Group/2][name], line(&f.counts, &r)...)
	}
	return f
}

func TestFilesOfABackendAreWrittenOnce(t *testing.T) {
	f := newFiled(t)
	first := f.write("/c/chk-1", nil)
	delete(f.files[0], "0.lines")
	f.files[0]["9.lines"] = bytes.Repeat([]byte("x"), 3*pieceBytes+5)
	f.files[0]["1.lines"] = append(f.files[0]["1.lines"], "\n"...) // another file of the same name
	second := f.write("/c/chk-2", first)
	own, earlier := second.Operators[0].Parts[0].Files(second.Folder)
	if len(own) != 2 || len(earlier) != 1 || !strings.HasPrefix(earlier[0], "/c/chk-1/") {
		t.Errorf("files %v and %v", own, earlier)
	}
	p := second.Operators[0].Parts[1]
	if own, earlier := p.Files(second.Folder); len(own) != 0 || len(earlier) != 3 {
		t.Errorf("files %v and %v", own, earlier)
	}
	n, whole, changed := p.Layers()
	if n != 2 || whole+p.WrittenBytes() != p.Bytes() || changed == 0 {
		t.Errorf("%d layers, %d + %d bytes of %d, %d written", n, whole, changed, p.Bytes(), p.WrittenBytes())
	}
	if all := second.Operators[0].Files(); len(all) != 1 || all[0].Format != linesFormat || all[0].Files != 6 || !second.Operators[0].Tables()[0].InFiles {
		t.Errorf("got %+v", all)
	}
	if err := second.Verify(f.fs); err != nil {
		t.Error(err)
	}
}

// TestFilesOfABackendAreRestoredAsFiles looks at what a store gets that has some of the key groups of both writers.
func TestFilesOfABackendAreRestoredAsFiles(t *testing.T) {
	f := newFiled(t)
	m := f.write("/c/chk-1", nil)
	restored, _, err := m.Restore(f.fs, op(1), 0, 1, 4)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := restored.Table("counts"); ok || len(restored.Tables()) != 0 {
		t.Error("a table in files is given as rows")
	}
	sets := restored.(statebackend.RestoredFiles).Files()
	if len(sets) != 2 || sets[0].FirstGroup != 0 || sets[0].LastGroup != 1 || sets[1].FirstGroup != 2 || sets[1].LastGroup != 3 {
		t.Fatalf("got %+v", sets)
	}
	deleted := 0
	for i := range sets {
		if sets[i].Format != linesFormat || string(sets[i].Meta) != "meta" || len(sets[i].Tables) != 1 || !sets[i].Tables[0].Changes {
			t.Errorf("got %+v", sets[i])
		}
		for r, err := range sets[i].Tables[0].Rows {
			if err != nil || r.Group/2 != i || r.Hash != keyed(t, f.counts, 4, r.Key).Hash {
				t.Errorf("got %+v, %v", r, err)
			}
			if r.Deleted {
				deleted++
			}
		}
		for _, file := range sets[i].Files {
			r, err := file.Open()
			if err != nil {
				t.Fatal(err)
			}
			b, err := io.ReadAll(r)
			if err != nil || !bytes.Equal(b, f.files[i][file.Name]) || r.Close() != nil {
				t.Errorf("file %s: %v", file.Name, err)
			}
		}
	}
	if deleted != 2 {
		t.Errorf("%d deleted rows", deleted)
	}
	// A store with one key group of the first writer.
	restored, _, err = m.Restore(f.fs, op(1), 1, 4, 4)
	if err != nil {
		t.Fatal(err)
	}
	if sets := restored.(statebackend.RestoredFiles).Files(); len(sets) != 1 || sets[0].FirstGroup != 1 || sets[0].LastGroup != 1 {
		t.Errorf("got %+v", sets)
	}
}

// TestTablesInFilesAreReadByToolsThatKnowThem reads them past their changes.
func TestTablesInFilesAreReadByToolsThatKnowThem(t *testing.T) {
	f := newFiled(t)
	m := f.write("/c/chk-1", nil)
	restored, _, err := m.Read(f.fs, "u")
	if err != nil {
		t.Fatal(err)
	}
	counts, ok := restored.Table("counts")
	if !ok {
		t.Fatal("no table")
	}
	if _, err := dumpRows(counts.Rows); err == nil || !strings.Contains(err.Error(), `files of the format "lines/1"`) {
		t.Errorf("got %v", err)
	}
	if restored, _, err = m.Read(f.fs, "u", lines{}); err != nil {
		t.Fatal(err)
	}
	counts, _ = restored.Table("counts")
	got := map[string]string{}
	for r, err := range counts.Rows {
		if err != nil {
			t.Fatal(err)
		}
		got[string(r.Key)] = string(r.Value)
	}
	deleted := 0
	for k := range uint64(40) {
		want := k
		if k < 10 {
			want += 100
		}
		if got[string(le(k))] == "" {
			deleted++
		} else if got[string(le(k))] != string(le(want)) {
			t.Errorf("key %d: got %x", k, got[string(le(k))])
		}
	}
	if deleted != 2 || len(got) != 38 {
		t.Errorf("%d rows", len(got))
	}
}

func TestDamagedFilesOfABackendAreFound(t *testing.T) {
	f := newFiled(t)
	f.files[0]["9.lines"] = bytes.Repeat([]byte("x y z\n"), pieceBytes)
	m := f.write("/c/chk-1", nil)
	own, _ := m.Operators[0].Parts[0].Files(m.Folder)
	file := own[len(own)-1]
	good, _ := vfs.ReadFile(f.fs, file)
	for _, what := range []string{"changed", "cut", "lost"} {
		b := bytes.Clone(good)
		switch what {
		case "changed":
			b[2*pieceBytes] ^= 1
		case "cut":
			b = b[:len(b)-1]
		}
		err := vfs.WriteFile(f.fs, file, b)
		if what == "lost" {
			err = f.fs.Remove(file)
		}
		if err != nil {
			t.Fatal(err)
		}
		if damaged, ok := errors.AsType[*DamagedError](m.Verify(f.fs)); !ok || damaged.File != file {
			t.Errorf("%s: verify: %v", what, damaged)
		}
		if err := m.Probe(f.fs); (err == nil) != (what == "changed") {
			t.Errorf("%s: probe: %v", what, err)
		}
		restored, _, err := m.Restore(f.fs, op(1), 0, 1, 4)
		if err != nil {
			t.Fatal(err)
		}
		files := restored.(statebackend.RestoredFiles).Files()[0].Files
		r, err := files[len(files)-1].Open()
		if err == nil {
			_, err = io.ReadAll(r)
		}
		if _, ok := errors.AsType[*DamagedError](err); !ok {
			t.Errorf("%s: read: %v", what, err)
		}
	}
}

func TestFailedFilesOfABackendLeaveNothing(t *testing.T) {
	faulty := vfs.NewFaulty(vfs.NewMem())
	if err := faulty.MkdirAll("/s"); err != nil {
		t.Fatal(err)
	}
	big := bytes.Repeat([]byte("z"), 2*closingBytes)
	write := func(set *statebackend.FileSet) error {
		_, err := (&Writer{FS: faulty, Folder: "/s"}).Write(t.Context(), op(1), 0, 0, 3, &State{Files: []*statebackend.FileSet{set}})
		return err
	}
	for _, o := range []vfs.Op{vfs.OpCreate, vfs.OpWrite, vfs.OpSync, vfs.OpClose, vfs.OpSyncDir} {
		faulty.Fail(o, 1, fs.ErrInvalid)
		if err := write(linesOf(map[string][]byte{"a": big, "b": big})); !errors.Is(err, fs.ErrInvalid) {
			t.Errorf("%s: got %v", o, err)
		}
		if left, _ := faulty.ReadDir("/s"); len(left) > 0 {
			t.Errorf("%s left %v", o, left)
		}
	}
	short := linesOf(map[string][]byte{"a": big})
	short.Files[0].Size++
	if err := write(short); err == nil || !strings.Contains(err.Error(), "as it was said to have") {
		t.Errorf("got %v", err)
	}
}
