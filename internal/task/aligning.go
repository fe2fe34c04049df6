package task

import (
	"github.com/flott-dev/flott/internal/control"
	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/serde"
)

// aligning counts what a task works on between the first barrier of a checkpoint and its last: statistics show by it how much lay
// before the barriers that came late. Bytes are those of the encoding. A run counts as many times as it has elements what its
// first element takes, so that a large number costs little.
type aligning struct {
	on     bool
	bytes  int64
	sample []byte
}

// begin begins to count, unless that has begun with an earlier barrier.
func (a *aligning) begin() {
	if !a.on {
		a.on, a.bytes = true, 0
	}
}

// end gives what was counted, 0 if nothing was.
func (a *aligning) end() int64 {
	if !a.on {
		return 0
	}
	a.on = false
	return a.bytes
}

// count counts a run that is about to be worked on.
func (a *aligning) count(r *frame.Run) {
	if !a.on || r.N == 0 {
		return
	}
	b, err := r.Type.AppendColumn(a.sample[:0], serde.Column{P: r.P, N: 1, Stride: r.Type.Size})
	if err != nil {
		return // who keeps or sends it fails
	}
	a.sample = b
	each := int64(len(b))
	if r.Times != nil {
		each += 8
	}
	a.bytes += int64(r.N) * each
}

// beginAlignment notes the first barrier of a snapshot, which came at a time of the task's clock.
func (c *barriers) beginAlignment(id, at int64) {
	c.aligning.begin()
	c.Times.begin(at)
	if c.Triggered == nil {
		return
	}
	if trigger, ok := c.Triggered(id); ok {
		c.Times.delay.Store(max(0, at-trigger))
	}
}

// tookAligned notes what belongs to the alignment of a snapshot that was taken. One that is unaligned goes on: its last barrier is
// still to come.
func (t *Task) tookAligned(p *Part, a control.BarrierAction) {
	c := t.checkpoints
	c.beginAlignment(a.Barrier.ID, p.Metrics.FirstBarrier)
	if !a.Unaligned {
		p.Metrics.Processed = c.endAlignment(a)
	}
}

// endAlignment notes the last barrier of a snapshot, and gives the bytes that were worked on since the first.
func (c *barriers) endAlignment(a control.BarrierAction) int64 {
	c.Times.end(a.Took)
	return c.aligning.end()
}
