package stream_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flott-dev/flott/connector/file"
	"github.com/flott-dev/flott/connector/filesink"
	"github.com/flott-dev/flott/internal/env"
	"github.com/flott-dev/flott/internal/vfs"
	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/stream"
)

// The part of a checkpoint that a task of a former attempt was writing when it failed comes late, when the next attempt is at
// work: it completes nothing, and what was restored stays until a newer checkpoint is complete.
func TestB025LatePartsOfAFormerAttemptCompleteNothing(t *testing.T) {
	want := strictOracle(t, storedLimit)
	for _, op := range []vfs.Op{vfs.OpCreate, vfs.OpWrite, vfs.OpSync} {
		t.Run(string(op), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStored(t)
				release, last := func() {}, int64(0)
				s.disk.Only(func(name string) bool { return bytes.HasSuffix([]byte(name), []byte(".chunk")) })
				s.at[30] = func() { release = s.disk.Hang(op, 1) }
				s.at[45] = crashOnce
				s.at[70] = func() { release() }
				defer func() { release() }()
				history, err := s.run(stream.IncrementalCheckpoints(true))
				if err != nil {
					t.Fatal(err)
				}
				checkVisible(t, s.out, want)
				for _, c := range history.History { // the oldest comes last
					if c.Status == stream.CheckpointFailed {
						last = c.ID - 1
					}
				}
				if r := history.LatestRestored; history.Counts.Restored != 1 || r == nil || r.ID != last {
					t.Errorf("restored %+v, failures %q", r, failures(history))
				}
				if left := s.left(); len(left) > 0 {
					t.Errorf("files are left: %q", left)
				}
			})
		})
	}
}

// parcel is an element of some size, which knows what is in it.
type parcel struct {
	Number int64
	Body   []byte
	Hash   [32]byte
}

// parcelSizes are around those of buffers, and far beyond.
var parcelSizes = []int{1, 32767, 32768, 32769, 5 << 20}

func newParcel(i int64) parcel {
	body := bytes.Repeat(strconv.AppendInt(nil, i, 10), parcelSizes[i%int64(len(parcelSizes))])[:parcelSizes[i%int64(len(parcelSizes))]]
	return parcel{i, body, sha256.Sum256(body)}
}

// open checks what came of a parcel.
func (p parcel) open(where string) (parcel, error) {
	if len(p.Body) != parcelSizes[p.Number%int64(len(parcelSizes))] || sha256.Sum256(p.Body) != p.Hash {
		return p, fmt.Errorf("parcel %d of %d bytes was opened on its way to the %s", p.Number, len(p.Body), where)
	}
	return p, nil
}

// van checks that the user's partitioner has sent a parcel here, and takes a while to load it.
type van struct {
	subtask, vans int
	load          time.Duration
}

func newVan(load time.Duration) func(rt *process.Runtime) van {
	return func(rt *process.Runtime) van { return van{rt.Info().Subtask, rt.Info().Parallelism, load} }
}

func (v van) ProcessElement(_ *process.Context, p parcel, out *process.Collector[parcel]) error {
	if int(p.Number)%v.vans != v.subtask {
		return fmt.Errorf("parcel %d is in van %d of %d", p.Number, v.subtask, v.vans)
	}
	if v.load > 0 {
		time.Sleep(v.load)
	}
	p, err := p.open("van")
	out.Collect(p)
	return err
}

// byNumber is the partitioner of vans.
func byNumber(key int64, n int) int { return int(key) % n }

func numberOf(p parcel) int64 { return p.Number }

// Elements larger than any buffer, in flight in the midst of an unaligned checkpoint, come once and as they were, at another
// parallelism, too; on an edge whose partitioner is the user's, barriers wait, since nobody could send on what was in flight.
func TestB028LargeElementsAreInFlight(t *testing.T) {
	const n = 60
	inFlightOnce := false
	for seed := range uint64(3) {
		mem, deaths := vfs.NewMem(), []int{90, 150, 60, -1}
		for run, last := range deaths {
			disk := vfs.NewMortal(mem, last)
			parallelism := []int{2, 3, 1, 2}[run]
			e := stream.NewEnv(stream.WithRecovery("/recovery"), func(s *env.Settings) { s.Checkpoints.FS, s.Checkpoints.Unaligned = disk, true }).
				SetParallelism(parallelism).SetRestartStrategy(stream.NoRestart()).EnableCheckpointing(10 * time.Millisecond)
			parcels(e, disk, n)
			_, err := e.Simulate(t.Context(), "strict", seed)
			if err != nil && !errors.Is(err, vfs.ErrDead) {
				t.Fatal(err)
			}
			w := &strictWorld{T: t, mem: mem, strictCase: strictCase{want: inFlight}}
			w.look()
			inFlightOnce = inFlightOnce || w.met
			if err == nil {
				break
			}
		}
		var want []string
		for i := range n {
			want = append(want, fmt.Sprint(i))
		}
		slices.Sort(want)
		if got := visibleOn(t, mem, "/out"); !slices.Equal(got, want) {
			t.Errorf("seed %d: %d parcels came, want %d, or others:\n%s", seed, len(got), n, difference(got, want))
		}
	}
	if !inFlightOnce {
		t.Error("nothing was ever in flight")
	}
}

// parcels is a program that sends them through shuffles of all kinds.
func parcels(e *stream.Env, disk vfs.FS, n int64) {
	check := func(where string) func(ctx context.Context, p parcel) (parcel, error) {
		return func(_ context.Context, p parcel) (parcel, error) { return p.open(where) }
	}
	e.FromGenerator(n, newParcel, 1000).UID("parcels").Parallelism(1).
		Rebalance().TryMap(check("depot")).UID("depot").
		PartitionCustom(byNumber, numberOf).Process(newVan(0)).UID("van").
		KeyBy(func(p parcel) int64 { return p.Number % 4 }).
		Reduce(func(_, b parcel) parcel { return b }).UID("last").
		Map(func(p parcel) string { return fmt.Sprint(p.Number) }).
		CommitTo(filesink.New("/out", file.TextEncoding[string]("\n")).NoBuckets().RollOnCheckpoint().On(disk, fileIDs())).UID("door")
}

// Barriers do not overtake what a partitioner of the user's has sent: the queue in front of two slow vans is loaded before the
// checkpoint is complete, so that three of them, after a crash, get nothing that the partitioner would send to another one.
func TestB028CustomPartitionsAreNotOvertaken(t *testing.T) {
	const n, load = 120, 20 * time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		recovery, mem := t.TempDir(), vfs.NewMem()
		begin := func(vans int, disk vfs.FS) *stream.Job {
			e := stream.NewEnv(stream.WithRecovery(recovery), func(s *env.Settings) { s.Checkpoints.FS, s.Checkpoints.Unaligned = disk, true }).
				SetParallelism(vans).SetRestartStrategy(stream.NoRestart()).EnableCheckpointing(50 * time.Millisecond)
			e.FromGenerator(n, func(i int64) parcel { return newParcel(5 * i) }, 1000).UID("parcels").Parallelism(1).
				PartitionCustom(byNumber, numberOf).Process(newVan(load)).UID("van").
				Map(func(p parcel) string { return fmt.Sprint(p.Number / 5) }).
				CommitTo(filesink.New("/out", file.TextEncoding[string]("\n")).NoBuckets().RollOnCheckpoint().On(mem, fileIDs())).UID("door")
			job, err := e.ExecuteAsync(t.Context(), "vans")
			if err != nil {
				t.Fatal(err)
			}
			return job
		}
		disk := vfs.NewMortal(vfs.OS{}, -1)
		first := begin(2, disk)
		time.Sleep(700 * time.Millisecond) // more than 20 parcels wait for each van
		disk.DieAfter(0)
		if _, err := first.Wait(); err == nil {
			t.Fatal("the first process lives")
		}
		second := begin(3, vfs.OS{})
		if _, err := second.Wait(); err != nil {
			t.Fatal(err)
		}
		if second.Checkpoints().LatestRestored == nil {
			t.Error("nothing was restored")
		}
		var want []string
		for i := range n {
			want = append(want, fmt.Sprint(i))
		}
		slices.Sort(want)
		if got := visibleOn(t, mem, "/out"); !slices.Equal(got, want) {
			t.Errorf("%d parcels came, want %d, or others:\n%s", len(got), n, difference(got, want))
		}
	})
}

// jumpy is a clock whose wall time is set, while its monotonic one goes on.
type jumpy struct {
	start time.Time
	off   atomic.Int64 // ms
}

func (c *jumpy) Millis() int64 { return time.Now().UnixMilli() + c.off.Load() }
func (c *jumpy) Nanos() int64  { return int64(time.Since(c.start)) }

// The wall clock is set in the midst of an alignment, by an hour in either direction: the barrier overtakes, and not at once, no
// time is negative or an hour, and checkpoints restore.
func TestB030ClocksMayBeSet(t *testing.T) {
	for _, jump := range []time.Duration{0, time.Hour, -time.Hour} {
		t.Run(jump.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, disk := &jumpy{start: time.Now()}, vfs.NewMem()
				h := clockedJob(t, c, disk, func() { c.off.Store(jump.Milliseconds()) })
				if took := time.Since(c.start); took > 20*time.Second {
					t.Errorf("the job took %v", took)
				}
				if got := len(visibleOn(t, disk, "/out")); got != 120 || h.Counts.Restored != 1 || h.Counts.Completed < 4 {
					t.Errorf("%d results, want 120; %+v, %q", got, h.Counts, failures(h))
				}
				checkClocks(t, h)
			})
		})
	}
}

// alignedFor is for how long barriers wait in line.
const alignedFor = 200 * time.Millisecond

// clockedJob runs a job in which barriers wait and then overtake, and sets the clock meanwhile.
func clockedJob(t *testing.T, c *jumpy, disk vfs.FS, set func()) stream.CheckpointHistory {
	t.Helper()
	var failed atomic.Bool
	e := stream.NewEnv(func(s *env.Settings) {
		s.Clock, s.Checkpoints.Unaligned, s.Checkpoints.AlignedTimeout, s.Checkpoints.History = c, true, alignedFor, 100
	}).SetParallelism(1).SetRestartStrategy(stream.FixedDelayRestart(1, time.Millisecond)).EnableCheckpointing(time.Second)
	slow := e.FromGenerator(60, func(i int64) int64 { return i }, 50).UID("slow").Rebalance().TryMap(func(_ context.Context, x int64) (int64, error) {
		if time.Sleep(100 * time.Millisecond); x == 47 && !failed.Swap(true) {
			return 0, syscall.EIO
		}
		return x, nil
	}).UID("slow map")
	quick := e.FromGenerator(60, func(i int64) int64 { return 100 + i }, 10).UID("quick")
	slow.Union(quick).KeyBy(func(x int64) int64 { return x % 3 }).Reduce(func(a, b int64) int64 { return max(a, b) }).UID("most").
		CommitTo(filesink.New("/out", file.TextEncoding[int64]("\n")).NoBuckets().RollOnCheckpoint().On(disk, fileIDs())).UID("files")
	job, err := e.ExecuteAsync(t.Context(), "clocks")
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(1100 * time.Millisecond) // the first checkpoint has begun, and its barrier waits in line
	set()
	if _, err := job.Wait(); err != nil {
		t.Fatal(err)
	}
	return job.Checkpoints()
}

// checkClocks looks for times that can't be.
func checkClocks(t *testing.T, h stream.CheckpointHistory) {
	t.Helper()
	for _, c := range h.History {
		if c.ID == 1 && (!c.Unaligned || c.Duration < alignedFor) || c.Duration < 0 || c.Duration > 5*time.Second {
			t.Errorf("checkpoint %d took %v and has overtaken: %v", c.ID, c.Duration, c.Unaligned)
		}
		for _, v := range c.Vertices {
			for _, s := range v.Subtasks {
				if least := min(s.Duration, s.Alignment, s.StartDelay, s.Sync, s.Async); least < 0 {
					t.Errorf("checkpoint %d, %s: took %v, aligned for %v, began after %v", c.ID, v.Name, s.Duration, s.Alignment, s.StartDelay)
				}
			}
		}
	}
}
