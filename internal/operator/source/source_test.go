package source

import (
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"testing"

	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/host"
	"github.com/flott-dev/flott/internal/operator"
	kit "github.com/flott-dev/flott/internal/operator/operatortest"
)

// openPart opens a source as one of several subtasks.
func openPart(t testing.TB, op operator.Operator, subtask, parallelism, runLen int) (*kit.Recorder, *operator.Runtime) {
	t.Helper()
	rt := kit.Runtime()
	rt.Subtask, rt.Parallelism, rt.RunLen = subtask, parallelism, runLen
	return kit.OpenAt(t, op, rt), rt
}

// drain polls a source to its end; where it has nothing, the subtask waits as a task does.
func drain(t testing.TB, op operator.Operator, rt *operator.Runtime) error {
	t.Helper()
	for {
		switch status, err := op.(operator.Source).Poll(); {
		case err != nil || status == operator.Done:
			return err
		case status == operator.Nothing:
			rt.Waiter.Wait(host.Idle, host.Forever)
		}
	}
}

func TestSliceIsCutIntoContiguousParts(t *testing.T) {
	typ := kit.TypeOf[int64](t)
	for n := range 12 {
		for parallelism := 1; parallelism <= 5; parallelism++ {
			xs := kit.Numbers(n)
			var all []string
			for subtask := range parallelism {
				op := Slice(typ, xs)
				out, rt := openPart(t, op, subtask, parallelism, 2)
				kit.Must(t, drain(t, op, rt))
				if got := len(out.Values); got < n/parallelism || got > n/parallelism+1 {
					t.Errorf("%d elements over %d subtasks: subtask %d got %d", n, parallelism, subtask, got)
				}
				if len(out.Runs) > 0 && slices.Max(out.Runs) > 2 {
					t.Errorf("runs of %v elements, want 2 at most", out.Runs)
				}
				all = append(all, out.Values...)
			}
			if want := fmt.Sprint(kit.Numbers(n)); fmt.Sprint(all) != want || fmt.Sprint(xs) != want {
				t.Errorf("%d elements over %d subtasks: got %v, the slice is now %v", n, parallelism, all, xs)
			}
		}
	}
}

func TestSequenceIsCutIntoContiguousParts(t *testing.T) {
	typ := kit.TypeOf[int64](t)
	for _, start := range []int64{math.MinInt64, -3, 0, math.MaxInt64 - 8} {
		for n := range int64(10) {
			from, to := start, start+n-1
			if n == 0 {
				from, to = 1, 0
			}
			for _, parallelism := range []int{1, 2, 3, 7, 12} {
				var all, want []string
				for i := range n {
					want = append(want, fmt.Sprint(from+i))
				}
				for subtask := range parallelism {
					op := Sequence(typ, from, to)
					out, rt := openPart(t, op, subtask, parallelism, 3)
					kit.Must(t, drain(t, op, rt))
					if got := len(out.Values); got < int(n)/parallelism || got > int(n)/parallelism+1 {
						t.Errorf("%d ... %d over %d subtasks: subtask %d got %d", from, to, parallelism, subtask, got)
					}
					all = append(all, out.Values...)
				}
				if !slices.Equal(all, want) {
					t.Errorf("%d ... %d over %d subtasks: got %v", from, to, parallelism, all)
				}
			}
		}
	}
}

func TestAllNumbersAreASequence(t *testing.T) {
	for _, p := range []uint64{1, 2, 3, 128, 1000} {
		next := int64(math.MinInt64)
		for i := range p {
			first, last := part(math.MinInt64, math.MaxInt64, i, p)
			if first != next || last <= first || i == p-1 && last != math.MaxInt64 {
				t.Fatalf("part %d of %d is %d ... %d, want it to begin at %d", i, p, first, last, next)
			}
			next = last + 1
		}
	}
	op := Sequence(kit.TypeOf[int64](t), math.MinInt64, math.MaxInt64)
	out, _ := openPart(t, op, 0, 1, frame.DefaultLen)
	if status, err := op.(operator.Source).Poll(); status != operator.More || err != nil || len(out.Values) != frame.DefaultLen {
		t.Errorf("status %v, error %v, %d numbers", status, err, len(out.Values))
	}
}

func TestSequenceEmitsFullFrames(t *testing.T) {
	op := Sequence(kit.TypeOf[int64](t), 0, 2*frame.DefaultLen)
	out, rt := openPart(t, op, 0, 1, 5*frame.DefaultLen)
	kit.Must(t, drain(t, op, rt))
	if want := []int{frame.DefaultLen, frame.DefaultLen, 1}; !slices.Equal(out.Runs, want) {
		t.Errorf("runs of %v, want %v", out.Runs, want)
	}
}

func TestGeneratorDealsIndicesInTurn(t *testing.T) {
	typ := kit.TypeOf[int64](t)
	for _, n := range []int64{0, 1, 5, 7, 3000} {
		const parallelism = 3
		var all []int64
		for subtask := range parallelism {
			op := Generator(typ, n, func(i int64) int64 {
				if i%parallelism != int64(subtask) {
					t.Fatalf("subtask %d is asked for %d", subtask, i)
				}
				all = append(all, i)
				return -i
			}, 0)
			out, rt := openPart(t, op, subtask, parallelism, frame.DefaultLen)
			before := len(all)
			kit.Must(t, drain(t, op, rt))
			for i, x := range all[before:] {
				if out.Values[i] != fmt.Sprint(-x) {
					t.Fatalf("element %d is %s", x, out.Values[i])
				}
			}
		}
		if slices.Sort(all); !slices.Equal(all, kit.Numbers(int(n))) {
			t.Errorf("%d elements: called for %d", n, len(all))
		}
	}
}

func TestGeneratorWithoutEndEndsAtTheLastNumber(t *testing.T) {
	op := Generator(kit.TypeOf[int64](t), -1, func(i int64) int64 { return i }, 0).(*generator[int64])
	out, rt := openPart(t, op, 1, 4, frame.DefaultLen)
	op.rest[0].from = math.MaxInt64 - 6
	kit.Must(t, drain(t, op, rt))
	out.Want(t, fmt.Sprint(math.MaxInt64-6), fmt.Sprint(math.MaxInt64-2))
}

func TestGeneratorWaitsForItsRate(t *testing.T) {
	op := Generator(kit.TypeOf[int64](t), 5, func(i int64) int64 { return i }, 100) // one every 10 ms
	out, rt := openPart(t, op, 0, 1, frame.DefaultLen)
	poll := func(want operator.Status) {
		t.Helper()
		if got, err := op.(operator.Source).Poll(); got != want || err != nil {
			t.Fatalf("status %v, error %v, want %v", got, err, want)
		}
	}
	poll(operator.More)
	out.Want(t, "0")
	for range 3 { // asks for one callback, however often it is polled
		poll(operator.Nothing)
	}
	at, ok := rt.Timers.Next()
	if !ok || at != 9 {
		t.Fatalf("the next element is due past %d (%v)", at, ok)
	}
	rt.Now = 10
	kit.Must(t, rt.Timers.Run(9))
	if _, ok := rt.Timers.Next(); ok {
		t.Error("there was more than one callback")
	}
	poll(operator.More)
	out.Want(t, "1")
	rt.Now = 35
	poll(operator.More)
	out.Want(t, "2", "3")
	rt.Now = 1000
	poll(operator.More)
	out.Want(t, "4")
	poll(operator.Done)
}

func TestSeqIsDrainedRunByRun(t *testing.T) {
	op := Seq(kit.TypeOf[int64](t), func(subtask, parallelism int) iter.Seq[int64] {
		return func(yield func(int64) bool) {
			for i := int64(subtask); i < 10 && yield(i); i += int64(parallelism) {
			}
		}
	})
	out, rt := openPart(t, op, 1, 2, 2)
	kit.Must(t, drain(t, op, rt))
	out.Want(t, "1", "3", "5", "7", "9")
	if want := []int{2, 2, 1}; !slices.Equal(out.Runs, want) {
		t.Errorf("runs of %v, want %v", out.Runs, want)
	}
}

func TestCloseStopsTheIterator(t *testing.T) {
	for polls := range 3 {
		started, ended := false, false
		op := Seq(kit.TypeOf[int64](t), func(int, int) iter.Seq[int64] {
			return func(yield func(int64) bool) {
				started = true
				defer func() { ended = true }()
				for i := int64(0); yield(i); i++ {
				}
			}
		})
		rt := kit.Runtime()
		kit.Must(t, op.Open(rt))
		for range polls {
			if status, err := op.(operator.Source).Poll(); status != operator.More || err != nil {
				t.Fatalf("status %v, error %v", status, err)
			}
		}
		kit.Must(t, op.Close())
		if started != (polls > 0) || ended != started {
			t.Errorf("after %d polls and Close: started %v, ended %v", polls, started, ended)
		}
	}
	kit.Must(t, Seq(kit.TypeOf[int64](t), func(int, int) iter.Seq[int64] { return nil }).Close()) // never opened
}

func TestErrorsOfConsumersEndTheSource(t *testing.T) {
	typ, own := kit.TypeOf[int64](t), errors.New("own")
	for name, op := range map[string]operator.Operator{
		"slice": Slice(typ, kit.Numbers(9)), "sequence": Sequence(typ, 0, 9),
		"generator": Generator(typ, 9, func(i int64) int64 { return i }, 0),
		"seq":       Seq(typ, func(int, int) iter.Seq[int64] { return slices.Values(kit.Numbers(9)) }),
	} {
		out, _ := openPart(t, op, 0, 1, 2)
		out.Fail = own
		if status, err := op.(operator.Source).Poll(); status != operator.Done || !errors.Is(err, own) {
			t.Errorf("%s: status %v, error %v", name, status, err)
		}
		if op.Output("side") != nil || op.Inputs() != nil {
			t.Errorf("%s has inputs or side outputs", name)
		}
	}
}
