package iterate

import (
	"encoding/binary"
	"fmt"

	"github.com/flott-dev/flott/internal/operator"
)

// The events between the heads of a loop and its coordinator: a kind byte, then a number as a varint.
const (
	eventHold    byte = 1 // head -> coordinator: the mark of that token waits until the loop has drained
	eventClean   byte = 2 // head -> coordinator: the probe of that round is back, and nothing was fed back meanwhile
	eventDirty   byte = 3 // head -> coordinator: the probe is back, something was fed back
	eventSilent  byte = 4 // head -> coordinator: nothing was fed back for the maximum wait
	eventResumed byte = 5 // head -> coordinator: something was fed back after all
	eventProbe   byte = 6 // coordinator -> head: send the probe of that round
	eventRelease byte = 7 // coordinator -> head: the mark of that token may go on
)

// Tokens name the marks that wait. Those of an outer loop's probes are the probes' values, which are not negative.
const (
	tokenWatermark int64 = -1 // the last watermark of the input
	tokenEnd       int64 = -2 // the end of the input
)

// Rounds decides when the marks that wait at the heads of a loop may go on: when nothing that the input or an outer loop
// has brought before them is under way any more. To find out, it has all heads send a probe, a mark that every operator
// of the body passes on behind what came before it and every task only once it has come on all its open channels. When
// a head gets its probe back, everything that it had emitted before is through the body, and what was fed back because
// of it came before the probe. So a round in which no head was fed anything between sending its probe and getting it
// back proves that the loop is empty, at any parallelism and whatever the body drops or adds. Streams that enter the
// body beside the head hold probes up until they have ended.
//
// It is a pure step machine; Handle's answers go to all heads.
type Rounds struct {
	heads   int
	holds   map[int64]int // heads at which the token's mark waits, until all do
	ready   []int64       // tokens of marks that wait at all heads
	covered []int64       // those that the running round is about
	round   int64
	running bool
	backs   int
	dirty   bool
	silent  []bool
	gaveUp  bool
}

// NewRounds returns the rounds of a loop with so many heads.
func NewRounds(heads int) *Rounds {
	return &Rounds{heads: heads, holds: map[int64]int{}, silent: make([]bool, heads)}
}

// Handle takes an event of a head and returns those to send to every head.
func (r *Rounds) Handle(head int, event []byte) ([][]byte, error) {
	kind, n, err := decodeEvent(event)
	if err != nil {
		return nil, err
	}
	switch kind {
	case eventHold:
		return r.hold(n), nil
	case eventClean, eventDirty:
		return r.back(n, kind == eventDirty), nil
	case eventSilent:
		r.silent[head] = true
		return r.giveUp(), nil
	case eventResumed:
		r.silent[head] = false
		return nil, nil
	}
	return nil, fmt.Errorf("coordinate an iteration: unknown event %d", kind)
}

func (r *Rounds) hold(token int64) [][]byte {
	if r.holds[token]++; r.holds[token] < r.heads {
		return nil
	}
	delete(r.holds, token)
	if r.gaveUp {
		return release(token)
	}
	r.ready = append(r.ready, token)
	return r.next(nil)
}

// next starts a round if there is something to find out and none is running.
func (r *Rounds) next(out [][]byte) [][]byte {
	if r.running || len(r.ready) == 0 {
		return out
	}
	r.round++
	r.running, r.backs, r.dirty = true, 0, false
	r.covered, r.ready = r.ready, nil
	return append(out, encodeEvent(eventProbe, r.round))
}

func (r *Rounds) back(round int64, dirty bool) [][]byte {
	if !r.running || round != r.round {
		return nil
	}
	r.backs++
	r.dirty = r.dirty || dirty
	if r.backs < r.heads {
		return nil
	}
	r.running = false
	if r.dirty {
		r.ready = append(r.covered, r.ready...)
		return r.next(nil)
	}
	return r.next(release(r.covered...))
}

// giveUp releases everything once every head has been silent for the maximum wait: what is still under way is lost.
func (r *Rounds) giveUp() [][]byte {
	for _, s := range r.silent {
		if !s {
			return nil
		}
	}
	r.gaveUp = true
	waiting := r.ready
	if r.running {
		waiting = append(r.covered, r.ready...)
	}
	r.running, r.covered, r.ready = false, nil, nil
	return release(waiting...)
}

func release(tokens ...int64) (out [][]byte) {
	for _, t := range tokens {
		out = append(out, encodeEvent(eventRelease, t))
	}
	return out
}

func encodeEvent(kind byte, n int64) []byte { return binary.AppendVarint([]byte{kind}, n) }

func decodeEvent(event []byte) (kind byte, n int64, err error) {
	if len(event) > 1 {
		if v, used := binary.Varint(event[1:]); used == len(event)-1 {
			return event[0], v, nil
		}
	}
	return 0, 0, fmt.Errorf("decode an event of an iteration: % x", event)
}

// coordinator runs Rounds beside the job manager.
type coordinator struct {
	ctx    operator.CoordinatorContext
	rounds *Rounds
}

// Coordinator returns the coordinator of a loop's heads. It only reacts, so that it can run in a simulation.
func Coordinator() operator.Coordinator { return &coordinator{} }

func (c *coordinator) Start(ctx operator.CoordinatorContext, _ []byte) error {
	c.ctx, c.rounds = ctx, NewRounds(ctx.Parallelism())
	return nil
}

func (c *coordinator) Handle(subtask int, event []byte) error {
	out, err := c.rounds.Handle(subtask, event)
	for _, e := range out {
		for head := range c.ctx.Parallelism() {
			c.ctx.Send(head, e)
		}
	}
	return err
}

// Reactive implements operator.Reactive.
func (c *coordinator) Reactive() {}

// Snapshot implements operator.Coordinator: rounds begin anew after a restore.
func (c *coordinator) Snapshot(int64) ([]byte, error) { return nil, nil }

func (c *coordinator) Close() error { return nil }
