package checkpoint

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"path"
	"path/filepath"
	"sync"
	"testing"

	"github.com/flott-dev/flott/internal/vfs"
	"github.com/flott-dev/flott/statebackend"
)

// largeState is one with small and large chunks; it can't be written twice at a time.
func largeState(t testing.TB) *State {
	return &State{
		Tables: []statebackend.FrozenTable{counts(t, 200_000, 16, all), words(t, 20_000, 16, all)},
		Lists:  []List{{Name: "offsets", Items: [][]byte{bytes.Repeat([]byte("x"), 700_000), []byte("y")}}},
	}
}

// largeFiles are those of a backend.
func largeFiles() *State {
	return &State{Files: []*statebackend.FileSet{linesOf(map[string][]byte{
		"large": bytes.Repeat([]byte("a file of the backend "), 50_000), "small": []byte("abc"), "empty": nil,
	})}}
}

func all(int) bool { return true }

// contents are the names and bytes of all files of a folder.
func contents(t testing.TB, f vfs.FS, dir string) (text string, n int) {
	t.Helper()
	for _, name := range names(t, f, dir) {
		b, err := vfs.ReadFile(f, path.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		text += fmt.Sprintf("%s %d %x\n", name, len(b), newFileDigestOf(b))
		n += len(b)
	}
	return text, n
}

func newFileDigestOf(b []byte) digest {
	d := newFileDigest()
	d.write(b)
	return d.sum()
}

// TestDirectFilesAreThoseOfAnyFileSystem: same names, same bytes; several parts are written at a time, and after the end of the
// direct ones, too.
func TestDirectFilesAreThoseOfAnyFileSystem(t *testing.T) {
	var direct DirectFiles
	write := func(folder string, d *DirectFiles) {
		w := &Writer{FS: vfs.OS{}, Folder: folder, ChunkBytes: 1 << 20, InlineBytes: 100, Direct: d}
		for i, state := range []*State{largeState(t), largeFiles()} {
			if _, err := w.Write(t.Context(), op(i), 0, 0, 15, state); err != nil {
				t.Error(err)
			}
		}
	}
	plain := filepath.ToSlash(t.TempDir())
	write(plain, nil)
	want, n := contents(t, vfs.OS{}, plain)
	if n < 3<<20 {
		t.Fatalf("%d bytes were written, too few to be a test", n)
	}
	same := func(folder string) {
		t.Helper()
		if got, _ := contents(t, vfs.OS{}, folder); got != want {
			t.Errorf("directly written:\n%s\nwant:\n%s", got, want)
		}
	}
	for range 2 {
		var group sync.WaitGroup
		var folders []string
		for range 3 {
			folder := filepath.ToSlash(t.TempDir())
			folders = append(folders, folder)
			group.Go(func() { write(folder, &direct) })
		}
		group.Wait()
		for _, folder := range folders {
			same(folder)
		}
	}
	if w, err := vfs.NewDirectWriter(); err != nil {
		t.Logf("NOT TRIED with direct I/O, which this machine does not give: %v", err)
	} else if err := w.Close(); err != nil || len(direct.idle) == 0 {
		t.Errorf("nothing was written directly; %v", err)
	}
	direct.Close()
	late := filepath.ToSlash(t.TempDir())
	write(late, &direct)
	same(late)
}

// TestCancelledDirectFilesLeaveNothing: rows end with an error, or the context does, in the middle.
func TestCancelledDirectFilesLeaveNothing(t *testing.T) {
	var direct DirectFiles
	defer direct.Close()
	broken := errors.New("no more rows")
	for name, fail := range map[string]func(cancel func(error)) error{
		"rows":    func(func(error)) error { return broken },
		"context": func(cancel func(error)) error { cancel(broken); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			state := largeState(t)
			state.Tables[1].Rows = failingAt(state.Tables[1].Rows, 10_000, func() error { return fail(cancel) })
			folder := filepath.ToSlash(t.TempDir())
			w := &Writer{FS: vfs.OS{}, Folder: folder, ChunkBytes: 1 << 20, Direct: &direct}
			if _, err := w.Write(ctx, op(1), 0, 0, 15, state); !errors.Is(err, broken) {
				t.Errorf("the writer tells %v, want %v", err, broken)
			}
			if left := names(t, vfs.OS{}, folder); len(left) > 0 {
				t.Errorf("%v is left", left)
			}
		})
	}
}

// failingAt calls fail before the nth row.
func failingAt(rows iter.Seq2[*statebackend.Row, error], n int, fail func() error) iter.Seq2[*statebackend.Row, error] {
	return func(yield func(*statebackend.Row, error) bool) {
		for r, err := range rows {
			if n--; n == 0 {
				if e := fail(); e != nil {
					yield(nil, e)
					return
				}
			}
			if !yield(r, err) {
				return
			}
		}
	}
}
