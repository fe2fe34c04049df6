package filetest

import (
	"bytes"
	"errors"
	"path"
	"reflect"
	"slices"
	"testing"

	"github.com/flott-dev/flott/connector"
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

// GoesOn reads a source and stops after each number of steps below steps, with a snapshot, from which other readers read the
// rest: together they must read the rows of want, which are in the order of their numbers.
func GoesOn[T, S any](t testing.TB, src connector.Source[T, S], steps int, number func(T) int, want []T) {
	t.Helper()
	for stop := range steps {
		got, _ := Resumed(t, src, stop, [2]int{7, 16})
		slices.SortStableFunc(got, func(a, b T) int { return number(a) - number(b) })
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("stopped after %d steps: %d rows of %d", stop, len(got), len(want))
		}
	}
}

// Resumed reads a source by two readers, stops after so many steps, and reads the rest by three others from a snapshot of that
// moment. rooms are those of each Poll, before and after. It gives what all have read and the second Drive, which is closed.
func Resumed[T, S any](t testing.TB, src connector.Source[T, S], stop int, rooms [2]int) ([]T, *Drive[T, S]) {
	t.Helper()
	d, err := Start(src, 2, rooms[0], nil)
	if err != nil {
		t.Fatal(err)
	}
	for range stop {
		if _, err := d.Step(); err != nil {
			t.Fatal(err)
		}
	}
	state, err := d.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	rest, err := Start(src, 3, rooms[1], state)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(rest.Run(), rest.Close(), d.Close()); err != nil {
		t.Fatalf("stopped after %d steps: %v", stop, err)
	}
	return slices.Concat(slices.Concat(d.Out...), slices.Concat(rest.Out...)), rest
}

// Fuzzed reads a source of made-up bytes until it errs, which it may, for as long as is sensible. It must be closed without
// an error.
func Fuzzed[T, S any](t testing.TB, src connector.Source[T, S]) {
	t.Helper()
	d, err := Start(src, 1, 64, nil)
	if err != nil {
		t.Fatal(err)
	}
	d.Drop = true
	for steps := 0; err == nil && d.Dropped < 10_000 && steps < 200_000; steps++ {
		var on bool
		if on, err = d.Step(); !on {
			break
		}
	}
	if cerr := d.Close(); cerr != nil {
		t.Fatal(errors.Join(err, cerr))
	}
}
