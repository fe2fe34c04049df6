package async

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/flott-dev/flott/internal/clock"
	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/host"
	"github.com/flott-dev/flott/internal/operator"
)

// bench drives one operator as a task does; the test's goroutine is the subtask.
type bench struct {
	t      *testing.T
	typ    *frame.Type
	clock  *clock.Manual
	rt     *operator.Runtime
	op     operator.Operator
	in     operator.Input
	out    []string
	cancel context.CancelFunc
}

type sink struct{ b *bench }

func (s sink) Type() *frame.Type { return s.b.typ }

func (s sink) Push(r *frame.Run) error {
	for i, v := range frame.Values[int64](r) {
		text := fmt.Sprint(v)
		if ts := r.Time(i); ts != frame.NoTime {
			text += fmt.Sprintf("@%d", ts)
		}
		s.b.out = append(s.b.out, text)
	}
	return nil
}

func (s sink) Mark(m frame.Mark) error {
	s.b.out = append(s.b.out, fmt.Sprintf("%v %d", m.Kind, m.Value))
	return nil
}

func open(t *testing.T, f func(context.Context, int64) ([]int64, error), opt Options[int64, int64]) *bench {
	t.Helper()
	return restored(t, f, opt, nil, 1)
}

// restored is open with what a snapshot has, for the first of so many subtasks.
func restored(t *testing.T, f func(context.Context, int64) ([]int64, error), opt Options[int64, int64], r *operator.Restored, parallelism int) *bench {
	t.Helper()
	typ, err := frame.TypeOf[int64]()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	b := &bench{t: t, typ: typ, clock: clock.NewManual(0), cancel: cancel}
	w := host.NewParker(b.clock)
	scope := &operator.Scope{
		Ctx: ctx, Clock: b.clock, Mailbox: host.NewMailbox(w), Waiter: w, Spawn: &host.Spawner{},
		Timers: &operator.Callbacks{}, Parallelism: parallelism,
	}
	b.rt = &operator.Runtime{Scope: scope, Name: "lookup", Restored: r}
	b.op = New(typ, typ, f, opt)
	if err := b.op.Output("").Connect(sink{b}, b.rt); err != nil {
		t.Fatal(err)
	}
	if err := b.op.Open(b.rt); err != nil {
		t.Fatal(err)
	}
	b.in = b.op.Inputs()[0]
	t.Cleanup(func() {
		b.cancel()
		if err := b.op.Close(); err != nil {
			t.Error(err)
		}
		scope.Spawn.Wait()
	})
	return b
}

func (b *bench) push(times []int64, xs ...int64) error {
	c := frame.NewColumn(b.typ, len(xs))
	for i, x := range xs {
		ts := int64(frame.NoTime)
		if times != nil {
			ts = times[i]
		}
		frame.Add(c, x, ts)
	}
	r := c.Run()
	return b.in.Push(&r)
}

// serve waits for one letter and opens it.
func (b *bench) serve() error {
	for {
		letters := b.rt.Mailbox.Take()
		for _, l := range letters {
			if err := l(); err != nil {
				return err
			}
		}
		if letters != nil {
			return nil
		}
		b.rt.Waiter.Wait(host.Idle, host.Forever)
	}
}

// at moves the clock and runs what is due.
func (b *bench) at(ms int64) error {
	b.clock.Set(ms)
	b.rt.Now = ms
	return b.rt.Timers.Run(ms - 1)
}

func (b *bench) end() error { return b.in.Mark(frame.Mark{Kind: frame.End}) }

func (b *bench) want(texts ...string) {
	b.t.Helper()
	if !slices.Equal(b.out, texts) {
		b.t.Fatalf("emitted %q, want %q", b.out, texts)
	}
	b.out = nil
}

// gate lets a test release the calls of elements one by one.
type gate map[int64]chan struct{}

func newGate(xs ...int64) gate {
	g := gate{}
	for _, x := range xs {
		g[x] = make(chan struct{})
	}
	return g
}

func (g gate) call(ctx context.Context, x int64) ([]int64, error) {
	select {
	case <-g[x]:
		return []int64{x * 10}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func TestOrderedResultsWaitForEarlierElements(t *testing.T) {
	g := newGate(1, 2)
	b := open(t, g.call, Options[int64, int64]{Order: Ordered, Capacity: 4})
	if err := b.push([]int64{5, 6}, 1, 2); err != nil {
		t.Fatal(err)
	}
	close(g[2])
	if err := b.serve(); err != nil {
		t.Fatal(err)
	}
	b.want()
	close(g[1])
	if err := b.serve(); err != nil {
		t.Fatal(err)
	}
	b.want("10@5", "20@6")
}

func TestUnorderedResultsStayBetweenTheirWatermarks(t *testing.T) {
	g := newGate(1, 2, 3)
	b := open(t, g.call, Options[int64, int64]{Order: Unordered, Capacity: 8})
	if err := b.push(nil, 1, 2); err != nil {
		t.Fatal(err)
	}
	for _, m := range []frame.Mark{{Kind: frame.Watermark, Value: 7}, {Kind: frame.Idle}, {Kind: frame.Active}} {
		if err := b.in.Mark(m); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.push(nil, 3); err != nil {
		t.Fatal(err)
	}
	close(g[3])
	if err := b.serve(); err != nil {
		t.Fatal(err)
	}
	b.want()
	close(g[2])
	if err := b.serve(); err != nil {
		t.Fatal(err)
	}
	b.want("20")
	close(g[1])
	if err := b.serve(); err != nil {
		t.Fatal(err)
	}
	b.want("10", "watermark 7", "idle 0", "active 0", "30")
}

func TestBarriersPassElementsUnderWay(t *testing.T) {
	g := newGate(1)
	b := open(t, g.call, Options[int64, int64]{Capacity: 2})
	if err := b.push(nil, 1); err != nil {
		t.Fatal(err)
	}
	for _, m := range []frame.Mark{{Kind: frame.Barrier, Value: 3}, {Kind: frame.LatencyMarker, Value: 4}} {
		if err := b.in.Mark(m); err != nil {
			t.Fatal(err)
		}
	}
	b.want("barrier 3", "latency marker 4")
	close(g[1])
	if err := b.end(); err != nil {
		t.Fatal(err)
	}
	b.want("10", "end 0")
}

func TestMarksOfAnEmptyQueuePassAtOnce(t *testing.T) {
	b := open(t, newGate().call, Options[int64, int64]{Capacity: 1})
	for range 3 {
		if err := b.in.Mark(frame.Mark{Kind: frame.Watermark, Value: 1}); err != nil {
			t.Fatal(err)
		}
	}
	b.want("watermark 1", "watermark 1", "watermark 1")
}

func TestAFullQueueBoundsTheCallsUnderWay(t *testing.T) {
	const capacity = 3
	started, release := make(chan struct{}, 100), make(chan struct{})
	b := open(t, func(_ context.Context, x int64) ([]int64, error) {
		started <- struct{}{}
		<-release
		return []int64{x, x}, nil
	}, Options[int64, int64]{Order: Unordered, Capacity: capacity})
	pushed := make(chan error)
	go func() { pushed <- b.push(nil, 1, 2, 3, 4, 5, 6, 7, 8) }()
	for range capacity {
		<-started
	}
	for range 5 {
		if len(started) != 0 {
			t.Fatal("a call began although the queue is full")
		}
		release <- struct{}{}
		<-started
	}
	close(release)
	if err := <-pushed; err != nil {
		t.Fatal(err)
	}
	if err := b.end(); err != nil {
		t.Fatal(err)
	}
	slices.Sort(b.out)
	b.want("1", "1", "2", "2", "3", "3", "4", "4", "5", "5", "6", "6", "7", "7", "8", "8", "end 0")
}

func TestWhileItWaitsItServesTimersAndLetters(t *testing.T) {
	b := open(t, func(ctx context.Context, x int64) ([]int64, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}, Options[int64, int64]{Capacity: 1, Timeout: 5, OnTimeout: func(x int64) ([]int64, error) { return []int64{-x}, nil }})
	b.rt.Mailbox.Post(func() error { // time passes while the second element waits for room
		b.out = append(b.out, "letter")
		b.clock.Set(6)
		b.rt.Waiter.Wake()
		return nil
	})
	if err := b.push(nil, 1, 2); err != nil {
		t.Fatal(err)
	}
	b.want("letter", "-1")
	if err := b.at(12); err != nil {
		t.Fatal(err)
	}
	b.want("-2")
}

func TestTimeoutFailsTheTaskUnlessHandled(t *testing.T) {
	var cause error
	seen := make(chan struct{})
	b := open(t, func(ctx context.Context, x int64) ([]int64, error) {
		<-ctx.Done()
		cause = context.Cause(ctx)
		close(seen)
		return nil, ctx.Err()
	}, Options[int64, int64]{Capacity: 2, Timeout: 10})
	if err := b.push(nil, 1); err != nil {
		t.Fatal(err)
	}
	if err := b.at(10); err != nil {
		t.Fatalf("failed at the time itself: %v", err)
	}
	err := b.at(11)
	if !errors.Is(err, ErrTimeout) || !strings.Contains(err.Error(), "10ms") {
		t.Fatalf("error %v", err)
	}
	if <-seen; !errors.Is(cause, ErrTimeout) {
		t.Errorf("the call's context ended because of %v", cause)
	}
}

func TestFailingTimeoutHandlerFailsTheTask(t *testing.T) {
	own := errors.New("own")
	b := open(t, newGate(1).call, Options[int64, int64]{Capacity: 2, Timeout: 1, OnTimeout: func(int64) ([]int64, error) { return nil, own }})
	if err := b.push(nil, 1); err != nil {
		t.Fatal(err)
	}
	if err := b.at(2); !errors.Is(err, own) {
		t.Fatalf("error %v", err)
	}
}

func TestResultThatCameInTimeBeatsTheTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(1)
		b := open(t, g.call, Options[int64, int64]{Capacity: 2, Timeout: 10})
		if err := b.push(nil, 1); err != nil {
			t.Fatal(err)
		}
		close(g[1])
		synctest.Wait() // the result lies there, nobody has looked
		if err := b.at(100); err != nil {
			t.Fatal(err)
		}
		b.want("10")
	})
}

func TestResultAfterTheTimeoutIsDropped(t *testing.T) {
	release := make(chan struct{})
	b := open(t, func(_ context.Context, x int64) ([]int64, error) { // ignores its context
		if x == 1 {
			<-release
		}
		return []int64{x}, nil
	}, Options[int64, int64]{Capacity: 1, Timeout: 10, OnTimeout: func(int64) ([]int64, error) { return nil, nil }})
	if err := b.push(nil, 1); err != nil {
		t.Fatal(err)
	}
	if err := b.at(11); err != nil {
		t.Fatal(err)
	}
	close(release)
	if err := b.push(nil, 2, 3); err != nil {
		t.Fatal(err)
	}
	if err := b.end(); err != nil {
		t.Fatal(err)
	}
	b.want("2", "3", "end 0")
}

func TestExtremeTimeoutsDoNotWrap(t *testing.T) {
	g := newGate(1)
	b := open(t, g.call, Options[int64, int64]{Capacity: 1, Timeout: frame.MaxWatermark})
	if err := b.at(1000); err != nil {
		t.Fatal(err)
	}
	if err := b.push(nil, 1); err != nil {
		t.Fatal(err)
	}
	if err := b.at(frame.MaxWatermark); err != nil {
		t.Fatal(err)
	}
	close(g[1])
	if err := b.end(); err != nil {
		t.Fatal(err)
	}
	b.want("10", "end 0")
}

func TestPanicAndEndedGoroutineBecomeErrors(t *testing.T) {
	own := errors.New("own")
	for name, f := range map[string]func(){
		"panic: boom":                      func() { panic("boom") },
		"panic: own":                       func() { panic(own) },
		"the function ended its goroutine": runtime.Goexit,
	} {
		b := open(t, func(context.Context, int64) ([]int64, error) {
			f()
			return nil, nil
		}, Options[int64, int64]{Capacity: 1, Retry: func(int, []int64, error) (int64, bool) { return 0, true }})
		err := b.push(nil, 1)
		if err == nil {
			err = b.end()
		}
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: error %v", name, err)
		}
		var p *operator.Panic
		if panicked := errors.As(err, &p); panicked != strings.HasPrefix(name, "panic") || panicked && len(p.Stack) == 0 {
			t.Errorf("%s: is a panic: %v", name, panicked)
		}
		if name == "panic: own" && !errors.Is(err, own) {
			t.Errorf("the panic's error is hidden in %v", err)
		}
	}
}

func TestCallsAreMadeAgainAfterTheirDelay(t *testing.T) {
	calls := make(chan int64, 10)
	bad := errors.New("bad")
	n := 0
	b := open(t, func(_ context.Context, x int64) ([]int64, error) {
		n++ // one call at a time
		calls <- x
		if n < 3 {
			return nil, bad
		}
		return []int64{x}, nil
	}, Options[int64, int64]{Capacity: 1, Retry: func(tries int, _ []int64, err error) (int64, bool) {
		return int64(tries) * 10, err != nil
	}})
	if err := b.push(nil, 7); err != nil {
		t.Fatal(err)
	}
	for i, due := range []int64{11, 32} {
		if err := b.serve(); err != nil {
			t.Fatal(err)
		}
		if err := b.at(due - 1); err != nil {
			t.Fatal(err)
		}
		if len(calls) != i+1 {
			t.Fatalf("%d calls before the delay was over", len(calls))
		}
		if err := b.at(due); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.end(); err != nil {
		t.Fatal(err)
	}
	b.want("7", "end 0")
	if len(calls) != 3 {
		t.Errorf("%d calls", len(calls))
	}
}

func TestTimeoutEndsRetries(t *testing.T) {
	bad := errors.New("bad")
	b := open(t, func(context.Context, int64) ([]int64, error) { return nil, bad }, Options[int64, int64]{
		Capacity: 1, Timeout: 50,
		OnTimeout: func(x int64) ([]int64, error) { return []int64{-x}, nil },
		Retry:     func(int, []int64, error) (int64, bool) { return 1000, true },
	})
	if err := b.push(nil, 7); err != nil {
		t.Fatal(err)
	}
	if err := b.serve(); err != nil {
		t.Fatal(err)
	}
	if err := b.at(51); err != nil {
		t.Fatal(err)
	}
	b.want("-7")
	if at, ok := b.rt.Timers.Next(); ok {
		t.Errorf("a retry is still due at %d", at)
	}
}

func TestResultsCanBeTriedAgain(t *testing.T) {
	n := int64(0)
	b := open(t, func(context.Context, int64) ([]int64, error) {
		n++
		return []int64{n}, nil
	}, Options[int64, int64]{Capacity: 1, Retry: func(tries int, r []int64, _ error) (int64, bool) { return 0, r[0] < 3 && tries < 5 }})
	if err := b.push(nil, 7); err != nil {
		t.Fatal(err)
	}
	if err := b.end(); err != nil {
		t.Fatal(err)
	}
	b.want("3", "end 0")
}

func TestEndOfTheTaskEndsTheWaiting(t *testing.T) {
	for name, wait := range map[string]func(b *bench) error{
		"room": func(b *bench) error { return b.push(nil, 1, 2) },
		"end": func(b *bench) error {
			if err := b.push(nil, 1); err != nil {
				return err
			}
			return b.end()
		},
	} {
		began := make(chan struct{}, 2)
		b := open(t, func(ctx context.Context, _ int64) ([]int64, error) {
			began <- struct{}{}
			<-ctx.Done()
			return nil, errors.New("gone")
		}, Options[int64, int64]{Capacity: 1})
		go func() {
			<-began
			b.cancel()
			b.rt.Waiter.Wake()
		}()
		if err := wait(b); !errors.Is(err, context.Canceled) || strings.Contains(err.Error(), "gone") {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

func TestErrorsDownstreamReachTheTask(t *testing.T) {
	typ, err := frame.TypeOf[int64]()
	if err != nil {
		t.Fatal(err)
	}
	b := open(t, func(_ context.Context, x int64) ([]int64, error) { return []int64{x}, nil }, Options[int64, int64]{Capacity: 1})
	if err := b.op.Output("").Connect(broken{typ}, b.rt); err != nil {
		t.Fatal(err)
	}
	err = b.push(nil, 1)
	if err == nil {
		err = b.end()
	}
	if !errors.Is(err, errBroken) {
		t.Fatalf("error %v", err)
	}
}

var errBroken = errors.New("broken")

type broken struct{ typ *frame.Type }

func (b broken) Type() *frame.Type       { return b.typ }
func (b broken) Push(*frame.Run) error   { return errBroken }
func (b broken) Mark(m frame.Mark) error { return errBroken }
