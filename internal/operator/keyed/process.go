package keyed

import (
	"unsafe"

	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/process"
)

// processor drives a process.KeyedFunction.
type processor[K, T, R any] struct {
	operator.Unary
	operator.Calls[R]
	keys      *Keys
	construct func(*process.Runtime) process.KeyedFunction[K, T, R]
	fn        process.KeyedFunction[K, T, R]
	ctx       *process.KeyedContext[K]
	pushPiece func(*frame.Run) error // bound once: a method value would be allocated at each use
	timerKey  K
}

// Process returns the driver of a keyed process function. sides are the types of the side outputs that somebody reads.
func Process[K, T, R any](in, out *frame.Type, key *operator.Key, sides map[string]*frame.Type, construct func(*process.Runtime) process.KeyedFunction[K, T, R]) operator.Operator {
	o := &processor[K, T, R]{
		Unary: operator.Unary{In: in, Out: operator.NewOutput(out)}, keys: NewKeys(key), construct: construct,
	}
	o.Init(&o.Out, operator.NewSides(sides))
	return o
}

func (o *processor[K, T, R]) Inputs() []operator.Input { return []operator.Input{o} }

func (o *processor[K, T, R]) Output(tag string) *operator.Output { return o.Calls.Output(tag) }

func (o *processor[K, T, R]) Open(rt *operator.Runtime) (err error) {
	if err = o.Unary.Open(rt); err != nil {
		return err
	}
	o.Calls.Open(rt)
	if err = o.keys.Open(rt, o.Sides, o); err != nil {
		return err
	}
	o.pushPiece = o.push
	o.ctx = process.NewKeyedContext[K](o.keys.Services())
	o.fn, err = operator.Construct(rt, o.keys.Store(), o.keys.Current(), o.construct)
	return err
}

func (o *processor[K, T, R]) Close() error {
	err := operator.CloseFunction(o.fn)
	if e := o.keys.Close(); err == nil {
		err = e
	}
	return err
}

// Snapshot implements operator.Snapshotter.
func (o *processor[K, T, R]) Snapshot(s *operator.Snapshot) error {
	if err := o.Calls.Snapshot(s); err != nil {
		return err
	}
	return o.keys.Snapshot(s)
}

func (o *processor[K, T, R]) Push(r *frame.Run) error { return o.keys.Each(r, o.pushPiece) }

func (o *processor[K, T, R]) push(r *frame.Run) error {
	col, err := o.keys.Begin(0, r)
	if err != nil {
		return err
	}
	run := o.keys.Current()
	fn, ctx, out := o.fn, o.ctx, o.To
	ctx.SetKeys(unsafe.Slice((*K)(col.P), r.N), &run.Index)
	ctx.SetTime(frame.NoTime)
	out.SetTime(frame.NoTime)
	times := r.Times
	for i, x := range frame.Values[T](r) {
		run.Index = i
		if times != nil {
			ctx.SetTime(times[i])
			out.SetTime(times[i])
		}
		if err := fn.ProcessElement(ctx, x, out); err != nil {
			return err
		}
	}
	return o.Flush()
}

// Flush implements Handler: failed accesses first, then what was emitted.
func (o *processor[K, T, R]) Flush() error {
	if err := o.keys.Leave(); err != nil {
		return err
	}
	return o.Send()
}

// Fire implements Handler.
func (o *processor[K, T, R]) Fire(d process.Domain, key []byte, at int64) error {
	if err := o.keys.Decode(key, unsafe.Pointer(&o.timerKey)); err != nil {
		return err
	}
	o.ctx.SetKey(o.timerKey)
	o.ctx.SetTime(at)
	o.To.SetTime(at)
	if d == process.ProcessingTime {
		o.To.SetTime(frame.NoTime)
	}
	return o.fn.OnTimer(o.ctx, process.Timer{Domain: d, Millis: at}, o.To)
}

func (o *processor[K, T, R]) Mark(m frame.Mark) error {
	switch m.Kind {
	case frame.Watermark:
		if err := o.keys.Advance(m.Value); err != nil {
			return err
		}
	case frame.End:
		if err := o.finish(); err != nil {
			return err
		}
	}
	return o.Forward(m)
}

func (o *processor[K, T, R]) finish() error {
	if err := o.Calls.Finish(o.fn); err != nil {
		return err
	}
	return o.Flush()
}
