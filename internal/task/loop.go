package task

import (
	"math"

	"github.com/flott-dev/flott/internal/exchange"
	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/host"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/internal/operator/valve"
)

// loop works until the input has ended.
func (t *Task) loop() error {
	polled := false
	for {
		if t.stopped.Load() {
			return exchange.ErrCancelled
		}
		before, waits := t.scope.Now, t.waiter.waits
		if err := t.serve(); err != nil {
			return err
		}
		if over, err := t.halted(); over || err != nil {
			return err
		}
		if polled {
			t.adapt(t.scope.Now-before, t.scope.RunLen)
		}
		if !t.hasRoom() {
			polled = false
			t.waitForRoom()
			continue
		}
		worked, done, err := t.step()
		if err != nil {
			return err
		}
		if done {
			return t.finish()
		}
		polled = worked && (t.source != nil || t.looper != nil || t.selecting != nil)
		if worked {
			t.waiter.Yield(t.scope.Now)
			continue
		}
		if err := t.flushDry(); err != nil {
			return err
		}
		if t.waiter.waits == waits { // else a wake-up may be used up that was meant for what was looked at before
			t.waiter.Wait(host.Idle, t.deadline())
		}
	}
}

// serve renews the task's now, opens letters, looks for barriers that overtake and runs due timers, which emit, so that they
// wait for room.
func (t *Task) serve() error {
	t.scope.Now = t.d.Clock.Millis()
	for _, letter := range t.d.Mailbox.Take() {
		if err := letter(); err != nil {
			return err
		}
	}
	if err := t.lookAhead(); err != nil {
		return err
	}
	if c := t.checkpoints; c != nil && c.halt != 0 || !t.hasRoom() {
		return nil
	}
	return t.scope.Timers.Run(t.scope.Now - 1)
}

// deadline is when the task must look at its timers, or at barriers that wait, again.
func (t *Task) deadline() int64 {
	at, ok := t.scope.Timers.Next()
	if !ok || at == math.MaxInt64 {
		return t.barrierDeadline()
	}
	return min(at+1, t.barrierDeadline())
}

// step does one portion of work: a poll of the source, a portion of an iteration's feedback, or one frame of input.
func (t *Task) step() (worked, done bool, err error) {
	t.scope.At = t.rts[0]
	if t.source != nil {
		status, err := t.source.Poll()
		if err == nil && status == operator.Done {
			return true, true, t.endSource()
		}
		return status == operator.More, false, err
	}
	if t.looper != nil {
		if status, err := t.looper.Work(); err != nil || status != operator.Nothing {
			return true, status == operator.Done, err
		}
	}
	if t.selecting != nil {
		return t.stepSelecting()
	}
	f, c := t.gate.Poll()
	if f == nil {
		return false, false, nil
	}
	if err := t.frame(f, c); err != nil {
		return true, false, err
	}
	t.gate.Return(f, c)
	return true, t.looper == nil && t.allEnded(), nil
}

func (t *Task) allEnded() bool {
	for _, in := range t.inputs {
		if in.open > 0 {
			return false
		}
	}
	return true
}

// endSource ends a source's stream: the last watermark, then the end.
func (t *Task) endSource() error {
	if t.d.Ctx.Err() != nil { // neither end-of-input nor last watermark when the task is cancelled
		return exchange.ErrCancelled
	}
	out := t.ops[0].Output("")
	if f, ok := t.ops[0].(operator.Finisher); ok {
		if err := f.Finish(); err != nil {
			return err
		}
	}
	if err := out.Mark(frame.Mark{Kind: frame.Watermark, Value: frame.MaxWatermark}); err != nil {
		return err
	}
	return out.Mark(frame.Mark{Kind: frame.End})
}

// work is the frame that is being worked on, and how far that has come.
type work struct {
	all     frame.Run
	marks   []frame.Mark
	channel int
	pos     int // of the next element
	mark    int // index of the next mark
	on      bool
}

// frame cuts a frame at its marks into runs.
func (t *Task) frame(f *frame.Frame, channel int) error {
	to := t.inputs[t.d.Inputs[channel].Input]
	w := &t.work
	*w = work{all: f.Run(), marks: f.Marks, channel: channel, on: true}
	w.all.Shared = f.Shared()
	if err := t.recordNext(); err != nil {
		return err
	}
	for i := range f.Marks {
		m := f.Marks[i]
		if err := t.runs(to, int(m.Pos)); err != nil {
			return err
		}
		if err := t.room(m.Kind); err != nil {
			return err
		}
		w.mark = i + 1
		if err := t.mark(to, channel, m); err != nil {
			return err
		}
	}
	err := t.runs(to, w.all.N)
	*w = work{}
	return err
}

// runs hands the elements before position to to the head in runs that take about a millisecond each; between them letters
// are opened and now is renewed.
func (t *Task) runs(in *input, to int) error {
	w := &t.work
	for w.pos < to {
		if err := t.room(frame.Watermark); err != nil {
			return err
		}
		n := min(t.scope.RunLen, to-w.pos)
		t.run = w.all.Slice(w.pos, w.pos+n)
		t.scope.At, t.scope.Run = in.at, &t.run
		in.at.In.Add(int64(n))
		if t.checkpoints != nil {
			t.checkpoints.aligning.count(&t.run)
		}
		if err := in.to.Push(&t.run); err != nil {
			return err
		}
		t.scope.Run = nil
		w.pos += n
		if w.pos < to || n == t.scope.RunLen {
			if err := t.between(n); err != nil {
				return err
			}
		}
	}
	return nil
}

// between renews now after a run of n elements and adapts the length of runs.
func (t *Task) between(n int) error {
	before := t.scope.Now
	if err := t.serve(); err != nil {
		return err
	}
	if t.stopped.Load() {
		return exchange.ErrCancelled
	}
	t.adapt(t.scope.Now-before, n)
	return nil
}

// adapt changes the length of runs after one of n elements that took so many ms.
func (t *Task) adapt(took int64, n int) {
	runLen := &t.scope.RunLen
	switch {
	case took > 2:
		*runLen = max(1, *runLen/2)
	case took == 0 && n >= *runLen && *runLen < frame.DefaultLen:
		*runLen = min(frame.DefaultLen, *runLen+*runLen/4+1)
	}
	if took > 0 || t.held != 0 { // else runs are short as nothing is known yet
		t.limitWaiting()
	}
}

// limitWaiting has the channels hold what a task of this speed may have waiting.
func (t *Task) limitWaiting() {
	n := heldFrames(t.scope.RunLen, len(t.d.Inputs))
	if n == t.held {
		return
	}
	t.held = n
	for i := range t.d.Inputs {
		t.d.Inputs[i].Channel.Hold(n)
	}
}

// waitingWork is for how many ms the frames that wait for a task may keep it busy: a barrier that is not to overtake them waits for as
// long.
const waitingWork = 100

// heldFrames is how many frames each of the channels of a task may hold that handles so many elements in a ms.
func heldFrames(perMs, channels int) int {
	return min(max(waitingWork*perMs/(frame.DefaultLen*max(channels, 1)), exchange.LeastDepth), exchange.Depth)
}

// mark takes a mark of one channel through the input's valve.
func (t *Task) mark(in *input, channel int, m frame.Mark) error {
	t.scope.At = in.at
	ch := t.local[channel]
	switch m.Kind {
	case frame.Watermark, frame.Idle, frame.Active:
		a := in.valve.Step(ch, m)
		in.time.note(in.valve, ch)
		return t.act(in, a)
	case frame.Barrier, frame.CancelBarrier:
		if t.checkpoints != nil {
			return t.barrier(channel, m)
		}
	case frame.End:
		t.gate.End(channel)
		if over, err := t.endBarrier(channel, m); over || err != nil {
			return err
		}
		in.open--
		if err := t.act(in, in.valve.Step(ch, m)); err != nil { // the end of the last channel is the end of the input
			return err
		}
		return t.passProbes()
	case frame.Probe:
		t.probe(in, channel, m.Value)
		return t.passProbes()
	case frame.LatencyMarker:
		in.at.RecordLatency(m)
	}
	return in.to.Mark(m)
}

// act carries out what a valve answered.
func (t *Task) act(in *input, a valve.Actions) error {
	for _, m := range a.Marks() {
		if err := in.to.Mark(m); err != nil {
			return err
		}
	}
	return nil
}

// flush sends everything that is open.
func (t *Task) flush() error {
	for _, w := range t.writers {
		if err := w.Flush(); err != nil {
			return err
		}
	}
	return nil
}

// flushDry sends what is open because the input has run dry, except where the buffer timeout says "only when full".
func (t *Task) flushDry() error {
	for i, w := range t.writers {
		if t.timeout[i] < 0 || !w.Pending() {
			continue
		}
		if err := w.Flush(); err != nil {
			return err
		}
	}
	return nil
}
