//go:build servers && unix

package servers_test

import (
	"errors"
	"io/fs"
	"path"
	"testing"

	"github.com/flott-dev/flott/checkpoint"
	"github.com/flott-dev/flott/internal/vfs"
)

// exclusiveAndLarge lets two writers of large files meet, which stores take in parts.
func exclusiveAndLarge(t *testing.T, o checkpoint.Opener, where string) {
	t.Helper()
	f, dir := opened(t, o, where)
	other, _ := opened(t, o, where)
	name := path.Join(dir, "large")
	text := make([]byte, 12<<20)
	var writers []vfs.Writer
	for i, f := range []checkpoint.FS{f, other} {
		w, err := f.Create(name, vfs.Exclusive)
		if err != nil {
			t.Fatal(err)
		}
		text[0], text[len(text)-1] = byte('a'+i), byte('a'+i)
		if _, err := w.Write(text); err != nil {
			t.Fatal(err)
		}
		writers = append(writers, w)
	}
	if err := writers[1].Close(); err != nil {
		t.Fatal(err)
	}
	if err := writers[0].Close(); !errors.Is(err, fs.ErrExist) {
		t.Errorf("the second to close: %v", err)
	}
	if err := f.Remove(name); err != nil {
		t.Errorf("the second to close cleans up: %v", err)
	}
	if got, err := vfs.ReadFile(f, name); err != nil || len(got) != len(text) || got[0] != 'b' || got[len(got)-1] != 'b' {
		t.Errorf("read %d bytes, %v", len(got), err)
	}
}

// wrongPlaces opens checkpoints in an empty folder and in a bucket that does not exist.
func wrongPlaces(t *testing.T, o checkpoint.Opener, empty, nowhere string) {
	t.Helper()
	f, dir := opened(t, o, empty)
	if _, err := checkpoint.Load(f, dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("load from an empty folder: %v", err)
	}
	f, dir = opened(t, o, nowhere)
	if _, err := checkpoint.OpenStorage(f, dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("open a bucket that does not exist: %v", err)
	}
	if err := vfs.WriteFile(f, path.Join(dir, "file"), []byte("text")); err == nil {
		t.Error("wrote into a bucket that does not exist")
	}
}

// refused tries what the credentials do not allow.
func refused(t *testing.T, o checkpoint.Opener, where string) {
	t.Helper()
	f, dir := opened(t, o, where)
	if _, err := f.ReadDir(dir); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("list: %v", err)
	}
	if err := vfs.WriteFile(f, path.Join(dir, "file"), []byte("text")); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("write: %v", err)
	}
}
