package env

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flott-dev/flott/checkpoint"
)

// impatient takes no time to wait for a lock.
func impatient(context.Context, time.Duration) error { return nil }

// Who waits for a lock can be called off.
func TestWaitForALockEndsWithTheContext(t *testing.T) {
	e, name := kept(1), filepath.Join(t.TempDir(), "lock")
	unlock, err := e.lock(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := e.lock(ctx, name); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	waited := time.Duration(0)
	e.Settings.pause = func(_ context.Context, d time.Duration) error {
		waited += d
		return nil
	}
	if _, err := e.lock(t.Context(), name); err == nil || waited != 2*time.Second || !strings.Contains(err.Error(), "has not ended for 2s") {
		t.Errorf("after %v: %v", waited, err)
	}
	unlock()
	if unlock, err = e.lock(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	unlock()
}

// The recovery folder is for one live process; who finished or was cancelled begins afresh, who failed goes on.
func TestRecoveryBeginsWhereItShould(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir, seen := t.TempDir(), 0
		run := func(fail int64, cancel bool) (read int) {
			seen = 0
			e := kept(1)
			e.Settings.Checkpoints.Recovery = dir
			tally(t, e, 100, func(x int64) error {
				if seen++; x == fail {
					return errBoom
				}
				return nil
			})
			x := start(t, e)
			second := kept(1)
			second.Settings.Checkpoints.Recovery, second.Settings.pause = dir, impatient
			tally(t, second, 1, neverFail)
			if _, err := second.Start(t.Context(), "job"); err == nil || !strings.Contains(err.Error(), fmt.Sprint(os.Getpid())) {
				t.Errorf("a second process in the folder: %v", err)
			}
			if cancel {
				time.Sleep(50 * time.Millisecond)
				x.Cancel()
			}
			<-x.Done()
			if (fail >= 0 || cancel) == (x.Err() == nil) {
				t.Errorf("ended with %v", x.Err())
			}
			return seen
		}
		run(60, false)
		if n := run(-1, false); n > 60 || n < 40 {
			t.Errorf("after a failure %d elements were read", n)
		}
		run(-1, true)
		if n := run(-1, false); n != 100 {
			t.Errorf("after a cancellation %d elements were read", n)
		}
		if n := run(-1, false); n != 100 {
			t.Errorf("after a good end %d elements were read", n)
		}
	})
}

// A damaged checkpoint is no reason to forget everything: the user decides.
func TestRecoveryFromADamagedCheckpointIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		try := func() (*Execution, error) {
			e := kept(1)
			e.Settings.Checkpoints.Recovery = dir
			tally(t, e, 100, func(x int64) error {
				if x == 60 {
					return errBoom
				}
				return nil
			})
			return e.Start(t.Context(), "job")
		}
		x, err := try()
		if err != nil {
			t.Fatal(err)
		}
		<-x.Done()
		manifests, _ := filepath.Glob(filepath.Join(dir, "*", "checkpoints", "chk-*", checkpoint.ManifestName))
		if len(manifests) != 1 {
			t.Fatalf("left %v", manifests)
		}
		if err := os.Truncate(manifests[0], 20); err != nil {
			t.Fatal(err)
		}
		var damaged *checkpoint.DamagedError
		if _, err := try(); !errors.As(err, &damaged) || errors.Is(err, fs.ErrNotExist) {
			t.Errorf("got %v", err)
		}
	})
}

// A savepoint that is newer than all checkpoints is what a killed program goes on from, as sinks have committed with it
// (trap B031); when it is over, the program begins afresh.
func TestRecoveryGoesOnFromTheLastSavepoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir, savepoints := t.TempDir(), t.TempDir()
		v := &vault{committed: map[[2]int64][]int64{}}
		begin := func(fail int64) (*Execution, error) {
			e := kept(1)
			e.Settings.Checkpoints.Recovery, e.Settings.Checkpoints.Interval = dir, 50*time.Millisecond
			tallyTo(t, e, 200, func(x int64) error {
				if x == fail {
					return errBoom
				}
				return nil
			}, v)
			return e.Start(t.Context(), "job")
		}
		x, err := begin(95)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(80 * time.Millisecond)
		at, err := x.TakeSavepoint(t.Context(), savepoints, false, false)
		if err != nil {
			t.Fatal(err)
		}
		<-x.Done()
		if err := os.Rename(at, at+" moved"); err != nil {
			t.Fatal(err)
		}
		if _, err := begin(-1); err == nil || !strings.Contains(err.Error(), at) {
			t.Errorf("without the savepoint: %v", err)
		}
		if err := os.Rename(at+" moved", at); err != nil {
			t.Fatal(err)
		}
		for i := range 2 {
			x, err = begin(-1)
			if err != nil {
				t.Fatal(err)
			}
			wait(t, x)
			if r := x.Checkpoints().LatestRestored; (r != nil) != (i == 0) || r != nil && r.Location != at {
				t.Errorf("run %d restored %+v", i, r)
			}
			if got := v.all(); i == 0 && !slices.Equal(got, totals(200)) {
				t.Errorf("%d totals, want 200, or others", len(got))
			}
			v.committed = map[[2]int64][]int64{}
		}
	})
}

// A program that goes on from its last checkpoint although a savepoint is newer has the state of that checkpoint, too.
func TestRecoveryPassesOverSavepoints(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		v := &vault{committed: map[[2]int64][]int64{}}
		begin := func(fail int64) *Execution {
			e := kept(1)
			c := &e.Settings.Checkpoints
			c.Recovery, c.Interval, c.PreferCheckpoint = dir, 50*time.Millisecond, true
			tallyTo(t, e, 200, func(x int64) error {
				if x == fail {
					return errBoom
				}
				return nil
			}, v)
			return start(t, e)
		}
		x := begin(95)
		time.Sleep(80 * time.Millisecond)
		if _, err := x.TakeSavepoint(t.Context(), t.TempDir(), false, false); err != nil {
			t.Fatal(err)
		}
		<-x.Done()
		last := x.Checkpoints().LatestSavepoint.ID - 1
		x = begin(-1)
		wait(t, x)
		if r := x.Checkpoints().LatestRestored; r == nil || r.ID != last {
			t.Errorf("restored %+v, want checkpoint %d", r, last)
		}
		got := v.all() // some twice, as the sink had committed with the savepoint
		slices.Sort(got)
		want := totals(200)
		slices.Sort(want)
		if got = slices.Compact(got); !slices.Equal(got, slices.Compact(want)) {
			t.Errorf("%d totals, want %d, or others", len(got), len(want))
		}
	})
}

// A job tells from the start what it goes on from.
func TestHistoryHasTheRestoreFromTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // the first run has come to a checkpoint when it fails, however slow the disk is
		dir := t.TempDir()
		for i := range 5 {
			e := kept(1)
			e.Settings.Checkpoints.Recovery = dir
			tally(t, e, 40, func(x int64) error {
				if x == 25 {
					return errBoom
				}
				return nil
			})
			x := start(t, e)
			if r := x.Checkpoints().LatestRestored; (r == nil) != (i == 0) {
				t.Errorf("start %d: restored %+v", i, r)
			}
			<-x.Done()
		}
	})
}
