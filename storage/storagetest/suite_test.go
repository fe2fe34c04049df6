package storagetest_test

import (
	"path/filepath"
	"testing"

	"github.com/flott-dev/flott/checkpoint"
	"github.com/flott-dev/flott/internal/vfs"
	"github.com/flott-dev/flott/storage/storagetest"
)

func TestDiskIsAStorage(t *testing.T) {
	storagetest.Run(t, func(t *testing.T) (checkpoint.FS, string) {
		return vfs.OS{}, filepath.ToSlash(t.TempDir())
	}, func(*testing.T) checkpoint.FS { return vfs.OS{} })
}

func TestMemoryIsAStorage(t *testing.T) {
	storagetest.Run(t, func(t *testing.T) (checkpoint.FS, string) {
		f := vfs.NewMem()
		if err := f.MkdirAll("/storage"); err != nil {
			t.Fatal(err)
		}
		return f, "/storage"
	}, nil)
}
