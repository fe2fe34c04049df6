package streaming_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/flott-dev/flott/conformance"
	"github.com/flott-dev/flott/internal/control"
)

type barriersCase struct {
	conformance.Head
	Mode          string                `json:"mode"`
	Channels      int                   `json:"channels"`
	Input         []barrierItem         `json:"input"`
	LimitBuffers  int                   `json:"alignment_limit_buffers"`
	Delivered     []int                 `json:"expect_delivered"`
	Notifications []barrierNotification `json:"expect_notifications"`
	Held          map[string]int        `json:"expect_buffers_held_at_completion"`
}

type barrierItem struct {
	Buffer         *int   `json:"buffer"`
	Barrier        *int64 `json:"barrier"`
	Cancel         *int64 `json:"cancel"`
	EndOfPartition *int   `json:"end_of_partition"`
	Channel        int    `json:"channel"`
}

// on is the item's channel.
func (i *barrierItem) on() int {
	switch {
	case i.Buffer != nil:
		return *i.Buffer
	case i.EndOfPartition != nil:
		return *i.EndOfPartition
	}
	return i.Channel
}

// data reports whether the item is handed to the operator.
func (i *barrierItem) data() bool { return i.Buffer != nil || i.EndOfPartition != nil }

type barrierNotification struct {
	Complete *int64 `json:"complete"`
	Abort    *int64 `json:"abort"`
	Reason   string `json:"reason"`
	After    int    `json:"after_deliveries"`
}

func TestBarriersVectors(t *testing.T) {
	s := conformance.Suite{
		Folder: "streaming", Family: "barriers", Rewrite: *rewrite,
		Runners: map[string]conformance.Runner{"": runBarriers},
	}
	s.Run(t)
}

// runBarriers replays the input in the order of its arrival and, since channels are read in another order in production,
// in random orders that keep that of each channel.
func runBarriers(t *testing.T, c conformance.Case) {
	var v barriersCase
	c.Decode(t, &v)
	t.Run("by arrival", func(t *testing.T) {
		r := newBarrierReplay(t, &v)
		if v.LimitBuffers > 0 {
			r.aside()
		} else {
			r.byArrival()
		}
		equal(t, "delivered", fmt.Sprint(r.delivered), fmt.Sprint(v.Delivered))
		equal(t, "notifications", fmt.Sprint(r.notes), fmt.Sprint(v.notes()))
		for id, want := range v.Held {
			equal(t, "buffers held at completion "+id, r.held[idOf(t, id)], want)
		}
	})
	if v.LimitBuffers > 0 {
		return // these cases are about an order of reading
	}
	for _, w := range conformance.Ways() {
		if w.Seed != 0 {
			t.Run(fmt.Sprintf("random channels, seed %d", w.Seed), func(t *testing.T) {
				r := newBarrierReplay(t, &v)
				r.random(rand.New(rand.NewPCG(w.Seed, 1)))
			})
		}
	}
}

// notes are the expected notifications as text.
func (c *barriersCase) notes() []string {
	var out []string
	for _, n := range c.Notifications {
		if n.Complete != nil {
			out = append(out, noteText("complete", *n.Complete, "", n.After))
		} else {
			out = append(out, noteText("abort", *n.Abort, n.Reason, n.After))
		}
	}
	return out
}

func noteText(what string, id int64, reason string, after int) string {
	return fmt.Sprintf("%s %d (%s) after %d", what, id, reason, after)
}

// barrierReplay reads a vector's input through an alignment.
type barrierReplay struct {
	t         *testing.T
	c         *barriersCase
	a         control.Alignment
	queues    [][]int // by channel: the indexes of what has not been read
	free      bool    // input is over: nothing is blocked any more
	delivered []int
	notes     []string
	completed []int64
	held      map[int64]int
	current   int64 // the checkpoint that is being aligned
	over      bool  // an alignment has ended, and with it what was blocked
}

func newBarrierReplay(t *testing.T, c *barriersCase) *barrierReplay {
	t.Helper()
	r := &barrierReplay{t: t, c: c, held: map[int64]int{}, queues: make([][]int, c.Channels)}
	mode := word(t, map[string]control.CheckpointMode{"exactly_once": control.ExactlyOnce, "at_least_once": control.AtLeastOnce}, c.Mode)
	r.a = control.NewAlignment(control.AlignmentOptions{Channels: c.Channels, Mode: mode, EndAborts: true})
	for i := range c.Input {
		on := c.Input[i].on()
		r.queues[on] = append(r.queues[on], i)
	}
	return r
}

// reasonWord is the vectors' word for why an alignment was given up.
func reasonWord(t *testing.T, r control.FailureReason) string {
	t.Helper()
	switch r {
	case control.ReasonDeclinedSubsumed:
		return "subsumed"
	case control.ReasonDeclinedInputEnd:
		return "input_end_of_stream"
	case control.ReasonDeclinedCancelBarrier:
		return "cancellation_barrier"
	case control.ReasonDeclinedAlignmentLimit:
		return "alignment_limit_exceeded"
	}
	t.Fatalf("an alignment gives up because of %v", r)
	return ""
}

// read takes an item. The alignment hears of the end of a channel before it is delivered.
func (r *barrierReplay) read(index int) {
	item := &r.c.Input[index]
	defer func() {
		if item.data() {
			r.delivered = append(r.delivered, index)
		}
	}()
	switch {
	case item.Barrier != nil:
		r.note(index, r.a.Barrier(item.Channel, control.Barrier{ID: *item.Barrier}, 0))
	case item.Cancel != nil:
		r.note(index, r.a.Cancel(item.Channel, *item.Cancel, 0))
	case item.EndOfPartition != nil:
		r.note(index, r.a.End(*item.EndOfPartition, 0))
	}
}

func (r *barrierReplay) note(index int, actions []control.BarrierAction) {
	for _, a := range actions {
		r.over = r.over || a.Do != control.BeginAlignment
		switch a.Do {
		case control.BeginAlignment:
			r.current = a.Barrier.ID
		case control.TakeSnapshot:
			if !r.free {
				r.checkCut(a.Barrier.ID)
			}
			r.completed = append(r.completed, a.Barrier.ID)
			r.notes = append(r.notes, noteText("complete", a.Barrier.ID, "", len(r.delivered)))
			for i := range index {
				if r.c.Input[i].Buffer != nil && !slices.Contains(r.delivered, i) {
					r.held[a.Barrier.ID]++
				}
			}
		case control.AbortCheckpoint:
			r.notes = append(r.notes, noteText("abort", a.Barrier.ID, reasonWord(r.t, a.Reason), len(r.delivered)))
		}
	}
}

func (r *barrierReplay) take(channel int) {
	index := r.queues[channel][0]
	r.queues[channel] = r.queues[channel][1:]
	r.read(index)
}

// readable are the channels that may be read.
func (r *barrierReplay) readable() []int {
	var out []int
	for c, q := range r.queues {
		if len(q) > 0 && (r.free || !r.a.Blocked(c)) {
			out = append(out, c)
		}
	}
	return out
}

// byArrival reads what came first on the channels that are not blocked. When only blocked items are left, the alignment is
// given up without a word.
func (r *barrierReplay) byArrival() {
	for {
		channels := r.readable()
		if len(channels) == 0 {
			if r.free || !slices.ContainsFunc(r.queues, func(q []int) bool { return len(q) > 0 }) {
				return
			}
			r.free = true
			continue
		}
		r.take(slices.MinFunc(channels, func(a, b int) int { return r.queues[a][0] - r.queues[b][0] }))
	}
}

// aside reads everything that comes and sets aside what is of blocked channels, to be read again before what follows; more
// items than the limit end the alignment.
func (r *barrierReplay) aside() {
	var queue, aside []int
	for i := range r.c.Input {
		queue = append(queue, i)
	}
	for len(queue)+len(aside) > 0 {
		r.free = r.free || len(queue) == 0
		if r.over || len(queue) == 0 {
			queue, aside, r.over = append(aside, queue...), nil, false
		}
		index := queue[0]
		queue = queue[1:]
		if item := &r.c.Input[index]; r.free || !r.a.Blocked(item.on()) {
			r.read(index)
			continue
		}
		if aside = append(aside, index); len(aside) > r.c.LimitBuffers {
			r.note(index, r.a.Abort(r.current, control.ReasonDeclinedAlignmentLimit, 0))
		}
	}
}

// random reads channels that are not blocked in a random order.
func (r *barrierReplay) random(rng *rand.Rand) {
	for {
		channels := r.readable()
		if len(channels) == 0 {
			if r.free {
				break
			}
			r.free = true
			continue
		}
		r.take(channels[rng.IntN(len(channels))])
	}
	if !slices.IsSorted(r.completed) || len(slices.Compact(slices.Clone(r.completed))) != len(r.completed) {
		r.t.Errorf("completed are %v", r.completed)
	}
	for id := range r.barriers() {
		if r.full(id) && !slices.Contains(r.completed, id) {
			r.t.Errorf("checkpoint %d has a barrier on every channel and was not completed: %v", id, r.notes)
		}
	}
}

// barriers are the positions of barriers by checkpoint and channel.
func (r *barrierReplay) barriers() map[int64]map[int]int {
	out := map[int64]map[int]int{}
	for i, item := range r.c.Input {
		if item.Barrier != nil {
			if out[*item.Barrier] == nil {
				out[*item.Barrier] = map[int]int{}
			}
			out[*item.Barrier][item.Channel] = i
		}
	}
	return out
}

// full reports whether the checkpoint is completed in every order of channels: its barrier is on all of them, and, where
// nothing is blocked, no later one is cancelled, which can happen first.
func (r *barrierReplay) full(id int64) bool {
	if r.c.Mode == "at_least_once" && slices.ContainsFunc(r.c.Input, func(i barrierItem) bool { return i.Cancel != nil && *i.Cancel > id }) {
		return false
	}
	return len(r.barriers()[id]) == r.c.Channels
}

// checkCut compares what has been delivered with the checkpoint's barriers: what lies before them is in its snapshot, and,
// exactly once, nothing else.
func (r *barrierReplay) checkCut(id int64) {
	at := r.barriers()[id]
	for i, item := range r.c.Input {
		barrier, ok := at[item.on()]
		if !item.data() || !ok {
			continue
		}
		delivered := slices.Contains(r.delivered, i)
		if i < barrier && !delivered {
			r.t.Errorf("checkpoint %d is completed without item %d", id, i)
		}
		if i > barrier && delivered && r.c.Mode == "exactly_once" {
			r.t.Errorf("item %d is in checkpoint %d", i, id)
		}
	}
}
