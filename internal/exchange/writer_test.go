package exchange

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/flott-dev/flott/internal/clock"
	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/graph"
	"github.com/flott-dev/flott/internal/host"
	"github.com/flott-dev/flott/serde"
)

// Trap B074: a shuffle over very many channels with next to no memory for frames makes progress, in small frames.
func TestWideShuffleMakesProgressInLittleMemory(t *testing.T) {
	const channels, n = 200, 20_000
	for _, c := range []struct {
		budget, capacity int
	}{
		{1, 1}, {channels * (Depth + 1) * 16, 1}, {channels * (Depth + 1) * 64, 4}, {4 << 20, 145}, {1 << 30, frame.DefaultLen}, {0, frame.DefaultLen},
	} {
		clk := clock.NewSystem()
		p, q := host.NewParker(clk), host.NewParker(clk)
		cs := make([]*Channel, channels)
		for i := range cs {
			cs[i] = &Channel{Producer: p, Consumer: q}
		}
		w := NewWriter(&graph.Partitioner{Seed: 3}, cs, Options{
			Type: int64Type(t), Strategy: graph.Shuffle, Waiter: p, Stopped: func() bool { return false }, Budget: c.budget,
		})
		if w.capacity != c.capacity {
			t.Errorf("a budget of %d bytes gives frames of %d elements, want %d", c.budget, w.capacity, c.capacity)
		}
		var group sync.WaitGroup
		group.Go(func() {
			for i := int64(0); i < n; i += 100 {
				xs := make([]int64, 100)
				for j := range xs {
					xs[j] = i + int64(j)
				}
				push(t, w, xs...)
			}
			if err := w.Mark(frame.Mark{Kind: frame.End}); err != nil {
				t.Error(err)
			}
		})
		g := NewGate(cs)
		seen := make([]bool, n)
		for open := channels; open > 0; {
			f, at := g.Poll()
			if f == nil {
				q.Wait(host.Idle, host.Forever)
				continue
			}
			r := f.Run()
			for _, x := range frame.Values[int64](&r) {
				if seen[x] {
					t.Fatalf("element %d came twice", x)
				}
				seen[x] = true
			}
			if len(f.Marks) != 0 {
				g.End(at)
				open--
			}
			g.Return(f, at)
		}
		group.Wait()
		if slices.Contains(seen, false) {
			t.Errorf("budget %d: an element is missing", c.budget)
		}
	}
}

// pour offers n elements and marks in runs of random lengths, one mark a run, and returns what every channel must get.
func pour(t *testing.T, w *Writer, n int, seed uint64, each func()) (want []int64) {
	rng := rand.New(rand.NewPCG(seed, 5))
	for i := 0; i < n; {
		var xs []int64
		for range rng.IntN(700) + 1 {
			xs = append(xs, int64(i))
			i++
		}
		push(t, w, xs...)
		want = append(want, xs...)
		if err := w.Mark(frame.Mark{Kind: frame.Watermark, Value: int64(i)}); err != nil {
			t.Fatal(err)
		}
		want = append(want, -1-int64(frame.Watermark))
		each()
	}
	return want
}

// All receivers of a broadcast see all elements and marks in order, though they read at different speeds and the frames
// are used again and again.
func TestBroadcastFramesAreUsedAgainOnlyWhenAllHaveReadThem(t *testing.T) {
	for seed := range uint64(10) {
		w, cs := rig(t, graph.Broadcast, 3, nil)
		got := make([][]int64, len(cs))
		held := make([]*frame.Frame, len(cs))
		rng := rand.New(rand.NewPCG(seed, 9))
		release := func(i int) {
			if f := held[i]; f != nil {
				got[i] = append(got[i], contents(f)...)
				cs[i].Return(f)
				held[i] = nil
			}
		}
		read := func(i int) {
			release(i)
			if held[i] = cs[i].Poll(); held[i] != nil && !held[i].Shared() {
				t.Error("a frame that others read is not marked as shared")
			}
		}
		want := pour(t, w, 50_000, seed, func() {
			for i := range cs {
				for range rng.IntN(3) {
					read(i)
				}
				for cs[i].Len() > Depth-4 {
					read(i)
				}
			}
		})
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
		for i := range cs {
			for cs[i].Len() != 0 {
				read(i)
			}
			release(i)
			if !slices.Equal(got[i], want) {
				t.Fatalf("seed %d: receiver %d got %d elements and marks, want %d, or others", seed, i, len(got[i]), len(want))
			}
		}
		frames := 0
		for _, c := range cs {
			for c.Fresh() != nil {
				frames++
			}
		}
		if frames == 0 || frames > Depth+2 {
			t.Errorf("seed %d: %d frames came back, want 1 ... %d: they were not used again", seed, frames, Depth+2)
		}
	}
}

// contents are the elements of a frame and its marks as drain writes them.
func contents(f *frame.Frame) (xs []int64) {
	r := f.Run()
	pos := 0
	for _, m := range f.Marks {
		xs = append(xs, frame.Values[int64](&r)[pos:m.Pos]...)
		pos = int(m.Pos)
		xs = append(xs, -1-int64(m.Kind))
	}
	return append(xs, frame.Values[int64](&r)[pos:]...)
}

func TestFramesOfOneReceiverAreNotShared(t *testing.T) {
	w, cs := rig(t, graph.Rebalance, 2, nil)
	push(t, w, 1, 2)
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	for _, c := range cs {
		if f := c.Poll(); f == nil || f.Shared() {
			t.Error("a frame of one receiver can't be changed in place")
		}
	}
}

func TestMarksThatMustNotWaitAreSentAtOnce(t *testing.T) {
	for _, c := range []struct {
		kind    frame.MarkKind
		eachRun bool
		waits   bool
	}{
		{frame.Watermark, false, true},
		{frame.Watermark, true, false},
		{frame.LatencyMarker, false, true},
		{frame.Idle, false, false},
		{frame.Active, false, false},
		{frame.Barrier, false, false},
		{frame.CancelBarrier, false, false},
		{frame.Probe, false, false},
		{frame.End, false, false},
	} {
		for _, strategy := range []graph.Strategy{graph.Forward, graph.Rebalance, graph.Broadcast} {
			channels := map[graph.Strategy]int{graph.Forward: 1, graph.Rebalance: 3, graph.Broadcast: 3}[strategy]
			w, cs := rig(t, strategy, channels, func(o *Options) { o.EachRun = c.eachRun })
			if err := w.Mark(frame.Mark{Kind: c.kind, Value: 5}); err != nil {
				t.Fatal(err)
			}
			if w.Pending() != c.waits {
				t.Errorf("%v over %v (each run: %v): waits %v, want %v", c.kind, strategy, c.eachRun, w.Pending(), c.waits)
			}
			if err := w.Flush(); err != nil {
				t.Fatal(err)
			}
			for i, ch := range cs {
				f := ch.Poll()
				if c.kind == frame.LatencyMarker && strategy == graph.Rebalance && i != w.opt.Subtask%len(cs) {
					if f != nil {
						t.Errorf("channel %d got the copy of a latency marker", i)
					}
					continue
				}
				if f == nil || len(f.Marks) != 1 || f.Marks[0] != (frame.Mark{Kind: c.kind, Value: 5}) {
					t.Errorf("%v over %v: channel %d got %+v", c.kind, strategy, i, f)
				}
			}
		}
	}
}

// Latency markers take the channels in turn: copies for all would multiply at every exchange.
func TestLatencyMarkersTakeChannelsInTurn(t *testing.T) {
	w, cs := rig(t, graph.Rebalance, 3, func(o *Options) { o.Subtask = 4 })
	for i := range int64(7) {
		if err := w.Mark(frame.Mark{Kind: frame.LatencyMarker, Value: i, From: 9}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	for i, want := range [][]int64{{2, 5}, {0, 3, 6}, {1, 4}} {
		var got []int64
		for _, m := range cs[i].Poll().Marks {
			got = append(got, m.Value)
			if m.From != 9 {
				t.Errorf("marker %d comes from %d", m.Value, m.From)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("channel %d got the markers %v, want %v", i, got, want)
		}
	}
}

// Marks alone fill a frame, too: a stream of watermarks without elements must not grow without bound.
func TestFrameOfMarksIsSentWhenFull(t *testing.T) {
	w, cs := rig(t, graph.Rebalance, 2, nil)
	for i := range int64(frame.MaxLen) {
		if cs[0].Len()+cs[1].Len() != 0 {
			t.Fatalf("sent after %d marks", i)
		}
		if err := w.Mark(frame.Mark{Kind: frame.Watermark, Value: i}); err != nil {
			t.Fatal(err)
		}
	}
	if cs[0].Len() != 1 || cs[1].Len() != 1 || w.Pending() {
		t.Errorf("%d and %d frames after %d marks, want one each", cs[0].Len(), cs[1].Len(), frame.MaxLen)
	}
}

func TestFrameIsSentWhenFull(t *testing.T) {
	w, cs := rig(t, graph.Forward, 1, nil)
	xs := make([]int64, frame.DefaultLen)
	push(t, w, xs[1:]...)
	if cs[0].Len() != 0 || !w.Pending() {
		t.Error("a frame that is not full was sent")
	}
	push(t, w, 1)
	if cs[0].Len() != 1 || w.Pending() {
		t.Error("a full frame was held back")
	}
	push(t, w, append(xs, xs...)...)
	if cs[0].Len() != 3 || w.Pending() {
		t.Errorf("a run of two frames' length left %d frames in the channel", cs[0].Len())
	}
	if err := w.Flush(); err != nil || cs[0].Len() != 3 {
		t.Errorf("Flush sent an empty frame: %v", err)
	}
}

func TestBufferTimeoutOfZeroSendsEachRun(t *testing.T) {
	w, cs := rig(t, graph.Rebalance, 2, func(o *Options) { o.EachRun = true })
	push(t, w, 1, 2, 3)
	if got := [][]int64{drain(cs[0]), drain(cs[1])}; !slices.Equal(got[0], []int64{1, 3}) || !slices.Equal(got[1], []int64{2}) {
		t.Errorf("got %v", got)
	}
	if err := w.Mark(frame.Mark{Kind: frame.LatencyMarker}); err != nil || cs[0].Len() != 0 {
		t.Errorf("a latency marker made a frame of its own: %v", err)
	}
}

// note has memory behind it, and fails to encode when told to.
type note struct {
	Text []byte
	Bad  bool
}

func (n note) MarshalBinary() ([]byte, error) {
	if n.Bad {
		return nil, errors.New("not for others")
	}
	return slices.Clone(n.Text), nil
}

func (n *note) UnmarshalBinary(b []byte) error {
	n.Text = slices.Clone(b)
	return nil
}

func TestIsolatedElementsShareNoMemoryWithTheSender(t *testing.T) {
	for _, isolated := range []bool{false, true} {
		for _, strategy := range []graph.Strategy{graph.Forward, graph.Broadcast} {
			s := newSpread[note](t, &graph.Partitioner{Strategy: strategy}, 1+int(strategy)/int(graph.Broadcast), Options{Isolated: isolated})
			text := []byte("abc")
			if err := s.push([]note{{Text: text}}, 0); err != nil {
				t.Fatal(err)
			}
			text[0] = 'X'
			want := "Xbc"
			if isolated {
				want = "abc"
			}
			for i := range s.to {
				if got := string(s.to[i][0].Text); got != want || s.at[i][0] != 0 {
					t.Errorf("isolated %v, %v: channel %d got %q at %d, want %q", isolated, strategy, i, got, s.at[i][0], want)
				}
			}
			err := s.push([]note{{Bad: true}}, 0)
			if isolated != (err != nil) || isolated && !strings.Contains(err.Error(), "not for others") {
				t.Errorf("isolated %v: an element without encoding gave %v", isolated, err)
			}
		}
	}
}

func TestOutOfMemoryNamesTheElementType(t *testing.T) {
	w, _ := rig(t, graph.Forward, 1, func(o *Options) { o.Memory = &refusing{} })
	c := frame.NewColumn(w.Type(), 1)
	frame.Add(c, int64(1), frame.NoTime)
	r := c.Run()
	if err := w.Push(&r); err == nil || !strings.Contains(err.Error(), "make a frame of int64") {
		t.Errorf("got %v", err)
	}
	if err := w.Mark(frame.Mark{Kind: frame.End}); err == nil {
		t.Error("a mark found memory")
	}
	w2, _ := rig(t, graph.Rebalance, 2, func(o *Options) { o.Memory = &refusing{} })
	if err := w2.Push(&r); err == nil {
		t.Error("a gathered element found memory")
	}
}

// A writer whose task is cancelled gives up at every way to send, not only when pushing.
func TestCancelledWriterGivesUpWhereverItWaits(t *testing.T) {
	for name, act := range map[string]func(w *Writer) error{
		"mark":  func(w *Writer) error { return w.Mark(frame.Mark{Kind: frame.End}) },
		"flush": func(w *Writer) error { return errors.Join(w.Mark(frame.Mark{Kind: frame.Watermark}), w.Flush()) },
		"marks": func(w *Writer) (err error) {
			for i := 0; i < frame.MaxLen && err == nil; i++ {
				err = w.Mark(frame.Mark{Kind: frame.Watermark})
			}
			return err
		},
		"full frame": func(w *Writer) error {
			c := frame.NewColumn(w.Type(), 4*frame.MaxLen)
			frame.Fill[int64](c, 4*frame.MaxLen)
			r := c.Run()
			return w.Push(&r)
		},
	} {
		for _, strategy := range []graph.Strategy{graph.Forward, graph.Rebalance, graph.Broadcast} {
			channels := map[graph.Strategy]int{graph.Forward: 1, graph.Rebalance: 2, graph.Broadcast: 2}[strategy]
			w, cs := rig(t, strategy, channels, nil)
			for range Depth { // fill them
				if err := w.Mark(frame.Mark{Kind: frame.Idle}); err != nil {
					t.Fatal(err)
				}
			}
			if err := act(w); !errors.Is(err, ErrCancelled) {
				t.Errorf("%s over %v: got %v, want ErrCancelled", name, strategy, err)
			}
			if cs[0].Len() != Depth {
				t.Errorf("%s over %v: the channel holds %d frames", name, strategy, cs[0].Len())
			}
		}
	}
}

// visitor is a Waiter at which somebody makes room.
type visitor struct {
	bell
	waits int
	visit func(reason host.Reason, deadline int64)
}

func (v *visitor) Wait(reason host.Reason, deadline int64) {
	v.waits++
	v.visit(reason, deadline)
}

func TestFullChannelMakesTheWriterWaitForRoom(t *testing.T) {
	v := &visitor{}
	c := &Channel{Producer: v, Consumer: &bell{}}
	w := NewWriter(&graph.Partitioner{}, []*Channel{c}, Options{
		Type: int64Type(t), Waiter: v, Stopped: func() bool { return false }, EachRun: true,
	})
	var got []int64
	v.visit = func(reason host.Reason, deadline int64) {
		if reason != host.Backpressured || deadline != host.Forever {
			t.Errorf("waits as %v until %d", reason, deadline)
		}
		if v.waits%2 == 1 {
			return // woken for another reason: the writer must look again and wait on
		}
		got = append(got, drain(c)...)
		if v.rang == 0 {
			t.Error("the reader freed everything and woke nobody")
		}
	}
	for i := range int64(3 * Depth) {
		push(t, w, i)
	}
	got = append(got, drain(c)...)
	for i, x := range got {
		if x != int64(i) {
			t.Fatalf("got %v", got)
		}
	}
	if len(got) != 3*Depth || v.waits != 4 {
		t.Errorf("%d elements with %d waits, want %d with 4", len(got), v.waits, 3*Depth)
	}
}

func TestWriterTakesItsOwnType(t *testing.T) {
	w, _ := rig(t, graph.Forward, 1, nil)
	if h, err := serde.Of[int64](); err != nil || w.Type().Handle.Type != h.Type {
		t.Errorf("the writer takes %v, %v", w.Type().Name, err)
	}
}

// Marks that don't wait find room as long as Urgent says so, also when what lies before them fills a frame of its own.
func TestUrgentMarksFindRoom(t *testing.T) {
	c, end := &Channel{Producer: &bell{}, Consumer: &bell{}}, &deadEnd{}
	w := NewWriter(&graph.Partitioner{}, []*Channel{c}, Options{
		Type: int64Type(t), Strategy: graph.Forward, Waiter: end, Overtaking: true, Stopped: end.stopped,
	})
	for id := int64(1); w.Urgent(); id++ {
		for range frame.MaxLen - 1 {
			if err := w.mark(0, frame.Mark{Kind: frame.Watermark}); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 { // the first one fills the frame
			if err := w.Mark(frame.Mark{Kind: frame.Barrier, Value: id}); err != nil {
				t.Fatalf("barrier %d with %d frames in the channel: %v", id, c.Len(), err)
			}
		}
	}
	if c.Len() < urgent-1 || c.Len() > urgent {
		t.Errorf("there is no room with %d frames", c.Len())
	}
	for range 3 {
		c.Return(c.Poll())
	}
	if !w.Urgent() {
		t.Error("there is no room although frames were taken")
	}
}
