package task

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flott-dev/flott/internal/control"
	"github.com/flott-dev/flott/internal/exchange"
	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/graph"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/internal/plan"
)

// overtakers is a bench of savers whose checkpoints overtake after the timeout, and a writer into each channel of the head.
// What is in flight goes into the log.
func overtakers(t *testing.T, timeout time.Duration, channels ...int) (*bench, []*exchange.Writer) {
	b, _ := savers(t, 1, channels...)
	c := b.dep.Checkpoints
	c.Unaligned, c.AlignedTimeout = true, timeout
	took := c.Took
	c.Took = func(p *Part) {
		for _, x := range p.inFlight {
			r := x.frame.Run()
			b.note("in flight on %d: %v %d marks", x.channel.peer, frame.Values[int64](&r), len(x.frame.Marks))
		}
		if err := p.Seal(); err != nil {
			t.Error(err)
		}
		took(p)
	}
	c.Dropped = func(id int64) { b.note("dropped %d", id) }
	var ws []*exchange.Writer
	for i, ch := range b.in {
		b.dep.Inputs[i].Peer, b.dep.Inputs[i].Peers = i, len(b.in)
		b.vertex.Inputs = append(b.vertex.Inputs, &plan.JobEdge{Type: typeOf[int64](t), Gate: i})
		b.dep.Inputs[i].Gate = i
		ws = append(ws, exchange.NewWriter(&graph.Partitioner{}, []*exchange.Channel{ch}, exchange.Options{
			Type: typeOf[int64](t), Strategy: graph.Forward, Waiter: &silent{}, Stopped: func() bool { return false }, Overtaking: true,
		}))
	}
	return b, ws
}

// write pushes numbers and marks and flushes.
func (b *bench) write(w *exchange.Writer, items ...any) {
	b.t.Helper()
	for _, x := range items {
		var err error
		switch x := x.(type) {
		case int:
			r := b.frame(x).Run()
			err = w.Push(&r)
		case frame.Mark:
			err = w.Mark(x)
		}
		if err != nil {
			b.t.Fatal(err)
		}
	}
	if err := w.Flush(); err != nil {
		b.t.Fatal(err)
	}
}

func overtakingBarrier(id int64) frame.Mark { return control.Barrier{ID: id, Unaligned: true}.Mark() }

// What lies before a barrier in the queue, and what comes on other channels until theirs, is in the snapshot and processed.
func TestUnalignedBarriersOvertakeTheQueue(t *testing.T) {
	b, ws := overtakers(t, 0, 2)
	b.build()
	b.write(ws[0], 1, watermark(5), 2)
	b.write(ws[0], 3, overtakingBarrier(1), 4)
	b.write(ws[1], 10)
	err := b.run(func() {
		b.write(ws[1], 11, overtakingBarrier(1))
		for _, w := range ws {
			b.write(w, mark(frame.End))
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	b.wants(
		fmt.Sprint("a ", showMark(overtakingBarrier(1))), "a snapshot 1", "a [1]", "a [2]", "a [10]", "a [3]", "a [4]",
		"in flight on 0: [1 2] 1 marks", "in flight on 0: [3] 0 marks", "in flight on 1: [10] 0 marks", "in flight on 1: [11] 0 marks",
		"took 1: a channels in-flight", "a [11]", "a end",
	)
}

// What is in flight on a channel that must stay aligned is in no snapshot: barriers of other channels wait until its own has
// come in line, and then overtake. Trap B028.
func TestBarriersOvertakeOnlyWhatMayBeKept(t *testing.T) {
	b, ws := overtakers(t, 0, 2)
	b.dep.Inputs[1].Aligned = true
	b.build()
	b.write(ws[0], 1, overtakingBarrier(1), 2)
	b.write(ws[1], 10)
	b.write(ws[1], 11, overtakingBarrier(1), 12)
	err := b.run(func() {
		for _, w := range ws {
			b.write(w, mark(frame.End))
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	taken, before := slices.Index(b.log, "a snapshot 1"), []string{"a [10]", "a [11]"}
	for _, l := range before {
		if at := slices.Index(b.log, l); at < 0 || at > taken {
			t.Errorf("%q comes after the snapshot: %q", l, b.log)
		}
	}
	for _, l := range b.log {
		if strings.HasPrefix(l, "in flight on 1") {
			t.Errorf("the snapshot has what is %s", l)
		}
	}
	if taken < 0 || slices.Index(b.log, "a [12]") < taken {
		t.Errorf("got %q", b.log)
	}
}

// A slow operator takes its snapshot between two runs of one frame: the rest of the frame was overtaken.
func TestUnalignedBarriersOvertakeTheFrameAtWork(t *testing.T) {
	b, ws := overtakers(t, 0, 1)
	b.build()
	b.write(ws[0], 1, 2, 3)
	b.task.scope.RunLen = 1
	b.task.ops[0].(*saver).push = func(r *frame.Run) error {
		if frame.Values[int64](r)[0] == 1 {
			b.write(ws[0], 4, overtakingBarrier(1), mark(frame.End))
			b.clock.Set(b.clock.Millis() + 2)
		}
		return nil
	}
	if err := b.run(); err != nil {
		t.Fatal(err)
	}
	b.wants(
		"a [1]", fmt.Sprint("a ", showMark(overtakingBarrier(1))), "a snapshot 1", "in flight on 0: [2 3] 0 marks",
		"in flight on 0: [4] 0 marks", "took 1: a channels in-flight", "a [2]", "a [3]", "a [4]", "a end",
	)
}

// Marks in the rest of a frame stand where they stood between its elements.
func TestMarksInFlightKeepTheirPlaces(t *testing.T) {
	b, ws := overtakers(t, 0, 1)
	var kept []frame.Mark
	took := b.dep.Checkpoints.Took
	b.dep.Checkpoints.Took = func(p *Part) {
		kept = append(kept, p.inFlight[0].frame.Marks...)
		took(p)
	}
	b.build()
	b.write(ws[0], watermark(3), 1, 2, watermark(5), 3, watermark(7))
	b.task.scope.RunLen = 1
	b.task.ops[0].(*saver).push = func(r *frame.Run) error {
		if frame.Values[int64](r)[0] == 1 {
			b.write(ws[0], overtakingBarrier(1), mark(frame.End))
			b.clock.Set(b.clock.Millis() + 2)
		}
		return nil
	}
	if err := b.run(); err != nil {
		t.Fatal(err)
	}
	if len(kept) != 2 || kept[0].Value != 5 || kept[0].Pos != 1 || kept[1].Value != 7 || kept[1].Pos != 2 {
		t.Errorf("the marks before 3 and behind it became %+v", kept)
	}
}

// A task without room for what it makes begins no run, and takes its snapshot while it waits.
func TestTasksTakeSnapshotsWhileTheyWaitForRoom(t *testing.T) {
	b, ws := overtakers(t, 0, 1)
	out := b.edge(0, "", graph.Forward, 0, 1)[0]
	b.build()
	b.write(ws[0], 1)
	for i := range 3 {
		b.write(ws[0], 2+i)
	}
	for range exchange.Depth - 1 {
		out.Offer(b.frame(0))
	}
	err := b.run(
		func() { b.write(ws[0], overtakingBarrier(1), mark(frame.End)) },
		func() { b.note("room"); received(out) },
	)
	if err != nil {
		t.Fatal(err)
	}
	if b.log[0] != "a [1]" || b.log[2] != "a snapshot 1" || b.log[len(b.log)-1] != "a end" {
		t.Errorf("%q", b.log)
	}
	for i, l := range b.log {
		if l == "took 1: a channels in-flight" && b.log[i+1] != "room" {
			t.Errorf("after the snapshot came %q", b.log[i+1])
		}
	}
}

// An aligned barrier in sight overtakes when it has waited for the timeout.
func TestBarriersInSightOvertakeAfterTheTimeout(t *testing.T) {
	b, ws := overtakers(t, 3*time.Millisecond, 1)
	b.build()
	b.write(ws[0], 1, 2, 3)
	b.write(ws[0], 4, barrier(1), mark(frame.End))
	b.task.scope.RunLen = 1
	b.task.ops[0].(*saver).push = func(*frame.Run) error {
		b.clock.Set(b.clock.Millis() + 2)
		return nil
	}
	if err := b.run(); err != nil {
		t.Fatal(err)
	}
	b.wants(
		"a [1]", "a [2]", fmt.Sprint("a ", showMark(overtakingBarrier(1))), "a snapshot 1", "in flight on 0: [3] 0 marks",
		"in flight on 0: [4] 0 marks", "took 1: a channels in-flight", "a [3]", "a [4]", "a end",
	)
}

// A checkpoint that is given up while it is recorded leaves nothing behind.
func TestAbortedRecordingsAreDropped(t *testing.T) {
	b, ws := overtakers(t, 0, 2)
	b.build()
	b.write(ws[0], 1, overtakingBarrier(1))
	err := b.run(
		func() { b.mailbox.Post(b.task.Aborted(1, control.ReasonExpired)) },
		func() {
			for _, w := range ws {
				b.write(w, mark(frame.End))
			}
		},
	)
	if err != nil {
		t.Fatal(err)
	}
	b.wants(fmt.Sprint("a ", showMark(overtakingBarrier(1))), "a snapshot 1", "a [1]", "dropped 1", "a cancel barrier", "a aborted 1", "a end")
}

// Bytes of other programs are refused.
func TestDamagedDataInFlightIsRefused(t *testing.T) {
	b, ws := overtakers(t, 0, 1)
	b.write(ws[0], mark(frame.End))
	b.build()
	x := inFlight{channel: b.task.channelKey(0), frame: b.frame(1, 2)}
	item, err := x.encode()
	if err != nil {
		t.Fatal(err)
	}
	for cut := range item {
		r := replay{t: b.task, byGate: map[int][]restored{}}
		if r.read(item[:cut]) == nil {
			t.Errorf("%d of %d bytes are an item", cut, len(item))
		}
	}
}

var _ operator.Snapshotter = (*saver)(nil)

// Checkpoints that are taken while a consumer stands still leave marks in its queue. When these are full, further checkpoints
// are declined: a task never stands still while it sends one, whether it is a source or not, and however the checkpoints end.
func TestFullQueuesDeclineCheckpoints(t *testing.T) {
	const checkpoints = 60
	t.Run("source", func(t *testing.T) {
		w := newWell(t)
		b := newBench(t, nil, w)
		b.checkpoint()
		b.dep.Checkpoints.Unaligned = true
		b.edge(0, "", graph.Forward, 0, 1)
		var nothing func() (operator.Status, error)
		nothing = func() (operator.Status, error) {
			w.polls = append(w.polls, nothing)
			return operator.Nothing, nil
		}
		w.polls = append(w.polls, nothing)
		b.build()
		var script []func()
		for id := range int64(2 * checkpoints) {
			script = append(script, func() { b.mailbox.Post(b.task.Trigger(control.Barrier{ID: id + 1})) })
		}
		script = append(script, func() { b.task.Cancel() })
		if err := b.run(script...); err != exchange.ErrCancelled {
			t.Fatal(err)
		}
		b.allTold(2*checkpoints, "took %d: ")
	})
	t.Run("in the middle", func(t *testing.T) {
		b, ws := overtakers(t, 0, 2)
		b.edge(0, "", graph.Forward, 0, 1)
		b.build()
		var script []func()
		for id := range int64(checkpoints) {
			script = append(script, func() {
				b.write(ws[0], overtakingBarrier(id+1))
			}, func() {
				b.mailbox.Post(b.task.Aborted(id+1, control.ReasonExpired))
			})
		}
		script = append(script, func() { b.task.Cancel() })
		if err := b.run(script...); err != exchange.ErrCancelled {
			t.Fatal(err)
		}
		b.allTold(checkpoints, "dropped %d")
	})
}

// allTold checks that each checkpoint ended as the first ones, or was declined, as were the last ones; and in their order.
func (b *bench) allTold(checkpoints int, as string) {
	b.t.Helper()
	next, declined := 1, 0
	for _, l := range b.log {
		switch l {
		case fmt.Sprintf(as, next):
			next++
		case fmt.Sprintf("declined %d: %v", next, control.ReasonDeclinedNotReady):
			next++
			declined++
		}
	}
	if next != checkpoints+1 || declined == 0 || declined == checkpoints {
		b.t.Errorf("of %d checkpoints %d were told of, %d as declined: %q", checkpoints, next-1, declined, b.log)
	}
}
