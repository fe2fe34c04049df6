package exchange

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/flott-dev/flott/internal/clock"
	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/graph"
	"github.com/flott-dev/flott/internal/host"
	"github.com/flott-dev/flott/internal/keygroup"
	"github.com/flott-dev/flott/serde"
)

func typeOf[T any](t testing.TB) *frame.Type {
	t.Helper()
	typ, err := frame.TypeOf[T]()
	if err != nil {
		t.Fatal(err)
	}
	return typ
}

// keyOf is the key of a stream of T whose elements are their own keys.
func keyOf[T any](t testing.TB) *graph.Key {
	t.Helper()
	k, err := serde.KeyOf[T]()
	if err != nil {
		t.Fatal(err)
	}
	return &graph.Key{Key: k, Extract: func() func(*frame.Run) serde.Column {
		buf := make([]T, frame.MaxLen)
		return func(r *frame.Run) serde.Column {
			n := copy(buf, frame.Values[T](r))
			return serde.Column{P: unsafe.Pointer(unsafe.SliceData(buf)), N: n, Stride: unsafe.Sizeof(buf[0])}
		}
	}}
}

// spread is a writer whose channels are emptied after each push: what it sent to each, in order.
type spread[T any] struct {
	t  *testing.T
	w  *Writer
	cs []*Channel
	to [][]T
	at [][]int64 // timestamps, as to
}

func newSpread[T any](t *testing.T, p *graph.Partitioner, channels int, opt Options) *spread[T] {
	t.Helper()
	waiter := host.NewParker(clock.NewManual(0))
	s := &spread[T]{t: t, to: make([][]T, channels), at: make([][]int64, channels)}
	for range channels {
		s.cs = append(s.cs, &Channel{Producer: waiter, Consumer: waiter})
	}
	end := &deadEnd{}
	opt.Type, opt.Strategy, opt.Waiter, opt.Stopped = typeOf[T](t), p.Strategy, end, end.stopped
	s.w = NewWriter(p, s.cs, opt)
	return s
}

// push writes a run whose timestamps are the positions in the whole stream.
func (s *spread[T]) push(xs []T, from int) error {
	c := frame.NewColumn(s.w.Type(), max(1, len(xs)))
	for i, x := range xs {
		frame.Add(c, x, int64(from+i))
	}
	r := c.Run()
	if err := s.w.Push(&r); err != nil {
		return err
	}
	if err := s.w.Flush(); err != nil {
		return err
	}
	s.drain()
	return nil
}

func (s *spread[T]) drain() {
	for i, c := range s.cs {
		for f := c.Poll(); f != nil; f = c.Poll() {
			r := f.Run()
			s.to[i] = append(s.to[i], frame.Values[T](&r)...)
			for j := range r.N {
				s.at[i] = append(s.at[i], r.Time(j))
			}
			c.Return(f)
		}
	}
}

// cut pushes xs in runs of random lengths of at most most elements.
func (s *spread[T]) cut(xs []T, rng *rand.Rand, most int) {
	s.t.Helper()
	for from := 0; from < len(xs); {
		to := min(len(xs), from+rng.IntN(most)+1)
		if err := s.push(xs[from:to], from); err != nil {
			s.t.Fatal(err)
		}
		from = to
	}
}

func randomInts(n int, below int64) []int64 {
	rng := rand.New(rand.NewPCG(3, 4))
	xs := make([]int64, n)
	for i := range xs {
		xs[i] = rng.Int64N(below) - below/2
	}
	return xs
}

// Each element goes to the subtask that owns its key's group, however the stream is cut into runs, with its timestamp and
// in order.
func TestHashSendsEachElementToTheOwnerOfItsKeyGroup(t *testing.T) {
	const seed = 99
	xs := randomInts(5000, 800)
	for _, c := range []struct{ channels, maxGroup, cut int }{
		{2, 128, 1}, {2, 128, 700}, {2, 100, 5000}, {3, 128, 900}, {7, 100, 3}, {7, 1000, 5000}, {100, 100, 5000}, {200, 32768, 5000},
	} {
		key := keyOf[int64](t)
		want, wantAt := make([][]int64, c.channels), make([][]int64, c.channels)
		for i, x := range xs {
			hash := key.HashOne(unsafe.Slice((*byte)(unsafe.Pointer(&x)), 8), seed)
			owner := keygroup.SubtaskOf(c.maxGroup, c.channels, keygroup.Of(uint32(hash), c.maxGroup))
			want[owner], wantAt[owner] = append(want[owner], x), append(wantAt[owner], int64(i))
		}
		s := newSpread[int64](t, &graph.Partitioner{Strategy: graph.Hash, Key: key}, c.channels, Options{MaxGroup: c.maxGroup, Seed: seed})
		s.cut(xs, rand.New(rand.NewPCG(uint64(c.cut), 1)), c.cut)
		for i := range want {
			if !slices.Equal(s.to[i], want[i]) || !slices.Equal(s.at[i], wantAt[i]) {
				t.Errorf("%+v: channel %d got %d elements, want %d, or others, or in another order", c, i, len(s.to[i]), len(want[i]))
			}
		}
	}
}

func TestHashDependsOnTheSeedOfTheJob(t *testing.T) {
	xs := randomInts(1000, 1000)
	var got [][]int64
	for _, seed := range []uint64{1, 1, 2} {
		s := newSpread[int64](t, &graph.Partitioner{Strategy: graph.Hash, Key: keyOf[int64](t)}, 3, Options{MaxGroup: 128, Seed: seed})
		s.cut(xs, rand.New(rand.NewPCG(seed, 1)), 100)
		got = append(got, s.to[0])
	}
	if !slices.Equal(got[0], got[1]) || slices.Equal(got[0], got[2]) {
		t.Error("equal seeds must spread equally, other seeds otherwise")
	}
}

func TestHashRefusesNaN(t *testing.T) {
	s := newSpread[float64](t, &graph.Partitioner{Strategy: graph.Hash, Key: keyOf[float64](t)}, 2, Options{MaxGroup: 128})
	err := s.push([]float64{1, 2, math.NaN()}, 0)
	var nan *serde.NaNKeyError
	if !errors.As(err, &nan) || nan.Index != 2 || !strings.Contains(err.Error(), "take the key") {
		t.Errorf("got %v, want an error that names element 2", err)
	}
	if err := s.push([]float64{math.Copysign(0, -1), 0}, 0); err != nil || len(s.to[0])*len(s.to[1]) != 0 {
		t.Errorf("-0.0 and 0.0 are one key: %v, %v", s.to, err)
	}
}

func TestShuffleIsReproducibleAndReachesAllChannels(t *testing.T) {
	const n, channels = 8000, 5
	xs := randomInts(n, 1<<40)
	run := func(seed uint64, subtask, cut int) [][]int64 {
		s := newSpread[int64](t, &graph.Partitioner{Strategy: graph.Shuffle, Seed: seed}, channels, Options{Subtask: subtask})
		s.cut(xs, rand.New(rand.NewPCG(uint64(cut), 2)), cut)
		total := 0
		for i, to := range s.to {
			total += len(to)
			if len(to) < n/channels*8/10 || len(to) > n/channels*12/10 {
				t.Errorf("seed %d: channel %d got %d of %d elements", seed, i, len(to), n)
			}
		}
		if total != n {
			t.Errorf("seed %d: %d elements came out of %d", seed, total, n)
		}
		return s.to
	}
	equal := func(a, b [][]int64) bool { return slices.EqualFunc(a, b, slices.Equal[[]int64]) }
	a := run(1, 0, 100)
	if !equal(a, run(1, 0, 3000)) {
		t.Error("the same seed shuffles otherwise when the stream is cut otherwise")
	}
	if equal(a, run(2, 0, 100)) || equal(a, run(1, 1, 100)) {
		t.Error("another seed, or another subtask, shuffles the same way")
	}
}

// Several producers must not all begin with the first channel.
func TestDealingBeginsAtTheSubtasksOwnChannel(t *testing.T) {
	for _, c := range []struct {
		strategy          graph.Strategy
		subtask, channels int
		first             int
	}{
		{graph.Rebalance, 0, 3, 0}, {graph.Rebalance, 1, 3, 1}, {graph.Rebalance, 5, 3, 2}, {graph.Rescale, 1, 2, 1}, {graph.Rescale, 4, 3, 1},
	} {
		s := newSpread[int64](t, &graph.Partitioner{Strategy: c.strategy}, c.channels, Options{Subtask: c.subtask})
		s.cut([]int64{0, 1, 2, 3, 4, 5, 6}, rand.New(rand.NewPCG(1, 1)), 3)
		want := make([][]int64, c.channels)
		for x := range int64(7) {
			to := (c.first + int(x)) % c.channels
			want[to] = append(want[to], x)
		}
		if !slices.EqualFunc(s.to, want, slices.Equal[[]int64]) {
			t.Errorf("%v of subtask %d over %d: got %v, want %v", c.strategy, c.subtask, c.channels, s.to, want)
		}
	}
}

// One channel needs no choice: no strategy but Custom, whose user wants to be asked, looks at the elements.
func TestOneChannelTakesEverything(t *testing.T) {
	for _, strategy := range []graph.Strategy{graph.Forward, graph.Rebalance, graph.Rescale, graph.Shuffle, graph.Broadcast, graph.Global, graph.Hash} {
		s := newSpread[int64](t, &graph.Partitioner{Strategy: strategy}, 1, Options{})
		if _, ok := s.w.part.(single); !ok {
			t.Errorf("%v over one channel asks where to send elements", strategy)
		}
		xs := randomInts(3000, 100)
		s.cut(xs, rand.New(rand.NewPCG(1, 1)), 3000)
		if !slices.Equal(s.to[0], xs) {
			t.Errorf("%v: %d elements came, want %d in order", strategy, len(s.to[0]), len(xs))
		}
		if s.w.shared {
			t.Errorf("%v: frames of one receiver are counted", strategy)
		}
	}
}

func TestCustomPartitionerIsAskedForEachElement(t *testing.T) {
	cause := errors.New("no idea")
	pick := func(r *frame.Run, channels int, out []uint16) error {
		for i, x := range frame.Values[int64](r) {
			if x == 13 {
				return cause
			}
			out[i] = uint16(x)
		}
		if channels != 3 || len(out) != r.N {
			t.Errorf("asked for %d of %d elements over %d channels", len(out), r.N, channels)
		}
		return nil
	}
	made := 0
	p := &graph.Partitioner{Strategy: graph.Custom, Select: func() func(*frame.Run, int, []uint16) error {
		made++
		return pick
	}}
	s := newSpread[int64](t, p, 3, Options{})
	if err := s.push([]int64{2, 0, 1, 2}, 0); err != nil || made != 1 {
		t.Fatalf("made %d choosers, %v", made, err)
	}
	if want := [][]int64{{0}, {1}, {2, 2}}; !slices.EqualFunc(s.to, want, slices.Equal[[]int64]) {
		t.Errorf("got %v, want %v", s.to, want)
	}
	err := s.push([]int64{0, 3}, 0)
	if err == nil || !strings.Contains(err.Error(), "element 1") || !strings.Contains(err.Error(), "channel 3, there are 3") {
		t.Errorf("got %v, want a mistake that names element and channel", err)
	}
	if err := s.push([]int64{13}, 0); !errors.Is(err, cause) {
		t.Errorf("got %v, want the partitioner's error", err)
	}
}

func TestCustomPartitionerOverOneChannelMayStillFail(t *testing.T) {
	p := &graph.Partitioner{Strategy: graph.Custom, Select: func() func(*frame.Run, int, []uint16) error {
		return func(_ *frame.Run, _ int, out []uint16) error {
			out[0] = 1
			return nil
		}
	}}
	if err := newSpread[int64](t, p, 1, Options{}).push([]int64{5}, 0); err == nil {
		t.Error("channel 1 of one channel was accepted")
	}
}

// The two-channel case has a loop of its own: every pattern of targets must come out as in the general one.
func TestSplitOverTwoChannelsIsExact(t *testing.T) {
	for _, n := range []int{1, 2, 63, 64, frame.MaxLen - 1, frame.MaxLen, frame.MaxLen + 1, 3 * frame.MaxLen} {
		for name, to := range map[string]func(i int64) bool{
			"all left": func(int64) bool { return false }, "all right": func(int64) bool { return true },
			"in turn": func(i int64) bool { return i%2 == 1 }, "in blocks": func(i int64) bool { return i/100%2 == 1 },
		} {
			p := &graph.Partitioner{Strategy: graph.Custom, Select: func() func(*frame.Run, int, []uint16) error {
				return func(r *frame.Run, _ int, out []uint16) error {
					for i, x := range frame.Values[int64](r) {
						out[i] = 0
						if to(x) {
							out[i] = 1
						}
					}
					return nil
				}
			}}
			s := newSpread[int64](t, p, 2, Options{})
			var want [2][]int64
			xs := make([]int64, n)
			for i := range xs {
				xs[i] = int64(i)
				side := 0
				if to(int64(i)) {
					side = 1
				}
				want[side] = append(want[side], int64(i))
			}
			if err := s.push(xs, 0); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(s.to[0], want[0]) || !slices.Equal(s.to[1], want[1]) {
				t.Errorf("%d elements %s: split into %d and %d, want %d and %d", n, name, len(s.to[0]), len(s.to[1]), len(want[0]), len(want[1]))
			}
		}
	}
}
