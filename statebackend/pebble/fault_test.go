package pebble

import (
	"errors"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/flott-dev/flott/statebackend"
)

// fullDisk is a disk with room for a number of bytes.
type fullDisk struct {
	vfs.FS
	left atomic.Int64
}

type fullFile struct {
	vfs.File
	disk *fullDisk
}

func (d *fullDisk) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := d.FS.Create(name, c)
	return fullFile{f, d}, err
}

func (f fullFile) Write(b []byte) (int, error) {
	if f.disk.left.Add(-int64(len(b))) < 0 {
		return 0, syscall.ENOSPC
	}
	return f.File.Write(b)
}

// fill adds keys until the store fails, and gives the error.
func (c *counts) fill(runs int) (err error) {
	c.tb.Helper()
	for i := range int64(runs) {
		if err := c.try(1, span(i*500, i*500+500)...); err != nil {
			return err
		}
	}
	return nil
}

// TestFullDiskEndsTheTaskAndNothingElse runs out of room at many moments.
func TestFullDiskEndsTheTaskAndNothingElse(t *testing.T) {
	for _, room := range []int64{10, 3000, 1 << 20, 3 << 20} {
		folder := t.TempDir()
		disk := &fullDisk{FS: vfs.Default}
		disk.left.Store(room)
		b := Backend{Folder: folder, CacheBytes: 1, disk: disk}
		c, err := tryCounts(t, b, statebackend.Options{})
		if err == nil {
			err = c.fill(3000)
			if _, ferr := c.store.Freeze(statebackend.Freezing{Anchor: true}); ferr == nil {
				t.Errorf("%d bytes: a store that failed was frozen", room)
			}
			if cerr := c.store.Close(); cerr != nil {
				t.Errorf("%d bytes: close: %v", room, cerr)
			}
		}
		if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), `operator "counts"`) {
			t.Errorf("%d bytes: got %v", room, err)
		}
		if left, err := os.ReadDir(folder); err != nil || len(left) > 0 {
			t.Errorf("%d bytes: %d folders are left, %v", room, len(left), err)
		}
	}
}

// TestFullDiskFailsTheSnapshot has no room left when files are gathered.
func TestFullDiskFailsTheSnapshot(t *testing.T) {
	disk := &fullDisk{FS: vfs.Default}
	disk.left.Store(1 << 30)
	c := openCounts(t, Backend{Folder: t.TempDir(), CacheBytes: 1, disk: disk}, statebackend.Options{})
	fatal(t, c.fill(50))
	f := c.freeze(statebackend.Freezing{Anchor: true})
	disk.left.Store(0)
	if _, err := f.Files(); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("got %v", err)
	}
	f.Release()
	fatal(t, c.store.Close())
}

// TestLostFolderEndsTheTask removes what is on the disk under a store that is in use.
func TestLostFolderEndsTheTask(t *testing.T) {
	c := openCounts(t, Backend{Folder: t.TempDir(), CacheBytes: 1}, statebackend.Options{})
	fatal(t, c.fill(50))
	fatal(t, os.RemoveAll(c.store.tree.folder))
	if err := c.fill(3000); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), `operator "counts"`) {
		t.Errorf("got %v", err)
	}
	fatal(t, c.store.Close())
}
