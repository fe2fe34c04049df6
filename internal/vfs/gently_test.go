package vfs_test

import (
	"errors"
	"io/fs"
	"path"
	"path/filepath"
	"testing"

	"github.com/flott-dev/flott/internal/vfs"
)

// onDisk is a Faulty over the machine's own file system that says so.
type onDisk struct{ *vfs.Faulty }

func (onDisk) OnDisk(string) bool { return true }

func TestLargeFilesOnDisksAreRemovedPieceByPiece(t *testing.T) {
	for _, c := range []struct {
		name   string
		disk   bool
		size   int64
		pieces int
	}{
		{"small", true, 1, 0},
		{"large", true, 9 << 20, 2},
		{"large elsewhere", false, 9 << 20, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := vfs.NewFaulty(vfs.OS{})
			var s vfs.FS = f
			if c.disk {
				s = onDisk{f}
			}
			name := path.Join(filepath.ToSlash(t.TempDir()), "f")
			if err := write(t, f, name, vfs.Exclusive, ""); err != nil {
				t.Fatal(err)
			}
			if err := f.Truncate(name, c.size); err != nil {
				t.Fatal(err)
			}
			before := f.Calls(vfs.OpTruncate)
			if err := vfs.RemoveGently(s, name); err != nil {
				t.Fatal(err)
			}
			if n := f.Calls(vfs.OpTruncate) - before; n != c.pieces {
				t.Errorf("it was shortened %d times, want %d", n, c.pieces)
			}
			if _, err := s.Stat(name); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("the file is still there: %v", err)
			}
			if err := vfs.RemoveGently(s, name); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("removing it again: %v, want %v", err, fs.ErrNotExist)
			}
		})
	}
}
