package stream_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/flott-dev/flott/agg"
	"github.com/flott-dev/flott/checkpoint"
	"github.com/flott-dev/flott/connector/file"
	"github.com/flott-dev/flott/connector/filesink"
	"github.com/flott-dev/flott/internal/env"
	"github.com/flott-dev/flott/internal/vfs"
	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/state"
	"github.com/flott-dev/flott/stream"
	"github.com/flott-dev/flott/watermark"
	"github.com/flott-dev/flott/window"
)

// notebook has keyed state of every kind, timers and a list of the operator's.
type notebook struct {
	count  *state.Value[int64]
	last   *state.List[int64]
	digits *state.Map[string, int64]
	most   *state.Reducing[int64]
	mean   *state.Aggregating[int64, agg.Average, float64]
	seen   *state.OperatorList[int64]
}

func newNotebook(rt *process.Runtime) *notebook {
	return &notebook{
		count:  state.NewValue[int64](rt, "count"),
		last:   state.NewList[int64](rt, "last"),
		digits: state.NewMap[string, int64](rt, "digits"),
		most:   state.NewReducing(rt, "most", func(a, b int64) int64 { return max(a, b) }),
		mean:   state.NewAggregating(rt, "mean", agg.Avg(func(x int64) int64 { return x })),
		seen:   rt.OperatorList(state.NewOperatorList[int64]("seen", state.Split)),
	}
}

func (n *notebook) ProcessElement(ctx *process.KeyedContext[int64], x int64, out *process.Collector[string]) error {
	n.count.Update(func(c *int64) { *c++ })
	if n.last.Add(x); n.count.Get()%4 == 0 {
		n.last.Set([]int64{x})
	}
	n.digits.Update(fmt.Sprint(x%3), func(c *int64) { *c += x })
	n.most.Add(x * 7 % 11)
	n.mean.Add(x)
	if x%5 == 0 {
		n.seen.Add(x)
	}
	ctx.RegisterTimer(process.EventTime, x/20*20+19)
	out.Collect(n.page(ctx.Key(), x))
	return nil
}

func (n *notebook) page(key, x int64) string {
	var digits []string
	for d, sum := range n.digits.All() {
		digits = append(digits, fmt.Sprint(d, "=", sum))
	}
	slices.Sort(digits)
	return fmt.Sprintf("%d %d %d %v %v %d %.3f", key, x, n.count.Get(), slices.Collect(n.last.All()), digits, n.most.Get(), n.mean.Get())
}

func (n *notebook) OnTimer(ctx *process.KeyedContext[int64], t process.Timer, out *process.Collector[string]) error {
	out.Collect(fmt.Sprint("timer ", ctx.Key(), " ", t.Millis))
	return nil
}

// strictJob is a small program with all that must survive: state of every kind, timers, windows, two committing sinks, and a
// shuffle in which unaligned barriers overtake.
func strictJob(e *stream.Env, disk vfs.FS, n int64, read func()) {
	numbers := e.FromGenerator(n, func(i int64) int64 { return i }, 1000).Parallelism(1).UID("numbers").
		AssignTimestampsAndWatermarks(watermark.BoundedOutOfOrderness(3*time.Millisecond, func(x int64) time.Time {
			read()
			return time.UnixMilli(x)
		})).Parallelism(1).UID("times")
	ids := fileIDs()
	write := func(s *stream.Stream[string], name string, change func(*filesink.Sink[string]) *filesink.Sink[string]) {
		to := filesink.New("/out/"+name, file.TextEncoding[string]("\n")).NoBuckets()
		s.CommitTo(change(to).On(disk, ids)).UID(name + " to files")
	}
	write(numbers.KeyBy(func(x int64) int64 { return x % 6 }).Process(newNotebook).UID("notes"), "notes",
		func(s *filesink.Sink[string]) *filesink.Sink[string] { return s.MaxPartSize(700) })
	write(numbers.Rebalance().Map(func(x int64) int64 { return x * 3 }).KeyBy(func(x int64) int64 { return x % 4 }).
		Window(window.Tumbling(20*time.Millisecond)).Sum(func(x int64) int64 { return x }).UID("windows").
		Map(func(r window.Result[int64, window.Time, int64]) string {
			return fmt.Sprint(r.Key, " ", r.Window.Start, " ", r.Value)
		}), "windows", func(s *filesink.Sink[string]) *filesink.Sink[string] { return s.RollOnCheckpoint() })
}

// fileIDs are ids for hidden files that no run shares with another.
func fileIDs() func() string {
	var next atomic.Uint64
	next.Store(rand.Uint64())
	return func() string { return fmt.Sprintf("%016x", next.Add(1)) }
}

// strictCase is a way to take checkpoints.
type strictCase struct {
	name string
	opts []stream.CheckpointOption
	set  func(*env.Checkpoints)
	want func(m *checkpoint.Manifest) bool // what one of the checkpoints must be
}

func strictCases() []strictCase {
	return []strictCase{
		{"whole", nil, func(c *env.Checkpoints) {}, func(m *checkpoint.Manifest) bool { return len(m.Files()) > 0 }},
		{"incremental", []stream.CheckpointOption{stream.IncrementalCheckpoints(true), stream.MaxConcurrentCheckpoints(2)}, func(*env.Checkpoints) {}, earlierFiles},
		{"unaligned", nil, func(c *env.Checkpoints) { c.Unaligned = true }, inFlight},
		{"unaligned and incremental", []stream.CheckpointOption{stream.IncrementalCheckpoints(true)}, func(c *env.Checkpoints) { c.Unaligned = true }, inFlight},
	}
}

// earlierFiles says whether a checkpoint names files of earlier ones.
func earlierFiles(m *checkpoint.Manifest) bool {
	return slices.ContainsFunc(m.Files(), func(f string) bool { return path.Dir(f) != m.Folder })
}

// inFlight says whether a checkpoint holds what its barriers have overtaken.
func inFlight(m *checkpoint.Manifest) bool {
	for _, o := range m.Operators {
		for _, p := range o.Parts {
			for _, l := range p.Lists {
				if l.Name == "in-flight" && l.Items > 0 {
					return true
				}
			}
		}
	}
	return false
}

// strictWorld is a disk with what processes have done to it.
type strictWorld struct {
	*testing.T
	strictCase
	mem   *vfs.Mem
	limit int64
	want  map[string][]string
	met   bool // a checkpoint was as it must be
	fresh int  // runs that began at the beginning
	runs  int
}

// run starts a process that dies after so many calls to its disk. It says whether the program came to its end.
func (w *strictWorld) run(last int) (disk *vfs.Mortal, finished bool) {
	w.Helper()
	disk = vfs.NewMortal(w.mem, last)
	e := stream.NewEnv(stream.WithRecovery("/recovery"), func(s *env.Settings) {
		s.Checkpoints.FS, s.Checkpoints.InlineBytes = disk, -1
		s.BufferTimeout = 0
		w.set(&s.Checkpoints)
	}).SetParallelism(2).SetRestartStrategy(stream.NoRestart()).EnableCheckpointing(10*time.Millisecond, w.opts...)
	read := int64(0)
	strictJob(e, disk, w.limit, func() { read++ })
	_, err := e.Simulate(w.Context(), "strict", 1)
	if err != nil && !errors.Is(err, vfs.ErrDead) {
		w.Fatalf("dead after %d calls: %v", last, err)
	}
	if w.runs++; read >= w.limit {
		w.fresh++
	}
	return disk, err == nil
}

// crash loses what was not synced, or some of it, or, if only the process has died, nothing.
func (w *strictWorld) crash(rng *rand.Rand) {
	switch rng.IntN(4) {
	case 0: // the process alone
	case 1:
		w.mem.CrashPartly(rng)
	default:
		w.mem.Crash()
	}
	w.look()
}

// look notes what the checkpoints on the disk hold.
func (w *strictWorld) look() {
	storage, err := checkpoint.OpenStorage(w.mem, "/recovery/job-1-strict/checkpoints")
	if err != nil {
		w.Fatal(err)
	}
	found, err := storage.List()
	if err != nil {
		w.Fatal(err)
	}
	for _, f := range found {
		w.met = w.met || f.Manifest != nil && w.strictCase.want(f.Manifest)
	}
}

// check compares the visible lines with what must come: nothing twice, and everything in the end.
func (w *strictWorld) check(when string, all bool) {
	w.Helper()
	for name, want := range w.want {
		got := visibleOn(w.T, w.mem, "/out/"+name)
		if all && !slices.Equal(got, want) {
			w.Fatalf("%s: %s has %d lines, want %d, or others:\n%s", when, name, len(got), len(want), difference(got, want))
		}
		if extra := tooMany(got, want); extra != "" {
			w.Fatalf("%s: %s has too many lines %q", when, name, extra)
		}
	}
}

// visibleOn are the lines of all files of a folder that are not hidden; a line that is cut off is an error.
func visibleOn(t *testing.T, disk vfs.FS, dir string) (lines []string) {
	t.Helper()
	entries, _ := disk.ReadDir(dir)
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") {
			continue
		}
		b, err := vfs.ReadFile(disk, path.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if len(b) == 0 || b[len(b)-1] != '\n' {
			t.Fatalf("half a file is visible: %s ends with %q", e.Name(), b[max(0, len(b)-20):])
		}
		for line := range strings.Lines(string(b)) {
			lines = append(lines, strings.TrimSuffix(line, "\n"))
		}
	}
	slices.Sort(lines)
	return lines
}

// tooMany is the first of some sorted lines that is not among those that are allowed, or more often.
func tooMany(got, allowed []string) string {
	for _, line := range got {
		i, ok := slices.BinarySearch(allowed, line)
		if !ok {
			return line
		}
		allowed = allowed[i+1:]
	}
	return ""
}

func difference(got, want []string) string {
	var out []string
	for _, line := range want {
		if !slices.Contains(got, line) {
			out = append(out, "- "+line)
		}
	}
	for _, line := range got {
		if !slices.Contains(want, line) {
			out = append(out, "+ "+line)
		}
	}
	return strings.Join(out[:min(20, len(out))], "\n")
}

// strictOracle is what the program leaves, computed without the engine's checkpoints: a run that nothing disturbs, which a
// second one, of another schedule, must agree with.
func strictOracle(t *testing.T, limit int64) map[string][]string {
	t.Helper()
	var all []map[string][]string
	for _, seed := range []uint64{1, 2} {
		disk := vfs.NewMem()
		e := stream.NewEnv().SetParallelism(2)
		strictJob(e, disk, limit, func() {})
		if _, err := e.Simulate(context.Background(), "strict", seed); err != nil {
			t.Fatal(err)
		}
		all = append(all, map[string][]string{"notes": visibleOn(t, disk, "/out/notes"), "windows": visibleOn(t, disk, "/out/windows")})
	}
	for name, lines := range all[0] {
		if !slices.Equal(lines, all[1][name]) || len(lines) == 0 {
			t.Fatalf("two runs of the program give other %s:\n%s", name, difference(lines, all[1][name]))
		}
	}
	return all[0]
}

// A machine that loses everything that was not synced, or some of it, at any call to its disk, and again while the job that
// goes on has come back: the files hold every result once. FLOTT_SOAK > 1: at every call; otherwise at calls that FLOTT_SEED
// draws.
func TestCrashAtEveryCallToTheDiskLosesNothing(t *testing.T) {
	const limit = 90
	want := strictOracle(t, limit)
	seed, soak := uint64(setting(t, "FLOTT_SEED", 1)), setting(t, "FLOTT_SOAK", 1) > 1
	for _, c := range strictCases() {
		t.Run(c.name, func(t *testing.T) {
			begin := func() *strictWorld {
				return &strictWorld{T: t, strictCase: c, mem: vfs.NewMem(), limit: limit, want: want}
			}
			whole := begin()
			disk, finished := whole.run(-1)
			whole.mem.Crash()
			if whole.check("without a crash", true); !finished {
				t.Fatal("a process that does not die does not come to its end")
			}
			calls := disk.Calls()
			points := drawn(rand.New(rand.NewPCG(seed, uint64(len(c.name)))), calls, 25)
			if soak {
				points = drawn(nil, calls, calls)
			}
			met, again := false, 0
			for _, last := range points {
				w := begin()
				rng := rand.New(rand.NewPCG(seed, uint64(last)))
				w.survive(fmt.Sprintf("FLOTT_SEED=%d, dead after %d of %d calls", seed, last, calls), []int{last, rng.IntN(calls)}, rng)
				met, again = met || w.met, again+w.runs-w.fresh
			}
			t.Logf("FLOTT_SEED=%d: crashes at %d of %d calls, %d runs went on from a checkpoint", seed, len(points), calls, again)
			if !met || again < len(points)/2 {
				t.Errorf("no checkpoint was as it must be for this test, or no run went on from one (%d)", again)
			}
		})
	}
}

// survive runs a program that dies after these numbers of calls, one run after the other, and then comes to its end.
func (w *strictWorld) survive(how string, deaths []int, rng *rand.Rand) {
	w.Helper()
	for _, last := range append(deaths, -1) {
		disk, finished := w.run(last)
		if finished {
			w.mem.Crash() // the user has heard that the job has finished
			w.check(how+", then finished", true)
			return
		}
		w.crash(rng)
		how += fmt.Sprintf(", again after %d", disk.Calls())
		w.check(how, false)
	}
	w.Fatalf("%s: the program does not come to its end", how)
}

// drawn are up to some numbers below n, ascending; all of them if rng is nil.
func drawn(rng *rand.Rand, n, some int) (points []int) {
	for i := range n {
		points = append(points, i)
	}
	if rng != nil {
		rng.Shuffle(n, func(i, j int) { points[i], points[j] = points[j], points[i] })
		points = points[:min(n, some)]
	}
	slices.Sort(points)
	return points
}
