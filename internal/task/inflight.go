package task

import (
	"encoding/binary"
	"fmt"
	"time"
	"unsafe"

	"github.com/flott-dev/flott/checkpoint"
	"github.com/flott-dev/flott/internal/control"
	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/host"
)

// inFlightList is the list of a snapshot, beside those of the head operator, that keeps the frames which an unaligned
// barrier has overtaken: docs/formats/snapshot.md describes its items.
const inFlightList = "in-flight"

// recording is an unaligned snapshot that was taken and whose data in flight is not complete.
type recording struct {
	part   *Part
	frames []inFlight
	err    error // there was no memory for a frame: the checkpoint is given up
}

// inFlight is a frame that lay before the barrier on a channel.
type inFlight struct {
	channel channelState
	frame   *frame.Frame
	bytes   int64 // of the process's budget
}

// Seal turns the data in flight into a list of the head's state. Whoever gets the part calls it once before reading States;
// it takes a while.
func (p *Part) Seal() error {
	if len(p.inFlight) == 0 {
		return nil
	}
	l := checkpoint.List{Name: inFlightList, Mode: checkpoint.Union}
	for len(p.inFlight) > 0 {
		x := &p.inFlight[0]
		b, err := x.encode()
		if err == nil {
			err = p.memory.Reserve(int64(len(b)))
		}
		if err != nil {
			return fmt.Errorf("save data in flight: %w", err)
		}
		p.States[0].Charge(p.memory, int64(len(b)))
		p.memory.Release(x.bytes)
		p.inFlight = p.inFlight[1:]
		l.Items = append(l.Items, b)
		p.Metrics.Persisted += int64(len(b))
	}
	p.States[0].Lists = append(p.States[0].Lists, l)
	return nil
}

func (x *inFlight) encode() ([]byte, error) {
	b := x.channel.encodeKey()
	schema := x.frame.Type.Schema().String()
	b = append(binary.AppendUvarint(b, uint64(len(schema))), schema...)
	return x.frame.Encode(b)
}

// beginRecording begins the record of an unaligned checkpoint, before its snapshot is taken.
func (t *Task) beginRecording() {
	s := &t.checkpoints.sight
	s.recording = &recording{}
	s.look = true // other barriers in sight need not wait any more
	t.recordWork()
}

// recordNext records a frame that is to be worked on, if it lies before the channel's barrier.
func (t *Task) recordNext() error {
	if t.checkpoints == nil || t.checkpoints.sight.recording == nil {
		return nil
	}
	t.recordWork()
	return t.checkRecording()
}

// recordWork records what is left of the frame at work, if it lies before the channel's barrier.
func (t *Task) recordWork() {
	w := &t.work
	if !w.on {
		return
	}
	if t.checkpoints.align.Recording(w.channel) || t.checkpoints.sight.behind == w.channel {
		t.record(w.channel, &w.all, w.pos, w.marks[w.mark:])
	}
}

// recordBehind records the frames before the barrier that is being told.
func (t *Task) recordBehind() {
	s := &t.checkpoints.sight
	channel := s.behind
	s.behind = -1
	if channel < 0 || s.recording == nil {
		return
	}
	t.gate.Ahead(channel, func(f *frame.Frame) {
		r := f.Run()
		t.record(channel, &r, 0, f.Marks)
	})
}

// record keeps a copy of the elements from position from on, with the marks that belong to the stream's time. If there is no
// memory for it, the checkpoint is given up as soon as that is possible.
func (t *Task) record(channel int, r *frame.Run, from int, marks []frame.Mark) {
	rec := t.checkpoints.sight.recording
	if rec.err != nil {
		return
	}
	n, timed := r.N-from, 0
	for _, m := range marks {
		if ofTime(m.Kind) {
			timed++
		}
	}
	if n == 0 && timed == 0 {
		return
	}
	x := inFlight{channel: t.channelKey(channel), bytes: recordedBytes(r.Type, n, timed)}
	if err := t.d.Memory.Reserve(x.bytes); err != nil {
		rec.err = fmt.Errorf("keep data in flight: %w", err)
		rec.drop(t.d.Memory)
		return
	}
	x.frame = frame.New(r.Type, max(1, n))
	if n > 0 {
		x.frame.Append(r, from, r.N)
	}
	for _, m := range marks {
		if ofTime(m.Kind) {
			m.Pos -= int32(from)
			x.frame.Marks = append(x.frame.Marks, m)
		}
	}
	rec.frames = append(rec.frames, x)
}

// ofTime reports whether a mark belongs to the stream's time.
func ofTime(k frame.MarkKind) bool {
	return k == frame.Watermark || k == frame.Idle || k == frame.Active
}

// recordedBytes is what a frame of n elements takes at least.
func recordedBytes(typ *frame.Type, n, marks int) int64 {
	return int64(n)*int64(typ.Size+8) + int64(marks)*int64(unsafe.Sizeof(frame.Mark{}))
}

// drop gives up the frames that were recorded.
func (r *recording) drop(m *host.Memory) {
	for _, x := range r.frames {
		m.Release(x.bytes)
	}
	r.frames = nil
}

// checkRecording gives up a checkpoint for whose data in flight there was no memory.
func (t *Task) checkRecording() error {
	s := &t.checkpoints.sight
	if s.recording == nil || s.recording.err == nil {
		return nil
	}
	return t.giveUp(s.recording.part.Barrier.ID, control.ReasonDeclined, s.recording.err)
}

// giveUp declines a checkpoint that the alignment has let the task take.
func (t *Task) giveUp(id int64, reason control.FailureReason, err error) error {
	t.checkpoints.align.Abort(id, reason, t.d.Clock.Nanos()) // what it would answer is what follows
	t.checkpoints.Declined(id, reason, err)
	return t.abandon(id)
}

// finishRecording hands over the part of an unaligned checkpoint.
func (t *Task) finishRecording(a control.BarrierAction) error {
	t.recordBehind()
	s := &t.checkpoints.sight
	if s.recording.err != nil {
		return t.checkRecording()
	}
	p := s.recording.part
	p.inFlight, p.memory = s.recording.frames, t.d.Memory
	p.Metrics.Alignment, p.Metrics.Unaligned = time.Duration(a.Took), true
	p.Metrics.Processed = t.checkpoints.endAlignment(a)
	s.recording = nil
	t.checkpoints.Took(p)
	return nil
}

// dropRecording gives up an unaligned checkpoint that is being recorded.
func (t *Task) dropRecording() {
	if t.checkpoints == nil || t.checkpoints.sight.recording == nil {
		return
	}
	rec := t.checkpoints.sight.recording
	t.checkpoints.sight.recording = nil
	rec.drop(t.d.Memory)
	if rec.part != nil { // otherwise taking it has failed
		t.checkpoints.drop(rec.part)
	}
}
