package checkpoint

import (
	"errors"
	"io/fs"
	"runtime"
	"testing"
	"time"

	"github.com/flott-dev/flott/internal/vfs"
	"github.com/flott-dev/flott/statebackend"
)

// long takes a snapshot with a chunk that is worth reading ahead.
func long(t *testing.T) (*vfs.Faulty, *Manifest) {
	t.Helper()
	faulty := vfs.NewFaulty(vfs.NewMem())
	if err := faulty.MkdirAll("/s"); err != nil {
		t.Fatal(err)
	}
	i := info(t, "t", "value", "int64", "string", "", "", nil)
	var rows []statebackend.Row
	for k := range uint64(3 * aheadLeast / 1000) {
		r := keyed(t, i, 16, le(k))
		r.Value = make([]byte, 1000)
		rows = append(rows, r)
	}
	p, err := (&Writer{FS: faulty, Folder: "/s"}).Write(t.Context(), op(1), 0, 0, 15, &State{Tables: []statebackend.FrozenTable{table(i, rows...)}})
	if err != nil {
		t.Fatal(err)
	}
	return faulty, one("/s", p, 16)
}

func TestReadingAheadGivesAllRows(t *testing.T) {
	f, m := long(t)
	r, _, err := m.Read(f, "u")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	frozen, _ := r.Table("t")
	for _, err := range frozen.Rows {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	if n != 3*aheadLeast/1000 {
		t.Errorf("%d rows", n)
	}
	if err := m.Verify(f); err != nil {
		t.Error(err)
	}
}

func TestReadingAheadShowsTheErrorOfTheDisk(t *testing.T) {
	for nth := 3; nth < 12; nth++ {
		f, m := long(t)
		r, _, err := m.Read(f, "u")
		if err != nil {
			t.Fatal(err)
		}
		f.Fail(vfs.OpRead, nth, fs.ErrInvalid)
		frozen, _ := r.Table("t")
		if _, err := dumpRows(frozen.Rows); !errors.Is(err, fs.ErrInvalid) {
			t.Errorf("read %d: got %v", nth, err)
		}
	}
}

func TestReadingAheadEndsWithItsConsumer(t *testing.T) {
	f, m := long(t)
	r, _, err := m.Read(f, "u")
	if err != nil {
		t.Fatal(err)
	}
	before := runtime.NumGoroutine()
	frozen, _ := r.Table("t")
	for range 20 {
		for range frozen.Rows {
			break
		}
	}
	for deadline := time.Now().Add(time.Minute); runtime.NumGoroutine() > before; { // only a failure takes so long
		if runtime.Gosched(); time.Now().After(deadline) {
			t.Fatalf("%d goroutines, before %d", runtime.NumGoroutine(), before)
		}
	}
}
