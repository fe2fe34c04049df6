package timers

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/internal/operator/operatortest"
	"github.com/flott-dev/flott/process"
)

// oracle is the set of timers of one domain, kept naively.
type oracle map[string]int64 // key, namespace and time in text form -> time

func name(key, ns string, at int64) string { return fmt.Sprintf("%q %q %d", key, ns, at) }

func (o oracle) due(upTo int64) []string {
	var names []string
	for n, at := range o {
		if at <= upTo {
			names = append(names, n)
		}
	}
	slices.Sort(names)
	return names
}

// script is a random run of operations against the oracle. Event time never goes back; the clock of processing time does.
type script struct {
	t         *testing.T
	rnd       *rand.Rand
	s         *Service
	domain    process.Domain
	callbacks *operator.Callbacks
	reached   int64 // the watermark, or the clock
	want      oracle
	keys      []string
	ns        []string
}

func hashOf(key string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(key) {
		h = (h ^ uint64(key[i])) * 1099511628211
	}
	return h
}

// newScript makes a script with a horizon, if stored, that memory of any size draws.
func newScript(t *testing.T, seed uint64, d process.Domain, stored bool) *script {
	rnd := rand.New(rand.NewPCG(seed, 7))
	x := &script{t: t, rnd: rnd, domain: d, callbacks: &operator.Callbacks{}, reached: math.MinInt64, want: oracle{}}
	for i := range 12 {
		x.keys = append(x.keys, strings.Repeat(string(rune('a'+i)), rnd.IntN(60)))
	}
	x.ns = []string{"", "12345678", "0123456789abcdef", strings.Repeat("n", 5000)}
	o := Options{Callbacks: x.callbacks, Inline: 8 * rnd.IntN(5), OnProcessingTime: x.fire}
	if stored {
		o.Store = &operatortest.TimerShelf{Rand: rnd, Ahead: 1 + rnd.Int64N(10_000)}
	}
	x.s = New(o)
	if err := x.s.Restore(nil, Types{Key: keyOf[string](t), Namespace: keyOf[string](t)}); err != nil {
		t.Fatal(err)
	}
	if rnd.IntN(2) == 0 {
		x.s.queues[d].slack = 3
	}
	return x
}

// time is near the watermark or clock mostly, sometimes anywhere.
func (x *script) time() int64 {
	w := x.reached
	if w == math.MinInt64 {
		w = 1_700_000_000_000
	}
	switch x.rnd.IntN(12) {
	case 0:
		return int64(x.rnd.Uint64())
	case 1:
		return [...]int64{math.MinInt64, math.MaxInt64, 0, -1}[x.rnd.IntN(4)]
	case 2, 3:
		return w - x.rnd.Int64N(50)
	case 4:
		return w + x.rnd.Int64N(100_000_000)
	}
	return w + x.rnd.Int64N(3000)
}

func (x *script) register() {
	key, ns, at := x.keys[x.rnd.IntN(len(x.keys))], x.ns[x.rnd.IntN(len(x.ns))], x.time()
	n := name(key, ns, at)
	if err := x.s.Register(x.domain, []byte(key), hashOf(key), []byte(ns), at); err != nil {
		x.t.Fatal(err)
	}
	x.want[n] = at
}

func (x *script) remove() {
	if len(x.want) == 0 {
		return
	}
	names := slices.Sorted(maps.Keys(x.want))
	n := names[x.rnd.IntN(len(names))]
	at := x.want[n]
	var key, ns string
	if _, err := fmt.Sscanf(n, "%q %q", &key, &ns); err != nil {
		x.t.Fatal(err)
	}
	delete(x.want, n)
	for range 1 + x.rnd.IntN(2) {
		if err := x.s.Delete(x.domain, []byte(key), hashOf(key), []byte(ns), at); err != nil {
			x.t.Fatal(err)
		}
	}
}

// advance moves the watermark or sets the clock.
func (x *script) advance(to int64) {
	var err error
	if x.domain == process.EventTime {
		x.reached = max(x.reached, to)
		err = x.s.AdvanceWatermark(to, x.fire)
	} else {
		x.reached = to
		err = x.callbacks.Run(to)
	}
	if err != nil {
		x.t.Fatal(err)
	}
	if due := x.want.due(x.reached); len(due) != 0 {
		x.t.Fatalf("not fired at %d: %v", x.reached, due)
	}
}

// fire checks a timer that fires, and registers and deletes more.
func (x *script) fire(key []byte, hash uint64, ns []byte, at int64) error {
	k, sp := string(key), string(ns)
	n := name(k, sp, at)
	if _, ok := x.want[n]; !ok {
		x.t.Fatalf("fired %s, which is not set", n)
	}
	if hash != hashOf(k) {
		x.t.Fatalf("%s fired with another key's hash", n)
	}
	if at > x.reached {
		x.t.Fatalf("%s fired early, at %d", n, x.reached)
	}
	for _, earlier := range x.want {
		if earlier < at {
			x.t.Fatalf("%s fired before a timer of %d", n, earlier)
		}
	}
	delete(x.want, n)
	for range x.rnd.IntN(3) {
		if x.rnd.IntN(3) == 0 {
			x.remove()
		} else if len(x.want) < 300 {
			x.register()
		}
	}
	if string(key) != k || string(ns) != sp {
		x.t.Fatalf("key or namespace of %s changed during the call", n)
	}
	return nil
}

func (x *script) check() {
	if got := x.s.Count(x.domain); got != len(x.want) {
		x.t.Fatalf("count %d, want %d", got, len(x.want))
	}
	seen := map[string]bool{}
	err := x.s.ForEach(x.domain, func(key []byte, _ uint64, ns []byte, at int64) error {
		seen[name(string(key), string(ns), at)] = true
		return nil
	})
	if err != nil || len(seen) != len(x.want) {
		x.t.Fatalf("ForEach shows %d timers, want %d (%v)", len(seen), len(x.want), err)
	}
	for n := range x.want {
		if !seen[n] {
			x.t.Fatalf("ForEach misses %s", n)
		}
	}
	q := &x.s.queues[x.domain]
	if refs := q.wheel.refs + len(q.overdue); refs != q.live+q.dead {
		x.t.Fatalf("%d refs for %d timers and %d dead", refs, q.live, q.dead)
	}
}

func TestRandomOperationsAgreeWithASortedSet(t *testing.T) {
	for _, d := range []process.Domain{process.EventTime, process.ProcessingTime} {
		t.Run(fmt.Sprint(d, " in memory"), func(t *testing.T) { testRandomOperations(t, d, false) })
		t.Run(fmt.Sprint(d, " behind a horizon"), func(t *testing.T) { testRandomOperations(t, d, true) })
	}
}

func testRandomOperations(t *testing.T, d process.Domain, stored bool) {
	for seed := range uint64(40) {
		x := newScript(t, seed, d, stored)
		for range 600 {
			switch x.rnd.IntN(10) {
			case 0:
				x.advance(x.time())
			case 1, 2, 3:
				x.remove()
			default:
				x.register()
			}
			if x.rnd.IntN(20) == 0 {
				x.check()
			}
		}
		x.advance(math.MaxInt64)
		x.check()
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// Enough timers that index pages split, chunks chain and slots are lowered over several levels; half of them are taken
// back, so that the broom works.
func TestManyTimersFireInOrder(t *testing.T) {
	const n = 60_000
	s := New(Options{Callbacks: &operator.Callbacks{}, Inline: 8})
	rnd := rand.New(rand.NewPCG(1, 2))
	at := func(i int) int64 { return int64(i) * 7919 % 100_003 * 97 }
	key := func(i int) []byte { return binary.LittleEndian.AppendUint64(nil, uint64(i)) }
	for _, i := range rnd.Perm(n) {
		s.Register(process.EventTime, key(i), uint64(i)*mixA, nil, at(i))
	}
	for _, i := range rnd.Perm(n) {
		if i%3 != 0 {
			s.Delete(process.EventTime, key(i), uint64(i)*mixA, nil, at(i))
		}
	}
	if q := &s.queues[process.EventTime]; q.dead > q.live+2*q.slack {
		t.Fatalf("%d dead refs beside %d timers", q.dead, q.live)
	}
	fired, last := 0, int64(math.MinInt64)
	for w := int64(0); w < 100_003*97; w += 50_000 {
		err := s.AdvanceWatermark(w, func(k []byte, _ uint64, _ []byte, when int64) error {
			i := int(binary.LittleEndian.Uint64(k))
			if when != at(i) || when > w || when < last || i%3 != 0 {
				t.Fatalf("timer %d of %d fired at watermark %d as %d, after %d", i, at(i), w, when, last)
			}
			last = when
			fired++
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := s.AdvanceWatermark(math.MaxInt64, func([]byte, uint64, []byte, int64) error { fired++; return nil }); err != nil {
		t.Fatal(err)
	}
	if fired != n/3 || s.Count(process.EventTime) != 0 {
		t.Fatalf("%d timers fired, %d left; want %d and 0", fired, s.Count(process.EventTime), n/3)
	}
}

func TestFailedCallbackLeavesLaterTimersSet(t *testing.T) {
	s := New(Options{Callbacks: &operator.Callbacks{}})
	for i := range int64(10) {
		s.Register(process.EventTime, []byte("k"), 1, nil, i)
	}
	boom := errors.New("boom")
	err := s.AdvanceWatermark(9, func(_ []byte, _ uint64, _ []byte, at int64) error {
		if at == 4 {
			return boom
		}
		return nil
	})
	if !errors.Is(err, boom) || s.Count(process.EventTime) != 5 {
		t.Fatalf("error %v, %d timers left; want boom and 5", err, s.Count(process.EventTime))
	}
}
