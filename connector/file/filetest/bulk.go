package filetest

import (
	"bytes"
	"path"
	"slices"
	"testing"

	"github.com/flott-dev/flott/connector/file"
	"github.com/flott-dev/flott/internal/vfs"
)

// Pack is a file of rows, which are written in portions of a hundred.
func Pack[T any](t testing.TB, e file.BulkEncoding[T], rows []T) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := e.Open(&b)
	if err != nil {
		t.Fatal(err)
	}
	for part := range slices.Chunk(rows, 100) {
		if err := w.Write(part); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// Disk is a file system in memory that holds files by their names.
func Disk(t testing.TB, files map[string][]byte) *vfs.Mem {
	t.Helper()
	m := vfs.NewMem()
	for name, data := range files {
		if err := m.MkdirAll(path.Dir(name)); err != nil {
			t.Fatal(err)
		}
		if err := vfs.WriteFile(m, name, data); err != nil {
			t.Fatal(err)
		}
	}
	return m
}
