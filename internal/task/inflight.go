package task

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/flott-dev/flott/checkpoint"
	"github.com/flott-dev/flott/internal/control"
	"github.com/flott-dev/flott/internal/frame"
)

// inFlightList is the list of a snapshot, beside those of the head operator, that keeps the frames which an unaligned
// barrier has overtaken: docs/formats/snapshot.md describes its items.
const inFlightList = "in-flight"

// recording is an unaligned snapshot that was taken and whose data in flight is not complete.
type recording struct {
	part   *Part
	frames []inFlight
}

// inFlight is a frame that lay before the barrier on a channel.
type inFlight struct {
	channel channelState
	frame   *frame.Frame
}

// Seal turns the data in flight into a list of the head's state. Whoever gets the part calls it once before reading States;
// it takes a while.
func (p *Part) Seal() error {
	if len(p.inFlight) == 0 {
		return nil
	}
	l := checkpoint.List{Name: inFlightList, Mode: checkpoint.Union}
	for _, x := range p.inFlight {
		b, err := x.encode()
		if err != nil {
			return fmt.Errorf("save data in flight: %w", err)
		}
		l.Items = append(l.Items, b)
		p.Metrics.Persisted += int64(len(b))
	}
	p.inFlight = nil
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

// recordWork records what is left of the frame at work, if it lies before the channel's barrier.
func (t *Task) recordWork() {
	if t.checkpoints == nil || t.checkpoints.sight.recording == nil || !t.work.on {
		return
	}
	w := &t.work
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

// record keeps a copy of the elements from position from on, with the marks that belong to the stream's time.
func (t *Task) record(channel int, r *frame.Run, from int, marks []frame.Mark) {
	f := frame.New(r.Type, max(1, r.N-from))
	if from < r.N {
		f.Append(r, from, r.N)
	}
	for _, m := range marks {
		switch m.Kind {
		case frame.Watermark, frame.Idle, frame.Active:
			m.Pos -= int32(from)
			f.Marks = append(f.Marks, m)
		}
	}
	if f.Empty() {
		return
	}
	rec := t.checkpoints.sight.recording
	rec.frames = append(rec.frames, inFlight{channel: t.channelKey(channel), frame: f})
}

// finishRecording hands over the part of an unaligned checkpoint.
func (t *Task) finishRecording(a control.BarrierAction) {
	t.recordBehind()
	s := &t.checkpoints.sight
	p := s.recording.part
	p.inFlight = s.recording.frames
	p.Metrics.Alignment, p.Metrics.Unaligned = time.Duration(a.Took), true
	s.recording = nil
	t.checkpoints.Took(p)
}

// dropRecording gives up an unaligned checkpoint that is being recorded.
func (t *Task) dropRecording() {
	if t.checkpoints == nil || t.checkpoints.sight.recording == nil {
		return
	}
	p := t.checkpoints.sight.recording.part
	t.checkpoints.sight.recording = nil
	if p == nil { // taking it has failed
		return
	}
	p.Release()
	if t.checkpoints.Dropped != nil {
		t.checkpoints.Dropped(p.Barrier.ID)
	}
}
