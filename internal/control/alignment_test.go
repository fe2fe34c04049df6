package control

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flott-dev/flott/internal/frame"
)

// texts are actions in short: "begin 1", "take 1", "take unaligned 1", "finish 1", "abort 1 declined_subsumed".
func texts(actions []BarrierAction) string {
	var out []string
	for _, a := range actions {
		s := strings.Fields(a.Do.String())[0]
		if a.Unaligned {
			s += " unaligned"
		}
		s += fmt.Sprintf(" %d", a.Barrier.ID)
		if a.Do == AbortCheckpoint {
			s += " " + a.Reason.String()
		}
		out = append(out, s)
	}
	return strings.Join(out, ", ")
}

// script runs lines like "barrier 1 on 0 -> begin 1" against an alignment. Times are in ms.
func script(t *testing.T, a Alignment, lines ...string) {
	t.Helper()
	now := int64(0)
	for _, line := range lines {
		do, want, _ := strings.Cut(line, " ->")
		var id int64
		var on int
		var actions []BarrierAction
		switch {
		case scan(do, "barrier %d on %d", &id, &on):
			actions = a.Barrier(on, Barrier{ID: id}, now)
		case scan(do, "unaligned %d on %d", &id, &on):
			actions = a.Barrier(on, Barrier{ID: id, Unaligned: true}, now)
		case scan(do, "savepoint %d on %d", &id, &on):
			actions = a.Barrier(on, Barrier{ID: id, Kind: Savepoint}, now)
		case scan(do, "cancel %d on %d", &id, &on):
			actions = a.Cancel(on, id, now)
		case scan(do, "end %d", &on):
			actions = a.End(on, now)
		case scan(do, "trigger %d", &id):
			actions = a.Trigger(Barrier{ID: id}, now)
		case scan(do, "abort %d", &id):
			actions = a.Abort(id, ReasonExpired, now)
		case scan(do, "at %d", &id):
			now = id * int64(time.Millisecond)
			actions = a.Timeout(now)
		case scan(do, "blocked %d", &on):
			if !a.Blocked(on) {
				t.Errorf("%s: it is not", line)
			}
		case scan(do, "free %d", &on):
			if a.Blocked(on) {
				t.Errorf("%s: it is not", line)
			}
		case scan(do, "overtakes %d on %d", &id, &on):
			if !a.Overtakes(on, Barrier{ID: id}) {
				t.Errorf("%s: it does not", line)
			}
		case scan(do, "stays %d on %d", &id, &on):
			if a.Overtakes(on, Barrier{ID: id}) {
				t.Errorf("%s: it overtakes", line)
			}
		case scan(do, "recorded %d", &on):
			if !a.Recording(on) {
				t.Errorf("%s: it is not", line)
			}
		case scan(do, "passed %d", &on):
			if a.Recording(on) {
				t.Errorf("%s: it is recorded", line)
			}
		default:
			t.Fatalf("what is %q?", do)
		}
		if got := texts(actions); got != strings.TrimSpace(want) {
			t.Errorf("%s: got %q", line, got)
		}
	}
}

func scan(s, format string, to ...any) bool {
	n, err := fmt.Sscanf(s, format, to...)
	return err == nil && n == len(to)
}

func TestAlignmentBlocksUntilAllBarriersHaveCome(t *testing.T) {
	script(
		t, newAligner(AlignmentOptions{Channels: 3}),
		"barrier 1 on 2 -> begin 1", "blocked 2", "free 0", "barrier 1 on 0 ->", "blocked 0", "barrier 1 on 1 -> take 1",
		"free 0", "free 1", "free 2", "barrier 1 on 1 ->",
	)
}

func TestTheEndOfAChannelStandsForItsBarrier(t *testing.T) {
	for name, mode := range map[string]CheckpointMode{"exactly once": ExactlyOnce, "at least once": AtLeastOnce} {
		t.Run(name, func(t *testing.T) {
			script(
				t, NewAlignment(AlignmentOptions{Channels: 3, Mode: mode}),
				"barrier 1 on 0 -> begin 1", "end 1 ->", "end 2 -> take 1", "barrier 2 on 0 -> take 2", "end 0 ->",
				"trigger 3 -> take 3", "trigger 3 ->", "end 0 ->",
			)
		})
		t.Run(name+", or aborts", func(t *testing.T) {
			script(
				t, NewAlignment(AlignmentOptions{Channels: 3, Mode: mode, EndAborts: true}),
				"barrier 1 on 0 -> begin 1", "end 1 -> abort 1 declined_input_end_of_stream", "barrier 1 on 2 ->",
				"barrier 2 on 0 -> begin 2", "barrier 2 on 2 -> take 2",
			)
		})
	}
}

func TestTasksWithoutUpstreamTasksAreTriggered(t *testing.T) {
	for name, mode := range map[string]CheckpointMode{"exactly once": ExactlyOnce, "at least once": AtLeastOnce} {
		t.Run(name, func(t *testing.T) {
			script(
				t, NewAlignment(AlignmentOptions{Channels: 3, Mode: mode}),
				"trigger 4 -> begin 4", "end 0 ->", "barrier 4 on 1 ->", "end 1 ->", "trigger 4 ->", "end 2 -> take 4",
				"trigger 5 -> take 5",
			)
		})
	}
}

// What the coordinator has aborted is not taken when its barriers come late, and those downstream hear of it.
func TestAbortedCheckpointsAreRefused(t *testing.T) {
	for name, mode := range map[string]CheckpointMode{"exactly once": ExactlyOnce, "at least once": AtLeastOnce} {
		t.Run(name, func(t *testing.T) {
			script(
				t, NewAlignment(AlignmentOptions{Channels: 2, Mode: mode}),
				"abort 2 ->", "abort 3 ->", "abort 2 ->", "barrier 1 on 0 -> begin 1", "barrier 1 on 1 -> take 1",
				"barrier 2 on 0 -> abort 2 expired", "free 0", "barrier 2 on 1 ->", "barrier 4 on 0 -> begin 4",
				"abort 4 -> abort 4 expired", "free 0", "abort 4 ->", "barrier 4 on 1 ->", "abort 1 ->",
				"barrier 5 on 1 -> begin 5", "barrier 5 on 0 -> take 5",
			)
		})
	}
}

func TestCancelledCheckpointsAreRefusedOnce(t *testing.T) {
	script(
		t, newAligner(AlignmentOptions{Channels: 2}),
		"abort 1 ->", "cancel 1 on 0 -> abort 1 declined_on_cancellation_barrier", "barrier 1 on 1 ->",
		"barrier 2 on 0 -> begin 2", "barrier 2 on 1 -> take 2",
	)
}

// Trap B030: the switch comes so long after the first barrier, by one monotonic clock.
func TestAlignmentBecomesUnalignedAfterTheTimeout(t *testing.T) {
	opt := AlignmentOptions{Channels: 3, Unaligned: true, AlignedTimeout: time.Second}
	script(
		t, newAligner(opt),
		"at 5000 ->", "barrier 1 on 0 -> begin 1", "at 5999 ->", "blocked 0", "at 6000 -> take unaligned 1", "free 0",
		"passed 0", "recorded 1", "recorded 2", "barrier 1 on 1 ->", "passed 1", "recorded 2", "at 9000 ->",
		"barrier 1 on 2 -> finish 1", "passed 2", "barrier 2 on 1 -> begin 2", "barrier 2 on 2 ->", "barrier 2 on 0 -> take 2",
		"at 20000 ->",
	)
	a := newAligner(opt)
	a.Timeout(7)
	if got := a.Barrier(0, Barrier{ID: 1}, 42)[0].Deadline; got != 42+time.Second.Nanoseconds() {
		t.Errorf("the deadline is %d", got)
	}
	a.Barrier(1, Barrier{ID: 1}, 42)
	if took := a.Barrier(2, Barrier{ID: 1}, 40)[0].Took; took != 0 { // a clock that goes back is broken, statistics are not
		t.Errorf("the alignment took %d ns", took)
	}
}

// Trap B030: a late cancellation of an older checkpoint does no harm.
func TestCancellationOfAnOlderCheckpointIsIgnored(t *testing.T) {
	script(
		t, newAligner(AlignmentOptions{Channels: 2, Unaligned: true, AlignedTimeout: time.Second}),
		"barrier 2 on 0 -> begin 2", "cancel 1 on 1 ->", "blocked 0", "at 1000 -> take unaligned 2", "cancel 1 on 1 ->", "barrier 2 on 1 -> finish 2",
	)
}

func TestAnUnalignedBarrierIsNotAlignedAnywhere(t *testing.T) {
	script(
		t, newAligner(AlignmentOptions{Channels: 2}),
		"unaligned 1 on 0 -> take unaligned 1", "recorded 1", "end 1 -> finish 1",
		"unaligned 2 on 0 -> take unaligned 2, finish 2",
	)
	script(
		t, newAligner(AlignmentOptions{Channels: 3}),
		"barrier 1 on 0 -> begin 1", "unaligned 1 on 1 -> take unaligned 1", "recorded 2", "passed 0",
		"barrier 2 on 0 -> abort 1 declined_subsumed, begin 2", "passed 2",
	)
}

// Traps B028, B030: channels whose data can't be kept stay aligned.
func TestAnUnalignedCheckpointWaitsForChannelsThatCantBeRecorded(t *testing.T) {
	opt := AlignmentOptions{Channels: 3, Unaligned: true, AlignedTimeout: time.Second, AlignedOnly: []bool{false, true, false}}
	script(
		t, newAligner(opt),
		"barrier 1 on 0 -> begin 1", "at 1000 ->", "blocked 0", "free 1", "barrier 1 on 1 -> take unaligned 1", "recorded 2",
		"barrier 1 on 2 -> finish 1",
		"unaligned 2 on 2 -> begin 2", "blocked 2", "end 1 -> take unaligned 2", "recorded 0", "barrier 2 on 0 -> finish 2",
		"unaligned 3 on 2 -> take unaligned 3", "cancel 3 on 0 -> abort 3 declined_on_cancellation_barrier", "passed 0",
	)
}

// What may be told ahead of the data before it leads to the snapshot at once.
func TestBarriersInSightOvertakeWhereTheSnapshotFollows(t *testing.T) {
	o := AlignmentOptions{Channels: 3, Unaligned: true, AlignedTimeout: time.Second}
	script(t, NewAlignment(o),
		"overtakes 1 on 0", "unaligned 1 on 0 -> take unaligned 1", "stays 1 on 0", "overtakes 1 on 1",
		"unaligned 1 on 1 ->", "end 2 -> finish 1", "stays 1 on 1", "stays 2 on 2", "overtakes 2 on 1",
		"barrier 2 on 0 -> begin 2", "stays 2 on 0", "stays 1 on 1", "unaligned 2 on 1 -> take unaligned 2, finish 2")
	o.AlignedOnly = []bool{false, false, true}
	script(t, NewAlignment(o),
		"stays 1 on 0", "stays 1 on 2", "barrier 1 on 0 -> begin 1", "stays 1 on 1", "barrier 1 on 2 ->", "overtakes 1 on 1",
		"unaligned 1 on 1 -> take unaligned 1, finish 1", "stays 2 on 0", "end 2 ->", "overtakes 2 on 0")
	if NewAlignment(o).Overtakes(0, Barrier{ID: 1, Kind: Savepoint}) {
		t.Error("a savepoint overtakes")
	}
	o = AlignmentOptions{Channels: 2}
	script(t, NewAlignment(o), "stays 1 on 0")
	o.Mode = AtLeastOnce
	script(t, NewAlignment(o), "stays 1 on 0")
}

func TestSavepointsStayAligned(t *testing.T) {
	script(
		t, newAligner(AlignmentOptions{Channels: 2, Unaligned: true, AlignedTimeout: time.Second}),
		"savepoint 1 on 0 -> begin 1", "at 99999 ->", "blocked 0", "savepoint 1 on 1 -> take 1",
	)
}

func TestCounterRemembersWhatWasCancelled(t *testing.T) {
	script(
		t, newBarrierCounter(AlignmentOptions{Channels: 3}),
		"barrier 1 on 0 -> begin 1", "barrier 2 on 0 -> begin 2",
		"cancel 2 on 1 -> abort 1 declined_on_cancellation_barrier, abort 2 declined_on_cancellation_barrier",
		"cancel 2 on 2 ->", "barrier 1 on 1 ->", "cancel 3 on 0 -> abort 3 declined_on_cancellation_barrier",
		"barrier 4 on 1 -> begin 4", "barrier 3 on 2 ->", "barrier 4 on 2 ->", "barrier 4 on 0 -> take 4",
	)
}

func TestCounterForgetsTheOldestOfTooManyCheckpoints(t *testing.T) {
	c := newBarrierCounter(AlignmentOptions{Channels: 2})
	for id := int64(1); id <= maxCounted+2; id++ {
		c.Barrier(0, Barrier{ID: id}, 0)
	}
	if len(c.pending) != maxCounted {
		t.Errorf("%d checkpoints are counted", len(c.pending))
	}
	if got := texts(c.Barrier(1, Barrier{ID: 2}, 0)); got != "" {
		t.Errorf("one that was forgotten: %q", got)
	}
	if got := texts(c.Barrier(1, Barrier{ID: 3}, 0)); got != "take 3" {
		t.Errorf("the oldest that was not: %q", got)
	}
}

func TestMarksAreStepsOfAnAlignment(t *testing.T) {
	a := NewAlignment(AlignmentOptions{Channels: 2})
	for _, step := range []struct {
		channel int
		mark    frame.Mark
		want    string
	}{
		{0, Barrier{ID: 7, Full: true}.Mark(), "begin 7"},
		{1, frame.Mark{Kind: frame.CancelBarrier, Value: 7}, "abort 7 declined_on_cancellation_barrier"},
		{0, frame.Mark{Kind: frame.Barrier, Value: 8}, "begin 8"},
		{1, frame.Mark{Kind: frame.End}, "take 8"},
	} {
		got, err := StepAlignment(a, step.channel, step.mark, 0)
		if err != nil || texts(got) != step.want {
			t.Errorf("%v on %d: %q, %v, want %q", step.mark, step.channel, texts(got), err, step.want)
		}
	}
	if _, err := StepAlignment(a, 0, frame.Mark{Kind: frame.Barrier}, 0); err == nil {
		t.Error("a barrier without an id is taken")
	}
}

func TestAlignmentAllocatesNothing(t *testing.T) {
	for name, opt := range map[string]AlignmentOptions{
		"aligned":       {Channels: 4},
		"unaligned":     {Channels: 4, Unaligned: true},
		"at least once": {Channels: 4, Mode: AtLeastOnce},
	} {
		a := NewAlignment(opt)
		id := int64(0)
		round := func() {
			id++
			for ch := range opt.Channels {
				a.Barrier(ch, Barrier{ID: id}, id)
				a.Timeout(id)
			}
			id++
			a.Barrier(0, Barrier{ID: id}, id)
			a.Cancel(1, id, id)
			a.Abort(id+1, ReasonExpired, id)
			a.Barrier(2, Barrier{ID: id + 1}, id)
			id++
		}
		round()
		if n := testing.AllocsPerRun(100, round); n != 0 {
			t.Errorf("%s: %v allocations in a round", name, n)
		}
	}
}

// channelItem is an element (barrier 0, cancel false), a barrier or a cancellation of a channel.
type channelItem struct {
	element, barrier int64
	cancel           bool
}

// TestSnapshotsHoldExactlyWhatLiesBeforeTheirBarriers reads random channels in random orders, with timeouts, aborts and
// cancellations at random times.
func TestSnapshotsHoldExactlyWhatLiesBeforeTheirBarriers(t *testing.T) {
	taken := map[string]int{}
	for seed := range uint64(600) {
		rng := rand.New(rand.NewPCG(seed, 7))
		opt := AlignmentOptions{Channels: 1 + rng.IntN(4), Mode: CheckpointMode(seed % 3 / 2)}
		if opt.Mode == ExactlyOnce && rng.IntN(2) == 0 {
			opt.Unaligned, opt.AlignedTimeout = true, time.Duration(rng.IntN(20))
			if rng.IntN(2) == 0 {
				opt.AlignedOnly = make([]bool, opt.Channels)
				opt.AlignedOnly[rng.IntN(opt.Channels)] = true
			}
		}
		r := newChannelRun(t, rng, opt)
		r.run()
		if t.Failed() {
			t.Fatalf("seed %d, options %+v", seed, opt)
		}
		for what, n := range r.taken {
			taken[what] += n
		}
	}
	for _, what := range []string{"take", "take unaligned", "counted", "abort"} {
		if taken[what] < 50 {
			t.Errorf("only %d of %q: the test tests little", taken[what], what)
		}
	}
}

// channelRun is a task that reads channels through an alignment.
type channelRun struct {
	t         *testing.T
	rng       *rand.Rand
	opt       AlignmentOptions
	a         Alignment
	channels  [][]channelItem
	ended     []bool
	read      [][]int64 // elements that were processed, by channel
	snapshots map[int64][][]int64
	recording int64 // the checkpoint whose snapshot is being recorded
	last      int64 // checkpoint that was taken
	taken     map[string]int
}

func newChannelRun(t *testing.T, rng *rand.Rand, opt AlignmentOptions) *channelRun {
	r := &channelRun{
		t: t, rng: rng, opt: opt, a: NewAlignment(opt), channels: make([][]channelItem, opt.Channels), ended: make([]bool, opt.Channels),
		read: make([][]int64, opt.Channels), snapshots: map[int64][][]int64{}, taken: map[string]int{},
	}
	for c := range r.channels {
		for id := int64(1); id <= 5; id++ {
			for range rng.IntN(4) {
				r.channels[c] = append(r.channels[c], channelItem{element: int64(len(r.channels[c]))*100 + int64(c)})
			}
			if rng.IntN(10) > 0 {
				r.channels[c] = append(r.channels[c], channelItem{barrier: id, cancel: rng.IntN(12) == 0})
			}
		}
		if rng.IntN(3) == 0 { // ends early
			r.channels[c] = r.channels[c][:rng.IntN(len(r.channels[c])+1)]
		}
	}
	return r
}

func (r *channelRun) run() {
	queues := slices.Clone(r.channels)
	for now := int64(0); ; now++ {
		var free []int
		for c := range queues {
			if !r.ended[c] && !r.a.Blocked(c) {
				free = append(free, c)
			}
		}
		switch {
		case len(free) == 0:
			if slices.Contains(r.ended, false) {
				r.t.Error("all channels are blocked")
			}
			return
		case r.rng.IntN(4) == 0:
			r.act(r.a.Timeout(now))
			continue
		case r.rng.IntN(40) == 0:
			r.act(r.a.Abort(int64(1+r.rng.IntN(5)), ReasonExpired, now))
			continue
		}
		c := free[r.rng.IntN(len(free))]
		if len(queues[c]) == 0 {
			r.ended[c] = true
			r.act(r.a.End(c, now))
			continue
		}
		item := queues[c][0]
		queues[c] = queues[c][1:]
		switch {
		case item.cancel:
			r.act(r.a.Cancel(c, item.barrier, now))
		case item.barrier != 0:
			r.act(r.a.Barrier(c, Barrier{ID: item.barrier}, now))
		default:
			if r.a.Recording(c) {
				r.snapshots[r.recording][c] = append(r.snapshots[r.recording][c], item.element)
			}
			r.read[c] = append(r.read[c], item.element)
		}
	}
}

func (r *channelRun) act(actions []BarrierAction) {
	for _, a := range actions {
		id := a.Barrier.ID
		switch a.Do {
		case BeginAlignment:
			continue
		case TakeSnapshot:
			if id <= r.last {
				r.t.Errorf("checkpoint %d is taken after %d", id, r.last)
			}
			r.last = id
			r.snapshots[id] = make([][]int64, len(r.read))
			for c := range r.read {
				r.snapshots[id][c] = slices.Clone(r.read[c])
			}
			if r.recording = id; !a.Unaligned {
				r.check(id)
			}
		case FinishRecording:
			r.check(id)
		case AbortCheckpoint:
			r.recording = 0
		}
		what := strings.TrimSuffix(texts([]BarrierAction{a}), fmt.Sprintf(" %d", id))
		if a.Do == AbortCheckpoint {
			what = "abort"
		} else if r.opt.Mode == AtLeastOnce {
			what = "counted"
		}
		r.taken[what]++
	}
}

// check compares a snapshot with what lies before the barriers; all of a channel that has ended without one.
func (r *channelRun) check(id int64) {
	r.recording = 0
	for c, items := range r.channels {
		var want []int64
		found := false
		for _, item := range items {
			if found = item.barrier == id; found {
				break
			}
			if item.barrier == 0 {
				want = append(want, item.element)
			}
		}
		got := r.snapshots[id][c]
		if !found && !r.ended[c] {
			r.t.Errorf("checkpoint %d is complete without a barrier on channel %d", id, c)
		}
		if r.opt.Mode == AtLeastOnce && len(got) >= len(want) {
			got = got[:len(want)]
		}
		if !slices.Equal(got, want) {
			r.t.Errorf("checkpoint %d holds %v of channel %d, want %v", id, got, c, want)
		}
	}
}

func TestBarriersSurviveAsMarks(t *testing.T) {
	for _, b := range []Barrier{
		{ID: 1},
		{ID: MaxCheckpointID},
		{ID: 5, Kind: Savepoint, Full: true},
		{ID: 5, Kind: DrainSavepoint},
		{ID: 9, Unaligned: true},
		{ID: MaxCheckpointID, Unaligned: true, Full: true},
	} {
		m := b.Mark()
		if got, err := BarrierOf(m.Value); err != nil || got != b || m.Kind != frame.Barrier {
			t.Errorf("%+v comes back as %+v, %v", b, got, err)
		}
	}
	if v := (Barrier{ID: 7}).Mark().Value; v != 7 {
		t.Errorf("the barrier of checkpoint 7 has the value %d", v)
	}
}

func FuzzBarrierOf(f *testing.F) {
	for _, v := range []int64{0, 1, -1, 1 << 58, 1<<58 | 1, 1<<58 | 1<<56 | 1, 1<<60 | 1} {
		f.Add(v)
	}
	f.Fuzz(func(t *testing.T, v int64) {
		b, err := BarrierOf(v)
		if err != nil {
			return
		}
		if got := b.Mark().Value; got != v {
			t.Errorf("%#x is read as %+v, which is %#x", v, b, got)
		}
	})
}
