package control

// maxCounted bounds the checkpoints that are counted at a time: barriers of older ones are then ignored.
const maxCounted = 50

// barrierCounter is the Alignment of at-least-once checkpoints: it blocks nothing and counts.
type barrierCounter struct {
	opt     AlignmentOptions
	last    []int64 // by channel: the largest id whose barrier or cancellation came
	ended   []bool
	open    int
	latest  int64          // the largest id that was seen
	pending []barrierCount // in the order of their ids
	refused refusals
	actions []BarrierAction
}

// barrierCount is a checkpoint whose barriers are being counted.
type barrierCount struct {
	barrier Barrier
	missing int // open channels without it
	began   int64
	aborted bool
}

func newBarrierCounter(o AlignmentOptions) *barrierCounter {
	return &barrierCounter{
		opt: o, last: make([]int64, o.Channels), ended: make([]bool, o.Channels), open: o.Channels,
		pending: make([]barrierCount, 0, maxCounted+1),
	}
}

func (c *barrierCounter) Overtakes(int, Barrier) bool { return false }

func (c *barrierCounter) Blocked(int) bool { return false }

func (c *barrierCounter) Recording(int) bool { return false }

func (c *barrierCounter) Timeout(int64) []BarrierAction { return nil }

func (c *barrierCounter) Barrier(channel int, b Barrier, now int64) []BarrierAction {
	c.actions = c.actions[:0]
	if !c.pass(channel, b.ID) {
		return nil
	}
	switch i := c.find(b.ID); {
	case i >= 0:
		c.pending[i].missing--
		c.complete(i, now)
	case b.ID > c.latest:
		c.begin(b, c.open-1, now)
	}
	return c.actions
}

func (c *barrierCounter) Trigger(b Barrier, now int64) []BarrierAction {
	c.actions = c.actions[:0]
	if b.ID > c.latest {
		c.begin(b, c.open, now)
	}
	return c.actions
}

func (c *barrierCounter) Cancel(channel int, id, now int64) []BarrierAction {
	c.actions = c.actions[:0]
	if !c.pass(channel, id) {
		return nil
	}
	older := 0
	for older < len(c.pending) && c.pending[older].barrier.ID < id {
		c.abort(older, ReasonDeclinedCancelBarrier)
		older++
	}
	c.drop(older)
	switch {
	case len(c.pending) > 0 && c.pending[0].barrier.ID == id:
		c.abort(0, ReasonDeclinedCancelBarrier)
		c.pending[0].missing--
		c.complete(0, now)
	case id > c.latest: // all others were older
		c.latest = id
		c.refused.take(id)
		c.pending = append(c.pending, barrierCount{barrier: Barrier{ID: id}, missing: c.open - 1, began: now})
		c.abort(0, ReasonDeclinedCancelBarrier)
		c.complete(0, now)
	}
	return c.actions
}

func (c *barrierCounter) End(channel int, now int64) []BarrierAction {
	c.actions = c.actions[:0]
	if c.ended[channel] {
		return nil
	}
	c.ended[channel] = true
	c.open--
	for i := 0; i < len(c.pending); i++ {
		p := &c.pending[i]
		if p.barrier.ID <= c.last[channel] {
			continue
		}
		if c.opt.EndAborts {
			c.abort(i, ReasonDeclinedInputEnd)
		}
		p.missing--
		if c.complete(i, now) {
			i = -1 // it and the older ones are gone
		}
	}
	return c.actions
}

func (c *barrierCounter) Abort(id int64, reason FailureReason, _ int64) []BarrierAction {
	c.actions = c.actions[:0]
	if i := c.find(id); i >= 0 {
		c.abort(i, reason)
	} else if id > c.latest {
		c.refused.add(id, reason)
	}
	return c.actions
}

// pass notes how far a channel is; false if that is no news.
func (c *barrierCounter) pass(channel int, id int64) bool {
	if c.ended[channel] || id <= c.last[channel] {
		return false
	}
	c.last[channel] = id
	return true
}

func (c *barrierCounter) find(id int64) int {
	for i := range c.pending {
		if c.pending[i].barrier.ID == id {
			return i
		}
	}
	return -1
}

// begin counts a checkpoint that is newer than all before.
func (c *barrierCounter) begin(b Barrier, missing int, now int64) {
	c.latest = b.ID
	c.pending = append(c.pending, barrierCount{barrier: b, missing: missing, began: now})
	if reason, refused := c.refused.take(b.ID); refused {
		c.abort(len(c.pending)-1, reason)
	}
	if c.complete(len(c.pending)-1, now) {
		return
	}
	if p := &c.pending[len(c.pending)-1]; !p.aborted {
		c.actions = append(c.actions, BarrierAction{Do: BeginAlignment, Barrier: b, Deadline: NoDeadline})
	}
	if len(c.pending) > maxCounted {
		c.drop(1)
	}
}

// complete takes the checkpoint at i if it misses nothing, and forgets it and the older ones.
func (c *barrierCounter) complete(i int, now int64) bool {
	p := c.pending[i]
	if p.missing > 0 {
		return false
	}
	c.drop(i + 1)
	if !p.aborted {
		c.actions = append(c.actions, BarrierAction{Do: TakeSnapshot, Barrier: p.barrier, Took: max(0, now-p.began)})
	}
	return true
}

// abort says once that the checkpoint at i will not be taken. Its barriers are counted on, so that the last one is known.
func (c *barrierCounter) abort(i int, reason FailureReason) {
	p := &c.pending[i]
	if !p.aborted {
		p.aborted = true
		c.actions = append(c.actions, BarrierAction{Do: AbortCheckpoint, Barrier: p.barrier, Reason: reason})
	}
}

func (c *barrierCounter) drop(n int) { c.pending = append(c.pending[:0], c.pending[n:]...) }
