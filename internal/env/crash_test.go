package env

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/flott-dev/flott/internal/vfs"
)

var errDead = errors.New("the process is dead")

// mortal is a disk of a process that dies with its nth call that changes something.
type mortal struct {
	vfs.FS
	mu    sync.Mutex
	calls int
	last  int        // < 0: it does not die
	rng   *rand.Rand // nil: calls do not fail at random
}

func (m *mortal) step() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.calls++
	if m.last >= 0 && m.calls > m.last {
		return errDead
	}
	if m.rng != nil && m.calls > 10 && m.rng.IntN(12) == 0 {
		return vfs.ErrNoSpace
	}
	return nil
}

func (m *mortal) Create(name string, how vfs.Mode) (vfs.Writer, error) {
	if err := m.step(); err != nil {
		return nil, err
	}
	w, err := m.FS.Create(name, how)
	if err != nil {
		return nil, err
	}
	return &mortalWriter{w, m}, nil
}

func (m *mortal) Rename(from, to string) error {
	if err := m.step(); err != nil {
		return err
	}
	return m.FS.Rename(from, to)
}

func (m *mortal) Remove(name string) error {
	if err := m.step(); err != nil {
		return err
	}
	return m.FS.Remove(name)
}

func (m *mortal) MkdirAll(name string) error {
	if err := m.step(); err != nil {
		return err
	}
	return m.FS.MkdirAll(name)
}

func (m *mortal) SyncDir(name string) error {
	if err := m.step(); err != nil {
		return err
	}
	return m.FS.SyncDir(name)
}

type mortalWriter struct {
	vfs.Writer
	of *mortal
}

func (w *mortalWriter) Write(b []byte) (int, error) {
	if err := w.of.step(); err != nil {
		return 0, err
	}
	return w.Writer.Write(b)
}

func (w *mortalWriter) Sync() error {
	if err := w.of.step(); err != nil {
		return err
	}
	return w.Writer.Sync()
}

// A machine that loses everything that was not synced, at any call to its disk, loses no result and gives none twice.
func TestCrashAtEveryCallToTheDiskLosesNothing(t *testing.T) {
	const limit = 90
	run := func(disk *mortal, v *vault) error {
		e := kept(2)
		e.Settings.Checkpoints.Recovery, e.Settings.Checkpoints.FS = "/recovery", disk
		tallyTo(t, e, limit, neverFail, v)
		_, err := e.Simulate(t.Context(), "crash", 1)
		return err
	}
	crashes := 0
	for last := 0; ; last++ {
		mem, v := vfs.NewMem(), &vault{committed: map[[2]int64][]int64{}}
		err := run(&mortal{FS: mem, last: last}, v)
		if err != nil && !errors.Is(err, errDead) {
			t.Fatalf("dead after %d calls: %v", last, err)
		}
		mem.Crash()
		if !slices.Equal(v.all(), totals(limit)) || err != nil {
			crashes++
			if err := run(&mortal{FS: mem, last: -1}, v); err != nil {
				t.Fatalf("after a crash after %d calls: %v", last, err)
			}
		}
		if got := v.all(); !slices.Equal(got, totals(limit)) || v.err != nil {
			t.Fatalf("after a crash after %d calls: %d totals, want %d, or others; %v", last, len(got), limit, v.err)
		}
		if err == nil {
			break
		}
	}
	if crashes < 20 {
		t.Errorf("the process died %d times only", crashes)
	}
}

// Storage that fails now and then costs checkpoints, never results.
func TestFaultyStorageCostsCheckpointsOnly(t *testing.T) {
	for seed := uint64(1); seed <= 10; seed++ {
		e := New()
		disk := &mortal{FS: vfs.NewMem(), last: -1, rng: rand.New(rand.NewPCG(seed, 3))}
		p := growKept(t, e, seed)
		c := &e.Settings.Checkpoints
		c.Dir, c.FS, c.TolerableFailures = "/checkpoints", disk, 1<<30
		if _, err := e.Simulate(t.Context(), "random", seed); err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, p)
		}
		p.checkKept(t, fmt.Sprint("faulty storage, seed ", seed))
	}
}
