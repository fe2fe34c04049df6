package watermarks

import (
	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/watermark"
)

// Extracting drives Flink's old timestamp extractors: each element is asked for its timestamp, then for a watermark,
// before the next one is. Upstream's watermarks are replaced, but for the last.
type Extracting struct {
	operator.Unary
	current func() int64
	extract func(r *frame.Run, i int, current int64) (ms, watermark int64)
	emitted int64
	run     frame.Run
	part    frame.Run
	times   []int64
	ticks   *operator.Callback
}

// NewExtracting returns the operator for elements of type t: extract gives element i of a run its timestamp and the
// watermark that follows it, current is asked periodically; frame.MinWatermark is none.
func NewExtracting(t *frame.Type, current func() int64, extract func(r *frame.Run, i int, current int64) (ms, watermark int64)) *Extracting {
	return &Extracting{
		Unary: operator.Unary{In: t, Out: operator.NewOutput(t)}, current: current, extract: extract,
		emitted: frame.MinWatermark,
	}
}

// Inputs implements operator.Operator.
func (o *Extracting) Inputs() []operator.Input { return []operator.Input{o} }

// Open implements operator.Operator.
func (o *Extracting) Open(rt *operator.Runtime) error {
	err := o.Unary.Open(rt)
	o.schedule()
	return err
}

// Close implements operator.Operator.
func (o *Extracting) Close() error {
	o.stop()
	return nil
}

func (o *Extracting) stop() {
	if o.ticks != nil {
		o.RT.Timers.Cancel(o.ticks)
		o.ticks = nil
	}
}

func (o *Extracting) schedule() {
	if o.RT.AutoWatermarkInterval > 0 {
		o.ticks = o.RT.Timers.Schedule(watermark.Add(o.RT.Now, o.RT.AutoWatermarkInterval), o.tick)
	}
}

func (o *Extracting) tick(int64) error {
	if err := o.emit(o.current()); err != nil {
		return err
	}
	o.schedule()
	return nil
}

// Push implements operator.Input.
func (o *Extracting) Push(r *frame.Run) error {
	if cap(o.times) < r.N {
		o.times = make([]int64, max(r.N, frame.DefaultLen))
	}
	o.run = *r
	o.run.Times = o.times[:r.N]
	from := 0
	at := r.Hand()
	for i := range r.N {
		*at = i
		ms, mark := o.extract(r, i, r.Time(i))
		o.run.Times[i] = ms
		if mark <= o.emitted {
			continue
		}
		o.part = o.run.Slice(from, i+1)
		if err := o.Out.Push(&o.part); err != nil {
			return err
		}
		if err := o.emit(mark); err != nil {
			return err
		}
		from = i + 1
	}
	*at = frame.Passed
	if from == r.N {
		return nil
	}
	o.part = o.run.Slice(from, r.N)
	return o.Out.Push(&o.part)
}

// Mark implements operator.Input.
func (o *Extracting) Mark(m frame.Mark) error {
	switch m.Kind {
	case frame.Watermark:
		if m.Value == frame.MaxWatermark {
			return o.emit(m.Value)
		}
		return nil
	case frame.End:
		o.stop()
	}
	return o.Out.Mark(m)
}

func (o *Extracting) emit(ms int64) error {
	if ms <= o.emitted {
		return nil
	}
	o.emitted = ms
	return o.Out.Mark(frame.Mark{Kind: frame.Watermark, Value: ms})
}
