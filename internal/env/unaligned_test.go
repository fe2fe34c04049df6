package env

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/flott-dev/flott/checkpoint"
	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/graph"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/internal/operator/element"
	"github.com/flott-dev/flott/internal/operator/keyed"
	"github.com/flott-dev/flott/internal/vfs"
	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/serde"
)

// timeouts are those of the unaligned checkpoints that tests take.
var timeouts = []time.Duration{0, time.Millisecond, 3 * time.Millisecond, time.Hour}

// unaligned lets the checkpoints of an environment overtake.
func unaligned(e *Env, timeout time.Duration) {
	c := &e.Settings.Checkpoints
	c.Unaligned, c.AlignedTimeout, c.MaxConcurrent = true, timeout, 1
}

// Random programs that fail at random moments lose and double nothing either when barriers overtake.
func TestRandomGraphsThatFailGiveWhatALoopGivesWhenBarriersOvertake(t *testing.T) {
	first := number(t, "FLOTT_SEED", 1)
	persisted, restored := int64(0), int64(0)
	for seed := first; seed < first+20*number(t, "FLOTT_SOAK", 1); seed++ {
		timeout := timeouts[seed%len(timeouts)]
		for _, schedule := range []uint64{1, 2} {
			e := New()
			p := growKept(t, e, uint64(seed))
			unaligned(e, timeout)
			if _, err := e.Simulate(t.Context(), "random", schedule); err != nil {
				t.Fatalf("FLOTT_SEED=%d, timeout %v, schedule %d: %v\n%s", seed, timeout, schedule, err, p)
			}
			p.checkKept(t, fmt.Sprintf("FLOTT_SEED=%d, timeout %v, schedule %d", seed, timeout, schedule))
		}
		synctest.Test(t, func(t *testing.T) {
			e := New()
			p := growKept(t, e, uint64(seed))
			unaligned(e, timeout)
			x, err := e.Start(t.Context(), "random")
			if err != nil {
				t.Fatalf("FLOTT_SEED=%d, timeout %v: %v\n%s", seed, timeout, err, p)
			}
			<-x.Done()
			if x.Err() != nil {
				t.Fatalf("FLOTT_SEED=%d, timeout %v, goroutines: %v\n%s", seed, timeout, x.Err(), p)
			}
			restored += x.Checkpoints().Counts.Restored
			persisted += x.Checkpoints().Summary.Persisted.Max
			p.checkKept(t, fmt.Sprintf("FLOTT_SEED=%d, timeout %v, goroutines", seed, timeout))
		})
		if t.Failed() {
			return
		}
	}
	t.Logf("restored %d times, at most %d bytes in flight", restored, persisted)
	if restored == 0 {
		t.Error("no job was ever restored from a checkpoint: the test tests nothing")
	}
}

// river is a program whose parallelism may change: two streams of numbers, dealt out and joined by key, summed, committed.
type river struct {
	xs    []int64
	fuse  *mine
	vault *vault
}

// flow builds the program.
func (r *river) flow(t *testing.T, e *Env) {
	typ, pairs := typeOf[int64](t), typeOf[process.KeyValue[int64, int64]](t)
	k, err := serde.KeyOf[int64]()
	if err != nil {
		t.Fatal(err)
	}
	key := &graph.Key{Key: k, Extract: func() func(*frame.Run) serde.Column {
		buf := make([]int64, frame.MaxLen)
		return func(run *frame.Run) serde.Column {
			for i, x := range frame.Values[int64](run) {
				buf[i] = x % 50
			}
			return serde.Column{P: unsafe.Pointer(unsafe.SliceData(buf)), N: run.N, Stride: 8}
		}
	}}
	var dealt []graph.Edge
	for i, strategy := range []graph.Strategy{graph.Rebalance, graph.Shuffle} {
		xs := r.xs[i*len(r.xs)/2 : (i+1)*len(r.xs)/2]
		src := add(e, graph.Source, "source", typ, func() operator.Operator { return &resumed{out: operator.NewOutput(typ), xs: xs} })
		src.UID = fmt.Sprint("source ", i)
		try := add(e, graph.Operator, "try", typ, func() operator.Operator {
			return element.TryMap(typ, typ, func(_ context.Context, x int64) (int64, error) {
				if r.fuse.step(1) {
					return 0, errMine
				}
				return x, nil
			})
		}, graph.Edge{From: src, Partitioner: &graph.Partitioner{Strategy: strategy, Seed: 3}})
		try.UID = fmt.Sprint("try ", i)
		dealt = append(dealt, graph.Edge{From: try, Partitioner: &graph.Partitioner{Strategy: graph.Hash, Key: key}})
	}
	sum := add(e, graph.Operator, "sum", pairs, func() operator.Operator {
		return keyed.Sum[int64, int64](typ, pairs, typ.Handle, key, func(x int64) int64 { return x%50 + 1 })
	}, dealt...)
	sum.Key, sum.UID = []*graph.Key{key}, "sum"
	flat := add(e, graph.Operator, "flat", typ, func() operator.Operator {
		return element.Map(pairs, typ, func(kv process.KeyValue[int64, int64]) int64 { return kv.Key*1_000_000 + kv.Value })
	}, graph.Edge{From: sum})
	flat.UID = "flat"
	end := add(e, graph.Sink, "teller", nil, func() operator.Operator {
		return &teller{drain: drain{b: &basin{ends: make([]int, 16)}, typ: typ}, to: r.vault, fuse: &mine{}}
	}, graph.Edge{From: flat})
	end.UID = "teller"
}

// want is what is committed in the end.
func (r *river) want() (out []int64) {
	sums := map[int64]int64{}
	for _, x := range r.xs {
		sums[x%50] += x%50 + 1
		out = append(out, x%50*1_000_000+sums[x%50])
	}
	slices.Sort(out)
	return out
}

// latest is the folder of the last complete checkpoint under dir, and how many frames in flight it has.
func latest(t *testing.T, disk vfs.FS, dir string) (folder string, frames int) {
	t.Helper()
	entries, err := disk.ReadDir(dir)
	if err != nil {
		return "", 0
	}
	last := int64(0)
	for _, e := range entries {
		id, err := strconv.ParseInt(strings.TrimPrefix(e.Name(), "chk-"), 10, 64)
		if err != nil || id <= last {
			continue
		}
		m, err := checkpoint.Load(disk, path.Join(dir, e.Name()))
		if err != nil {
			continue
		}
		last, folder, frames = id, path.Join(dir, e.Name()), 0
		for _, o := range m.Operators {
			for _, p := range o.Parts {
				for _, l := range p.Lists {
					if l.Name == "in-flight" {
						frames += int(l.Items)
					}
				}
			}
		}
	}
	return folder, frames
}

// A job that fails for good, again and again, goes on from its last checkpoint at another parallelism each time: what was in
// flight finds its way.
func TestUnalignedCheckpointsGoOnAtOtherParallelisms(t *testing.T) {
	first := number(t, "FLOTT_SEED", 1)
	frames, resumes := 0, 0
	for seed := first; seed < first+25*number(t, "FLOTT_SOAK", 1); seed++ {
		rng := rand.New(rand.NewPCG(uint64(seed), 20))
		r := &river{vault: &vault{committed: map[[2]int64][]int64{}}}
		for range 30_000 {
			r.xs = append(r.xs, rng.Int64N(1000))
		}
		disk, at := vfs.NewMem(), ""
		for i, parallelism := range []int{1, 4, 3, 1, 2, 2} {
			e := kept(parallelism)
			e.Settings.BufferTimeout = []time.Duration{0, 0, DefaultBufferTimeout}[rng.IntN(3)]
			c := &e.Settings.Checkpoints
			unaligned(e, timeouts[rng.IntN(3)])
			c.FS, c.Dir, c.Retention, c.Savepoint = disk, fmt.Sprint("/", i), RetainOnFailure, at
			r.fuse = &mine{after: []int{1000 + rng.IntN(14_000)}}
			if i == 5 {
				r.fuse = &mine{}
			}
			r.flow(t, e)
			how := fmt.Sprintf("FLOTT_SEED=%d, run %d at parallelism %d", seed, i, parallelism)
			_, err := e.Simulate(t.Context(), "river", uint64(seed))
			if err == nil {
				break
			}
			if !errors.Is(err, errMine) {
				t.Fatalf("%s: %v", how, err)
			}
			if folder, n := latest(t, disk, path.Join(c.Dir, "simulated")); folder != "" {
				at, frames, resumes = folder, frames+n, resumes+1
			}
		}
		if got := r.vault.all(); !slices.Equal(got, r.want()) || r.vault.err != nil {
			t.Fatalf("FLOTT_SEED=%d: %d totals were committed, want %d, or others: %v", seed, len(got), len(r.xs), r.vault.err)
		}
	}
	t.Logf("%d times a job went on, with %d frames in flight", resumes, frames)
	if frames == 0 {
		t.Error("nothing was ever in flight: the test tests nothing")
	}
}
