package sessions

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/operator"
	kit "github.com/flott-dev/flott/internal/operator/operatortest"
	"github.com/flott-dev/flott/internal/operator/windows"
	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/window"
)

// B016: touching sessions merge, sessions of other keys don't.
func TestSessionsThatTouchMerge(t *testing.T) {
	for _, c := range []struct {
		times []int64
		want  []string
	}{
		{[]int64{0, 10}, []string{"1 [0,20) [0 10]@19"}},
		{[]int64{10, 0}, []string{"1 [0,20) [10 0]@19"}},
		{[]int64{0, 11}, []string{"1 [0,10) [0]@9", "1 [11,21) [11]@20"}},
		{[]int64{11, 0}, []string{"1 [0,10) [0]@9", "1 [11,21) [11]@20"}},
		{[]int64{0, 5, 5, 0}, []string{"1 [0,15) [0 5 5 0]@14"}},
		{[]int64{0, 20, 10}, []string{"1 [0,30) [0 20 10]@29"}},
		{[]int64{20, 0, 10}, []string{"1 [0,30) [0 20 10]@29"}},
		{[]int64{0, 11, 22, 33, 1}, []string{"1 [0,21) [0 11 1]@20", "1 [22,32) [22]@31", "1 [33,43) [33]@42"}},
	} {
		h := job{gap: static(10)}.open(t)
		h.at(c.times...)
		h.Want(t)
		h.push(15, event{Key: 2, Text: "other"})
		h.watermark(100)
		got := h.Got
		other := 0
		for i := len(got) - 1; i >= 0; i-- {
			if strings.HasPrefix(got[i], "2 [15,25)") {
				got = append(got[:i:i], got[i+1:]...)
				other++
			}
		}
		if h.Got = got; other != 1 {
			t.Errorf("%v: key 2 has %d sessions", c.times, other)
		}
		h.Want(t, append(c.want, "watermark 100")...)
	}
}

// B018: what is left of a session decides what a late element becomes.
func TestSessionsOverlapOnceTheFirstIsForgotten(t *testing.T) {
	for lateness, want := range map[int64]string{0: "1 [3,8) [3]@7", 10: "1 [0,8) [0 3]@7"} {
		h := job{gap: static(5), lateness: lateness}.open(t)
		h.at(0)
		h.watermark(6)
		h.Want(t, "1 [0,5) [0]@4", "watermark 6")
		h.at(3)
		h.Want(t)
		h.watermark(8)
		h.Want(t, want, "watermark 8")
	}
}

// B012: one absurd timestamp makes the rest late, and nothing else.
func TestTimesAtTheEndOfTimeSaturate(t *testing.T) {
	const end = math.MaxInt64
	h := job{gap: static(10), late: "late"}.open(t)
	h.at(1000, end-3, end)
	h.watermark(end - 1)
	h.Want(t, "1 [1000,1010) [1000]@1009", fmt.Sprintf("1 [%d,%d) [%d %d]@%d", end-3, end, end-3, end, end-1),
		fmt.Sprint("watermark ", end-1))
	h.at(2000)
	h.Want(t)
	h.side.Want(t, fmt.Sprint("watermark ", end-1), "{1 0 2000}@2000")

	h = job{gap: static(end), lateness: end}.open(t)
	h.at(math.MinInt64+1, 5)
	h.watermark(end - 2)
	h.Want(t, fmt.Sprintf("1 [%d,%d) [%d]@%d", math.MinInt64+1, 0, math.MinInt64+1, -1), fmt.Sprint("watermark ", end-2))
	h.at(-7)
	h.watermark(end)
	h.Want(t, fmt.Sprintf("1 [%d,%d) [%d 5 -7]@%d", math.MinInt64+1, end, math.MinInt64+1, end-1), fmt.Sprint("watermark ", end))
}

func TestLateElementFiresItsSessionAgain(t *testing.T) {
	h := job{gap: static(10), lateness: 100, late: "late"}.open(t)
	h.at(0, 5)
	h.watermark(14)
	h.Want(t, "1 [0,15) [0 5]@14", "watermark 14")
	h.at(1, 2) // each for itself
	h.Want(t, "1 [0,15) [0 5 1]@14", "1 [0,15) [0 5 1 2]@14")
	h.watermark(15)
	h.at(10) // it goes on
	h.Want(t, "watermark 15")
	h.watermark(18)
	h.Want(t, "watermark 18")
	h.watermark(19)
	h.Want(t, "1 [0,20) [0 5 1 2 10]@19", "watermark 19")
	h.watermark(118)
	h.at(-10) // touches, and fires at once
	h.Want(t, "watermark 118", "1 [-10,20) [0 5 1 2 10 -10]@19")
	h.at(-21) // a session of its own, which is late
	h.Want(t)
	h.side.Want(t, "watermark 14", "watermark 15", "watermark 18", "watermark 19", "watermark 118", "{1 0 -21}@-21")
	h.watermark(119)
	h.at(0)
	h.Want(t, "watermark 119")
	h.side.Want(t, "watermark 119", "{1 0 0}@0")
}

func TestLateElementsAreCountedIfNobodyReadsThem(t *testing.T) {
	h := job{gap: static(10)}.open(t)
	dropped := func() any { return h.rt.Host.(*kit.Host).Metrics[windows.LateDropped].Read() }
	h.watermark(50)
	if got := dropped(); got != int64(0) {
		t.Errorf("%v dropped before any came", got)
	}
	h.at(0, 41, 42, 43)
	if got := dropped(); got != int64(2) { // the window of 41 is complete at 50
		t.Errorf("%v dropped, want 2", got)
	}
	h.watermark(60)
	h.Want(t, "watermark 50", "1 [42,53) [42 43]@52", "watermark 60")
}

// A side output that nobody reads takes late elements all the same.
func TestLateElementsOfASideOutputAreNotCounted(t *testing.T) {
	o := job{gap: static(10), late: "late"}.operator(t)
	o.sides = operator.NewSides(nil)
	out, rt := kit.Open(t, o)
	kit.Must(t, o.Mark(kit.Watermark(50)))
	kit.Must(t, o.Push(kit.Run(t, []int64{1}, event{})))
	out.Want(t, "watermark 50")
	if got := rt.Host.(*kit.Host).Metrics[windows.LateDropped].Read(); got != int64(0) {
		t.Errorf("%v dropped", got)
	}
	o = job{gap: static(10), late: "late"}.operator(t)
	o.sides = operator.NewSides(map[string]*frame.Type{"late": kit.TypeOf[string](t)})
	if err := o.Open(kit.Runtime()); err == nil || !strings.Contains(err.Error(), `side output "late": it is read as string`) {
		t.Errorf("late elements are read as texts: %v", err)
	}
	kit.Must(t, o.Close())
}

func TestSessionsFireInTheOrderOfTheirEnds(t *testing.T) {
	h := job{gap: dynamic()}.open(t)
	for i, gap := range []int64{5000, 3, 100_000_000, 70, 1, 4_000_000, 900} {
		h.push(int64(i), event{Key: int64(i), Gap: gap, Text: "x"})
	}
	h.watermark(math.MaxInt64)
	var keys []string
	for _, got := range h.Got {
		keys = append(keys, got[:1])
	}
	if got := strings.Join(keys, ""); got != "1436052w" {
		t.Errorf("fired in the order %s", got)
	}
}

func TestProcessingTimeSessionFiresOnceTheClockIsPastIt(t *testing.T) {
	h := job{gap: static(10), domain: process.ProcessingTime, lateness: 1000}.open(t)
	h.clock(100)
	h.at(7)
	h.watermark(math.MaxInt64) // says nothing of the clock
	h.Want(t, "watermark 9223372036854775807")
	h.clock(109) // it is not past it yet
	h.at(-5)
	h.clock(118)
	h.Want(t)
	h.clock(119)
	h.Want(t, "1 [100,119) [7 -5]@118")
	h.clock(120)
	h.at(1)
	h.clock(1000)
	h.Want(t, "1 [120,130) [1]@129")
	if _, ok := h.rt.Timers.Next(); ok {
		t.Error("a callback without a session")
	}
}

func TestElementsOfProcessingTimeNeedNoTimestamp(t *testing.T) {
	h := job{gap: static(10), domain: process.ProcessingTime}.open(t)
	h.clock(5)
	kit.Must(t, h.give(kit.Run(t, nil, event{Key: 3, Text: "a"}, event{Key: 3, Text: "b"})))
	h.clock(15)
	h.Want(t, "3 [5,15) [a b]@14")
}

func TestOneCallbackServesAllSessionsOfProcessingTime(t *testing.T) {
	h := job{gap: dynamic(), domain: process.ProcessingTime}.open(t)
	h.clock(1)
	for i := range int64(1000) {
		h.push(0, event{Key: i, Gap: 5000 - i, Text: "x"})
	}
	n := 0
	for {
		if _, ok := h.rt.Timers.Next(); !ok {
			break
		}
		h.rt.Now = 10_000
		kit.Must(t, h.rt.Timers.Run(10_000))
		n++
	}
	if len(h.Got) != 1000 || n != 1 {
		t.Errorf("%d sessions fired in %d rounds", len(h.Got), n)
	}
}

func TestClockThatIsSetBackKeepsSessions(t *testing.T) {
	h := job{gap: static(10), domain: process.ProcessingTime}.open(t)
	h.clock(1_000_000)
	h.at(1)
	h.clock(5000) // no session touches
	h.at(2)
	h.clock(5010)
	h.Want(t, "1 [5000,5010) [2]@5009")
	h.clock(1_000_010)
	h.Want(t, "1 [1000000,1000010) [1]@1000009")
}

func TestMistakesNameThePlaceOfTheOperator(t *testing.T) {
	for name, c := range map[string]struct {
		job  job
		run  *frame.Run
		want string
		is   error
	}{
		"no gap":       {job{gap: static(0)}, nil, "the gap is 0 ms", nil},
		"negative gap": {job{gap: dynamic()}, kit.Run(t, []int64{1, 2}, event{Gap: 1}, event{Gap: -3}), "its gap is -3 ms", nil},
		"zero gap":     {job{gap: dynamic(), domain: process.ProcessingTime}, kit.Run(t, nil, event{}), "its gap is 0 ms", nil},
		"no times":     {job{gap: static(1)}, kit.Run(t, nil, event{}), "it has no timestamp", window.ErrNoTimestamp},
		"no time":      {job{gap: static(1)}, kit.Run(t, []int64{4, frame.NoTime}, event{}, event{}), "it has no timestamp", window.ErrNoTimestamp},
	} {
		rt := kit.Runtime()
		op := c.job.operator(t)
		err := op.Open(rt)
		if c.run != nil && err == nil {
			err = op.Push(c.run)
		}
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "main.go:12: ") || c.is != nil && !errors.Is(err, c.is) {
			t.Errorf("%s: error %v", name, err)
		}
		kit.Must(t, op.Close())
	}
}

func TestWindowFunctionMustMerge(t *testing.T) {
	op := job{gap: static(1)}.operator(t)
	op.k.Merge = nil
	if err := op.Open(kit.Runtime()); err == nil || !strings.Contains(err.Error(), "main.go:12: ") {
		t.Errorf("opened with %v", err)
	}
	kit.Must(t, op.Close())
}

func TestSharedRunsAreLeftAlone(t *testing.T) {
	h := job{gap: dynamic(), lateness: 5, late: "late"}.open(t)
	h.watermark(20)
	r := kit.Run(t, []int64{0, 9, 50, 30, 40}, event{1, 5, "a"}, event{1, 8, "b"}, event{1, 8, "c"}, event{1, 10, "d"}, event{1, 10, "e"})
	untouched := kit.Share(t, r)
	kit.Must(t, h.give(r))
	untouched()
	h.watermark(100)
	h.Want(t, "watermark 20", "1 [9,17) [b]@16", "1 [30,58) [d c e]@57", "watermark 100")
	h.side.Want(t, "watermark 20", "{1 5 a}@0", "watermark 100")
}

func TestMarksPassInOrder(t *testing.T) {
	h := job{gap: static(10), late: "late"}.open(t)
	h.at(1)
	for _, m := range []frame.Mark{{Kind: frame.Idle}, {Kind: frame.Active}, kit.Watermark(3), kit.Watermark(2), {Kind: frame.Barrier, Value: 4}, kit.End()} {
		kit.Must(t, h.mark(m))
	}
	want := []string{"idle", "active", "watermark 3", "watermark 2", "barrier 4", "end"}
	h.Want(t, want...)
	h.side.Want(t, want...)
}

// Results and late elements come in frames, however many there are.
func TestManyResultsComeInFrames(t *testing.T) {
	h := job{gap: static(10), lateness: 1_000_000}.open(t)
	const n = 5000
	xs, times := make([]event, n), make([]int64, n)
	for i := range xs {
		xs[i] = event{Key: int64(i), Text: "x"}
	}
	kit.Must(t, h.give(kit.Run(t, times, xs...)))
	h.watermark(100)
	kit.Must(t, h.give(kit.Run(t, times, xs...))) // each fires again
	if len(h.Got) != 2*n+1 || len(h.Runs) > 2*n/100 {
		t.Errorf("%d results in %d runs", len(h.Got), len(h.Runs))
	}
	h = job{gap: static(10), late: "late"}.open(t)
	h.watermark(100)
	kit.Must(t, h.give(kit.Run(t, times, xs...)))
	if len(h.side.Got) != n+1 || len(h.side.Runs) > n/100 {
		t.Errorf("%d late elements in %d runs", len(h.side.Got), len(h.side.Runs))
	}
}

func TestFailureDownstreamEndsTheCall(t *testing.T) {
	broken := errors.New("broken")
	h := job{gap: static(10), lateness: 50, late: "late"}.open(t)
	h.at(0)
	h.Fail = broken
	if err := h.mark(kit.Watermark(20)); !errors.Is(err, broken) {
		t.Errorf("watermark: %v", err)
	}
	if err := h.give(kit.Run(t, []int64{5}, event{Key: 1})); !errors.Is(err, broken) {
		t.Errorf("late firing: %v", err)
	}
	h.Fail, h.side.Fail = nil, broken
	if err := h.give(kit.Run(t, []int64{-500}, event{Key: 1})); !errors.Is(err, broken) {
		t.Errorf("late element: %v", err)
	}
}
