package task

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/flott-dev/flott/checkpoint"
	"github.com/flott-dev/flott/internal/control"
	"github.com/flott-dev/flott/internal/exchange"
	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/graph"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/internal/operator/valve"
	"github.com/flott-dev/flott/internal/plan"
)

// saver is an echo with state and an ear for checkpoints.
type saver struct {
	*echo
	fails bool
	hold  func(*operator.Snapshot) // nil: it adds nothing later
}

func (s *saver) Snapshot(to *operator.Snapshot) error {
	s.note("snapshot %d", to.ID)
	if s.fails {
		return errBoom
	}
	to.Lists = append(to.Lists, checkpoint.List{Name: s.name})
	if s.hold != nil {
		s.hold(to)
	}
	return nil
}

func (s *saver) CheckpointCompleted(id int64) error {
	s.note("completed %d", id)
	return nil
}

func (s *saver) CheckpointAborted(id int64) error {
	s.note("aborted %d", id)
	return nil
}

// savers is a bench of savers named a, b ... whose head has so many channels into each input. What the task tells about
// checkpoints goes into the log.
func savers(t *testing.T, n int, channels ...int) (*bench, []*saver) {
	var ops []operator.Operator
	var ss []*saver
	for i := range n {
		inputs := 1
		if i == 0 {
			inputs = len(channels)
		}
		s := &saver{echo: newEcho(t, string(rune('a'+i)), inputs)}
		ss, ops = append(ss, s), append(ops, s)
	}
	b := newBench(t, channels, ops...)
	for i, s := range ss {
		s.b, s.index = b, i
		b.vertex.Nodes[i].Node.Out = s.out.Type
	}
	b.checkpoint()
	return b, ss
}

// checkpoint lets the task take checkpoints.
func (b *bench) checkpoint() {
	b.dep.Checkpoints = &Checkpoints{
		Final: true,
		Took: func(p *Part) {
			var lists []string
			for _, s := range p.States {
				for _, l := range s.Lists {
					lists = append(lists, l.Name)
				}
			}
			b.note("took %d: %s", p.Barrier.ID, strings.Join(lists, " "))
		},
		Declined: func(id int64, reason control.FailureReason, err error) { b.note("declined %d: %v", id, reason) },
		Lingers:  func() { b.note("lingers") },
	}
}

func barrier(id int64) frame.Mark { return control.Barrier{ID: id}.Mark() }

func cancelBarrier(id int64) frame.Mark { return frame.Mark{Kind: frame.CancelBarrier, Value: id} }

// One barrier goes through the chain, once it has come on all channels of all inputs; what follows a barrier waits.
func TestBarriersAreAligned(t *testing.T) {
	b, _ := savers(t, 2, 2, 1)
	out := b.edge(1, "", graph.Rebalance, -1, 2)
	b.send(0, 1, barrier(1))
	b.send(0, 2)
	b.send(1, 3)
	err := b.run(
		func() { b.send(2, 4, barrier(1)); b.send(2, 5) },
		func() { b.note("the last one"); b.send(1, 6, barrier(1)) },
		func() { b.send(0, mark(frame.End)); b.send(1, mark(frame.End)); b.send(2, mark(frame.End)) },
	)
	if err != nil {
		t.Fatal(err)
	}
	b.wants(
		"a 0: [1]", "b [1]", "a 0: [3]", "b [3]", "a 1: [4]", "b [4]", "the last one", "a 0: [6]", "b [6]",
		"a 0: barrier 1", "b barrier 1", "a snapshot 1", "b snapshot 1", "took 1: a channels b",
		"a 1: [5]", "b [5]", "a 0: [2]", "b [2]", "a 1: end", "b end", "a 0: end", "b end",
	)
	for i, want := range [][]string{{"1", "4", "barrier 1", "5", "end", "end"}, {"3", "6", "barrier 1", "2", "end", "end"}} {
		if got := received(out[i]); !slices.Equal(got, want) {
			t.Errorf("channel %d got %v, want %v", i, got, want)
		}
	}
}

// At least once, nothing waits.
func TestAtLeastOnceBlocksNobody(t *testing.T) {
	b, _ := savers(t, 1, 2)
	b.dep.Checkpoints.Mode = control.AtLeastOnce
	b.send(0, barrier(1))
	b.send(0, 2)
	err := b.run(func() { b.send(1, 3, barrier(1)); b.send(1, mark(frame.End)); b.send(0, mark(frame.End)) })
	if err != nil {
		t.Fatal(err)
	}
	b.wants("a [2]", "a [3]", "a barrier 1", "a snapshot 1", "took 1: a channels", "a end")
}

// The end of a channel stands for its barriers; the snapshot lies before the end.
func TestEndOfAChannelStandsForItsBarrier(t *testing.T) {
	b, _ := savers(t, 1, 2)
	b.send(0, 1, mark(frame.End))
	err := b.run(
		func() { b.send(1, 2, barrier(7)); b.send(1, 3, barrier(8), mark(frame.End)) },
	)
	if err != nil {
		t.Fatal(err)
	}
	b.wants("a [1]", "a [2]", "a barrier 7", "a snapshot 7", "took 7: a channels",
		"a [3]", "a barrier 8", "a snapshot 8", "took 8: a channels", "a end")
	b, _ = savers(t, 1, 2)
	b.send(0, 1, barrier(7))
	if err := b.run(func() { b.send(1, 2, mark(frame.End)); b.send(0, mark(frame.End)) }); err != nil {
		t.Fatal(err)
	}
	b.wants("a [1]", "a [2]", "a barrier 7", "a snapshot 7", "took 7: a channels", "a end")
}

// A checkpoint that is given up frees the channels, and those downstream are told.
func TestAbortedAlignmentGoesOn(t *testing.T) {
	for name, c := range map[string]struct {
		abort    func(b *bench)
		declined []string
		aborted  []string
	}{
		"by a task upstream": {func(b *bench) { b.send(1, cancelBarrier(1)) }, []string{"declined 1: declined_on_cancellation_barrier"}, nil},
		"by the coordinator": {
			func(b *bench) { b.mailbox.Post(b.task.Aborted(1, control.ReasonExpired)) }, nil, []string{"a aborted 1"},
		},
	} {
		b, _ := savers(t, 1, 2)
		out := b.edge(0, "", graph.Forward, 0, 1)[0]
		b.send(0, barrier(1))
		b.send(0, 2)
		err := b.run(
			func() { c.abort(b) },
			func() { b.send(1, barrier(1), 3, barrier(2)); b.send(0, barrier(2)) },
			func() { b.send(0, mark(frame.End)); b.send(1, mark(frame.End)) },
		)
		if err != nil {
			t.Fatal(name, err)
		}
		b.wants(slices.Concat(c.declined, []string{"a cancel barrier"}, c.aborted, []string{
			"a [2]", "a [3]", "a barrier 2", "a snapshot 2", "took 2: a channels", "a end",
		})...)
		if got := received(out); !slices.Equal(got, []string{"cancel barrier", "2", "3", "barrier 2", "end"}) {
			t.Errorf("%s: downstream got %v", name, got)
		}
	}
}

// A source sends the barrier to all of its outputs when it is told.
func TestSourceSendsTheBarrierWhenItIsTold(t *testing.T) {
	w := newWell(t)
	w.name = "w"
	b := newBench(t, nil, w)
	w.b = b
	b.vertex.Nodes[0].Node.Side = map[string]*frame.Type{"side": w.out.Type}
	b.checkpoint()
	main, side := b.edge(0, "", graph.Forward, -1, 1)[0], b.edge(0, "side", graph.Forward, -1, 1)[0]
	tell := func() (operator.Status, error) {
		b.mailbox.Post(b.task.Trigger(control.Barrier{ID: 4}))
		return operator.More, nil
	}
	w.polls = append(w.polls, w.emits(operator.More, 1), tell, w.emits(operator.More, 2))
	if err := b.run(); err != nil {
		t.Fatal(err)
	}
	if got := received(main); !slices.Equal(got, []string{"1", "barrier 4", "2", "last watermark", "end"}) {
		t.Errorf("the main output got %v", got)
	}
	if got := received(side); !slices.Equal(got, []string{"barrier 4"}) {
		t.Errorf("the side output got %v", got)
	}
	b.wants("took 4: ")
}

// A snapshot that fails declines the checkpoint and fails the task, by the name of the operator.
func TestFailedSnapshotFailsTheTask(t *testing.T) {
	b, ss := savers(t, 2, 1)
	ss[1].fails = true
	b.send(0, barrier(1))
	checkFailure(t, "a snapshot", b.run(), "op1", "error")
	if !slices.Contains(b.log, "declined 1: declined") {
		t.Errorf("got %q", b.log)
	}
}

// A savepoint that stops the job: sources emit nothing after it, nobody sees an end, and all end when it is complete.
func TestStopSavepointEndsTasks(t *testing.T) {
	for _, kind := range []control.SnapshotKind{control.StopSavepoint, control.DrainSavepoint} {
		w := newWell(t)
		b := newBench(t, nil, w)
		b.checkpoint()
		out := b.edge(0, "", graph.Forward, 0, 1)[0]
		w.polls = append(w.polls, w.emits(operator.More, 1), func() (operator.Status, error) {
			b.mailbox.Post(b.task.Trigger(control.Barrier{ID: 4, Kind: kind}))
			return operator.More, nil
		}, w.emits(operator.More, 2))
		stop := func() { b.mailbox.Post(b.task.Completed(4, kind)) }
		if err := b.run(func() { b.mailbox.Post(b.task.Completed(3, control.Checkpoint)) }, stop); err != nil {
			t.Fatal(err)
		}
		want := []string{"1", fmt.Sprint("barrier ", control.Barrier{ID: 4, Kind: kind}.Mark().Value)}
		if kind == control.DrainSavepoint {
			want = slices.Insert(want, 1, "last watermark")
		}
		if got := received(out); !slices.Equal(got, want) {
			t.Errorf("%v: got %v, want %v", kind, got, want)
		}
	}
}

func TestStopSavepointThatFailsLetsTheSourceGoOn(t *testing.T) {
	w := newWell(t)
	b := newBench(t, nil, w)
	b.checkpoint()
	out := b.edge(0, "", graph.Forward, 0, 1)[0]
	w.polls = append(w.polls, func() (operator.Status, error) {
		b.mailbox.Post(b.task.Trigger(control.Barrier{ID: 4, Kind: control.StopSavepoint}))
		return operator.More, nil
	}, w.emits(operator.Done, 2))
	if err := b.run(func() { b.mailbox.Post(b.task.Aborted(4, control.ReasonExpired)) }); err != nil {
		t.Fatal(err)
	}
	if got := received(out); !slices.Equal(got[1:], []string{"2", "last watermark", "end"}) {
		t.Errorf("got %v", got)
	}
}

// A task that commits waits, after the end of its input, for a checkpoint that was taken after it.
func TestTaskThatCommitsWaitsForTheLastCheckpoint(t *testing.T) {
	b, ss := savers(t, 1, 1)
	b.vertex.Nodes[0].Node.Out = nil
	b.send(0, barrier(1))
	b.send(0, mark(frame.End))
	err := b.run(
		func() { b.mailbox.Post(b.task.Completed(1, control.Checkpoint)) },
		func() { b.mailbox.Post(b.task.Trigger(control.Barrier{ID: 2})) },
		func() { b.mailbox.Post(b.task.Aborted(2, control.ReasonExpired)) },
		func() { b.mailbox.Post(b.task.Trigger(control.Barrier{ID: 3})) },
		func() { b.mailbox.Post(b.task.Completed(3, control.Checkpoint)) },
	)
	if err != nil || !ss[0].rt.FinalCheckpoint {
		t.Fatal(err)
	}
	b.wants("a barrier 1", "a snapshot 1", "took 1: a channels", "a end", "lingers", "a completed 1",
		"a snapshot 2", "took 2: a channels ended", "a aborted 2", "a snapshot 3", "took 3: a channels ended", "a completed 3")
}

// A task whose operators had seen the end in the snapshot does not show it to them again: they could emit once more.
func TestTaskThatHadEndedOnlyCommits(t *testing.T) {
	var lists []checkpoint.List
	b, _ := savers(t, 1, 1)
	b.vertex.Nodes[0].Node.Out = nil
	took := b.dep.Checkpoints.Took
	b.dep.Checkpoints.Took = func(p *Part) { took(p); lists = p.States[0].Lists }
	b.send(0, mark(frame.End))
	err := b.run(
		func() { b.mailbox.Post(b.task.Trigger(control.Barrier{ID: 2})) },
		func() { b.mailbox.Post(b.task.Completed(2, control.Checkpoint)) },
	)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		parallelism, items int
		ended              bool
	}{{1, 1, true}, {2, 1, true}, {2, 2, false}} {
		b, _ := savers(t, 1, 1)
		b.vertex.Nodes[0].Node.Out = nil
		b.dep.Subtask, b.vertex.Parallelism = 2, c.parallelism
		of := slices.Clone(lists)
		for i := range of {
			if of[i].Name == "ended" { // the items of as many subtasks, all with the old parallelism
				of[i].Items = [][]byte{{2, byte(c.items)}}
			}
		}
		runtime := b.dep.Runtime
		b.dep.Runtime = func(n *plan.ChainNode, scope *operator.Scope) *operator.Runtime {
			rt := runtime(n, scope)
			rt.Restored = &operator.Restored{Lists: of}
			return rt
		}
		if c.items == 2 {
			b.dep.Subtask = 0
		}
		out := b.edge(0, "", graph.Forward, 0, 1)[0]
		b.send(0, mark(frame.End))
		err := b.run(
			func() { b.mailbox.Post(b.task.Trigger(control.Barrier{ID: 4})) },
			func() { b.mailbox.Post(b.task.Completed(4, control.Checkpoint)) },
		)
		if err != nil {
			t.Fatal(err)
		}
		if saw := slices.Contains(b.log, "a end"); saw == c.ended || !slices.Contains(b.log, "a snapshot 4") {
			t.Errorf("%+v: got %q", c, b.log)
		}
		if got := received(out); !slices.Contains(got, "end") {
			t.Errorf("%+v: downstream got %v", c, got)
		}
	}
}

func TestCancelledTaskDoesNotWaitForTheLastCheckpoint(t *testing.T) {
	b, _ := savers(t, 1, 1)
	b.vertex.Nodes[0].Node.Out = nil
	b.send(0, mark(frame.End))
	if err := b.run(func() { b.task.Cancel() }); err != exchange.ErrCancelled {
		t.Errorf("got %v", err)
	}
}

// A task that had finished before the snapshot only ends once more.
func TestFinishedTaskOnlyEnds(t *testing.T) {
	b, _ := savers(t, 2, 1)
	b.dep.Finished = true
	out := b.edge(1, "", graph.Forward, 0, 1)[0]
	b.send(0, watermark(3))
	if err := b.run(); err != nil {
		t.Fatal(err)
	}
	b.wants()
	if got := received(out); !slices.Equal(got, []string{"last watermark", "end"}) {
		t.Errorf("got %v", got)
	}
}

// The event time of the channels is part of the snapshot, and is told to the operators before the first element.
func TestWatermarksOfChannelsAreRestored(t *testing.T) {
	b, _ := savers(t, 1, 2)
	var list checkpoint.List
	b.dep.Checkpoints.Took = func(p *Part) { list = p.States[0].Lists[1] }
	b.vertex.Parallelism = 3
	for i := range b.dep.Inputs {
		b.dep.Inputs[i].Peer, b.dep.Inputs[i].Peers = i, 2
	}
	b.send(0, watermark(50), barrier(1), mark(frame.End))
	b.send(1, watermark(30), mark(frame.Idle), barrier(1), mark(frame.End))
	if err := b.run(); err != nil {
		t.Fatal(err)
	}
	if list.Name != "channels" || list.Mode != checkpoint.Union || len(list.Items) != 2 {
		t.Fatalf("list %+v", list)
	}
	for _, c := range []struct {
		name        string
		parallelism int
		peers       int
		want        string
	}{
		{"as before", 3, 2, "a watermark 50"},
		{"others", 4, 2, "a watermark 30"},
		{"others upstream", 3, 5, "a watermark 30"},
	} {
		b, _ := savers(t, 1, 2)
		b.vertex.Parallelism = c.parallelism
		for i := range b.dep.Inputs {
			b.dep.Inputs[i].Peer, b.dep.Inputs[i].Peers = i, c.peers
		}
		runtime := b.dep.Runtime
		b.dep.Runtime = func(n *plan.ChainNode, scope *operator.Scope) *operator.Runtime {
			rt := runtime(n, scope)
			rt.Restored = &operator.Restored{Lists: []checkpoint.List{list}}
			return rt
		}
		b.send(0, 1, mark(frame.End))
		b.send(1, mark(frame.End))
		if err := b.run(); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(b.log, []string{c.want, "a [1]", "a end"}) {
			t.Errorf("%s: got %q, want %s first", c.name, b.log, c.want)
		}
		if got := b.task.EventTime()[0].Channel(1); c.parallelism == 3 && c.peers == 2 && got != (valve.Channel{Watermark: 30, Idle: true}) {
			t.Errorf("%s: channel 1 is %+v", c.name, got)
		}
	}
}

// Channels of another edge are none that a channel goes on for, however they are numbered, and however many subtasks there were.
func TestWatermarksOfOtherEdgesAreNotRestored(t *testing.T) {
	at := func(gate, subtask, peer int, watermark int64) channelState {
		return channelState{gate: gate, subtask: subtask, parallelism: 2, peer: peer, peers: 2, state: valve.Channel{Watermark: watermark}}
	}
	var old []channelState
	for gate, watermark := range []int64{50, 20, 70} {
		for i := range 4 {
			old = append(old, at(gate, i/2, i%2, watermark+int64(i)))
		}
	}
	for gate, want := range []int64{50, 20, 70} {
		same, fewer := at(gate, 1, 1, 0), at(gate, 0, 0, 0)
		fewer.parallelism = 1
		if got := same.restore(old).Watermark; got != want+3 {
			t.Errorf("edge %d, as before: watermark %d, want %d", gate, got, want+3)
		}
		if got := fewer.restore(old).Watermark; got != want {
			t.Errorf("edge %d, one subtask for two: watermark %d, want %d", gate, got, want)
		}
	}
	if got := at(3, 0, 0, 0).restore(old); got != (valve.Channel{Watermark: frame.MinWatermark}) {
		t.Errorf("an edge that is new begins at %+v", got)
	}
}

func TestMalformedChannelStatesAreRefused(t *testing.T) {
	s := channelState{gate: 1, subtask: 2, parallelism: 300, peer: 4, peers: 5, state: valve.Channel{Watermark: -6, Behind: true}}
	good := s.encode()
	if got, err := decodeChannelState(good); err != nil || got != s {
		t.Errorf("%+v became %+v, %v", s, got, err)
	}
	for i := range good {
		if _, err := decodeChannelState(good[:i]); err == nil {
			t.Errorf("%d bytes of %d are accepted", i, len(good))
		}
	}
	bad := slices.Clone(good)
	bad[len(bad)-1] = 4
	if _, err := decodeChannelState(bad); err == nil {
		t.Error("unknown flags are accepted")
	}
}

// The alignment is not asked for when a task that takes no checkpoints is told of some.
func TestTaskWithoutCheckpointsIgnoresThem(t *testing.T) {
	b, _ := chain(t, 1)
	b.send(0, 1, barrier(1), mark(frame.End))
	b.build()
	for _, letter := range []func() error{
		b.task.Trigger(control.Barrier{ID: 1}), b.task.Completed(1, control.Checkpoint), b.task.Aborted(1, control.ReasonExpired),
	} {
		b.mailbox.Post(letter)
	}
	if err := b.run(); err != nil {
		t.Fatal(err)
	}
	b.wants("a [1]", "a barrier 1", "a end")
}
