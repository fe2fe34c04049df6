package exchange

import (
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/flott-dev/flott/internal/clock"
	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/graph"
	"github.com/flott-dev/flott/internal/host"
)

func int64Type(t testing.TB) *frame.Type {
	t.Helper()
	typ, err := frame.TypeOf[int64]()
	if err != nil {
		t.Fatal(err)
	}
	return typ
}

// rig is a writer with channels that nobody waits on.
func rig(t testing.TB, strategy graph.Strategy, channels int, change func(*Options)) (*Writer, []*Channel) {
	t.Helper()
	w := host.NewParker(clock.NewSystem())
	var cs []*Channel
	for range channels {
		cs = append(cs, &Channel{Producer: w, Consumer: w})
	}
	end := &deadEnd{}
	opt := Options{Type: int64Type(t), Strategy: strategy, Waiter: end, Stopped: end.stopped, MaxGroup: 128}
	if change != nil {
		change(&opt)
	}
	p := &graph.Partitioner{Strategy: strategy, Seed: 7}
	return NewWriter(p, cs, opt), cs
}

func push(t testing.TB, w *Writer, xs ...int64) {
	t.Helper()
	c := frame.NewColumn(w.Type(), max(1, len(xs)))
	for _, x := range xs {
		frame.Add(c, x, x)
	}
	r := c.Run()
	if err := w.Push(&r); err != nil {
		t.Fatal(err)
	}
}

// drain empties a channel: elements in order, marks as negative numbers of their kind minus 1.
func drain(c *Channel) (xs []int64) {
	for f := c.Poll(); f != nil; f = c.Poll() {
		r := f.Run()
		pos := 0
		for _, m := range f.Marks {
			xs = append(xs, frame.Values[int64](&r)[pos:m.Pos]...)
			pos = int(m.Pos)
			xs = append(xs, -1-int64(m.Kind))
		}
		xs = append(xs, frame.Values[int64](&r)[pos:]...)
		c.Return(f)
	}
	return xs
}

func TestWriterSpreadsByStrategy(t *testing.T) {
	for _, c := range []struct {
		strategy graph.Strategy
		channels int
		want     [][]int64
	}{
		{graph.Forward, 1, [][]int64{{0, 1, 2, 3, 4, 5}}},
		{graph.Global, 3, [][]int64{{0, 1, 2, 3, 4, 5}, nil, nil}},
		{graph.Rebalance, 2, [][]int64{{0, 2, 4}, {1, 3, 5}}},
		{graph.Rebalance, 3, [][]int64{{0, 3}, {1, 4}, {2, 5}}},
		{graph.Broadcast, 2, [][]int64{{0, 1, 2, 3, 4, 5}, {0, 1, 2, 3, 4, 5}}},
	} {
		w, cs := rig(t, c.strategy, c.channels, nil)
		push(t, w, 0, 1, 2)
		push(t, w, 3, 4, 5)
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
		for i, ch := range cs {
			if got := drain(ch); !slices.Equal(got, c.want[i]) {
				t.Errorf("%v over %d: channel %d got %v, want %v", c.strategy, c.channels, i, got, c.want[i])
			}
		}
	}
}

func TestMarksKeepTheirPlaceAmongElements(t *testing.T) {
	w, cs := rig(t, graph.Broadcast, 2, nil)
	push(t, w, 1, 2)
	mark := func(k frame.MarkKind) {
		if err := w.Mark(frame.Mark{Kind: k}); err != nil {
			t.Fatal(err)
		}
	}
	mark(frame.Watermark)
	if !w.Pending() {
		t.Error("a watermark was sent at once: it should travel with the data")
	}
	push(t, w, 3)
	mark(frame.End)
	if w.Pending() {
		t.Error("the end was held back")
	}
	want := []int64{1, 2, -1 - int64(frame.Watermark), 3, -1 - int64(frame.End)}
	for i, c := range cs {
		if got := drain(c); !slices.Equal(got, want) {
			t.Errorf("channel %d got %v, want %v", i, got, want)
		}
	}
}

func TestFullChannelEndsACancelledWriter(t *testing.T) {
	w, _ := rig(t, graph.Forward, 1, func(o *Options) { o.EachRun = true })
	for i := range int64(Depth) {
		push(t, w, i)
	}
	c := frame.NewColumn(w.Type(), 1)
	frame.Add(c, int64(1), frame.NoTime)
	r := c.Run()
	if err := w.Push(&r); !errors.Is(err, ErrCancelled) {
		t.Errorf("got %v, want ErrCancelled", err)
	}
}

func TestChannelKeepsOrderUnderBackpressure(t *testing.T) {
	const n = 200_000
	clk := clock.NewSystem()
	p, q := host.NewParker(clk), host.NewParker(clk)
	ch := &Channel{Producer: p, Consumer: q}
	w := NewWriter(&graph.Partitioner{}, []*Channel{ch}, Options{
		Type: int64Type(t), Waiter: p, Stopped: func() bool { return false }, Budget: 1000,
	})
	var group sync.WaitGroup
	group.Go(func() {
		for i := int64(0); i < n; i += 10 {
			push(t, w, i, i+1, i+2, i+3, i+4, i+5, i+6, i+7, i+8, i+9)
		}
		if err := w.Mark(frame.Mark{Kind: frame.End}); err != nil {
			t.Error(err)
		}
	})
	next := int64(0)
	for end := false; !end; {
		f := ch.Poll()
		if f == nil {
			q.Wait(host.Idle, host.Forever)
			continue
		}
		r := f.Run()
		for _, x := range frame.Values[int64](&r) {
			if x != next {
				t.Fatalf("got %d, want %d", x, next)
			}
			next++
		}
		end = len(f.Marks) == 1
		ch.Return(f)
	}
	group.Wait()
	if next != n {
		t.Errorf("%d elements came, want %d", next, n)
	}
}

type refusing struct{ left int64 }

func (r *refusing) Reserve(n int64) error {
	if r.left -= n; r.left < 0 {
		return errors.New("no memory left")
	}
	return nil
}

func (r *refusing) Release(n int64) { r.left += n }

func TestFramesAreReservedAndGivenBack(t *testing.T) {
	size := int64(frame.DefaultLen * 16)
	m := &refusing{left: 5 * size / 2}
	w, _ := rig(t, graph.Rebalance, 4, func(o *Options) { o.Memory = m })
	c := frame.NewColumn(w.Type(), 4)
	for i := range int64(4) {
		frame.Add(c, i, frame.NoTime)
	}
	r := c.Run()
	if err := w.Push(&r); err == nil {
		t.Error("four frames were made of memory for two")
	}
	w.Close()
	if m.left != 3*size/2 {
		t.Errorf("%d bytes are left after Close: all but the refused frame's should be", m.left)
	}
}

func BenchmarkHandOver(b *testing.B) {
	clk := clock.NewSystem()
	p, q := host.NewParker(clk), host.NewParker(clk)
	ch := &Channel{Producer: p, Consumer: q}
	w := NewWriter(&graph.Partitioner{}, []*Channel{ch}, Options{Type: int64Type(b), Waiter: p, Stopped: func() bool { return false }})
	c := frame.NewColumn(w.Type(), frame.DefaultLen)
	frame.Fill[int64](c, frame.DefaultLen)
	r := c.Run()
	b.ReportAllocs()
	b.SetBytes(8 * frame.DefaultLen)
	go func() {
		for range b.N {
			if err := w.Push(&r); err != nil {
				b.Error(err)
			}
		}
		if err := w.Mark(frame.Mark{Kind: frame.End}); err != nil {
			b.Error(err)
		}
	}()
	for {
		f := ch.Poll()
		if f == nil {
			q.Wait(host.Idle, host.Forever)
			continue
		}
		end := len(f.Marks) != 0
		ch.Return(f)
		if end {
			return
		}
	}
}
