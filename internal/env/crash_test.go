package env

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/flott-dev/flott/internal/vfs"
)

// A machine that loses everything that was not synced, at any call to its disk, loses no result and gives none twice.
func TestCrashAtEveryCallToTheDiskLosesNothing(t *testing.T) {
	const limit = 90
	run := func(disk vfs.FS, v *vault) error {
		e := kept(2)
		e.Settings.Checkpoints.Recovery, e.Settings.Checkpoints.FS = "/recovery", disk
		tallyTo(t, e, limit, neverFail, v)
		_, err := e.Simulate(t.Context(), "crash", 1)
		return err
	}
	crashes := 0
	for last := 0; ; last++ {
		mem, v := vfs.NewMem(), &vault{committed: map[[2]int64][]int64{}}
		err := run(vfs.NewMortal(mem, last), v)
		if err != nil && !errors.Is(err, vfs.ErrDead) {
			t.Fatalf("dead after %d calls: %v", last, err)
		}
		mem.Crash()
		if !slices.Equal(v.all(), totals(limit)) || err != nil {
			crashes++
			if err := run(vfs.NewMortal(mem, -1), v); err != nil {
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
		disk := vfs.NewFaulty(vfs.NewMem())
		p := growKept(t, e, seed)
		c := &e.Settings.Checkpoints
		c.Dir, c.FS, c.TolerableFailures = "/checkpoints", disk, 1<<30
		disk.FailRandomly(rand.New(rand.NewPCG(seed, 3)), 12, 10, vfs.ErrNoSpace) // a job without a folder does not start
		if _, err := e.Simulate(t.Context(), "random", seed); err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, p)
		}
		p.checkKept(t, fmt.Sprint("faulty storage, seed ", seed))
	}
}
