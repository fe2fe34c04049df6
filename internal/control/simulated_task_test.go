package control

import (
	"errors"
	"fmt"
	"slices"
)

// simTask is one execution of a subtask.
type simTask struct {
	w         *world
	id        TaskID
	attempt   int
	alive     bool
	started   bool
	finished  bool
	alignment Alignment
	open      int // channels that have not ended
	busy      int // answers that have not been sent
	ending    bool
	arrives   int64              // when the last message to the coordinator does
	lanes     map[TaskID]int64   // when the last item on the channel to that task arrives
	waiting   map[int][]func()   // by channel: what came while it was blocked
	base      []Handle           // what may be reused
	baseID    int64              // of the checkpoint that has it
	given     map[int64][]Handle // by checkpoint: what was acknowledged
}

func newSimTask(w *world, id TaskID, attempt int) *simTask {
	channels := [3]int{0, 1, 2}[id.Vertex]
	o := AlignmentOptions{Channels: channels, Unaligned: w.cfg.Unaligned, AlignedTimeout: w.cfg.AlignedTimeout}
	return &simTask{
		w: w, id: id, attempt: attempt, alive: true, open: channels, lanes: map[TaskID]int64{}, waiting: map[int][]func(){},
		given: map[int64][]Handle{}, alignment: NewAlignment(o),
	}
}

func (s *simTask) ref() TaskRef { return TaskRef{s.id, s.attempt} }

func (s *simTask) running() bool { return s.alive && s.started }

// trigger takes the coordinator's trigger.
func (s *simTask) trigger(b Barrier) {
	if !s.ending { // a source that has ended takes none any more
		s.act(s.alignment.Trigger(b, s.w.now))
	}
}

func (s *simTask) notified(checkpoint int64, kind SnapshotKind) {
	if kind == Checkpoint && checkpoint > s.baseID {
		s.base, s.baseID = s.given[checkpoint], checkpoint
	}
}

// act does what the alignment says.
func (s *simTask) act(actions []BarrierAction) {
	for _, a := range slices.Clone(actions) {
		switch a.Do {
		case BeginAlignment:
			if a.Deadline != NoDeadline {
				s.w.after(a.Deadline-s.w.now, func() {
					if s.running() {
						s.act(s.alignment.Timeout(s.w.now))
					}
				})
			}
		case TakeSnapshot:
			if a.Unaligned {
				s.w.counts["unaligned"]++
				a.Barrier.Unaligned = true
			}
			s.snapshot(a.Barrier)
		case AbortCheckpoint:
			s.answer(func() {
				s.w.step(Declined{Job: "job", Task: s.ref(), Checkpoint: a.Barrier.ID, Reason: a.Reason})
			})
			s.send(func(to *simTask, channel int) { to.act(to.alignment.Cancel(channel, a.Barrier.ID, s.w.now)) })
		}
	}
	s.resume()
}

// snapshot writes the task's part, which reuses some of its base, and passes the barrier on.
func (s *simTask) snapshot(b Barrier) {
	s.send(func(to *simTask, channel int) { to.act(to.alignment.Barrier(channel, b, s.w.now)) })
	ack := Acknowledged{Job: "job", Task: s.ref(), Checkpoint: b.ID}
	for i := range 1 + s.w.rng.IntN(2) {
		h := Handle(fmt.Sprintf("%d/%v/%d/%d", b.ID, s.id, s.attempt, i))
		s.w.disk[h] = true
		ack.New = append(ack.New, h)
	}
	if !b.Full && b.Kind == Checkpoint {
		for _, h := range s.base { // what was changed since is dropped, and not taken up again
			if s.w.rng.IntN(4) > 0 {
				ack.Reused = append(ack.Reused, h)
			}
		}
		s.base = ack.Reused
		s.w.counts["reused"] += len(ack.Reused)
	}
	s.given[b.ID] = slices.Concat(ack.New, ack.Reused)
	switch s.w.rng.IntN(80) {
	case 0:
		for _, h := range ack.New { // the task cleans up itself
			s.w.disk[h] = false
		}
		s.answer(func() { s.w.step(Declined{Job: "job", Task: s.ref(), Checkpoint: b.ID, Err: errors.New("disk full")}) })
	case 1:
		for _, h := range ack.New {
			s.w.lost[h] = true
		}
	case 2:
		s.answer(func() { s.w.step(ack) })
		s.answer(func() { s.w.step(ack) }) // once more
	default:
		s.answer(func() { s.w.step(ack) })
	}
}

// answer sends to the coordinator, in order, also if the task dies meanwhile.
func (s *simTask) answer(message func()) {
	s.busy++
	s.arrives = max(s.arrives, s.w.now+s.w.soon())
	s.w.after(s.arrives-s.w.now, func() {
		s.busy--
		message()
		s.mayFinish()
	})
}

// send sends something to all tasks downstream, in order on each channel.
func (s *simTask) send(item func(to *simTask, channel int)) {
	var to []TaskID
	switch s.id.Vertex {
	case 0:
		to = []TaskID{{1, s.id.Subtask}}
	case 1:
		to = []TaskID{{2, 0}, {2, 1}}
	}
	for _, id := range to {
		channel := 0
		if id.Vertex == 2 {
			channel = s.id.Subtask
		}
		target := s.w.tasks[id]
		s.lanes[id] = max(s.lanes[id], s.w.now+s.w.soon())
		s.w.after(s.lanes[id]-s.w.now, func() { target.take(channel, func() { item(target, channel) }) })
	}
}

// take takes an item of a channel, now or when the channel is free again. What comes before the task has started waits.
func (s *simTask) take(channel int, item func()) {
	if !s.alive {
		return
	}
	if !s.started || s.alignment.Blocked(channel) || len(s.waiting[channel]) > 0 {
		s.waiting[channel] = append(s.waiting[channel], item)
		if !s.started {
			s.w.after(simMilli, s.resume)
		}
		return
	}
	item()
}

// resume takes what has waited.
func (s *simTask) resume() {
	if s.alive && !s.started {
		s.w.after(simMilli, s.resume)
		return
	}
	for channel := range 2 {
		for s.alive && len(s.waiting[channel]) > 0 && !s.alignment.Blocked(channel) {
			item := s.waiting[channel][0]
			s.waiting[channel] = s.waiting[channel][1:]
			item()
		}
	}
}

// inputEnded: there is nothing to do any more but to answer.
func (s *simTask) inputEnded() {
	s.ending = true
	s.mayFinish()
}

// mayFinish finishes a task whose input has ended and whose answers are sent.
func (s *simTask) mayFinish() {
	if !s.ending || s.busy > 0 || !s.running() || s.finished {
		return
	}
	s.finished = true
	s.alive = false
	s.send(func(to *simTask, channel int) {
		to.open--
		to.act(to.alignment.End(channel, s.w.now))
		if to.open == 0 {
			to.inputEnded()
		}
	})
	if !s.w.over && !s.w.down && s.attempt == s.w.attempt {
		s.w.step(TaskChanged{Task: s.ref(), State: TaskFinished})
	}
}
