package backendtest

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/flott-dev/flott/internal/keygroup"
	"github.com/flott-dev/flott/serde"
	"github.com/flott-dev/flott/statebackend"
)

// timer is a timer as a value.
type timer struct {
	at      int64
	key, ns string
}

// timerRig drives a set of timers beside a model.
type timerRig[K comparable] struct {
	*kit[K]
	set   statebackend.Timers
	ns    *serde.Key
	want  map[timer]bool // in the set
	ahead map[timer]bool // taken out of it, and not forgotten
}

// openTimers opens a set of timers, if the store keeps any.
func openTimers[K comparable](t *tester, ns *serde.Key, change ...func(*statebackend.Options)) *timerRig[K] {
	t.Helper()
	x := &timerRig[K]{kit: newKit[K](t, change...), ns: ns, want: map[timer]bool{}, ahead: map[timer]bool{}}
	store, keeps := x.store.(statebackend.TimerStore)
	if !keeps {
		t.Skip("the store keeps no timers")
	}
	var err error
	x.set, err = store.Timers(x.spec())
	ok(t, err)
	return x
}

func (x *timerRig[K]) spec() statebackend.TimerSpec {
	return statebackend.TimerSpec{Name: "timers/event", Namespace: x.ns, Ahead: func() iter.Seq[*statebackend.Timer] {
		if len(x.ahead) == 0 {
			return nil
		}
		moment := slices.Collect(maps.Keys(x.ahead))
		return func(yield func(*statebackend.Timer) bool) {
			for _, m := range moment {
				if !yield(x.timer(m)) {
					return
				}
			}
		}
	}}
}

// timer makes a timer of the contract.
func (x *timerRig[K]) timer(m timer) *statebackend.Timer {
	t := &statebackend.Timer{At: m.at, Key: []byte(m.key), Namespace: []byte(m.ns)}
	t.Hash = x.key.HashOne(t.Key, testSeed)
	return t
}

func (x *timerRig[K]) put(m timer) {
	x.t.Helper()
	ok(x.t, x.set.Put(x.timer(m)))
	x.want[m] = true
}

func (x *timerRig[K]) remove(m timer) {
	x.t.Helper()
	ok(x.t, x.set.Delete(x.timer(m)))
	delete(x.want, m)
}

// take takes timers out and checks that they are the earliest.
func (x *timerRig[K]) take(most int) {
	x.t.Helper()
	latest, n := int64(math.MinInt64), 0
	rest, more, err := x.set.Take(most, func(t *statebackend.Timer) error {
		m := timer{t.At, string(t.Key), string(t.Namespace)}
		if !x.want[m] {
			x.t.Fatalf("took %+v, which is not in the set", m)
		}
		if t.Hash != x.key.HashOne(t.Key, testSeed) {
			x.t.Fatalf("took %+v with another key's hash", m)
		}
		latest = max(latest, t.At)
		delete(x.want, m)
		x.ahead[m] = true
		n++
		return nil
	})
	ok(x.t, err)
	first, left := x.first()
	if n > most || n == 0 && left || more != left || left && (rest != first || latest > first) {
		x.t.Fatalf("took %d timers of at most %d, to %d; %v are left from %d on; want %v from %d", n, most, latest, more, rest, left, first)
	}
}

// first is the time of the first timer that is left.
func (x *timerRig[K]) first() (at int64, left bool) {
	for m := range x.want {
		if !left || m.at < at {
			at, left = m.at, true
		}
	}
	return at, left
}

// all are the timers that a snapshot must have, in a fixed order.
func (x *timerRig[K]) all() []timer {
	all := append(slices.Collect(maps.Keys(x.want)), slices.Collect(maps.Keys(x.ahead))...)
	slices.SortFunc(all, compareTimers)
	return all
}

func compareTimers(a, b timer) int {
	return cmp.Or(cmp.Compare(a.at, b.at), strings.Compare(a.key, b.key), strings.Compare(a.ns, b.ns))
}

// timersOf are the timers of a snapshot.
func (x *timerRig[K]) timersOf(h *held) (all []timer) {
	x.t.Helper()
	table := h.tables["timers/event"]
	if table == nil {
		return nil
	}
	at := keyOf[int64](x.t)
	if table.Kind != statebackend.TimerKind || table.Value != nil || table.Key == nil || table.MapKey.String() != at.Schema().String() || (table.Namespace == nil) != (x.ns == nil) {
		x.t.Fatalf("the table of timers is %+v", table.TableInfo)
	}
	for _, r := range table.rows {
		hash := x.key.HashOne(r.Key, testSeed)
		if len(r.MapKey) != 8 || r.Value != nil || r.Hash != hash || r.Group != keygroup.Of(uint32(hash), 128) || (r.Namespace == nil) != (x.ns == nil) {
			x.t.Fatalf("row %+v", r)
		}
		all = append(all, timer{int64(binary.LittleEndian.Uint64(r.MapKey)), string(r.Key), string(r.Namespace)})
	}
	slices.SortFunc(all, compareTimers)
	return all
}

// timersAreAnOrderedSet does things at random, freezes in between, and goes on from snapshots.
func timersAreAnOrderedSet(t *tester) {
	t.Run("words", func(t *tester) {
		testTimers[int64](t, nil, func(n int) (string, string) {
			return string(binary.LittleEndian.AppendUint64(nil, uint64(n))), ""
		})
	})
	t.Run("texts with windows", func(t *tester) {
		testTimers[string](t, keyOf[pair](t), func(n int) (string, string) {
			return strings.Repeat("k", n%9), string(binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, uint64(n/9)), 0xff))
		})
	})
	t.Run("texts with texts", func(t *tester) {
		testTimers[string](t, keyOf[string](t), func(n int) (string, string) {
			return strings.Repeat("\xff", n%5), strings.Repeat("\x00", n/5)
		})
	})
}

func testTimers[K comparable](t *tester, ns *serde.Key, key func(n int) (key, ns string)) {
	t.Parallel()
	r := newRand(21)
	x := openTimers[K](t, ns)
	now := int64(1_700_000_000_000)
	draw := func() timer {
		m := timer{at: now + r.Int64N(100_000)}
		switch r.IntN(30) {
		case 0:
			m.at = []int64{math.MinInt64, -1, 0, math.MaxInt64}[r.IntN(4)]
		case 1, 2, 3:
			m.at = now
		case 4:
			m.at = int64(r.Uint64())
		}
		m.key, m.ns = key(r.IntN(60))
		return m
	}
	for round := range rounds(40) {
		for range r.IntN(1500) {
			switch n := r.IntN(10); {
			case n < 6:
				x.put(draw())
			case n == 6:
				x.remove(draw())
			default:
				for m := range x.want {
					x.remove(m)
					break
				}
			}
		}
		for range r.IntN(4) {
			x.take(1 + r.IntN(400))
		}
		clear(x.ahead)
		x.take(1 + r.IntN(50))
		now += r.Int64N(20_000)
		if round%4 == 0 {
			x.snapshot(round%8 == 0, draw())
		}
	}
	for len(x.want) > 0 {
		x.take(1 + r.IntN(500))
	}
	x.take(1)
	x.checkClosed()
}

// snapshot checks a snapshot, after whose moment a timer comes; again says to go on from it.
func (x *timerRig[K]) snapshot(again bool, late timer) {
	x.t.Helper()
	f, err := x.store.Freeze(statebackend.Freezing{})
	ok(x.t, err)
	want := x.all()
	for _, m := range want[:len(want)/2] { // what changes afterwards is not in it
		x.remove(m)
	}
	had := x.want[late]
	x.put(late)
	h := readAll(x.t, f)
	if got := x.timersOf(h); !slices.Equal(got, want) {
		x.t.Fatalf("%d timers in a snapshot, want %d", len(got), len(want))
	}
	if !had {
		x.remove(late)
	}
	seen := 0
	ok(x.t, x.set.Range(func(t *statebackend.Timer) error {
		if seen++; !x.want[timer{t.At, string(t.Key), string(t.Namespace)}] {
			return fmt.Errorf("a timer of %d is not in the set", t.At)
		}
		return nil
	}))
	if seen != len(x.want) {
		x.t.Fatalf("%d timers in the set, want %d", seen, len(x.want))
	}
	x.checkMemory()
	if !again {
		return
	}
	x.checkClosed()
	x.kit = restoredKit[K](x.t, h)
	clear(x.ahead)
	clear(x.want)
	for _, m := range want {
		x.want[m] = true
	}
	x.set, err = x.store.(statebackend.TimerStore).Timers(x.spec())
	ok(x.t, err)
}

// timersOfOneTimeAreTakenInParts has more timers of one time than are taken at once, and puts more of them meanwhile.
func timersOfOneTimeAreTakenInParts(t *tester) {
	x := openTimers[int64](t, nil)
	const n = 9000
	word := func(i int) string { return string(binary.LittleEndian.AppendUint64(nil, uint64(i))) }
	for i := range n {
		x.put(timer{at: 1000 + int64(i%3), key: word(i)})
	}
	for i := 0; len(x.want) > 0; i++ {
		x.take(1000)
		if i%3 == 0 {
			x.put(timer{at: 1000, key: word(n + i)})
		}
		if i > 100 {
			t.Fatal("it never ends")
		}
	}
	x.checkClosed()
}

// timersMoveToOtherKeyGroups restores parts of a snapshot.
func timersMoveToOtherKeyGroups(t *tester) {
	x := openTimers[int64](t, nil)
	for i := range 3000 {
		x.put(timer{at: int64(i % 500), key: string(binary.LittleEndian.AppendUint64(nil, uint64(i)))})
	}
	x.take(700)
	want := x.all()
	whole := freeze(t, x.store)
	x.checkClosed()
	var got []timer
	for _, g := range [][2]int{{0, 30}, {31, 99}, {100, 127}} {
		y := openTimers[int64](t, nil, func(o *statebackend.Options) {
			o.FirstGroup, o.LastGroup, o.Restored = g[0], g[1], whole.of(g[0], g[1])
		})
		part := y.timersOf(freeze(t, y.store))
		for _, m := range part {
			y.want[m] = true
		}
		for len(y.want) > 0 {
			y.take(400)
		}
		y.checkClosed()
		got = append(got, part...)
	}
	slices.SortFunc(got, compareTimers)
	if !slices.Equal(got, want) {
		t.Errorf("%d timers in all, want %d", len(got), len(want))
	}
}

// timersAreRefused opens timers that do not fit.
func timersAreRefused(t *tester) {
	x := openTimers[int64](t, nil)
	store := x.store.(statebackend.TimerStore)
	_, twice := store.Timers(x.spec())
	_, nameless := store.Timers(statebackend.TimerSpec{})
	_, err := x.store.Table(statebackend.TableSpec{Name: "totals", Value: handle[int64](t)})
	ok(t, err)
	_, table := store.Timers(statebackend.TimerSpec{Name: "totals"})
	x.put(timer{at: 5, key: "12345678"})
	h := freeze(t, x.store)
	open := func(h *held, spec statebackend.TimerSpec) error {
		_, err := restoredKit[int64](t, h).store.(statebackend.TimerStore).Timers(spec)
		return err
	}
	text := restoredKit[string](t, h).store.(statebackend.TimerStore)
	_, otherKey := text.Timers(statebackend.TimerSpec{Name: "timers/event"})
	otherNamespace := open(h, statebackend.TimerSpec{Name: "timers/event", Namespace: keyOf[int64](t)})
	h.tables["timers/event"].Kind = "value"
	otherKind := open(h, statebackend.TimerSpec{Name: "timers/event"})
	for want, err := range map[string]error{
		"the name is taken": twice, "without a name": nameless, `"totals"`: table,
		"key type int64, the program string": otherKey, "namespace type (none)": otherNamespace, "holds value, not timers": otherKind,
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// timersThatNobodyOpensAreDropped opens no timers where a snapshot has some.
func timersThatNobodyOpensAreDropped(t *tester) {
	x := openTimers[int64](t, nil)
	if h := freeze(t, x.store); len(h.names) > 0 {
		t.Errorf("no timers make tables %v", h.names)
	}
	m := timer{at: 5, key: "12345678"}
	x.put(m)
	h := freeze(t, x.store)
	if k := restoredKit[int64](t, h); len(freeze(t, k.store).names) > 0 {
		t.Error("timers that nobody opened are in a snapshot")
	}
	x.remove(m)
	if h := freeze(t, x.store); len(h.names) > 0 {
		t.Errorf("timers that are gone make tables %v", h.names)
	}
}
