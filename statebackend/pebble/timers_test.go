package pebble

import (
	"encoding/binary"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/flott-dev/flott/internal/keygroup"
	"github.com/flott-dev/flott/statebackend"
)

// timerWorld is a store with timers, some of which were taken out.
type timerWorld struct {
	*world
	set   statebackend.Timers
	ahead []statebackend.Timer
}

func openTimerWorld(t *testing.T, folder string, first, last int, from statebackend.Restored) *timerWorld {
	t.Helper()
	w := &timerWorld{world: openWorld(t, folder, first, last, from)}
	var err error
	w.set, err = w.store.Timers(statebackend.TimerSpec{Name: "timers/event", Ahead: func() iter.Seq[*statebackend.Timer] {
		moment := slices.Clone(w.ahead)
		return func(yield func(*statebackend.Timer) bool) {
			for i := range moment {
				if !yield(&moment[i]) {
					return
				}
			}
		}
	}})
	fatal(t, err)
	return w
}

// step sets and takes timers of the store's groups.
func (w *timerWorld) step(r *rand.Rand, n int) {
	w.t.Helper()
	for i := range n {
		x := w.timer(r.IntN(3000), r.Int64N(5000)-100)
		if g := keygroup.Of(uint32(x.Hash), 64); g < w.first || g > w.last {
			continue
		}
		switch {
		case slices.ContainsFunc(w.ahead, func(a statebackend.Timer) bool { return a.At == x.At && string(a.Key) == string(x.Key) }):
		case r.IntN(4) == 0:
			fatal(w.t, w.set.Delete(x))
		default:
			fatal(w.t, w.set.Put(x))
		}
		if i%500 == 0 {
			w.ahead = nil
			_, _, err := w.set.Take(20, func(x *statebackend.Timer) error {
				w.ahead = append(w.ahead, statebackend.Timer{At: x.At, Key: slices.Clone(x.Key), Hash: x.Hash})
				return nil
			})
			fatal(w.t, err)
		}
	}
}

func (w *timerWorld) timer(key int, at int64) *statebackend.Timer {
	x := &statebackend.Timer{At: at, Key: fmt.Append(nil, "key-", key)}
	x.Hash = w.key.HashOne(x.Key, 5)
	return x
}

// TestFilesHoldTheTimersOfTheMoment gathers files long after their moment, restores them, and goes on.
func TestFilesHoldTheTimersOfTheMoment(t *testing.T) {
	folder, s := t.TempDir(), shelf{}
	r := rand.New(rand.NewPCG(17, 1))
	w := openTimerWorld(t, folder, 0, 63, nil)
	for range 4 {
		w.step(r, 6000)
		want, f := w.moment()
		w.step(r, r.IntN(4000))
		done := make(chan struct{})
		var set statebackend.RestoredFileSet
		go func() {
			defer close(done)
			set, _ = s.put(t, f, 0, 63)
		}()
		w.step(r, r.IntN(4000))
		<-done
		f.Release()
		w.close()
		w = openTimerWorld(t, folder, 0, 63, &fileSets{sets: []statebackend.RestoredFileSet{set}})
		w.check("restored", want)
		checkReader(t, folder, &set, want)
		if len(want) < 1000 {
			t.Fatalf("%d timers", len(want))
		}
	}
	w.close()
	if left, err := os.ReadDir(folder); err != nil || len(left) > 0 {
		t.Errorf("%d folders are left, %v", len(left), err)
	}
}

// TestTimersInFilesMoveToOtherKeyGroups goes from one subtask to three, two and one, which find all timers in order.
func TestTimersInFilesMoveToOtherKeyGroups(t *testing.T) {
	folder, s := t.TempDir(), shelf{}
	w := openTimerWorld(t, folder, 0, 63, nil)
	w.step(rand.New(rand.NewPCG(18, 1)), 8000)
	want, f := w.moment()
	set, _ := s.put(t, f, 0, 63)
	f.Release()
	w.close()
	sets := []statebackend.RestoredFileSet{set}
	for _, ranges := range [][][2]int{{{0, 20}, {21, 42}, {43, 63}}, {{0, 31}, {32, 63}}, {{0, 63}}} {
		var next []statebackend.RestoredFileSet
		var all []string
		for _, g := range ranges {
			from := &fileSets{}
			for _, set := range sets {
				if set.FirstGroup <= g[1] && set.LastGroup >= g[0] {
					set.FirstGroup, set.LastGroup = max(set.FirstGroup, g[0]), min(set.LastGroup, g[1])
					from.sets = append(from.sets, set)
				}
			}
			w := openTimerWorld(t, folder, g[0], g[1], from)
			rows, f := w.moment()
			all = append(all, rows...)
			set, _ := s.put(t, f, g[0], g[1])
			next = append(next, set)
			f.Release()
			w.drain(len(rows))
			w.close()
		}
		slices.Sort(all)
		if !slices.Equal(all, want) {
			t.Fatalf("%v: %d timers, want %d", ranges, len(all), len(want))
		}
		sets = next
	}
}

// drain takes all timers and checks their order, and how many keys they are of.
func (w *timerWorld) drain(keys int) {
	w.t.Helper()
	of := map[string]bool{}
	for last, more := int64(math.MinInt64), true; more; {
		var latest int64
		var err error
		_, more, err = w.set.Take(100, func(x *statebackend.Timer) error {
			if x.At < last {
				w.t.Fatalf("a timer of %d after one of %d", x.At, last)
			}
			latest = max(latest, x.At)
			of[string(x.Key)] = true
			return nil
		})
		fatal(w.t, err)
		last = latest
	}
	if len(of) != keys {
		w.t.Errorf("timers of %d keys, want %d", len(of), keys)
	}
}

// TestTimersWithoutOrderAreTakenInOrder sets timers far apart and close together, so that Take has to look far, and finds too
// many.
func TestTimersWithoutOrderAreTakenInOrder(t *testing.T) {
	w := openTimerWorld(t, t.TempDir(), 0, 63, nil)
	r := rand.New(rand.NewPCG(19, 1))
	var want []int64
	for i := range 20_000 {
		at := r.Int64() >> r.IntN(63)
		if i%2 == 0 {
			at = -at
		}
		want = append(want, at)
		fatal(t, w.set.Put(w.timer(i, at)))
	}
	slices.Sort(want)
	for more, n := true, 0; more; {
		var got []int64
		var rest int64
		var err error
		rest, more, err = w.set.Take(1<<20, func(x *statebackend.Timer) error { got = append(got, x.At); return nil })
		fatal(t, err)
		slices.Sort(got)
		if len(got) > leastTake || !slices.Equal(got, want[n:n+len(got)]) {
			t.Fatalf("took %d timers after %d, or not the first", len(got), n)
		}
		if n += len(got); more != (n < len(want)) || more && rest != want[n] {
			t.Fatalf("after %d timers: more %v, from %d on", n, more, rest)
		}
	}
	w.close()
}

// TestTimerRowsAreWhatTheyWere is a golden test: snapshots hold these bytes.
func TestTimerRowsAreWhatTheyWere(t *testing.T) {
	w := openTimerWorld(t, t.TempDir(), 0, 63, nil)
	set := w.set.(*timerSet)
	x := w.timer(7, -2)
	want := binary.BigEndian.AppendUint16([]byte{0, 1}, uint16(keygroup.Of(uint32(x.Hash), 64)))
	want = append(append(want, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfe, 5), "key-7"...)
	if got := set.compose(x); string(got) != string(want) {
		t.Errorf("got %x, want %x", got, want)
	}
	w.close()
}
