package main

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/flott-dev/flott/checkpoint"
	"github.com/flott-dev/flott/internal/vfs"
	"github.com/flott-dev/flott/serde"
	"github.com/flott-dev/flott/statebackend"
	"github.com/flott-dev/flott/statebackend/pebble"
)

// TestDumpReadsTheFilesOfTheDiskBackend takes a checkpoint whose state lies in files of that backend.
func TestDumpReadsTheFilesOfTheDiskBackend(t *testing.T) {
	dir := filepath.ToSlash(t.TempDir())
	draft := checkpoint.NewDraft("job")
	counts := map[string]int64{}
	for i := range int64(500) {
		counts[fmt.Sprint("key", i)] = i
	}
	if err := draft.Operator("counts").SetValues("count", maps.All(counts)); err != nil {
		t.Fatal(err)
	}
	if err := draft.Write(t.Context(), nil, dir+"/savepoint"); err != nil {
		t.Fatal(err)
	}
	inFiles(t, dir+"/savepoint", dir+"/chk-5")

	lines := strings.Split(strings.TrimSpace(must(t, "savepoint", "dump", dir+"/chk-5", "-operator", "counts")), "\n")
	var want []string
	for key, n := range counts {
		want = append(want, fmt.Sprintf(`{"state":"count","key":%q,"value":%d}`, key, n))
	}
	slices.Sort(lines)
	slices.Sort(want)
	if !slices.Equal(lines, want) {
		t.Errorf("%d lines, the first %q", len(lines), lines[0])
	}
	must(t, "savepoint", "verify", dir+"/chk-5")
	if text := must(t, "savepoint", "inspect", dir+"/chk-5"); !strings.Contains(text, "in files + 0 changes") || !strings.Contains(text, "FORMAT") {
		t.Error(text)
	}
}

// inFiles brings a savepoint of one operator into a store on disk, and takes a checkpoint of it.
func inFiles(t *testing.T, from, to string) {
	t.Helper()
	m, err := checkpoint.Load(nil, from)
	if err != nil {
		t.Fatal(err)
	}
	o := m.Operators[0]
	restored, _, err := m.Restore(nil, o.ID, 0, 1, o.MaxParallelism)
	if err != nil {
		t.Fatal(err)
	}
	key, err := serde.KeyOf[string]()
	if err != nil {
		t.Fatal(err)
	}
	store, err := pebble.Backend{Folder: t.TempDir()}.Open(statebackend.Options{
		Key: key, Seed: m.HashSeed, MaxParallelism: o.MaxParallelism, LastGroup: o.MaxParallelism - 1, Restored: restored,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	frozen, err := store.Freeze(statebackend.Freezing{Anchor: true})
	if err != nil {
		t.Fatal(err)
	}
	defer frozen.Release()
	files, err := frozen.(statebackend.FrozenFiles).Files()
	if err != nil || len(files.Files) == 0 {
		t.Fatal("no files", err)
	}
	if err := checkpoint.BeginSnapshot(vfs.OS{}, to); err != nil {
		t.Fatal(err)
	}
	p, err := (&checkpoint.Writer{FS: vfs.OS{}, Folder: to}).Write(t.Context(), o.ID, 0, 0, o.MaxParallelism-1, &checkpoint.State{
		Tables: frozen.Tables(), Files: []*statebackend.FileSet{files},
	})
	if err != nil {
		t.Fatal(err)
	}
	o.Parts = []*checkpoint.Part{p}
	storage, err := checkpoint.OpenStorage(vfs.OS{}, filepath.ToSlash(filepath.Dir(to)))
	if err != nil {
		t.Fatal(err)
	}
	_, err = storage.Complete(&checkpoint.Manifest{Folder: to, ID: 5, JobName: "job", HashSeed: m.HashSeed, Operators: []checkpoint.Operator{o}})
	if err != nil {
		t.Fatal(err)
	}
}
