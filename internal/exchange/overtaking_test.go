package exchange

import (
	"slices"
	"testing"

	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/graph"
)

// overtaking is a writer whose barriers overtake, sending each run at once over one channel, with the gate at its other end.
func overtaking(t *testing.T) (*Writer, *Channel, *Gate, *deadEnd) {
	t.Helper()
	end, c := &deadEnd{}, &Channel{Producer: &bell{}, Consumer: &bell{}}
	g := NewGate([]*Channel{c})
	w := NewWriter(&graph.Partitioner{}, []*Channel{c}, Options{
		Type: int64Type(t), Strategy: graph.Forward, Waiter: end, Overtaking: true, EachRun: true, Stopped: end.stopped,
	})
	return w, c, g, end
}

// texts are the elements of frames, a barrier as the negative of its value.
func texts(frames []*frame.Frame) (xs []int64) {
	for _, f := range frames {
		r := f.Run()
		xs = append(xs, frame.Values[int64](&r)...)
		for _, m := range f.Marks {
			xs = append(xs, -m.Value)
		}
	}
	return xs
}

func ahead(g *Gate) []int64 {
	var frames []*frame.Frame
	g.Ahead(0, func(f *frame.Frame) { frames = append(frames, f) })
	return texts(frames)
}

// A barrier is announced beside the queue, with what will be polled up to it, until the frame behind it is polled.
func TestBarriersAreAnnouncedBesideTheQueue(t *testing.T) {
	w, c, g, _ := overtaking(t)
	if _, ok := g.Notice(0); ok || g.Noticed() || len(ahead(g)) != 0 {
		t.Error("a barrier was announced before there was one")
	}
	push(t, w, 1)
	push(t, w, 2)
	if err := w.Mark(frame.Mark{Kind: frame.Barrier, Value: 7}); err != nil {
		t.Fatal(err)
	}
	push(t, w, 3)
	rang := c.Consumer.(*bell).rang
	if !g.Noticed() || g.Noticed() {
		t.Error("one barrier is news once")
	}
	if rang != 5 { // four frames, and the announcement
		t.Errorf("the consumer was woken %d times", rang)
	}
	for i, want := range [][]int64{{1, 2, -7}, {2, -7}, {-7}} {
		if got := ahead(g); !slices.Equal(got, want) {
			t.Errorf("after %d frames: %v are ahead, want %v", i, got, want)
		}
		if v, ok := g.Notice(0); v != 7 || !ok {
			t.Errorf("after %d frames barrier %d, %v is announced", i, v, ok)
		}
		f, _ := g.Poll()
		g.Return(f, 0)
	}
	if v, ok := g.Notice(0); v != 7 || !ok {
		t.Errorf("the barrier of the frame at work is not announced: %d, %v", v, ok)
	}
	if got := ahead(g); len(got) != 0 {
		t.Errorf("%v are ahead of a barrier that was polled", got)
	}
	f, _ := g.Poll()
	g.Return(f, 0)
	if _, ok := g.Notice(0); ok {
		t.Error("a barrier that is gone is announced")
	}
	if err := w.Mark(frame.Mark{Kind: frame.CancelBarrier, Value: 8}); err != nil {
		t.Fatal(err)
	}
	if _, ok := g.Notice(0); ok || g.Noticed() {
		t.Error("the word that a barrier will not come is announced as one")
	}
}

// What is put before a channel's queue comes first, is ahead of a barrier in the queue, and does not go to the sender.
func TestBacklogComesBeforeTheQueue(t *testing.T) {
	w, c, g, _ := overtaking(t)
	var before []*frame.Frame
	for x := range int64(2) {
		f := frame.New(int64Type(t), 1)
		col := frame.NewColumn(w.Type(), 1)
		frame.Add(col, -10-x, frame.NoTime)
		r := col.Run()
		f.Append(&r, 0, 1)
		before = append(before, f)
	}
	g.Backlog(0, before...)
	push(t, w, 1)
	if err := w.Mark(frame.Mark{Kind: frame.Barrier, Value: 7}); err != nil {
		t.Fatal(err)
	}
	if got, want := ahead(g), []int64{-10, -11, 1, -7}; !slices.Equal(got, want) {
		t.Errorf("%v are ahead, want %v", got, want)
	}
	for i := range 4 {
		f, _ := g.Poll()
		if i < 2 && f != before[i] {
			t.Errorf("frame %d is not that of the backlog", i)
		}
		g.Return(f, 0)
		if back := c.Fresh(); (back != nil) != (i >= 2) {
			t.Errorf("frame %d went back to the sender: %v", i, back != nil)
		}
	}
}

// A writer whose task looks for room takes more than there is room for, so that the task need not wait in its work, and its
// barriers take more still; then it waits.
func TestTasksThatLookForRoomDoNotWaitInTheirWork(t *testing.T) {
	w, c, g, end := overtaking(t)
	for i := range int64(Depth) {
		if !w.Room() {
			t.Fatalf("there is no room with %d frames", i)
		}
		push(t, w, i)
	}
	if w.Room() || w.AwaitRoom() {
		t.Error("a full channel has room")
	}
	for range Overdraft {
		push(t, w, 0)
	}
	if c.Len() != Depth+Overdraft || end.over {
		t.Errorf("%d frames, waited: %v", c.Len(), end.over)
	}
	if err := w.Mark(frame.Mark{Kind: frame.Barrier, Value: 7}); err != nil || c.Len() != Depth+Overdraft+1 {
		t.Errorf("a barrier behind %d frames: %v", c.Len(), err)
	}
	if err := w.Mark(frame.Mark{Kind: frame.CancelBarrier, Value: 8}); err != nil || c.Len() != Depth+Overdraft+2 || end.over {
		t.Errorf("the word that a barrier will not come, behind %d frames: %v, waited %v", c.Len(), err, end.over)
	}
	for c.Len() > Depth {
		take(t, g, 1)
		if w.Room() {
			t.Errorf("there is room with %d frames", c.Len())
		}
	}
	if w.AwaitRoom() {
		t.Error("there is room with as many frames as there may be")
	}
	rang := c.Producer.(*bell).rang
	take(t, g, 1)
	if !w.Room() || !w.AwaitRoom() {
		t.Errorf("there is no room with %d frames", c.Len())
	}
	for c.Len() > Depth/2 {
		take(t, g, 1)
	}
	if got := c.Producer.(*bell).rang; got != rang+1 {
		t.Errorf("the producer that awaited room was woken %d times", got-rang)
	}
	for c.Len() < Depth+Overdraft {
		push(t, w, 0)
	}
	frames := frame.NewColumn(w.Type(), 1)
	frame.Add(frames, int64(1), frame.NoTime)
	r := frames.Run()
	if err := w.Push(&r); err != ErrCancelled || !end.over {
		t.Errorf("beyond that the writer waits: %v, %v", err, end.over)
	}
}

// Barriers that overtake nothing wait for room like everything else, and are not announced.
func TestBarriersOfOtherWritersWaitForRoom(t *testing.T) {
	end, c := &deadEnd{}, &Channel{Producer: &bell{}, Consumer: &bell{}}
	g := NewGate([]*Channel{c})
	w := NewWriter(&graph.Partitioner{}, []*Channel{c}, Options{
		Type: int64Type(t), Strategy: graph.Forward, Waiter: end, EachRun: true, Stopped: end.stopped,
	})
	for i := range int64(Depth) {
		push(t, w, i)
	}
	if err := w.Mark(frame.Mark{Kind: frame.Barrier, Value: 7}); err != ErrCancelled || !end.over {
		t.Errorf("a barrier with a full channel: %v, waited %v", err, end.over)
	}
	if _, ok := g.Notice(0); ok || g.Noticed() {
		t.Error("a barrier that overtakes nothing is announced")
	}
}

// What is written and not sent is pending, elements and marks alike.
func TestWrittenAndNotSentIsPending(t *testing.T) {
	w, cs := rig(t, graph.Rebalance, 2, nil)
	if w.Pending() {
		t.Error("nothing was written")
	}
	push(t, w, 1)
	if !w.Pending() {
		t.Error("an element that was not sent is not pending")
	}
	if err := w.Flush(); err != nil || w.Pending() {
		t.Errorf("after sending all: %v, pending %v", err, w.Pending())
	}
	if err := w.Mark(frame.Mark{Kind: frame.Watermark, Value: 1}); err != nil || !w.Pending() {
		t.Errorf("a watermark travels with the data: %v, pending %v", err, w.Pending())
	}
	if got := append(drain(cs[0]), drain(cs[1])...); len(got) != 1 {
		t.Errorf("sent %v", got)
	}
}
