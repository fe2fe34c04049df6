// Package watermarks drives watermark strategies: the operator behind AssignTimestampsAndWatermarks, which sources chain
// to their output as well, the group object through which aligned sources wait for each other, and the contexts of
// function sources (manual watermarks, ingestion time) as a pure step machine. It sets timestamps and makes watermark and
// idleness marks; it never drops, reorders or holds back elements, and starts no goroutine. Graph nodes hold its
// constructors; the subtask calls the operator like any other.
//
// # What the operator does
//
// Timestamps of a run are written into its own column, or into scratch if the run has none or is shared. Built-in rules
// look at a run's timestamps at once; generators and punctuated functions of the user are asked element by element, and a
// run is cut after an element whose watermark grows. Periodic watermarks come every auto watermark interval of processing
// time, also without elements. Watermarks and idleness from upstream are swallowed, frame.MaxWatermark excepted: it means
// that no element follows.
//
// # Idleness
//
// A subtask is idle once it had no element for the strategy's idleness. The time in which its task was kept from reading
// (held up by consumers downstream, or paused by alignment) does not count: after elements were seen, idleness needs a
// second look at least one millisecond of the clock later, by which the task has asked for input again (FLINK-35886).
// Before the mark goes out, the strategy gives its latest watermark.
package watermarks

import (
	"fmt"
	"log/slog"

	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/watermark"
)

// Operator assigns timestamps and makes watermarks. Only the two functions in it know the element type.
type Operator struct {
	// assign writes the timestamps of a run's elements to dst; nil: elements keep theirs.
	assign func(r *frame.Run, dst []int64)
	// ask calls the user's generator for the elements from position from until it has emitted something, and returns the
	// position behind the last one asked for; nil: a built-in rule, or none.
	ask func(r *frame.Run, from int) int
	// askPeriodic calls the user's generator; nil: there is none.
	askPeriodic func()

	emitter  *watermark.Emitter   // what the user's generator emits
	bounded  *bounded             // the built-in rule; nil: another
	idleness int64                // ms; 0: never idle
	member   *Member              // alignment; nil: none
	paused   func(now int64) bool // whether alignment keeps the source from being read; nil: never

	rt      *operator.Runtime
	out     operator.Output
	run     frame.Run // scratch: a run handed through an interface must not be a local, it would be allocated
	part    frame.Run
	scratch []int64

	emitted int64 // the latest watermark that went out
	isIdle  bool  // what was said downstream
	quiet   bool  // idle by the clock
	resting bool  // idle by the generator's word
	seen    bool  // elements came since the last look
	seenAt  int64
	ticks   *operator.Callback
	looks   *operator.Callback
	ended   bool
}

// New returns the operator of a strategy for elements of type t, which is T's handle. member is its place in the
// strategy's alignment group, nil without alignment.
func New[T any](t *frame.Type, s watermark.Strategy[T], member *Member) *Operator {
	spec := s.Spec()
	o := &Operator{
		assign:   assigner(&spec),
		idleness: spec.Idleness,
		member:   member,
		out:      operator.NewOutput(t),
		emitter:  watermark.NewEmitter(),
		emitted:  frame.MinWatermark,
	}
	if member != nil {
		o.paused = member.Paused
	}
	switch spec.Kind {
	case watermark.Bounded:
		o.bounded = newBounded(spec.Distance, spec.Ascending, spec.Violation)
	case watermark.PerElement:
		o.ask = perElement(o.emitter, spec.PerElement)
	case watermark.Custom:
		g := spec.Generator()
		o.ask = perEvent(o.emitter, g)
		o.askPeriodic = func() { g.OnPeriodic(o.emitter) }
	}
	return o
}

// Inputs implements operator.Operator.
func (o *Operator) Inputs() []operator.Input { return []operator.Input{o} }

// Output implements operator.Operator: there is the main output only.
func (o *Operator) Output(tag string) *operator.Output {
	if tag != "" {
		return nil
	}
	return &o.out
}

// Type implements operator.Input.
func (o *Operator) Type() *frame.Type { return o.out.Type }

// Open implements operator.Operator: the clocks of periodic watermarks and idleness start.
func (o *Operator) Open(rt *operator.Runtime) error {
	o.rt = rt
	o.out.Bind(rt)
	if rt.AutoWatermarkInterval > 0 && (o.bounded != nil || o.askPeriodic != nil) {
		o.ticks = rt.Timers.Schedule(watermark.Add(rt.Now, rt.AutoWatermarkInterval), o.tick)
	}
	if o.idleness > 0 {
		o.looks = rt.Timers.Schedule(watermark.Add(rt.Now, o.idleness), o.look)
	}
	return nil
}

// Close implements operator.Operator.
func (o *Operator) Close() error {
	o.stop()
	return nil
}

func (o *Operator) stop() {
	o.ended = true
	for _, cb := range []*operator.Callback{o.ticks, o.looks} {
		if cb != nil {
			o.rt.Timers.Cancel(cb)
		}
	}
	o.ticks, o.looks = nil, nil
	if o.member != nil {
		o.member.Leave()
	}
}

// Push implements operator.Input.
func (o *Operator) Push(r *frame.Run) error {
	o.seen, o.seenAt, o.quiet = true, o.rt.Now, false
	if o.isIdle {
		o.emitter.Active()
		o.resting = false
		if err := o.settle(); err != nil {
			return err
		}
	}
	if o.assign != nil {
		dst := r.Times
		if dst == nil || r.Shared {
			dst = o.times(r.N)
		}
		o.assign(r, dst)
		o.run = *r
		o.run.Times = dst
	} else {
		o.run = *r
	}
	o.rt.Run = &o.run
	switch {
	case o.ask != nil:
		return o.pushAsking()
	case o.bounded != nil && o.run.Times != nil:
		return o.pushBounded()
	}
	return o.out.Push(&o.run)
}

func (o *Operator) times(n int) []int64 {
	if cap(o.scratch) < n {
		o.scratch = make([]int64, max(n, frame.DefaultLen))
	}
	return o.scratch[:n]
}

func (o *Operator) pushBounded() error {
	for from := 0; ; {
		fell := o.bounded.observe(o.run.Times, from)
		if fell < 0 {
			return o.out.Push(&o.run)
		}
		if o.bounded.fail {
			o.part = o.run.Slice(0, fell)
			if err := o.out.Push(&o.part); err != nil {
				return err
			}
			o.run.Fail(fell)
			return fmt.Errorf("watermark: timestamp %d after %d: timestamps of this stream must not fall", o.run.Times[fell], o.bounded.highest)
		}
		slog.Warn("timestamps fall in a stream declared as ascending", "operator", o.rt.Name, "subtask", o.rt.Subtask,
			"timestamp", o.run.Times[fell], "highest", o.bounded.highest, "falls", o.bounded.falls)
		from = fell + 1
	}
}

func (o *Operator) pushAsking() error {
	for from := 0; from < o.run.N; {
		to := o.ask(&o.run, from)
		o.part = o.run.Slice(from, to)
		if err := o.out.Push(&o.part); err != nil {
			return err
		}
		if err := o.take(); err != nil {
			return err
		}
		from = to
	}
	return nil
}

// Mark implements operator.Input.
func (o *Operator) Mark(m frame.Mark) error {
	switch m.Kind {
	case frame.Watermark:
		if m.Value == frame.MaxWatermark {
			return o.emit(frame.MaxWatermark)
		}
		return nil
	case frame.Idle, frame.Active:
		return nil
	case frame.End:
		o.stop()
	}
	return o.out.Mark(m)
}

// tick asks for the periodic watermark.
func (o *Operator) tick(int64) error {
	if o.ended {
		return nil
	}
	if !o.quiet {
		if err := o.askNow(); err != nil {
			return err
		}
	}
	o.ticks = o.rt.Timers.Schedule(watermark.Add(o.rt.Now, o.rt.AutoWatermarkInterval), o.tick)
	return nil
}

// askNow emits the strategy's present watermark.
func (o *Operator) askNow() error {
	switch {
	case o.bounded != nil:
		return o.emit(o.bounded.watermark())
	case o.askPeriodic != nil:
		o.askPeriodic()
		return o.take()
	}
	return nil
}

// look finds out whether the subtask has become idle, see the package comment. It goes on looking while the subtask is
// idle: the next element only sets flags.
func (o *Operator) look(int64) error {
	if o.ended {
		return nil
	}
	next := watermark.Add(o.rt.Now, o.idleness)
	switch {
	case o.paused != nil && o.paused(o.rt.Now):
		o.seen, o.seenAt = true, o.rt.Now
	case o.seen:
		o.seen = false
		next = max(watermark.Add(o.seenAt, o.idleness), watermark.Add(o.rt.Now, 1))
	case !o.quiet:
		if err := o.askNow(); err != nil {
			return err
		}
		o.quiet = true
		if err := o.settle(); err != nil {
			return err
		}
	}
	o.looks = o.rt.Timers.Schedule(next, o.look)
	return nil
}

// take sends what the user's generator emitted.
func (o *Operator) take() error {
	if !o.emitter.Pending() {
		return nil
	}
	ms, grown, idle := o.emitter.Take()
	if grown {
		o.resting = false
		if err := o.emit(ms); err != nil {
			return err
		}
	}
	o.resting = idle
	return o.settle()
}

// emit sends a watermark if it has grown; an idle stream becomes active first, since nobody listens to its watermarks.
func (o *Operator) emit(ms int64) error {
	if ms <= o.emitted {
		return nil
	}
	o.emitted = ms
	if o.member != nil {
		o.member.Report(ms)
	}
	if o.isIdle {
		o.quiet, o.resting = false, false
		if err := o.settle(); err != nil {
			return err
		}
	}
	return o.out.Mark(frame.Mark{Kind: frame.Watermark, Value: ms})
}

// settle tells downstream whether the stream is idle, if that has changed.
func (o *Operator) settle() error {
	idle := o.quiet || o.resting
	if idle == o.isIdle {
		return nil
	}
	o.isIdle = idle
	if o.member != nil {
		o.member.SetIdle(idle)
	}
	m := frame.Mark{Kind: frame.Active}
	if idle {
		m.Kind = frame.Idle
	}
	return o.out.Mark(m)
}
