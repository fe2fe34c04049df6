package stream_test

// The traps of event time and timers that other engines fell into, through the public API. Their numbers are those of the
// project's list of traps; the other traps_*_test.go files hold the rest.

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/flott-dev/flott/flotttest"
	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/state"
	"github.com/flott-dev/flott/stream"
	"github.com/flott-dev/flott/watermark"
)

// start runs what was built in the background; the job is cancelled when the test ends.
func start(t *testing.T, env *stream.Env) *stream.Job {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	job, err := env.ExecuteAsync(ctx, t.Name())
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		<-job.Done()
	})
	return job
}

// finish waits for the job's good end.
func finish(t *testing.T, job *stream.Job) {
	t.Helper()
	if _, err := job.Wait(); err != nil {
		t.Fatal(err)
	}
}

// receive takes from a channel that a running job feeds, and gives up when the job can't do it any more.
func receive[T any](t *testing.T, job *stream.Job, from <-chan T) (x T) {
	t.Helper()
	select {
	case x = <-from:
	case <-job.Done():
		select {
		case x = <-from:
			return x
		default:
		}
		_, err := job.Wait()
		t.Fatalf("the job has ended (%v) without what was waited for", err)
	case <-time.After(5 * time.Minute): // only a failure takes so long
		t.Fatal("nothing came: the job makes no progress")
	}
	return x
}

func one[T any](T) int { return 1 }

// alarm registers an event-time timer at a fixed time for each element, and emits its own state of things when it fires.
type alarm[T any] struct {
	at    int64
	count *state.Value[int]
}

func newAlarm[T any](at int64) func(*process.Runtime) *alarm[T] {
	return func(rt *process.Runtime) *alarm[T] { return &alarm[T]{at, state.NewValue[int](rt, "count")} }
}

func (a *alarm[T]) ProcessElement(ctx *process.KeyedContext[int], _ T, _ *process.Collector[string]) error {
	a.count.Update(func(n *int) { *n++ })
	ctx.RegisterTimer(process.EventTime, a.at)
	return nil
}

func (a *alarm[T]) OnTimer(ctx *process.KeyedContext[int], t process.Timer, out *process.Collector[string]) error {
	out.Collect(fmt.Sprintf("%d elements at %d", a.count.Get(), t.Millis))
	a.count.Clear()
	return nil
}

// B006: when all inputs are idle, event time is the maximum of theirs, whoever went idle first.
func TestB006AllIdleInputsFlushToTheirMaximum(t *testing.T) {
	for _, first := range []int{0, 1} {
		t.Run(fmt.Sprintf("input %d first", first), func(t *testing.T) {
			a := flotttest.NewScript[string]().Pause("begin").EmitAt("a", 1).Watermark(5).Idle().Pause("end")
			b := flotttest.NewScript[string]().Pause("begin").EmitAt("b", 1).Watermark(4).Idle().Pause("idle").
				Watermark(4).Idle().Pause("end")
			scripts := []*flotttest.Script[string]{a, b}
			env := stream.NewEnv().SetParallelism(1)
			fired := make(chan string, 10)
			flotttest.FromScripts(env, scripts...).KeyBy(one[string]).Process(newAlarm[string](5)).
				ForEach(func(s string) { fired <- s })
			job := start(t, env)
			pauses := [][]string{{"begin", "end"}, {"begin", "idle"}}
			for _, i := range []int{first, 1 - first} {
				scripts[i].Resume(pauses[i][0])
				scripts[i].Await(t, pauses[i][1])
			}
			if got := receive(t, job, fired); got != "2 elements at 5" {
				t.Errorf("fired with %q", got)
			}
			b.Resume("idle") // comes back with an old watermark, and goes
			a.Resume("end")
			b.Resume("end")
			finish(t, job)
			if len(fired) != 0 {
				t.Errorf("fired again with %q", <-fired)
			}
		})
	}
}

// quiet is a two-input function with a timer on the side of its first input.
type quiet struct {
	process.NoTimers[int, string]
}

func (quiet) ProcessElement1(ctx *process.KeyedContext[int], ms int64, _ *process.Collector[string]) error {
	ctx.RegisterTimer(process.EventTime, 30_000)
	return nil
}

func (quiet) ProcessElement2(ctx *process.KeyedContext[int], rule int64, out *process.Collector[string]) error {
	out.Collect(fmt.Sprintf("rule %d at %d", rule, ctx.Watermark()))
	return nil
}

func (quiet) OnTimer(ctx *process.KeyedContext[int], t process.Timer, out *process.Collector[string]) error {
	out.Collect(fmt.Sprintf("timer %d", t.Millis))
	return nil
}

// B008: an operator with two inputs follows the active one while the other is idle, and never goes back.
func TestB008QuietSideDoesNotHoldTheOtherBack(t *testing.T) {
	clock := flotttest.NewClock(0)
	env := stream.NewEnv(flotttest.WithClock(clock)).SetParallelism(1)
	events := flotttest.NewScript[int64]()
	for ms := int64(0); ms <= 60_000; ms += 1000 {
		events.EmitAt(ms, ms).Watermark(ms)
	}
	events.Pause("end")
	rules := flotttest.NewScript[int64]().EmitAt(1, 0).Pause("quiet").EmitAt(2, 10_000).Pause("end")
	quietAfter5s := watermark.ForMonotonousTimestamps[int64]().WithIdleness(5 * time.Second)
	out := make(chan string, 10)
	flotttest.FromScripts(env, events).KeyBy(one[int64]).
		Connect(flotttest.FromScripts(env, rules).AssignTimestampsAndWatermarks(quietAfter5s).KeyBy(one[int64])).
		Process(func(*process.Runtime) quiet { return quiet{} }).
		ForEach(func(s string) { out <- s })
	job := start(t, env)
	if got, want := receive(t, job, out), fmt.Sprintf("rule 1 at %d", int64(math.MinInt64)); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	events.Await(t, "end")
	// The strategy looks at the clock every auto watermark interval: each step is a look.
	for fired := false; !fired; {
		clock.Advance(time.Second)
		select {
		case s := <-out:
			fired = true
			if s != "timer 30000" {
				t.Fatalf("got %q", s)
			}
			if clock.Millis() < 5000 {
				t.Errorf("idle after %d ms of silence", clock.Millis())
			}
		case <-time.After(time.Millisecond):
			if clock.Millis() > 100_000_000 { // a hundred thousand looks, a millisecond of real time after each
				t.Fatal("the quiet side still holds the timer back")
			}
		}
	}
	rules.Resume("quiet")
	if got := receive(t, job, out); got != "rule 2 at 60000" {
		t.Errorf("after the quiet side has come back: %q", got)
	}
	rules.Resume("end")
	events.Resume("end")
	finish(t, job)
}

// B009: a stream united with itself gives each element twice, and event time goes on over both edges.
func TestB009UnionWithItself(t *testing.T) {
	for name, unite := range map[string]func(s *stream.Stream[int64]) *stream.Stream[int64]{
		"plain":    func(s *stream.Stream[int64]) *stream.Stream[int64] { return s.Union(s) },
		"forward":  func(s *stream.Stream[int64]) *stream.Stream[int64] { return s.Forward().Union(s) },
		"operator": func(s *stream.Stream[int64]) *stream.Stream[int64] { return s.Union(s).Map(same[int64]) },
		"keyed on two keys": func(s *stream.Stream[int64]) *stream.Stream[int64] {
			return s.KeyBy(same[int64]).Stream().Union(s.KeyBy(func(x int64) string { return fmt.Sprint(x % 2) }).Stream())
		},
	} {
		for _, parallelism := range []int{1, 4} {
			t.Run(fmt.Sprintf("%s, parallelism %d", name, parallelism), func(t *testing.T) {
				env := stream.NewEnv().SetParallelism(parallelism)
				script := flotttest.NewScript[int64]()
				for x := int64(1); x <= 5; x++ {
					script.EmitAt(x, x)
				}
				script.Watermark(10).Pause("end")
				fired := make(chan string, 10)
				unite(flotttest.FromScripts(env, script).Map(same[int64])).
					KeyBy(one[int64]).Process(newAlarm[int64](10)).
					ForEach(func(s string) { fired <- s })
				job := start(t, env)
				if got := receive(t, job, fired); got != "10 elements at 10" {
					t.Errorf("got %q", got)
				}
				script.Resume("end")
				finish(t, job)
			})
		}
	}
}

func same[T any](x T) T { return x }

// second counts the elements of each second of event time, with late ones in a side output.
type second struct {
	late  process.OutputTag[int64]
	count *state.Map[int64, int64]
}

// endOfSecond saturates: the last second of time ends with it.
func endOfSecond(ms int64) int64 {
	return watermark.Add(ms, 999-((ms%1000)+1000)%1000)
}

func (s *second) ProcessElement(ctx *process.KeyedContext[int], ms int64, _ *process.Collector[string]) error {
	end := endOfSecond(ms)
	if ctx.Watermark() >= end {
		ctx.Emit(s.late, ms)
		return nil
	}
	s.count.Update(end, func(n *int64) { *n++ })
	ctx.RegisterTimer(process.EventTime, end)
	return nil
}

func (s *second) OnTimer(_ *process.KeyedContext[int], t process.Timer, out *process.Collector[string]) error {
	out.Collect(fmt.Sprintf("%d until %d", s.count.Get(t.Millis), t.Millis))
	return nil
}

// B012: one absurd timestamp makes others late, once each; nothing wraps around, the job goes on.
func TestB012AbsurdTimestamps(t *testing.T) {
	const year3000 = 32_503_680_000_000
	for name, c := range map[string]struct {
		in              []int64
		wantOut, wantLt []string
	}{
		"sane":       {[]int64{1000, 1999, 2000, 1500}, []string{"3 until 1999", "1 until 2999"}, nil},
		"year 3000":  {[]int64{1000, year3000, 2000}, []string{"1 until 1999", "1 until 32503680000999"}, []string{"2000"}},
		"last ms":    {[]int64{1000, math.MaxInt64, 2000}, []string{"1 until 1999", "1 until 9223372036854775807"}, []string{"2000"}},
		"first ms":   {[]int64{math.MinInt64 + 1, 1000}, []string{"1 until -9223372036854775001", "1 until 1999"}, nil},
		"before 0":   {[]int64{-1, -1000, -1001, 0}, []string{"1 until -1001", "2 until -1", "1 until 999"}, nil},
		"both sides": {[]int64{math.MaxInt64, math.MinInt64 + 1, math.MaxInt64}, []string{"2 until 9223372036854775807"}, []string{"-9223372036854775807"}},
	} {
		t.Run(name, func(t *testing.T) {
			behind := watermark.Punctuated(func(_, ms int64) (int64, bool) { return watermark.Add(ms, -5001), true }).
				WithMillis(same[int64])
			env := stream.NewEnv().SetParallelism(1)
			tag := process.NewOutputTag[int64]("late")
			var out, late gather[string]
			s := env.FromSlice(c.in).AssignTimestampsAndWatermarks(behind).KeyBy(one[int64]).
				Process(func(rt *process.Runtime) *second {
					return &second{tag, state.NewMap[int64, int64](rt, "count")}
				})
			s.ForEach(out.add)
			s.SideOutput(tag).ForEach(func(ms int64) { late.add(fmt.Sprint(ms)) })
			execute(t, env)
			if !slices.Equal(out.xs, c.wantOut) || !slices.Equal(late.xs, c.wantLt) {
				t.Errorf("got %q and late %q, want %q and late %q", out.xs, late.xs, c.wantOut, c.wantLt)
			}
		})
	}
}

// B012: without a timestamp assigner elements have no timestamp, which a function can tell from the least time.
func TestB012ElementsWithoutTimestamp(t *testing.T) {
	env := stream.NewEnv().SetParallelism(1)
	var got gather[string]
	env.FromSlice(sales).Process(func(*process.Runtime) stamps { return stamps{} }).ForEach(got.add)
	execute(t, env)
	if len(got.xs) != 0 {
		t.Errorf("elements without timestamps have %q", got.xs)
	}
	// A strategy that keeps timestamps must not take the least time for one.
	env.FromSlice(sales).AssignTimestampsAndWatermarks(watermark.ForBoundedOutOfOrderness[Sale](time.Second)).
		Process(func(*process.Runtime) stamps { return stamps{} }).ForEach(got.add)
	execute(t, env)
	if len(got.xs) != 0 {
		t.Errorf("elements without timestamps got %q", got.xs)
	}
}

// tumbling counts elements in windows of a second of processing time.
type tumbling struct{ count *state.Map[int64, int64] }

func (w *tumbling) ProcessElement(ctx *process.KeyedContext[int], _ string, out *process.Collector[string]) error {
	last := ctx.ProcessingTime()/1000*1000 + 999
	w.count.Update(last, func(n *int64) { *n++ })
	ctx.RegisterTimer(process.ProcessingTime, last)
	out.Collect(fmt.Sprintf("element at %d", ctx.ProcessingTime()))
	return nil
}

func (w *tumbling) OnTimer(_ *process.KeyedContext[int], t process.Timer, out *process.Collector[string]) error {
	out.Collect(fmt.Sprintf("%d in the second of %d", w.count.Get(t.Millis), t.Millis))
	return nil
}

// B013: a processing-time timer fires once the clock is past it, so that elements of its last millisecond come before.
func TestB013ProcessingTimeTimerDoesNotFireEarly(t *testing.T) {
	clock := flotttest.NewClock(999)
	env := stream.NewEnv(flotttest.WithClock(clock)).SetParallelism(1)
	script := flotttest.NewScript[string]().Emit("a").Pause("1").Emit("b").Pause("2").Emit("c").Pause("3")
	out := make(chan string, 10)
	flotttest.FromScripts(env, script).KeyBy(one[string]).
		Process(func(rt *process.Runtime) *tumbling { return &tumbling{state.NewMap[int64, int64](rt, "count")} }).
		ForEach(func(s string) { out <- s })
	job := start(t, env)
	expect := func(want string) {
		t.Helper()
		if got := receive(t, job, out); got != want {
			t.Fatalf("got %q, want %q", got, want)
		}
	}
	expect("element at 999")
	script.Resume("1")
	expect("element at 999")
	clock.Set(1000)
	expect("2 in the second of 999")
	script.Resume("2")
	expect("element at 1000")
	clock.Set(2000)
	expect("1 in the second of 1999")
	script.Resume("3")
	finish(t, job)
}

// reminder sets a timer for its element and emits its time, negative when it is set, positive when it fires.
type reminder struct{ domain process.Domain }

func (r reminder) ProcessElement(ctx *process.KeyedContext[int64], ms int64, out *process.Collector[int64]) error {
	for range 3 { // it is one timer all the same
		ctx.RegisterTimer(r.domain, ms)
	}
	out.Collect(-ms)
	return nil
}

func (r reminder) OnTimer(_ *process.KeyedContext[int64], t process.Timer, out *process.Collector[int64]) error {
	out.Collect(t.Millis)
	return nil
}

// B015: 100,000 timers that are overdue fire in one go, once each, in the order of their times.
func TestB015OverdueTimersFireOnceInOrder(t *testing.T) {
	const n, week = 100_000, 7 * 24 * 3_600_000
	scattered := func(i int64) int64 { return i * 7919 % n }
	for _, domain := range []process.Domain{process.EventTime, process.ProcessingTime} {
		t.Run(domain.String(), func(t *testing.T) {
			clock := flotttest.NewClock(0)
			env := stream.NewEnv(flotttest.WithClock(clock)).SetParallelism(1)
			script := flotttest.NewScript[int64]()
			for i := range int64(n) {
				script.Emit(scattered(i) + 1)
			}
			script.Pause("all").Watermark(week).Pause("end")
			var set int
			var fired []int64
			step := make(chan bool, 2)
			flotttest.FromScripts(env, script).KeyBy(same[int64]).
				Process(func(*process.Runtime) reminder { return reminder{domain} }).
				ForEach(func(ms int64) {
					if ms < 0 {
						set++
					} else {
						fired = append(fired, ms)
					}
					if set == n && len(fired) == 0 || len(fired) == n {
						step <- true
					}
				})
			job := start(t, env)
			receive(t, job, step)
			clock.Set(week)
			script.Resume("all")
			receive(t, job, step)
			script.Resume("end")
			finish(t, job)
			if len(fired) != n || !slices.IsSorted(fired) || fired[0] != 1 || fired[n-1] != n {
				t.Errorf("%d timers fired, in order: %v", len(fired), slices.IsSorted(fired))
			}
		})
	}
}
