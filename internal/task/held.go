package task

import "math"

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
	held := t.checkpoints.held
	for i := range held {
		if held[i] == h {
			t.checkpoints.held = append(held[:i], held[i+1:]...)
			t.checkpoints.Took(h.part)
			return
		}
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
		p.Release()
		if c.Dropped != nil {
			c.Dropped(p.Barrier.ID)
		}
	}
}

// allHeld is an id that no checkpoint exceeds.
const allHeld = math.MaxInt64
