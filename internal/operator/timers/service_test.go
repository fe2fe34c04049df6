package timers

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"testing"

	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/process"
)

func eventTimes(t *testing.T, s *Service, watermark int64, during func(at int64)) []int64 {
	t.Helper()
	var got []int64
	err := s.AdvanceWatermark(watermark, func(_ []byte, _ uint64, _ []byte, at int64) error {
		got = append(got, at)
		if during != nil {
			during(at)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestTimersAreASet(t *testing.T) {
	s := New(Options{Callbacks: &operator.Callbacks{}})
	for range 3 {
		s.Register(process.EventTime, []byte("k"), 1, nil, 7)
	}
	s.Register(process.EventTime, []byte("k"), 1, []byte("w"), 7)
	s.Register(process.ProcessingTime, []byte("k"), 1, nil, 7)
	if n := s.Count(process.EventTime); n != 2 {
		t.Fatalf("%d event-time timers, want 2: one per namespace", n)
	}
	if got := eventTimes(t, s, 7, nil); len(got) != 2 {
		t.Fatalf("fired at %v, want two timers", got)
	}
}

func TestTimersAreCountedByNamespace(t *testing.T) {
	s := New(Options{Callbacks: &operator.Callbacks{}})
	for _, ns := range []string{"a", "b", "a", "", "ab"} {
		s.Register(process.EventTime, []byte("k"), 1, []byte(ns), int64(s.Count(process.EventTime)))
	}
	s.Register(process.ProcessingTime, []byte("k"), 1, []byte("a"), 0)
	for ns, want := range map[string]int{"a": 2, "b": 1, "": 1, "ab": 1, "c": 0} {
		if got := s.CountIn(process.EventTime, []byte(ns)); got != want {
			t.Errorf("%d timers in %q, want %d", got, ns, want)
		}
	}
}

func TestKeyAndNamespaceDoNotRunTogether(t *testing.T) {
	s := New(Options{Callbacks: &operator.Callbacks{}})
	s.Register(process.EventTime, []byte("ab"), 1, []byte("c"), 7)
	s.Register(process.EventTime, []byte("a"), 1, []byte("bc"), 7)
	if s.Count(process.EventTime) != 2 {
		t.Fatal(`key "a" in namespace "bc" is taken for key "ab" in "c"`)
	}
}

// A timer of a call fires in the same pass if it is due, in its place among those still to come.
func TestTimersOfCallsFireInTheSamePass(t *testing.T) {
	s := New(Options{Callbacks: &operator.Callbacks{}})
	register := func(at int64) { s.Register(process.EventTime, []byte("k"), 1, nil, at) }
	for _, at := range []int64{10, 20, 30} {
		register(at)
	}
	got := eventTimes(t, s, 30, func(at int64) {
		switch at {
		case 10:
			register(5)
			register(15)
		case 20:
			register(40)
		}
	})
	if fmt.Sprint(got) != "[10 5 15 20 30]" {
		t.Fatalf("fired at %v, want 10, 5 and 15 of its call, 20, 30", got)
	}
}

func TestFiredTimerMayBeSetAgainByItsCall(t *testing.T) {
	s := New(Options{Callbacks: &operator.Callbacks{}})
	s.Register(process.EventTime, []byte("k"), 1, nil, 10)
	again := 0
	got := eventTimes(t, s, 10, func(at int64) {
		if n := s.Count(process.EventTime); n != 0 {
			t.Errorf("%d timers during the call, want 0", n)
		}
		if again++; again < 4 {
			s.Register(process.EventTime, []byte("k"), 1, nil, at)
		}
	})
	if fmt.Sprint(got) != "[10 10 10 10]" {
		t.Fatalf("fired at %v, want 10 four times", got)
	}
}

func TestOverdueTimerFiresAtThePresentWatermark(t *testing.T) {
	s := New(Options{Callbacks: &operator.Callbacks{}})
	eventTimes(t, s, 100, nil)
	s.Register(process.EventTime, []byte("k"), 1, nil, 101)
	s.Register(process.EventTime, []byte("k"), 1, nil, 40)
	s.Register(process.EventTime, []byte("k"), 1, nil, 30)
	if got := eventTimes(t, s, 100, nil); fmt.Sprint(got) != "[30 40]" {
		t.Fatalf("fired at %v, want 30 and 40", got)
	}
}

func TestWatermarkNeverGoesBack(t *testing.T) {
	s := New(Options{Callbacks: &operator.Callbacks{}})
	eventTimes(t, s, 100, nil)
	s.Register(process.EventTime, []byte("k"), 1, nil, 60)
	if got := eventTimes(t, s, 50, nil); s.Watermark() != 100 || len(got) != 1 {
		t.Fatalf("watermark %d, fired at %v; want 100 and the timer of 60", s.Watermark(), got)
	}
}

func TestExtremeTimesKeepTheirOrder(t *testing.T) {
	s := New(Options{Callbacks: &operator.Callbacks{}})
	want := []int64{math.MinInt64, math.MinInt64 + 1, -1, 0, 1, math.MaxInt64 - 1, math.MaxInt64}
	for _, i := range []int{3, 6, 0, 5, 1, 4, 2} {
		s.Register(process.EventTime, []byte("k"), 1, nil, want[i])
	}
	if got := eventTimes(t, s, math.MaxInt64-1, nil); !reflect.DeepEqual(got, want[:6]) {
		t.Fatalf("fired at %v", got)
	}
	if got := eventTimes(t, s, math.MaxInt64, nil); !reflect.DeepEqual(got, want[6:]) {
		t.Fatalf("fired at %v", got)
	}
}

// B015: a week of timers is overdue when the job comes back; they drain in one pass, in time order, while each call sets
// one more.
func TestTimerStormDrainsInOnePassInOrder(t *testing.T) {
	const n = 100_000
	s := New(Options{Callbacks: &operator.Callbacks{}})
	for i := range uint64(n) {
		key := binary.LittleEndian.AppendUint64(nil, i)
		s.Register(process.EventTime, key, fold(i, mixA), nil, int64(i*7919%604_800_000))
	}
	fired, last := 0, int64(math.MinInt64)
	err := s.AdvanceWatermark(700_000_000, func(key []byte, hash uint64, ns []byte, at int64) error {
		if at < last {
			t.Fatalf("timer of %d after one of %d", at, last)
		}
		last = at
		if fired++; len(ns) == 0 {
			s.Register(process.EventTime, key, hash, []byte("again"), at+1000)
		}
		return nil
	})
	if err != nil || fired != 2*n || s.Count(process.EventTime) != 0 {
		t.Fatalf("%d fired, %d left (%v); want %d and 0", fired, s.Count(process.EventTime), err, 2*n)
	}
}

// B015 for the clock: the callbacks of one run fire everything overdue.
func TestProcessingTimeStormDrainsInOneRun(t *testing.T) {
	const n = 20_000
	callbacks := &operator.Callbacks{}
	fired, last := 0, int64(math.MinInt64)
	s := New(Options{Callbacks: callbacks, OnProcessingTime: func(_ []byte, _ uint64, _ []byte, at int64) error {
		if at < last {
			t.Fatalf("timer of %d after one of %d", at, last)
		}
		last = at
		fired++
		return nil
	}})
	for i := range uint64(n) {
		s.Register(process.ProcessingTime, binary.LittleEndian.AppendUint64(nil, i), i, nil, int64(i*31%5000))
	}
	if err := callbacks.Run(10_000); err != nil {
		t.Fatal(err)
	}
	if _, ok := callbacks.Next(); fired != n || ok {
		t.Fatalf("%d fired, callback left: %v; want %d and none", fired, ok, n)
	}
}

// B013: the task runs callbacks of t once the clock is past t; the service has its callback at the timer's own time.
func TestProcessingTimeTimerIsNotEarly(t *testing.T) {
	callbacks := &operator.Callbacks{}
	var fired []int64
	s := New(Options{Callbacks: callbacks, OnProcessingTime: func(_ []byte, _ uint64, _ []byte, at int64) error {
		fired = append(fired, at)
		return nil
	}})
	s.Register(process.ProcessingTime, []byte("k"), 1, nil, 999)
	for _, clock := range []int64{998, 999} {
		if err := callbacks.Run(clock - 1); err != nil || len(fired) != 0 {
			t.Fatalf("fired at clock %d (%v)", clock, err)
		}
	}
	if err := callbacks.Run(1000 - 1); err != nil || len(fired) != 1 {
		t.Fatalf("fired %v at clock 1000 (%v)", fired, err)
	}
}

// A clock that was set back has to come to a timer again: those that are later than the first one due don't fire with it,
// although the service was there before.
func TestClockThatGoesBackFiresNothingEarly(t *testing.T) {
	callbacks := &operator.Callbacks{}
	var fired []int64
	s := New(Options{Callbacks: callbacks, OnProcessingTime: func(_ []byte, _ uint64, _ []byte, at int64) error {
		fired = append(fired, at)
		return nil
	}})
	set := func(times ...int64) {
		t.Helper()
		for _, at := range times {
			if err := s.Register(process.ProcessingTime, []byte("k"), 1, nil, at); err != nil {
				t.Fatal(err)
			}
		}
	}
	clock := func(now int64, want ...int64) {
		t.Helper()
		fired = nil
		if err := callbacks.Run(now - 1); err != nil || !slices.Equal(fired, want) {
			t.Fatalf("at clock %d fired %v (%v), want %v", now, fired, err, want)
		}
	}
	set(1000, 5000)
	clock(1001, 1000)
	clock(100)
	set(1000, 200, 300, 70_000)
	clock(200)
	clock(201, 200)
	clock(300)
	clock(250)
	set(260)
	clock(261, 260)
	clock(301, 300)
	clock(1001, 1000)
	clock(80_000, 5000, 70_000)
}

// Timers that move while the clock is behind leave nothing behind for ever.
func TestTimersThatMoveBehindTheClockTakeNoMemory(t *testing.T) {
	callbacks := &operator.Callbacks{}
	s := New(Options{Callbacks: callbacks, OnProcessingTime: func([]byte, uint64, []byte, int64) error { return nil }})
	if err := s.Register(process.ProcessingTime, []byte("k"), 1, nil, 1_000_000); err != nil {
		t.Fatal(err)
	}
	if err := callbacks.Run(1_000_000); err != nil {
		t.Fatal(err)
	}
	for at := range int64(100_000) { // the clock is at 0
		if err := s.Register(process.ProcessingTime, []byte("k"), 1, nil, at+1); err != nil {
			t.Fatal(err)
		}
		if err := s.Delete(process.ProcessingTime, []byte("k"), 1, nil, at); err != nil {
			t.Fatal(err)
		}
	}
	if q := &s.queues[process.ProcessingTime]; len(q.overdue) > 2*q.slack || s.Count(process.ProcessingTime) != 1 {
		t.Errorf("%d entries of %d timers", len(q.overdue), s.Count(process.ProcessingTime))
	}
}

func TestServiceKeepsOneCallbackForItsEarliestTimer(t *testing.T) {
	callbacks := &operator.Callbacks{}
	s := New(Options{Callbacks: callbacks})
	s.process = func(_ []byte, _ uint64, _ []byte, at int64) error {
		if at == 10 {
			s.Register(process.ProcessingTime, []byte("k"), 1, nil, 15)
			s.Register(process.ProcessingTime, []byte("k"), 1, nil, 5)
		}
		return nil
	}
	for _, at := range []int64{30, 10, 20} {
		s.Register(process.ProcessingTime, []byte("k"), 1, nil, at)
	}
	next := func(want int64) {
		t.Helper()
		at, ok := callbacks.Next()
		if mine, set := s.NextProcessing(); !ok || !set || at != want || mine != want {
			t.Fatalf("callback at %d (%v), want %d", at, ok, want)
		}
	}
	next(10)
	if err := callbacks.Run(12); err != nil {
		t.Fatal(err)
	}
	next(15)
	s.Delete(process.ProcessingTime, []byte("k"), 1, nil, 15)
	if err := callbacks.Run(16); err != nil {
		t.Fatal(err)
	}
	next(20)
	s.Close()
	if _, ok := callbacks.Next(); ok {
		t.Fatal("callback left after Close")
	}
}

func TestForEachEndsWithTheFirstError(t *testing.T) {
	s := New(Options{Callbacks: &operator.Callbacks{}})
	for i := range uint64(10) {
		s.Register(process.EventTime, binary.LittleEndian.AppendUint64(nil, i), i, nil, int64(i))
	}
	stop, calls := errors.New("stop"), 0
	err := s.ForEach(process.EventTime, func([]byte, uint64, []byte, int64) error { calls++; return stop })
	if !errors.Is(err, stop) || calls != 1 {
		t.Errorf("%v after %d calls", err, calls)
	}
}

func TestFailedProcessingTimeCallIsReturned(t *testing.T) {
	callbacks, stop := &operator.Callbacks{}, errors.New("stop")
	s := New(Options{Callbacks: callbacks, OnProcessingTime: func([]byte, uint64, []byte, int64) error { return stop }})
	s.Register(process.ProcessingTime, []byte("k"), 1, nil, 5)
	s.Register(process.ProcessingTime, []byte("k"), 1, nil, 6)
	if err := callbacks.Run(10); !errors.Is(err, stop) || s.Count(process.ProcessingTime) != 1 {
		t.Errorf("%v, %d timers left; want stop and 1", err, s.Count(process.ProcessingTime))
	}
	eventTimes(t, s, 3, nil)
	s.Register(process.EventTime, []byte("k"), 1, nil, 1)
	if err := s.AdvanceWatermark(3, func([]byte, uint64, []byte, int64) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("overdue timer: %v", err)
	}
}

// Memory is used again: ten times the timers, one after the other, take no more.
func TestMemoryIsUsedAgain(t *testing.T) {
	s := New(Options{Callbacks: &operator.Callbacks{}})
	if s.MemoryBytes() != 0 {
		t.Fatalf("%d bytes without a timer", s.MemoryBytes())
	}
	long := make([]byte, 5000)
	round := func(w int64) {
		for i := range uint64(20_000) {
			key := binary.LittleEndian.AppendUint64(nil, i)
			s.Register(process.EventTime, key, fold(i, mixA), long[:i%50], w+int64(i%1000))
		}
		s.Register(process.EventTime, long, 1, nil, w)
		if got := len(eventTimes(t, s, w+1000, nil)); got != 20_001 {
			t.Fatalf("%d timers fired", got)
		}
	}
	round(1_000_000)
	round(2_000_000)
	held := s.MemoryBytes()
	if held < 20_000*64 {
		t.Errorf("%d bytes for 20,000 timers", held)
	}
	for w := int64(3); w < 20; w++ {
		round(w * 1_000_000)
	}
	if now := s.MemoryBytes(); now > held*11/10 {
		t.Errorf("%d bytes, %d after the first rounds", now, held)
	}
}

func TestSteadyStateDoesNotAllocate(t *testing.T) {
	s := New(Options{Callbacks: &operator.Callbacks{}, Inline: 8})
	long := make([]byte, 100)
	w := int64(0)
	fire := func([]byte, uint64, []byte, int64) error { return nil }
	turn := func() {
		for i := range int64(500) {
			s.Register(process.EventTime, long[:i%100], uint64(i), nil, w+i*37%5000)
			s.Delete(process.EventTime, long[:i%100], uint64(i), nil, w+i*37%5000)
			s.Register(process.EventTime, long[:i%100], uint64(i), nil, w+i*53%5000)
		}
		w += 5000
		if err := s.AdvanceWatermark(w, fire); err != nil {
			t.Fatal(err)
		}
	}
	for range 50 {
		turn()
	}
	if n := testing.AllocsPerRun(50, turn); n != 0 {
		t.Fatalf("%v allocations per 500 timers, want none", n)
	}
}
