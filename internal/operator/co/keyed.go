package co

import (
	"unsafe"

	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/internal/operator/keyed"
	"github.com/flott-dev/flott/process"
)

// keyedProcessor drives a process.KeyedCoFunction: both inputs share state and timers.
type keyedProcessor[K, A, B, R any] struct {
	Sided[process.KeyedCoFunction[K, A, B, R], R]
	choice
	keys           *keyed.Keys
	construct      func(*process.Runtime) process.KeyedCoFunction[K, A, B, R]
	ctx            *process.KeyedContext[K]
	piece1, piece2 func(*frame.Run) error // bound once: a method value would be allocated at each use
	timerKey       K
}

// KeyedProcess returns the driver of a process function on connected streams that are keyed alike.
func KeyedProcess[K, A, B, R any](in Inputs, out *frame.Type, keys [2]*operator.Key, sides map[string]*frame.Type, construct func(*process.Runtime) process.KeyedCoFunction[K, A, B, R]) operator.Operator {
	o := &keyedProcessor[K, A, B, R]{keys: keyed.NewKeys(keys[:]...), construct: construct, choice: choice{typed: in.Selects}}
	o.piece1, o.piece2 = o.pushPiece1, o.pushPiece2
	o.Sides = operator.NewSides(sides)
	o.Join(in, out, o, o.push1, o.push2)
	return o
}

func (o *keyedProcessor[K, A, B, R]) Open(rt *operator.Runtime) (err error) {
	if err = o.Sided.Open(rt); err != nil {
		return err
	}
	if err = o.keys.Open(rt, o.Sides, o); err != nil {
		return err
	}
	o.ctx = process.NewKeyedContext[K](o.keys.Services())
	o.Fn, err = operator.Construct(rt, o.keys.Store(), o.keys.Current(), o.construct)
	o.choose(o.Fn)
	return err
}

func (o *keyedProcessor[K, A, B, R]) Close() error {
	err := o.Sided.Close()
	if e := o.keys.Close(); err == nil {
		err = e
	}
	return err
}

// Snapshot implements operator.Snapshotter.
func (o *keyedProcessor[K, A, B, R]) Snapshot(s *operator.Snapshot) error {
	if err := o.Calls.Snapshot(s); err != nil {
		return err
	}
	return o.keys.Snapshot(s)
}

func (o *keyedProcessor[K, A, B, R]) push1(r *frame.Run) error {
	o.called()
	return o.keys.Each(r, o.piece1)
}

func (o *keyedProcessor[K, A, B, R]) push2(r *frame.Run) error {
	o.called()
	return o.keys.Each(r, o.piece2)
}

func (o *keyedProcessor[K, A, B, R]) pushPiece1(r *frame.Run) error {
	col, err := o.keys.Begin(0, r)
	if err != nil {
		return err
	}
	keys, run := unsafe.Slice((*K)(col.P), r.N), o.keys.Current()
	for i, x := range frame.Values[A](r) {
		run.Index = i
		o.at(keys[i], r.Time(i))
		if err := o.Fn.ProcessElement1(o.ctx, x, o.To); err != nil {
			return err
		}
	}
	return o.Flush()
}

func (o *keyedProcessor[K, A, B, R]) pushPiece2(r *frame.Run) error {
	col, err := o.keys.Begin(1, r)
	if err != nil {
		return err
	}
	keys, run := unsafe.Slice((*K)(col.P), r.N), o.keys.Current()
	for i, x := range frame.Values[B](r) {
		run.Index = i
		o.at(keys[i], r.Time(i))
		if err := o.Fn.ProcessElement2(o.ctx, x, o.To); err != nil {
			return err
		}
	}
	return o.Flush()
}

func (o *keyedProcessor[K, A, B, R]) at(key K, t int64) {
	o.ctx.SetKey(key)
	o.ctx.SetTime(t)
	o.To.SetTime(t)
}

// Flush implements keyed.Handler: failed accesses first, then what was emitted.
func (o *keyedProcessor[K, A, B, R]) Flush() error {
	if err := o.keys.Leave(); err != nil {
		return err
	}
	return o.Send()
}

// Fire implements keyed.Handler.
func (o *keyedProcessor[K, A, B, R]) Fire(d process.Domain, key []byte, at int64) error {
	o.called()
	if err := o.keys.Decode(key, unsafe.Pointer(&o.timerKey)); err != nil {
		return err
	}
	o.at(o.timerKey, at)
	if d == process.ProcessingTime {
		o.To.SetTime(frame.NoTime)
	}
	return o.Fn.OnTimer(o.ctx, process.Timer{Domain: d, Millis: at}, o.To)
}

// EndInput implements Hooks.
func (o *keyedProcessor[K, A, B, R]) EndInput(input int) error {
	o.called()
	return o.Sided.EndInput(input)
}

// Advance implements Hooks.
func (o *keyedProcessor[K, A, B, R]) Advance(watermark int64) error { return o.keys.Advance(watermark) }
