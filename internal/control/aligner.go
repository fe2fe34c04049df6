package control

// aligner is the Alignment of exactly-once checkpoints: channels on which the barrier has come are blocked until it has
// come on all, or the checkpoint becomes unaligned.
type aligner struct {
	opt      AlignmentOptions
	channels []alignerChannel
	open     int     // channels that have not ended
	current  int64   // the largest id that was seen
	barrier  Barrier // of current, while phase is not idle
	phase    alignerPhase
	began    int64
	deadline int64
	// missing counts the open channels without the barrier, missingAligned those of them that can't be recorded.
	missing, missingAligned int
	overdue                 bool // the checkpoint is to be unaligned
	refused                 refusals
	actions                 []BarrierAction
}

type alignerChannel struct {
	has         bool // the barrier of the current checkpoint
	ended       bool
	alignedOnly bool
}

type alignerPhase uint8

const (
	idle      alignerPhase = iota
	aligning               // channels with the barrier are blocked
	recording              // the snapshot is taken; channels without the barrier are recorded
)

func newAligner(o AlignmentOptions) *aligner {
	a := &aligner{opt: o, channels: make([]alignerChannel, o.Channels), open: o.Channels, deadline: NoDeadline}
	for i := range o.AlignedOnly {
		a.channels[i].alignedOnly = o.AlignedOnly[i]
	}
	return a
}

func (a *aligner) Blocked(channel int) bool { return a.phase == aligning && a.channels[channel].has }

func (a *aligner) Recording(channel int) bool {
	c := &a.channels[channel]
	return a.phase == recording && !c.has && !c.ended
}

func (a *aligner) Overtakes(channel int, b Barrier) bool {
	c := &a.channels[channel]
	if !a.opt.Unaligned || b.Kind != Checkpoint || c.ended || c.alignedOnly || b.ID < a.current {
		return false
	}
	if b.ID == a.current {
		return a.phase != idle && !c.has && a.missingAligned == 0
	}
	for i := range a.channels {
		if o := &a.channels[i]; o.alignedOnly && !o.ended {
			return false
		}
	}
	return true
}

func (a *aligner) Barrier(channel int, b Barrier, now int64) []BarrierAction {
	a.actions = a.actions[:0]
	c := &a.channels[channel]
	switch {
	case c.ended || b.ID < a.current || b.ID == a.current && (a.phase == idle || c.has):
		return nil // of a checkpoint that is over
	case b.ID == a.current:
		a.overdue = a.overdue || b.Unaligned
		a.receive(c)
		a.settle(now)
		return a.actions
	}
	if a.begin(b, now) {
		a.receive(c)
		a.start(now)
	}
	return a.actions
}

func (a *aligner) Trigger(b Barrier, now int64) []BarrierAction {
	a.actions = a.actions[:0]
	if b.ID > a.current && a.begin(b, now) {
		a.start(now)
	}
	return a.actions
}

func (a *aligner) Cancel(channel int, id, now int64) []BarrierAction {
	a.actions = a.actions[:0]
	switch {
	case a.channels[channel].ended || id < a.current || id == a.current && a.phase == idle:
		return nil
	case id == a.current:
		a.abort(ReasonDeclinedCancelBarrier)
	default: // the older one that is under way can't be completed either: this abort speaks for both
		a.reset()
		a.current = id
		a.refused.take(id)
		a.actions = append(a.actions, BarrierAction{Do: AbortCheckpoint, Barrier: Barrier{ID: id}, Reason: ReasonDeclinedCancelBarrier})
	}
	return a.actions
}

func (a *aligner) End(channel int, now int64) []BarrierAction {
	a.actions = a.actions[:0]
	c := &a.channels[channel]
	if c.ended {
		return nil
	}
	c.ended = true
	a.open--
	if a.phase == idle || c.has {
		return nil
	}
	if a.opt.EndAborts {
		a.abort(ReasonDeclinedInputEnd)
		return a.actions
	}
	a.receive(c)
	a.settle(now)
	return a.actions
}

func (a *aligner) Abort(id int64, reason FailureReason, _ int64) []BarrierAction {
	a.actions = a.actions[:0]
	switch {
	case id > a.current:
		a.refused.add(id, reason)
	case id == a.current && a.phase != idle:
		a.abort(reason)
	}
	return a.actions
}

func (a *aligner) Timeout(now int64) []BarrierAction {
	a.actions = a.actions[:0]
	if a.phase != aligning || now < a.deadline {
		return nil
	}
	a.overdue, a.deadline = true, NoDeadline
	a.settle(now)
	return a.actions
}

// begin starts the alignment of a checkpoint that is newer than all before; false if it was refused.
func (a *aligner) begin(b Barrier, now int64) bool {
	if a.phase != idle {
		a.abort(ReasonDeclinedSubsumed)
	}
	a.current, a.barrier = b.ID, b
	if reason, refused := a.refused.take(b.ID); refused {
		a.actions = append(a.actions, BarrierAction{Do: AbortCheckpoint, Barrier: b, Reason: reason})
		return false
	}
	a.phase, a.began, a.overdue = aligning, now, b.Unaligned
	a.missing = a.open
	for i := range a.channels {
		if c := &a.channels[i]; c.alignedOnly && !c.ended {
			a.missingAligned++
		}
	}
	return true
}

// start settles an alignment that has just begun, or says how long to wait for the rest of it.
func (a *aligner) start(now int64) {
	a.settle(now)
	if a.phase != aligning {
		return
	}
	if a.opt.Unaligned && a.barrier.Kind == Checkpoint && !a.overdue {
		a.deadline = now + a.opt.AlignedTimeout.Nanoseconds()
	}
	a.actions = append(a.actions, BarrierAction{Do: BeginAlignment, Barrier: a.barrier, Deadline: a.deadline})
}

// receive notes that nothing of the snapshot follows on the channel.
func (a *aligner) receive(c *alignerChannel) {
	c.has = true
	a.missing--
	if c.alignedOnly {
		a.missingAligned--
	}
}

// settle does what the barriers that have come allow.
func (a *aligner) settle(now int64) {
	took := max(0, now-a.began)
	if a.phase == aligning && (a.missing == 0 || a.overdue && a.missingAligned == 0) {
		a.phase, a.deadline = recording, NoDeadline
		a.actions = append(a.actions, BarrierAction{Do: TakeSnapshot, Barrier: a.barrier, Unaligned: a.overdue, Took: took})
	}
	if a.phase == recording && a.missing == 0 {
		if a.overdue {
			a.actions = append(a.actions, BarrierAction{Do: FinishRecording, Barrier: a.barrier, Took: took})
		}
		a.reset()
	}
}

func (a *aligner) abort(reason FailureReason) {
	a.actions = append(a.actions, BarrierAction{Do: AbortCheckpoint, Barrier: a.barrier, Reason: reason})
	a.reset()
}

// reset forgets the checkpoint under way and frees all channels.
func (a *aligner) reset() {
	a.phase, a.deadline, a.overdue, a.missing, a.missingAligned = idle, NoDeadline, false, 0, 0
	for i := range a.channels {
		a.channels[i].has = false
	}
}
