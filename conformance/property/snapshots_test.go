package property

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flott-dev/flott/agg"
	"github.com/flott-dev/flott/flotttest"
	"github.com/flott-dev/flott/internal/env"
	"github.com/flott-dev/flott/internal/keygroup"
	"github.com/flott-dev/flott/serde"
	"github.com/flott-dev/flott/stream"
	"github.com/flott-dev/flott/window"
)

// TestWindowsSurviveSnapshots: every windowed operator that is taken down between two steps and restored from a snapshot
// goes on as one that is not, on the path that the plan chooses and on the general one.
func TestWindowsSurviveSnapshots(t *testing.T) {
	first := number("FLOTT_SEED", 1)
	for seed := first; seed < first+200*number("FLOTT_SOAK", 1); seed++ {
		for name, opts := range map[string][]stream.Option{"own path": nil, "general path": {stream.WithGeneralWindows()}} {
			t.Run(fmt.Sprint("seed ", seed, "/", name), func(t *testing.T) { newWindowProgram(seed).survive(t, opts) })
		}
	}
}

func (p *windowProgram) survive(t *testing.T, opts []stream.Option) {
	open := func(more ...flotttest.Option) *flotttest.Harness[record, string] {
		more = append(more, flotttest.WithEnv(opts...), flotttest.WithSideOutput(lateTag()))
		return flotttest.NewHarness(t, p.build, more...)
	}
	cuts := rand.New(rand.NewPCG(p.seed, 9))
	hs := []*flotttest.Harness[record, string]{open(), open()}
	now, watermark := int64(0), int64(math.MinInt64)
	var late [2]int
	var story []string
	for i := range 60 {
		if cuts.IntN(5) == 0 {
			taken := hs[1].Snapshot()
			if cuts.IntN(2) == 0 { // what comes after the snapshot is not in it
				hs[1].ProcessElements(flotttest.At(newRecord(1, 7), max(watermark, 0)+1))
			}
			hs[1].Close()
			hs[1], late[1] = open(flotttest.Restore(taken), flotttest.WithProcessingTime(now)), 0
			story = append(story, "snapshot")
			if watermark > math.MinInt64 {
				hs[1].ProcessWatermark(watermark)
			}
			if again := hs[1].Values(); len(again) != 0 {
				t.Fatalf("%v\n%s\nthe restored operator emits again: %q", p, strings.Join(story, "\n"), again)
			}
			hs[1].Clear()
		}
		if i == 59 {
			for _, h := range hs {
				h.ProcessWatermark(math.MaxInt64)
				h.SetProcessingTime(now + 1_000_000)
			}
			story = append(story, "the end")
		} else {
			story = append(story, p.step(hs, &now, &watermark))
		}
		var got [2]string
		for j, h := range hs {
			got[j], late[j] = outcome(h, late[j])
		}
		if got[0] != got[1] {
			t.Fatalf("%v\n%s\nwithout snapshots\n%s\nwith them\n%s", p, strings.Join(story, "\n"), got[0], got[1])
		}
	}
}

// survivor is an operator that is taken down and restored. It has two inputs; one that needs only one makes a union of them.
type survivor struct {
	name  string
	build func(a, b records) *stream.Stream[string]
	// keyed operators are restored at another parallelism. second says what the second input is then.
	keyed  bool
	second input
}

// input is how the elements of an input come to the subtasks.
type input uint8

const (
	byKey input = iota
	toAll
)

// survivors are the operators of the product that have state, other than windows.
func survivors() []survivor {
	united := func(name string, keyed bool, f func(in records) *stream.Stream[string]) survivor {
		return survivor{name: name, keyed: keyed, build: func(a, b records) *stream.Stream[string] { return f(a.Union(b)) }}
	}
	byKey := func(name string, f func(k *stream.KeyedStream[record, int64]) *stream.Stream[string]) survivor {
		return united(name, true, func(in records) *stream.Stream[string] { return f(in.KeyBy(record.key)) })
	}
	type keyed = *stream.KeyedStream[record, int64]
	var all []survivor
	for _, w := range []window.Assigner[window.Time]{
		window.Tumbling(20 * time.Millisecond), window.Sliding(35*time.Millisecond, 10*time.Millisecond), window.Session(8 * time.Millisecond),
		window.TumblingProcessingTime(20 * time.Millisecond), window.SlidingProcessingTime(35*time.Millisecond, 10*time.Millisecond),
		window.SessionProcessingTime(8 * time.Millisecond),
	} {
		all = append(all,
			byKey(fmt.Sprint("sum in ", w), func(k keyed) *stream.Stream[string] {
				return show(k.Window(w).AllowedLateness(25 * time.Millisecond).Sum(value))
			}),
			byKey(fmt.Sprint("text in ", w), func(k keyed) *stream.Stream[string] {
				return show(k.Window(w).AllowedLateness(25 * time.Millisecond).Aggregate(agg.Regroupable[record, string, string](text{})))
			}),
			byKey(fmt.Sprint("collection in ", w), func(k keyed) *stream.Stream[string] {
				return show(k.Window(w).AllowedLateness(25 * time.Millisecond).Aggregate(agg.Collect[record]()))
			}))
	}
	return append(all, []survivor{
		byKey("reduce", func(k keyed) *stream.Stream[string] { return show(k.Reduce(concat)) }),
		byKey("fold slices", func(k keyed) *stream.Stream[string] { return show(k.Fold([]int64{1}, appended)) }),
		byKey("aggregate", func(k keyed) *stream.Stream[string] { return show(k.Aggregate(agg.Avg(value))) }),
		byKey("sum", func(k keyed) *stream.Stream[string] { return show(k.Sum(value)) }),
		byKey("min by", func(k keyed) *stream.Stream[string] { return show(k.MinBy(value)) }),
		byKey("text keys", func(k keyed) *stream.Stream[string] {
			return show(k.Stream().KeyBy(func(r record) string { return fmt.Sprint("key ", r.K) }).Process(newRememberText))
		}),
		byKey("process", func(k keyed) *stream.Stream[string] { return k.Process(newRemember) }),
		united("operator state", false, func(in records) *stream.Stream[string] { return in.Process(newBatch) }),
		united("custom operator", false, func(in records) *stream.Stream[string] { return in.Transform("batch runs", newBatchRuns) }),
		{name: "co-process", keyed: true, build: func(a, b records) *stream.Stream[string] {
			return a.Connect(b).KeyBy(record.key, record.key).Process(newRememberBoth)
		}},
		{name: "interval join", keyed: true, build: func(a, b records) *stream.Stream[string] {
			j := a.KeyBy(record.key).IntervalJoin(b.KeyBy(record.key)).Between(-20*time.Millisecond, 30*time.Millisecond)
			return j.Join(func(l, r record) string { return fmt.Sprint(l, r) })
		}},
		{name: "broadcast", keyed: true, second: toAll, build: func(a, b records) *stream.Stream[string] {
			return a.KeyBy(record.key).ConnectBroadcast(b.BroadcastState(rules())).Process(newRuled)
		}},
		{name: "window join", keyed: true, build: func(a, b records) *stream.Stream[string] { return joined(a, b) }},
	}...)
}

// TestOperatorsSurviveSnapshots: every operator that is taken down between two steps and restored from a snapshot, at the
// same parallelism or another one, goes on as one that is not.
func TestOperatorsSurviveSnapshots(t *testing.T) {
	first := number("FLOTT_SEED", 1)
	for _, s := range append(survivors(), plainSurvivors()...) {
		for seed := first; seed < first+20*number("FLOTT_SOAK", 1); seed++ {
			t.Run(fmt.Sprint(s.name, "/seed ", seed), func(t *testing.T) { s.survive(t, seed) })
		}
	}
}

// fleet is all subtasks of an operator.
type fleet struct {
	t        *testing.T
	s        *survivor
	subtasks []*flotttest.TwoInputHarness[record, record, string]
}

const fleetGroups = 12

// start begins with that many subtasks, all anew or from snapshots of the old ones.
func (f *fleet) start(parallelism int, more ...flotttest.Option) {
	f.subtasks = nil
	for i := range parallelism {
		opts := append([]flotttest.Option{flotttest.WithSubtask(i, parallelism), flotttest.WithMaxParallelism(fleetGroups)}, more...)
		f.subtasks = append(f.subtasks, flotttest.NewTwoInputHarness(f.t, f.s.build, opts...))
	}
}

// restart takes a snapshot of all subtasks and goes on with that many, which hear what time it is.
func (f *fleet) restart(parallelism int, now int64, watermarks [2]int64) {
	f.t.Helper()
	var taken []*flotttest.Snapshot
	for _, h := range f.subtasks {
		taken = append(taken, h.Snapshot())
		h.Close()
	}
	f.start(parallelism, flotttest.Restore(taken...), flotttest.WithProcessingTime(now))
	for in, ms := range watermarks {
		if ms > math.MinInt64 {
			f.watermark(in, ms)
		}
	}
	if again := f.output(); again != "" {
		f.t.Fatalf("the restored operator emits again: %s", again)
	}
}

func (f *fleet) watermark(in int, ms int64) {
	for _, h := range f.subtasks {
		[]*flotttest.Input[record]{h.First, h.Second}[in].ProcessWatermark(ms)
	}
}

func (f *fleet) clock(ms int64) {
	for _, h := range f.subtasks {
		h.SetProcessingTime(ms)
	}
}

// push hands elements to the subtasks that their keys belong to, or to all.
func (f *fleet) push(in int, elements []element) {
	parts := make([][]element, len(f.subtasks))
	for _, e := range elements {
		for i := range parts {
			if in == 1 && f.s.second == toAll || subtaskOf(f.t, e.Value.K, len(parts)) == i {
				parts[i] = append(parts[i], e)
			}
		}
	}
	for i, part := range parts {
		if h := f.subtasks[i]; len(part) > 0 {
			[]*flotttest.Input[record]{h.First, h.Second}[in].ProcessElements(part...)
		}
	}
}

func subtaskOf(t *testing.T, key int64, parallelism int) int {
	k, err := serde.KeyOf[int64]()
	if err != nil {
		t.Fatal(err)
	}
	hash := k.HashOne(binary.LittleEndian.AppendUint64(nil, uint64(key)), env.DefaultSeed)
	return keygroup.SubtaskOf(fleetGroups, parallelism, keygroup.Of(uint32(hash), fleetGroups))
}

// output is what came out of all subtasks, sorted.
func (f *fleet) output() string {
	var out []string
	for _, h := range f.subtasks {
		for _, e := range h.Elements() {
			out = append(out, e.String())
		}
		h.Clear()
	}
	slices.Sort(out)
	return strings.Join(out, "\n")
}

// late is by how much the next element may be late. Elsewhere than in windows it is not: a timer that is due already fires
// with the next watermark, and a restored operator hears of the last one once more.
func (s *survivor) late(rng *rand.Rand) int64 {
	late := []int64{0, 0, 30, 100}[rng.IntN(4)]
	if !strings.Contains(s.name, " in ") {
		return 0
	}
	return late
}

func (s *survivor) survive(t *testing.T, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 11))
	whole, cut := &fleet{t: t, s: s}, &fleet{t: t, s: s}
	whole.start(1)
	cut.start(1)
	now, watermarks := int64(0), [2]int64{math.MinInt64, math.MinInt64}
	var story []string
	for i := range 50 {
		if rng.IntN(4) == 0 {
			parallelism := 1
			if s.keyed && s.name != "text keys" {
				parallelism = 1 + rng.IntN(3)
			}
			story = append(story, fmt.Sprint("snapshot, then parallelism ", parallelism))
			cut.restart(parallelism, now, watermarks)
		}
		in := rng.IntN(2)
		switch n := rng.IntN(10); {
		case i == 49:
			story = append(story, "the end")
			for _, f := range []*fleet{whole, cut} {
				f.watermark(0, math.MaxInt64)
				f.watermark(1, math.MaxInt64)
				f.clock(now + 1_000_000)
			}
		case n < 2:
			watermarks[in] = max(watermarks[in], -20) + rng.Int64N(30)
			story = append(story, fmt.Sprint("watermark ", watermarks[in], " on ", in))
			whole.watermark(in, watermarks[in])
			cut.watermark(in, watermarks[in])
		case n == 2:
			now += rng.Int64N(30)
			story = append(story, fmt.Sprint("processing time ", now))
			whole.clock(now)
			cut.clock(now)
		default:
			run := make([]element, 1+rng.IntN(8))
			for j := range run {
				ts := max(watermarks[in], -20) + 1 + rng.Int64N(60) - rng.Int64N(s.late(rng)+1)
				run[j] = flotttest.At(newRecord(rng.Int64N(9), rng.Int64N(100)), ts)
			}
			story = append(story, fmt.Sprint(run, " on ", in))
			whole.push(in, slices.Clone(run))
			cut.push(in, run)
		}
		if want, got := whole.output(), cut.output(); want != got {
			t.Fatalf("%s\nwithout snapshots\n%s\nwith them\n%s", strings.Join(story, "\n"), want, got)
		}
	}
}
