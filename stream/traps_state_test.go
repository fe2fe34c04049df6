package stream_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/flott-dev/flott/flotttest"
	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/serde"
	"github.com/flott-dev/flott/state"
	"github.com/flott-dev/flott/stream"
)

type (
	pointers struct{ P *int }
	inner    struct{ Tags []string }
	outer    struct {
		Name string
		In   inner
	}
)

// keyedBy keys a stream by a type and counts.
func keyedBy[K comparable](env *stream.Env, key func(int) K) {
	env.FromElements(1, 2, 3).KeyBy(key).Count().Discard()
}

// B023: types whose identity differs between processes are no keys: a build error with type, field and place. Slices and
// maps by themselves don't compile.
func TestB023KeysWithoutIdentityAreRefused(t *testing.T) {
	n := 1
	for name, c := range map[string]struct {
		build func(env *stream.Env)
		want  []string
	}{
		"pointer":            {func(env *stream.Env) { keyedBy(env, func(int) *int { return &n }) }, []string{"*int", "address"}},
		"pointer to struct":  {func(env *stream.Env) { keyedBy(env, func(int) *outer { return nil }) }, []string{"*stream_test.outer", "address"}},
		"struct of pointer":  {func(env *stream.Env) { keyedBy(env, func(int) pointers { return pointers{&n} }) }, []string{"stream_test.pointers", "field P"}},
		"channel":            {func(env *stream.Env) { keyedBy(env, func(int) chan int { return nil }) }, []string{"chan int"}},
		"interface":          {func(env *stream.Env) { keyedBy(env, func(x int) any { return x }) }, []string{"interface"}},
		"array of addresses": {func(env *stream.Env) { keyedBy(env, func(int) [2]uintptr { return [2]uintptr{} }) }, []string{"uintptr"}},
	} {
		t.Run(name, func(t *testing.T) {
			env := stream.NewEnv()
			c.build(env)
			executeFailing(t, env, append(c.want, "traps_state_test.go:")...)
		})
	}
}

// B023: a NaN is an error of its element, zeros are one key, and an empty text is a key like any other.
func TestB023OddKeys(t *testing.T) {
	env := stream.NewEnv().SetParallelism(4)
	env.FromElements(1, 2, math.NaN()).KeyBy(same[float64]).Count().Name("count").Discard()
	executeFailing(t, env, "NaN")

	counts := func(env *stream.Env, build func(env *stream.Env) *stream.Stream[string]) []string {
		var got gather[string]
		build(env).KeyBy(same[string]).Count().ForEach(func(c stream.KeyValue[string, int64]) { got.add(fmt.Sprintf("%q %d", c.Key, c.Value)) })
		execute(t, env)
		slices.Sort(got.xs)
		return got.xs
	}
	flotttest.Variants(t, func(t *testing.T, env *stream.Env) {
		got := counts(env, func(env *stream.Env) *stream.Stream[string] { return env.FromElements("", "a", "", "\x00") })
		flotttest.Equal(t, got, []string{`"" 1`, `"" 2`, `"\x00" 1`, `"a" 1`})

		var zeros gather[int64]
		env.FromElements(0.0, math.Copysign(0, -1), 0.0).KeyBy(same[float64]).Count().
			ForEach(func(c stream.KeyValue[float64, int64]) { zeros.add(c.Value) })
		execute(t, env)
		flotttest.Same(t, zeros.xs, []int64{1, 2, 3})
	})
}

// B023: equal keys meet in one subtask however they came about, and come out once each.
func TestB023EqualKeysMeet(t *testing.T) {
	type key struct {
		Name string
		Zone [2]int8
		At   float32
	}
	flotttest.Variants(t, func(t *testing.T, env *stream.Env) {
		var got gather[string]
		env.FromSequence(0, 999).KeyBy(func(x int64) key {
			return key{strings.Repeat("k", int(x%10)), [2]int8{int8(x % 2), -1}, float32(x%5) / 4}
		}).Count().Filter(func(c stream.KeyValue[key, int64]) bool { return c.Value == 100 }).
			ForEach(func(c stream.KeyValue[key, int64]) { got.add(c.Key.Name) })
		execute(t, env)
		slices.Sort(got.xs)
		if len(got.xs) != 10 || len(slices.Compact(got.xs)) != 10 {
			t.Errorf("%d of ten keys have come 100 times: %q", len(got.xs), got.xs)
		}
	})
}

// remember keeps a value for ten minutes and says whether there was one.
type remember struct {
	process.NoTimers[int, string]
	value *state.Value[string]
	list  *state.List[int]
	byKey *state.Map[int, int]
}

func newRemember(rt *process.Runtime) *remember {
	tenMinutes := state.TTL(state.TTLConfig{After: 10 * time.Minute})
	return &remember{
		value: state.NewValue[string](rt, "value", tenMinutes),
		list:  state.NewList[int](rt, "list", tenMinutes),
		byKey: state.NewMap[int, int](rt, "map", tenMinutes),
	}
}

// ProcessElement writes for a positive number and looks for a negative one.
func (r *remember) ProcessElement(ctx *process.KeyedContext[int], x int, out *process.Collector[string]) error {
	if x > 0 {
		r.value.Set("written")
		r.list.Add(x)
		r.byKey.Put(x, x)
		out.Collect("written")
		return nil
	}
	out.Collect(fmt.Sprint(ctx.Key(), " ", r.value.Exists(), r.value.Get() == "written", len(r.list.Get()), r.byKey.Contains(-x)))
	return nil
}

// B022: what has expired is not seen any more, whether or not anything has cleaned it up. (Across a pause of the job: when
// there are snapshots.)
func TestB022ExpiredStateIsNotSeen(t *testing.T) {
	clock := flotttest.NewClock(0)
	env := stream.NewEnv(flotttest.WithClock(clock)).SetParallelism(1)
	script := flotttest.NewScript[int]().
		Emit(1).Pause("5 min").Emit(2).Pause("9 min").Emit(3).Pause("12 min").Emit(-1, -2, -3)
	out := make(chan string, 10)
	flotttest.FromScripts(env, script).KeyBy(func(x int) int { return max(x, -x) }).Process(newRemember).
		ForEach(func(s string) { out <- s })
	job := start(t, env)
	for _, minute := range []int64{5, 9, 12} {
		if got := receive(t, job, out); got != "written" {
			t.Errorf("got %s", got)
		}
		clock.Set(minute * 60_000)
		script.Resume(fmt.Sprint(minute, " min"))
	}
	finish(t, job)
	for _, want := range []string{"1 false false 0 false", "2 true true 1 true", "3 true true 1 true"} {
		if got := receive(t, job, out); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// meddler changes whatever it gave to its state or got from it.
type meddler struct {
	process.NoTimers[int, string]
	pointer *state.Value[*outer]
	list    *state.List[[]int]
	byName  *state.Map[string, []string]
	reduced *state.Reducing[inner]
}

func newMeddler(rt *process.Runtime) *meddler {
	return &meddler{
		pointer: state.NewValue[*outer](rt, "pointer"),
		list:    state.NewList[[]int](rt, "list"),
		byName:  state.NewMap[string, []string](rt, "map"),
		reduced: state.NewReducing(rt, "reduced", func(a, b inner) inner { return inner{append(a.Tags, b.Tags...)} }),
	}
}

func (m *meddler) ProcessElement(_ *process.KeyedContext[int], x int, out *process.Collector[string]) error {
	if x == 0 {
		p, xs, names, tags := &outer{"first", inner{[]string{"a"}}}, []int{1, 2}, []string{"n"}, []string{"t"}
		m.pointer.Set(p)
		m.list.Add(xs)
		m.byName.Put("k", names)
		m.reduced.Add(inner{tags})
		p.Name, p.In.Tags[0], xs[0], names[0], tags[0] = "changed", "changed", -1, "changed", "changed"
	}
	p, xs, names, in := m.pointer.Get(), m.list.Get(), m.byName.Get("k"), m.reduced.Get()
	out.Collect(fmt.Sprint(*p, xs, names, in))
	p.Name, p.In.Tags[0], xs[0][0], names[0], in.Tags[0] = "changed", "changed", -1, "changed", "changed"
	for _, v := range m.byName.All() {
		v[0] = "changed"
	}
	for v := range m.list.All() {
		v[0] = -1
	}
	return nil
}

// B024: what goes into state and comes out of it is a copy, so that a snapshot can't see later changes.
func TestB024StateSharesNoMemoryWithTheProgram(t *testing.T) {
	const want = "{first {[a]}} [[1 2]] [n] {[t]}"
	flotttest.Variants(t, func(t *testing.T, env *stream.Env) {
		var got gather[string]
		env.FromElements(0, 1, 2).KeyBy(one[int]).Process(newMeddler).ForEach(got.add)
		execute(t, env)
		flotttest.Equal(t, got.xs, []string{want, want, want})
	})
}

// announcer puts what is broadcast into broadcast state, and changes it afterwards.
type announcer struct {
	news *state.BroadcastDescriptor[string, []string]
}

func (a announcer) ProcessElement(ctx *process.ReadOnlyContext, _ string, out *process.Collector[string]) error {
	v := ctx.BroadcastState(a.news).Get("news")
	out.Collect(fmt.Sprint(v))
	v[0] = "changed"
	return nil
}

func (a announcer) ProcessBroadcastElement(ctx *process.BroadcastContext, s string, out *process.Collector[string]) error {
	v := []string{s}
	ctx.BroadcastState(a.news).Put("news", v)
	v[0] = "changed"
	out.Collect("told")
	return nil
}

// B024: the same for broadcast state.
func TestB024BroadcastStateSharesNoMemoryWithTheProgram(t *testing.T) {
	env := stream.NewEnv().SetParallelism(1)
	news := state.NewBroadcast[string, []string]("news")
	readers := flotttest.NewScript[string]().Pause("told").Emit("x", "y")
	got := make(chan string, 10)
	flotttest.FromScripts(env, readers).ConnectBroadcast(env.FromElements("rain").BroadcastState(news)).
		Process(func(*process.Runtime) announcer { return announcer{news} }).
		ForEach(func(s string) { got <- s })
	job := start(t, env)
	for i, want := range []string{"told", "[rain]", "[rain]"} {
		if s := receive(t, job, got); s != want {
			t.Errorf("got %s, want %s", s, want)
		}
		if i == 0 {
			readers.Resume("told")
		}
	}
	finish(t, job)
}

// B071: counts are logical: every element once, however operators are chained and however many consumers there are.
func TestB071ElementsAreCountedOnce(t *testing.T) {
	odd := process.NewOutputTag[int64]("every tenth")
	build := func(env *stream.Env, consumers int) (main, side []*atomic.Int64) {
		s := env.FromSequence(0, 999).Map(same[int64]).Name("map").
			Process(func(*process.Runtime) tenth { return tenth{odd} }).Name("split")
		count := func(s *stream.Stream[int64], name string) *atomic.Int64 {
			n := new(atomic.Int64)
			s.Map(same[int64]).Name(name).ForEach(func(int64) { n.Add(1) }).Name("sink of " + name)
			return n
		}
		for i := range consumers {
			main = append(main, count(s, fmt.Sprint("main ", i)))
			side = append(side, count(s.SideOutput(odd), fmt.Sprint("side ", i)))
		}
		return main, side
	}
	for _, consumers := range []int{1, 2} {
		flotttest.Variants(t, func(t *testing.T, env *stream.Env) {
			main, side := build(env, consumers)
			job := start(t, env)
			finish(t, job)
			for i := range consumers {
				if main[i].Load() != 900 || side[i].Load() != 100 {
					t.Errorf("consumer %d got %d and %d elements", i, main[i].Load(), side[i].Load())
				}
				if m, s := metricsOf(t, job, fmt.Sprint("main ", i)), metricsOf(t, job, fmt.Sprint("side ", i)); m.RecordsOut != 900 || s.RecordsOut != 100 {
					t.Errorf("consumer %d is said to have emitted %d and %d", i, m.RecordsOut, s.RecordsOut)
				}
			}
			if m := metricsOf(t, job, "Sequence Source"); m.RecordsOut != 1000 {
				t.Errorf("the source is said to have emitted %d", m.RecordsOut)
			}
			if m := metricsOf(t, job, "map"); m.RecordsOut != 1000 {
				t.Errorf("the map is said to have emitted %d", m.RecordsOut)
			}
			if m := metricsOf(t, job, "split"); m.RecordsOut != 900 || m.SideOut[odd.Name()] != 100 {
				t.Errorf("the split is said to have emitted %d and %v", m.RecordsOut, m.SideOut)
			}
		})
	}
}

// tenth sends every tenth number aside.
type tenth struct{ aside process.OutputTag[int64] }

func (f tenth) ProcessElement(ctx *process.Context, x int64, out *process.Collector[int64]) error {
	if x%10 == 0 {
		ctx.Emit(f.aside, x)
		return nil
	}
	out.Collect(x)
	return nil
}

// B076: elements without a byte keep their number on every way.
func TestB076EmptyElementsKeepTheirNumber(t *testing.T) {
	type nothing struct{}
	flotttest.Variants(t, func(t *testing.T, env *stream.Env) {
		var shuffled, spread atomic.Int64
		var counts gather[int64]
		s := env.FromSequence(1, 1000).Map(func(int64) nothing { return nothing{} })
		s.Shuffle().Map(same[nothing]).ForEach(func(nothing) { shuffled.Add(1) })
		s.Broadcast().Map(same[nothing]).Parallelism(3).ForEach(func(nothing) { spread.Add(1) })
		s.KeyBy(same[nothing]).Count().ForEach(func(c stream.KeyValue[nothing, int64]) { counts.add(c.Value) })
		execute(t, env)
		if shuffled.Load() != 1000 || spread.Load() != 3000 || len(counts.xs) != 1000 || slices.Max(counts.xs) != 1000 {
			t.Errorf("%d shuffled, %d broadcast to three, %d counted", shuffled.Load(), spread.Load(), len(counts.xs))
		}
	})
}

type celsius struct{ degrees float64 }

// B076: a codec that does not read what it wrote fails at once, with the type and both lengths.
func TestB076CodecOfAnotherLength(t *testing.T) {
	wrong := serde.WithCodec(
		func(dst []byte, c celsius) ([]byte, error) { return append(dst, "twelve bytes"...), nil },
		func([]byte) (celsius, int, error) { return celsius{}, 8, nil },
	)
	env := stream.NewEnv(stream.WithTypes(wrong), stream.WithIsolation()).SetParallelism(2)
	env.FromSequence(1, 100_000).Map(func(x int64) celsius { return celsius{float64(x)} }).Rebalance().
		Map(func(c celsius) float64 { return c.degrees }).Discard()
	executeFailing(t, env, "stream_test.celsius", "12", "8")
}

// B074: a wide shuffle makes progress in little memory. When not even that is there, the error says how much was needed
// and how much there is.
func TestB074WideShuffle(t *testing.T) {
	const wide = 200
	shuffle := func(bytes int64) (int64, error) {
		env := stream.NewEnv(stream.WithMemory(bytes)).SetParallelism(wide)
		var n atomic.Int64
		env.FromSequence(1, 100_000).Shuffle().Map(same[int64]).ForEach(func(int64) { n.Add(1) })
		_, err := env.Execute(context.Background(), t.Name())
		return n.Load(), err
	}
	if n, err := shuffle(64 << 20); n != 100_000 || err != nil {
		t.Errorf("%d of 100000 elements came through, %v", n, err)
	}
	if n, err := shuffle(4 << 20); n != 100_000 || err != nil {
		t.Errorf("in 4 MiB %d of 100000 elements came through, %v", n, err)
	}
	if _, err := shuffle(1 << 10); err == nil || !strings.Contains(err.Error(), "of 1024 bytes are in use") {
		t.Errorf("got %v, want an error that names the memory", err)
	}
}

// B073: elements larger than any frame travel alone, and arrive as they were.
func TestB073LargeElements(t *testing.T) {
	sizes := []int{0, 1, 32<<10 - 1, 32 << 10, 32<<10 + 1, 5 << 20, 20 << 20}
	for _, opts := range [][]stream.Option{nil, {stream.WithIsolation()}} {
		env := stream.NewEnv(opts...).SetParallelism(4)
		type sum struct {
			Size int
			CRC  uint32
		}
		check := func(b []byte) sum { return sum{len(b), crc32.ChecksumIEEE(b)} }
		var got gather[sum]
		var want []sum
		for i, size := range sizes {
			want = append(want, check(bytes.Repeat([]byte{byte(i), 'x', 0}, size)))
		}
		env.FromSequence(0, int64(len(sizes)-1)).Map(func(i int64) []byte {
			return bytes.Repeat([]byte{byte(i), 'x', 0}, sizes[i])
		}).Rebalance().Map(check).ForEach(got.add)
		execute(t, env)
		flotttest.Same(t, got.xs, want)
	}
}

// B038: a limit of three failures allows three restarts; the fourth failure ends the job with its cause.
func TestB038FailureRateAllowsAsManyRestarts(t *testing.T) {
	cause := errors.New("always")
	var attempts gather[int]
	env := stream.NewEnv().SetParallelism(1).
		SetRestartStrategy(stream.FailureRateRestart(3, 5*time.Minute, time.Millisecond))
	numbers(env).Process(func(rt *process.Runtime) failing {
		attempts.add(rt.Info().Attempt)
		return failing{cause}
	}).Name("failing").Discard()
	if err := executeFailing(t, env, `operator "failing"`); !errors.Is(err, cause) {
		t.Errorf("got %v", err)
	}
	flotttest.Equal(t, attempts.xs, []int{0, 1, 2, 3})
}

type failing struct{ cause error }

func (f failing) ProcessElement(*process.Context, int, *process.Collector[int]) error { return f.cause }
