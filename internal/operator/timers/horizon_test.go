package timers

import (
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/flott-dev/flott/internal/host"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/internal/operator/operatortest"
	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/statebackend"
)

// behindShelf is a service with a store behind it and its event-time timers there.
func behindShelf(t *testing.T, ahead int64, o Options) (*Service, *operatortest.TimerShelf) {
	t.Helper()
	s := &operatortest.TimerShelf{Rand: rand.New(rand.NewPCG(1, 2)), Ahead: ahead}
	o.Store = s
	if o.Callbacks == nil {
		o.Callbacks = &operator.Callbacks{}
	}
	service := New(o)
	if err := service.Restore(nil, Types{Key: keyOf[string](t)}); err != nil {
		t.Fatal(err)
	}
	return service, s
}

// Half of the timers are taken back, some when they are in memory, some when they are not, and come in another order.
func TestMemoryHoldsTheEarliestTimersOnly(t *testing.T) {
	const n, limit = 50_000, 2000
	s, shelf := behindShelf(t, limit*100, Options{Inline: 8})
	rnd := rand.New(rand.NewPCG(3, 4))
	key := func(i int) []byte { return binary.LittleEndian.AppendUint64(nil, uint64(i)) }
	at := func(i int) int64 { return int64(i) * 7919 % 100_003 * 97 }
	for _, i := range rnd.Perm(n) {
		if err := s.Register(process.EventTime, key(i), uint64(i)*mixA, nil, at(i)); err != nil {
			t.Fatal(err)
		}
		if live := s.queues[process.EventTime].live; live > limit*3/2 {
			t.Fatalf("%d timers in memory", live)
		}
	}
	for _, i := range rnd.Perm(n) {
		if i%2 == 0 {
			if err := s.Delete(process.EventTime, key(i), uint64(i)*mixA, nil, at(i)); err != nil {
				t.Fatal(err)
			}
		}
	}
	fired, last := 0, int64(math.MinInt64)
	for w := int64(0); w < 100_003*97; w += 400_000 {
		for _, at := range eventTimes(t, s, w, nil) {
			if at < last || at > w {
				t.Fatalf("a timer of %d fired at %d, after %d", at, w, last)
			}
			fired, last = fired+1, at
		}
	}
	if fired += len(eventTimes(t, s, math.MaxInt64, nil)); fired != n/2 || s.Count(process.EventTime) != 0 || shelf.Sets[process.EventTime].Most < n/2 {
		t.Errorf("%d timers fired, %d are left; %d were in the store", fired, s.Count(process.EventTime), shelf.Sets[process.EventTime].Most)
	}
	if m := s.MemoryBytes(); m > 4*limit*100 {
		t.Errorf("%d bytes are held", m)
	}
}

// More timers of one time than memory has room for, and each call sets one more of the same time.
func TestTimersOfOneTimeNeedNotFitIntoMemory(t *testing.T) {
	const n, limit = 5000, 100
	s, _ := behindShelf(t, limit*100, Options{Inline: 8})
	key := func(i int) []byte { return binary.LittleEndian.AppendUint64(nil, uint64(i)) }
	for i := range n {
		if err := s.Register(process.EventTime, key(i), uint64(i)*mixA, nil, 1000); err != nil {
			t.Fatal(err)
		}
	}
	fired := map[uint64]int{}
	q := &s.queues[process.EventTime]
	err := s.AdvanceWatermark(1000, func(k []byte, hash uint64, _ []byte, at int64) error {
		i := binary.LittleEndian.Uint64(k)
		fired[i]++
		if q.live > limit*3/2 {
			t.Fatalf("%d timers in memory", q.live)
		}
		if i < n && at == 1000 { // also one that is set already
			next := int(i + 1)
			return errors.Join(s.Register(process.EventTime, key(n+int(i)), uint64(n+int(i))*mixA, nil, at),
				s.Register(process.EventTime, key(next), uint64(next)*mixA, nil, at+1000))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for i := range uint64(2 * n) {
		if fired[i] != 1 {
			t.Fatalf("timer %d fired %d times", i, fired[i])
		}
	}
	if got := len(eventTimes(t, s, 2000, nil)); got != n {
		t.Errorf("%d timers fired a second later, want %d", got, n)
	}
}

func TestProcessingTimeTimersComeInWhenTheyAreDue(t *testing.T) {
	callbacks := &operator.Callbacks{}
	var got []int64
	var s *Service
	s, _ = behindShelf(t, 2000, Options{Callbacks: callbacks, OnProcessingTime: func(_ []byte, _ uint64, _ []byte, at int64) error {
		got = append(got, at)
		return nil
	}})
	var want []int64
	for i := range int64(300) {
		at := i * 7919 % 1009
		want = append(want, at)
		key := binary.LittleEndian.AppendUint64(nil, uint64(i))
		if err := s.Register(process.ProcessingTime, key, uint64(i)*mixA, nil, at); err != nil {
			t.Fatal(err)
		}
	}
	slices.Sort(want)
	for now := int64(-1); now < 1100; now += 7 {
		if at, ok := s.NextProcessing(); len(got) < len(want) && (!ok || at > want[len(got)]) {
			t.Fatalf("the next call is at %d, %v; a timer is at %d", at, ok, want[len(got)])
		}
		if err := callbacks.Run(now); err != nil {
			t.Fatal(err)
		}
		if due := len(got); due < len(want) && want[due] <= now {
			t.Fatalf("at %d, %d timers have fired; %d is due", now, due, want[due])
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("fired at %v", got)
	}
	if at, ok := s.NextProcessing(); ok {
		t.Errorf("a call at %d is left", at)
	}
}

// The error of a store comes out of whatever needs it.
func TestFailedStoreFailsItsTimers(t *testing.T) {
	full := errors.New("disk full")
	s, shelf := behindShelf(t, 1000, Options{})
	shelf.Err = full
	n := 0
	for ; n < 100; n++ {
		if err := s.Register(process.EventTime, binary.LittleEndian.AppendUint64(nil, uint64(n)), uint64(n)*mixA, nil, int64(n)); err != nil {
			if !errors.Is(err, full) {
				t.Fatal(err)
			}
			break
		}
	}
	if n == 100 {
		t.Error("nothing was put into the store")
	}
	if err := s.Delete(process.EventTime, []byte("k"), 1, nil, math.MaxInt64); !errors.Is(err, full) {
		t.Errorf("delete: %v", err)
	}
	if err := s.AdvanceWatermark(math.MaxInt64, func([]byte, uint64, []byte, int64) error { return nil }); !errors.Is(err, full) {
		t.Errorf("advance: %v", err)
	}
	if err := New(Options{Store: shelf}).Restore(nil, Types{Key: keyOf[string](t)}); !errors.Is(err, full) {
		t.Errorf("restore: %v", err)
	}
}

// Without a store, the budget ends the job; with one, timers go there.
func TestTimersDrawOnTheBudget(t *testing.T) {
	register := func(s *Service, n int) error {
		for i := range uint64(n) {
			if err := s.Register(process.EventTime, binary.LittleEndian.AppendUint64(nil, i), i*mixA, nil, int64(i)); err != nil {
				return err
			}
		}
		return nil
	}
	memory := host.NewMemory(1 << 20)
	s := New(Options{Callbacks: &operator.Callbacks{}, Memory: memory, Operator: "clean-up", Inline: 8})
	err := register(s, 100_000)
	if !errors.Is(err, statebackend.ErrOutOfMemory) || !strings.Contains(err.Error(), `"clean-up"`) || !strings.Contains(err.Error(), "on disk") {
		t.Errorf("error %v", err)
	}
	s.Close()
	if memory.Used() != 0 {
		t.Errorf("%d bytes are held after Close", memory.Used())
	}
	s, _ = behindShelf(t, 8<<20, Options{Memory: memory, Inline: 8})
	if err := register(s, 100_000); err != nil {
		t.Fatal(err)
	}
	if held := s.MemoryBytes(); held > 5<<18 || memory.Used() < 1<<19 {
		t.Errorf("%d bytes are held, %d of them drawn on a budget of %d", held, memory.Used(), memory.Limit())
	}
	if got := len(eventTimes(t, s, math.MaxInt64, nil)); got != 100_000 {
		t.Errorf("%d timers fired", got)
	}
	s.Close()
	if memory.Used() != 0 {
		t.Errorf("%d bytes are held after Close", memory.Used())
	}
}

func TestSnapshotOfTheStoreHasTheTimersInMemory(t *testing.T) {
	s, shelf := behindShelf(t, 2000, Options{})
	set := shelf.Sets[process.EventTime]
	if set.Spec.Ahead() != nil {
		t.Error("a copy of no timers")
	}
	for i := range uint64(1000) {
		if err := s.Register(process.EventTime, binary.LittleEndian.AppendUint64(nil, i), i*mixA, nil, int64(i%100)); err != nil {
			t.Fatal(err)
		}
	}
	eventTimes(t, s, 20, nil)
	o := operator.Snapshot{Groups: 4}
	if err := s.Freeze(&o, Types{Key: keyOf[string](t)}); err != nil || len(o.Tables) > 0 {
		t.Errorf("%d tables beside those of the store, %v", len(o.Tables), err)
	}
	got, before := map[operatortest.ShelvedTimer]bool{}, len(set.Timers)
	for x := range set.All() {
		if got[x] {
			t.Fatalf("%+v comes twice", x)
		}
		if got[x] = true; x.At <= 20 {
			t.Fatalf("%+v has fired", x)
		}
	}
	if len(got) != 790 || before == 790 || before == 0 {
		t.Errorf("%d timers, %d of them in the store", len(got), before)
	}
}
