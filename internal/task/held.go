package task

import (
	"fmt"
	"math"
	"slices"

	"github.com/flott-dev/flott/internal/control"
)

// heldPart is a part of a snapshot to which operators have still to add something.
type heldPart struct {
	part *Part
	left int // operators
}

// hold keeps a part until its operators have completed it; false: there is nothing to wait for.
func (t *Task) hold(p *Part) bool {
	h := &heldPart{part: p}
	for _, s := range p.States {
		if s.Held {
			h.left++
			s.Complete = func() { t.completed(h) }
			s.Fail = func(err error) { t.incomplete(h, err) }
		}
	}
	if h.left == 0 {
		return false
	}
	t.checkpoints.held = append(t.checkpoints.held, h)
	return true
}

// completed takes the word of an operator that has added what it had to.
func (t *Task) completed(h *heldPart) {
	if h.left--; h.left > 0 {
		return
	}
	if t.checkpoints.letGo(h) {
		t.checkpoints.Took(h.part)
	}
}

// incomplete takes the word of an operator that it can't add what it had to: the checkpoint is declined.
func (t *Task) incomplete(h *heldPart, err error) {
	c := t.checkpoints
	if !c.letGo(h) {
		return
	}
	id := h.part.Barrier.ID
	c.drop(h.part)
	c.Declined(id, control.ReasonDeclined, fmt.Errorf("add to the snapshot: %w", err))
}

// letGo ends the wait for a part; false: it was given up.
func (c *barriers) letGo(h *heldPart) bool {
	i := slices.Index(c.held, h)
	if i < 0 {
		return false
	}
	c.held = slices.Delete(c.held, i, i+1)
	return true
}

// drop gives up a part that was taken.
func (c *barriers) drop(p *Part) {
	p.Release()
	if c.Dropped != nil {
		c.Dropped(p.Barrier.ID)
	}
}

// dropHeld gives up the parts of a checkpoint, and of older ones, that are not complete.
func (t *Task) dropHeld(id int64) {
	c := t.checkpoints
	if c == nil {
		return
	}
	for len(c.held) > 0 && c.held[0].part.Barrier.ID <= id {
		p := c.held[0].part
		c.held = c.held[1:]
		c.drop(p)
	}
}

// allHeld is an id that no checkpoint exceeds.
const allHeld = math.MaxInt64
