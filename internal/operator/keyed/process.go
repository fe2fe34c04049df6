package keyed

import (
	"fmt"
	"unsafe"

	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/internal/operator/timers"
	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/state"
)

// processor drives a process.KeyedFunction.
type processor[K, T, R any] struct {
	operator.Unary
	keyer
	construct func(*process.Runtime) process.KeyedFunction[K, T, R]
	sides     *operator.Sides
	fn        process.KeyedFunction[K, T, R]
	services  services
	emitter   operator.Emitter
	out       *process.Collector[R]
	ctx       *process.KeyedContext[K]
	onTimer   timers.Fire // bound once: a method value would be allocated at each use
	timerKey  K
}

// Process returns the driver of a keyed process function. sides are the types of the side outputs that somebody reads.
func Process[K, T, R any](in, out *frame.Type, key *operator.Key, sides map[string]*frame.Type, construct func(*process.Runtime) process.KeyedFunction[K, T, R]) operator.Operator {
	return &processor[K, T, R]{
		Unary: operator.Unary{In: in, Out: operator.NewOutput(out)}, keyer: keyer{key: key},
		construct: construct, sides: operator.NewSides(sides),
	}
}

func (o *processor[K, T, R]) Inputs() []operator.Input { return []operator.Input{o} }

func (o *processor[K, T, R]) Output(tag string) *operator.Output {
	if tag == "" {
		return &o.Out
	}
	return o.sides.Output(tag)
}

func (o *processor[K, T, R]) Open(rt *operator.Runtime) (err error) {
	if err = o.Unary.Open(rt); err != nil {
		return err
	}
	if err = o.open(rt); err != nil {
		return err
	}
	o.sides.Open(rt)
	o.emitter.Open(&o.Out)
	o.out = process.NewCollector[R](o.emitter.Column, o.emitter.Flush)
	o.onTimer = o.fireEvent
	o.services = services{
		Services: *operator.NewServices(rt, o.sides), keyer: &o.keyer, run: state.CurrentRun{Index: state.None},
		timers: timers.New(timers.Options{Callbacks: rt.Timers, OnProcessingTime: o.fireProcessing, Inline: int(o.key.Width)}),
	}
	o.ctx = process.NewKeyedContext[K](&o.services)
	o.fn, err = operator.Construct(rt, o.store, &o.services.run, o.construct)
	return err
}

func (o *processor[K, T, R]) Close() error {
	var err error
	if c, ok := o.fn.(process.Closer); ok {
		err = c.Close()
	}
	if o.services.timers != nil {
		o.services.timers.Close()
	}
	if e := o.close(); err == nil {
		err = e
	}
	return err
}

func (o *processor[K, T, R]) Push(r *frame.Run) error { return o.each(r, o.push) }

func (o *processor[K, T, R]) push(r *frame.Run) error {
	col, err := o.begin(r)
	if err != nil {
		return err
	}
	keys := unsafe.Slice((*K)(col.P), r.N)
	run := &o.services.run
	for i, x := range frame.Values[T](r) {
		run.Index = i
		o.ctx.SetKey(keys[i])
		t := r.Time(i)
		o.ctx.SetTime(t)
		o.out.SetTime(t)
		if err := o.fn.ProcessElement(o.ctx, x, o.out); err != nil {
			return err
		}
	}
	return o.flush()
}

// flush ends a stretch of user calls: failed accesses first, then what was emitted.
func (o *processor[K, T, R]) flush() error {
	o.services.run.Index = state.None
	if err := o.services.run.Take(); err != nil {
		return err
	}
	if err := o.out.Flush(); err != nil {
		return err
	}
	return o.sides.Flush()
}

// fireEvent is called for each event-time timer that the watermark has reached.
func (o *processor[K, T, R]) fireEvent(key []byte, hash uint64, _ []byte, at int64) error {
	return o.fire(process.EventTime, key, hash, at)
}

// fireProcessing is called for each processing-time timer that the clock is past; a stretch of its own.
func (o *processor[K, T, R]) fireProcessing(key []byte, hash uint64, _ []byte, at int64) error {
	o.RT.At = o.RT
	if err := o.fire(process.ProcessingTime, key, hash, at); err != nil {
		return err
	}
	return o.flush()
}

func (o *processor[K, T, R]) fire(d process.Domain, key []byte, hash uint64, at int64) error {
	o.services.atKey(key, hash)
	if err := o.key.Decode(key, unsafe.Pointer(&o.timerKey)); err != nil {
		return fmt.Errorf("decode the key of a timer: %w", err)
	}
	o.ctx.SetKey(o.timerKey)
	o.ctx.SetTime(at)
	o.out.SetTime(at)
	if d == process.ProcessingTime {
		o.out.SetTime(frame.NoTime)
	}
	return o.fn.OnTimer(o.ctx, process.Timer{Domain: d, Millis: at}, o.out)
}

func (o *processor[K, T, R]) Mark(m frame.Mark) error {
	switch m.Kind {
	case frame.Watermark:
		o.services.Current = m.Value
		if err := o.services.timers.AdvanceWatermark(m.Value, o.onTimer); err != nil {
			return err
		}
		if err := o.flush(); err != nil {
			return err
		}
	case frame.End:
		if err := o.finish(); err != nil {
			return err
		}
	}
	if err := o.sides.Mark(m); err != nil {
		return err
	}
	return o.Out.Mark(m)
}

func (o *processor[K, T, R]) finish() error {
	f, ok := o.fn.(process.Finisher[R])
	if !ok {
		return nil
	}
	o.out.SetTime(frame.NoTime)
	if err := f.Finish(o.out); err != nil {
		return err
	}
	return o.flush()
}
