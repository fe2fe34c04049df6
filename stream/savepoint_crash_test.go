package stream_test

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flott-dev/flott/checkpoint"
	"github.com/flott-dev/flott/internal/env"
	"github.com/flott-dev/flott/internal/vfs"
	"github.com/flott-dev/flott/stream"
)

// saving is a strict world in which a process dies while it takes a savepoint.
type saving struct {
	*strictWorld
	stop bool
}

// begin starts the program in a recovery folder, on a disk.
func (s *saving) begin(disk vfs.FS, recovery string, opts ...stream.Option) *stream.Job {
	s.Helper()
	opts = append(opts, stream.WithRecovery(recovery), func(set *env.Settings) {
		set.Checkpoints.FS, set.Checkpoints.InlineBytes = disk, -1
		s.set(&set.Checkpoints)
	})
	e := stream.NewEnv(opts...).SetParallelism(2).SetRestartStrategy(stream.NoRestart()).EnableCheckpointing(20*time.Millisecond, s.opts...)
	strictJob(e, disk, s.limit, func() {})
	job, err := e.ExecuteAsync(s.Context(), "strict")
	if err != nil {
		s.Fatal(err)
	}
	return job
}

// save runs the program in a process that dies after so many calls from the savepoint on; negative: when it has been taken. One
// that stops the job may live. It gives the calls that the savepoint took.
func (s *saving) save(calls int) (at string, taken int, err error) {
	disk := vfs.NewMortal(s.mem, -1)
	job := s.begin(disk, "/recovery")
	time.Sleep(45 * time.Millisecond)
	before := disk.Calls()
	if calls >= 0 {
		disk.DieAfter(calls)
	}
	if s.stop {
		at, err = job.StopWithSavepoint(s.Context(), "/savepoints", false)
	} else {
		at, err = job.TriggerSavepoint(s.Context(), "/savepoints")
	}
	taken = disk.Calls() - before
	if !s.stop {
		disk.DieAfter(0)
	}
	if _, werr := job.Wait(); werr != nil && !errors.Is(werr, vfs.ErrDead) || werr == nil && !s.stop {
		s.Fatalf("dead after %d calls of a savepoint: %v", calls, werr)
	}
	return at, taken, err
}

// found is the savepoint that lies on the disk: whole, or refused, never something else.
func (s *saving) found(how string) (folder string) {
	entries, err := s.mem.ReadDir("/savepoints")
	if err != nil && !errors.Is(err, fs.ErrNotExist) || len(entries) > 1 {
		s.Fatalf("%s: %v, %v", how, entries, err)
	}
	for _, e := range entries {
		at := path.Join("/savepoints", e.Name())
		m, err := checkpoint.Load(s.mem, at)
		if err != nil {
			if !strings.Contains(err.Error(), "no snapshot was completed there") {
				s.Fatalf("%s: half a savepoint: %v", how, err)
			}
			continue
		}
		if err := m.Verify(s.mem); err != nil {
			s.Fatalf("%s: %v", how, err)
		}
		folder = at
	}
	return folder
}

// goOn starts the program again as a user would who knows what he was told, and the disk.
func (s *saving) goOn(how, at string, told error) {
	last, err := vfs.ReadFile(s.mem, "/recovery/job-1-strict/last")
	over := err == nil && strings.TrimSpace(string(last)) == "over"
	folder := s.found(how)
	if told == nil && folder != at {
		s.Fatalf("%s: the user was told of a savepoint in %s, which is not there", how, at)
	}
	if over && (!s.stop || folder == "") {
		s.Fatalf("%s: the job is over without a savepoint", how)
	}
	job := (*stream.Job)(nil)
	if over {
		job = s.begin(s.mem, "/second recovery", stream.WithSavepoint(folder))
	} else {
		job = s.begin(s.mem, "/recovery")
	}
	if _, err := job.Wait(); err != nil {
		s.Fatalf("%s: %v", how, err)
	}
	s.mem.Crash()
	s.check(how, true)
}

// A machine that goes down at any call to its disk that a savepoint makes, also one that stops the job: either there is a whole
// savepoint or none, and the files hold every result once when the job has gone on. FLOTT_SOAK > 1: at every call.
func TestCrashAtEveryCallOfASavepointLosesNothing(t *testing.T) {
	const limit = 90
	want := strictOracle(t, limit)
	seed, some := uint64(setting(t, "FLOTT_SEED", 1)), 12
	if setting(t, "FLOTT_SOAK", 1) > 1 {
		some = 1 << 20
	}
	for _, stop := range []bool{false, true} {
		for _, c := range strictCases()[:3] {
			t.Run(fmt.Sprint(c.name, ", stop ", stop), func(t *testing.T) {
				try := func(n, of int) (calls int) {
					synctest.Test(t, func(t *testing.T) {
						s := &saving{&strictWorld{T: t, strictCase: c, mem: vfs.NewMem(), limit: limit, want: want}, stop}
						how := fmt.Sprintf("FLOTT_SEED=%d, dead after %d of %d calls", seed, n, of)
						at, taken, told := s.save(n)
						calls = taken
						s.mem.Crash()
						s.check(how, false)
						s.goOn(how, at, told)
					})
					return calls
				}
				calls := try(-1, 0)
				if calls < 10 {
					t.Errorf("a savepoint made %d calls only", calls)
				}
				for _, n := range drawn(rand.New(rand.NewPCG(seed, 7)), calls, some) {
					if try(n, calls); t.Failed() {
						return
					}
				}
			})
		}
	}
}
