package exchange

import (
	"slices"
	"testing"

	"github.com/flott-dev/flott/internal/frame"
)

// feed is a gate over channels with so many frames each.
func feed(t *testing.T, frames ...int) (*Gate, []*Channel) {
	cs := make([]*Channel, len(frames))
	for i, n := range frames {
		cs[i] = &Channel{Producer: &bell{}, Consumer: &bell{}}
		for range n {
			cs[i].Offer(frame.New(int64Type(t), 1))
		}
	}
	return NewGate(cs), cs
}

// take polls n times: the channels in order, -1 for nothing.
func take(t *testing.T, g *Gate, n int) (from []int) {
	t.Helper()
	for range n {
		f, c := g.Poll()
		if (f == nil) != (c == -1) {
			t.Errorf("polled %v from channel %d", f, c)
		}
		if f != nil {
			g.Return(f, c)
		}
		from = append(from, c)
	}
	return from
}

func TestGateReadsItsChannelsInTurn(t *testing.T) {
	for _, c := range []struct {
		name   string
		frames []int
		want   []int
	}{
		{"all full", []int{3, 3, 3}, []int{0, 1, 2, 0, 1, 2, 0, 1, 2, -1}},
		{"a busy one does not starve others", []int{8, 1, 2}, []int{0, 1, 2, 0, 2, 0, 0}},
		{"empty ones are passed over", []int{0, 0, 2}, []int{2, 2, -1, -1}},
		{"one channel", []int{2}, []int{0, 0, -1}},
		{"no channel", nil, []int{-1, -1}},
	} {
		g, _ := feed(t, c.frames...)
		if got := take(t, g, len(c.want)); !slices.Equal(got, c.want) {
			t.Errorf("%s: read from %v, want %v", c.name, got, c.want)
		}
	}
}

func TestGateGoesOnWhereItStopped(t *testing.T) {
	g, cs := feed(t, 1, 1, 1)
	take(t, g, 2)
	cs[0].Offer(frame.New(int64Type(t), 1))
	if got := take(t, g, 3); !slices.Equal(got, []int{2, 0, -1}) {
		t.Errorf("read from %v, want 2, then 0", got)
	}
}

func TestEndedChannelIsNotReadAgain(t *testing.T) {
	g, cs := feed(t, 2, 2)
	take(t, g, 1)
	g.End(0)
	if got := take(t, g, 3); !slices.Equal(got, []int{1, 1, -1}) {
		t.Errorf("read from %v, want the open channel only", got)
	}
	if !g.Ended(0) || g.Ended(1) || cs[0].Len() != 1 {
		t.Error("another channel has ended than the one that was said to")
	}
}

func TestReturnedFrameGoesBackToItsSender(t *testing.T) {
	g, cs := feed(t, 0, 0)
	f := frame.New(int64Type(t), 4)
	frame.Add(&f.Column, int64(7), 3)
	f.AddMark(frame.Mark{Kind: frame.Idle})
	cs[1].Offer(f)
	got, c := g.Poll()
	g.Return(got, c)
	if cs[0].Fresh() != nil {
		t.Error("the frame went back on another channel")
	}
	if back := cs[1].Fresh(); back != f || !back.Empty() {
		t.Errorf("what came back is %v, not the frame emptied", back)
	}
	if cs[1].Fresh() != nil {
		t.Error("the frame came back twice")
	}
}

func TestBlockedChannelWaitsUntilItIsUnblocked(t *testing.T) {
	g, cs := feed(t, 2, 2, 1)
	g.Block(0)
	g.End(2)
	if got := take(t, g, 3); !slices.Equal(got, []int{1, 1, -1}) {
		t.Errorf("read from %v while channel 0 is blocked", got)
	}
	g.Unblock()
	if got := take(t, g, 3); !slices.Equal(got, []int{0, 0, -1}) || cs[2].Len() != 1 {
		t.Errorf("read from %v after that; one that has ended stays unread", got)
	}
}

func TestOneChannelIsPolledAlone(t *testing.T) {
	g, _ := feed(t, 1, 2, 1)
	for _, c := range []struct {
		channel int
		before  func()
		want    bool
	}{
		{1, nil, true}, {1, func() { g.Block(1) }, false}, {1, g.Unblock, true}, {1, nil, false}, {0, func() { g.End(0) }, false}, {2, nil, true},
	} {
		if c.before != nil {
			c.before()
		}
		f := g.PollChannel(c.channel)
		if (f != nil) != c.want {
			t.Errorf("polled %v from channel %d", f, c.channel)
		}
		if f != nil {
			g.Return(f, c.channel)
		}
	}
}
