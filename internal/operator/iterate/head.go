package iterate

import (
	"fmt"

	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/operator"
)

// head lets the input and what is fed back into the body. It implements operator.Looper: feedback goes before input, and
// the task ends when the loop does.
type head struct {
	operator.Unary
	loop  *Loop
	back  *operator.Output // where feedback goes: the main output, or one of its own
	side  operator.Output
	typ   *frame.Type // of feedback
	lane  *lane
	probe []int64 // rounds whose probes must be sent
	free  []int64 // tokens that were released

	now   item      // being emitted
	run   frame.Run // what is left of it
	part  frame.Run
	col   *frame.Column // for items from files
	bytes []byte
	times []int64

	barrier int64  // the last one, before its snapshot
	halted  int64  // the savepoint that stops the job; 0: none
	logs    []*log // of snapshots whose barriers are in the loop
	replay  []kept // before all else that comes back

	fed    int64 // elements fed back so far
	atSend int64 // fed when the last probe was sent

	sawMax, sawEnd bool
	phase          phase
	outer          map[int64]bool // probes of outer loops that wait

	quiet    int64 // since when nothing was fed back, ms
	silent   bool  // that was said
	watching *operator.Callback
}

// phase is how far the end of the loop has come.
type phase uint8

const (
	open     phase = iota // the input goes on
	maxWaits              // the input's last watermark, or its end without one, waits for the loop
	maxSent               // it went on; the input has not ended
	endWaits              // the input's end waits for the loop
	over                  // it went on
)

// Head returns the driver of a loop's head, from elements of type in; feedback is the type of what is fed back, the same
// one or another.
func Head(l *Loop, in, feedback *frame.Type) operator.Operator {
	h := &head{Unary: operator.Unary{In: in, Out: operator.NewOutput(in)}, loop: l, typ: feedback, outer: map[int64]bool{}}
	h.back = &h.Out
	if feedback != in {
		h.side = operator.NewOutput(feedback)
		h.back = &h.side
	}
	return h
}

// Inputs implements operator.Operator.
func (h *head) Inputs() []operator.Input { return []operator.Input{h} }

// Output implements operator.Operator.
func (h *head) Output(tag string) *operator.Output {
	if tag == FeedbackTag && h.back == &h.side {
		return h.back
	}
	return h.Unary.Output(tag)
}

// Open implements operator.Operator.
func (h *head) Open(rt *operator.Runtime) error {
	if err := h.Unary.Open(rt); err != nil {
		return err
	}
	h.back.Bind(rt)
	h.col = frame.NewColumn(h.typ, h.typ.FrameLen(frame.Bytes))
	h.lane = h.loop.enter(rt, h.typ)
	h.lane.listen(rt.Waiter)
	return h.restore()
}

// Close implements operator.Operator.
func (h *head) Close() error {
	if h.lane == nil {
		return nil
	}
	h.lane.leave()
	if h.watching != nil {
		h.RT.Timers.Cancel(h.watching)
	}
	for _, l := range h.logs {
		l.drop(nil)
	}
	for _, k := range h.replay {
		h.RT.Memory.Release(k.bytes)
	}
	h.logs, h.replay = nil, nil
	if h.now.seg != nil || h.now.frame != nil { // was being emitted
		if err := h.lane.done(&h.now); err != nil {
			return err
		}
	}
	_, err := h.lane.end()
	return err
}

// Push implements operator.Input.
func (h *head) Push(r *frame.Run) error { return h.Out.Push(r) }

// Mark implements operator.Input: what would end the body's time or input, or an outer loop's probe, waits until the loop
// is empty.
func (h *head) Mark(m frame.Mark) error {
	switch m.Kind {
	case frame.Barrier:
		h.barrier = m.Value
	case frame.Watermark:
		if m.Value == frame.MaxWatermark {
			h.sawMax = true
			h.wait(maxWaits, tokenWatermark)
			return nil
		}
	case frame.End:
		h.sawEnd = true
		switch h.phase {
		case open: // all heads must go the same way, also without that watermark
			h.wait(maxWaits, tokenWatermark)
		case maxSent:
			h.wait(endWaits, tokenEnd)
		}
		return nil
	case frame.Probe:
		if !h.loop.own(m) {
			h.outer[m.Value] = true
			h.tell(eventHold, m.Value)
		}
		return nil
	}
	return h.both(m)
}

// wait lets the end of the input wait for the loop.
func (h *head) wait(p phase, token int64) {
	h.phase = p
	h.tell(eventHold, token)
	if h.loop.MaxWait > 0 && h.watching == nil {
		h.quiet = h.RT.Now
		h.watch()
	}
}

func (h *head) tell(kind byte, n int64) { h.RT.ToCoordinator(encodeEvent(kind, n)) }

// both sends a mark to all that the head feeds.
func (h *head) both(m frame.Mark) error {
	m.Pos = 0
	if err := h.Out.Mark(m); err != nil {
		return err
	}
	if h.back == &h.Out {
		return nil
	}
	return h.back.Mark(m)
}

// HandleEvent implements operator.EventReceiver: the work is done in Work, which may emit.
func (h *head) HandleEvent(event []byte) error {
	kind, n, err := decodeEvent(event)
	if err != nil {
		return err
	}
	switch kind {
	case eventProbe:
		h.probe = append(h.probe, n)
	case eventRelease:
		h.free = append(h.free, n)
	default:
		return fmt.Errorf("handle an event of an iteration: unknown kind %d", kind)
	}
	return nil
}

// Work implements operator.Looper.
func (h *head) Work() (operator.Status, error) {
	switch {
	case h.phase == over:
		return operator.Done, nil
	case h.halted != 0:
		return h.gather()
	case h.run.N > 0: // counted as fed back, so it goes before a probe
		return operator.More, h.emit()
	case len(h.replay) > 0:
		return operator.More, h.again()
	case len(h.free) > 0:
		token := h.free[0]
		h.free = h.free[1:]
		return operator.More, h.release(token)
	case len(h.probe) > 0:
		round := h.probe[0]
		h.probe = h.probe[1:]
		h.atSend = h.fed
		return operator.More, h.both(frame.Mark{Kind: frame.Probe, Value: h.loop.probe(round)})
	}
	it, ok := h.lane.take()
	switch {
	case !ok:
		return operator.Nothing, nil
	case it.barrier != 0:
		h.closeLog(it.barrier)
		return operator.More, nil
	case it.frame == nil && it.seg == nil:
		h.returned(it.probe)
		return operator.More, nil
	}
	return operator.More, h.begin(it)
}

// release lets a mark go on that has waited.
func (h *head) release(token int64) error {
	switch token {
	case tokenWatermark:
		if h.sawMax {
			if err := h.both(frame.Mark{Kind: frame.Watermark, Value: frame.MaxWatermark}); err != nil {
				return err
			}
		}
		// The watermark may have fired timers whose elements were fed back: the end waits once more.
		if h.phase = maxSent; h.sawEnd {
			h.wait(endWaits, tokenEnd)
		}
		return nil
	case tokenEnd:
		return h.finish()
	}
	if !h.outer[token] {
		return fmt.Errorf("release a mark of an iteration: none waits for %d", token)
	}
	delete(h.outer, token)
	return h.both(frame.Mark{Kind: frame.Probe, Value: token})
}

// finish ends the loop. Only a loop that has given up still holds elements.
func (h *head) finish() error {
	dropped, err := h.lane.end()
	if err != nil {
		return err
	}
	drop(h.RT, dropped)
	h.phase = over
	return h.both(frame.Mark{Kind: frame.End})
}

// returned takes a probe that is back.
func (h *head) returned(value int64) {
	kind := eventClean
	if h.fed != h.atSend {
		kind = eventDirty
	}
	h.tell(kind, value&(1<<probeBits-1))
}

// begin emits the first run of an item.
func (h *head) begin(it item) error {
	h.now = it
	var n int
	if it.frame != nil {
		h.run = it.frame.Run()
		n = it.frame.Len()
	} else {
		var err error
		if h.run, h.bytes, h.times, err = h.lane.spool.read(&h.now, h.col, h.bytes, h.times); err != nil {
			return err
		}
		n = it.n
	}
	if err := h.log(&h.run); err != nil {
		return err
	}
	return h.beginRun(n)
}

// beginRun begins to emit the run at hand.
func (h *head) beginRun(n int) error {
	h.fed += int64(n)
	h.quiet = h.RT.Now
	if h.silent {
		h.silent = false
		h.tell(eventResumed, 0)
	}
	return h.emit()
}

// emit sends a run of what is at hand.
func (h *head) emit() error {
	n := min(h.run.N, h.RT.RunLen)
	h.part = h.run.Slice(0, n)
	if n < h.run.N {
		h.run = h.run.Slice(n, h.run.N)
		return h.back.Push(&h.part)
	}
	if err := h.back.Push(&h.part); err != nil {
		return err
	}
	it := h.now
	h.now, h.run = item{}, frame.Run{}
	h.col.Reset()
	if it.frame == nil && it.seg == nil {
		return nil // of a snapshot
	}
	return h.lane.done(&it)
}

// watch looks again when the maximum wait could be over.
func (h *head) watch() {
	h.watching = h.RT.Timers.Schedule(h.quiet+h.loop.MaxWait-1, h.look)
}

func (h *head) look(int64) error {
	h.watching = nil
	if h.phase == over {
		return nil
	}
	if h.RT.Now-h.quiet < h.loop.MaxWait {
		h.watch()
		return nil
	}
	if !h.silent {
		h.silent = true
		h.tell(eventSilent, 0)
	}
	h.watching = h.RT.Timers.Schedule(h.RT.Now+h.loop.MaxWait-1, h.look)
	return nil
}
