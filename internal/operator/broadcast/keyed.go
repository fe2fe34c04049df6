package broadcast

import (
	"unsafe"

	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/internal/operator/co"
	"github.com/flott-dev/flott/internal/operator/keyed"
	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/state"
)

// keyedProcessor drives a process.KeyedBroadcastFunction. Only the stream is keyed.
type keyedProcessor[K, T, B, R any] struct {
	co.Sided[process.KeyedBroadcastFunction[K, T, B, R], R]
	keys      *keyed.Keys
	declared  []process.BroadcastDescriptor
	construct func(*process.Runtime) process.KeyedBroadcastFunction[K, T, B, R]
	reader    *process.KeyedReadOnlyContext[K]
	writer    *process.KeyedBroadcastContext[K]
	states    *process.BroadcastStates
	tables    *tables
	piece     func(*frame.Run) error // bound once: a method value would be allocated at each use
	key       K
}

// KeyedProcess returns the driver of a broadcast function on a stream with that key.
func KeyedProcess[K, T, B, R any](in co.Inputs, out *frame.Type, key *operator.Key, declared []process.BroadcastDescriptor, sides map[string]*frame.Type, construct func(*process.Runtime) process.KeyedBroadcastFunction[K, T, B, R]) operator.Operator {
	o := &keyedProcessor[K, T, B, R]{keys: keyed.NewKeys(key, nil), declared: declared, construct: construct}
	o.Sides = operator.NewSides(sides)
	o.piece = o.pushPiece
	o.Join(in, out, o, o.push, o.pushBroadcast)
	return o
}

func (o *keyedProcessor[K, T, B, R]) Open(rt *operator.Runtime) (err error) {
	if err = o.Sided.Open(rt); err != nil {
		return err
	}
	if err = o.keys.Open(rt, o.Sides, o); err != nil {
		return err
	}
	run, services := o.keys.Current(), o.keys.Services()
	if o.states, err = openStates(rt, o.declared, run.Fail); err != nil {
		return err
	}
	o.tables = &tables{Store: o.keys.Store(), byName: map[string]ranger{}}
	o.reader = process.NewKeyedReadOnlyContext[K](services, o.states)
	o.writer = process.NewKeyedBroadcastContext(services, o.states, o.apply)
	o.Fn, err = operator.Construct(rt, o.tables, run, o.construct)
	return err
}

func (o *keyedProcessor[K, T, B, R]) Close() error {
	err := o.Sided.Close()
	if e := o.keys.Close(); err == nil {
		err = e
	}
	return err
}

// Snapshot implements operator.Snapshotter.
func (o *keyedProcessor[K, T, B, R]) Snapshot(s *operator.Snapshot) error {
	if err := o.Calls.Snapshot(s); err != nil {
		return err
	}
	if err := snapshot(s, o.states); err != nil {
		return err
	}
	return o.keys.Snapshot(s)
}

func (o *keyedProcessor[K, T, B, R]) push(r *frame.Run) error { return o.keys.Each(r, o.piece) }

func (o *keyedProcessor[K, T, B, R]) pushPiece(r *frame.Run) error {
	col, err := o.keys.Begin(0, r)
	if err != nil {
		return err
	}
	keys, run := unsafe.Slice((*K)(col.P), r.N), o.keys.Current()
	for i, x := range frame.Values[T](r) {
		run.Index = i
		o.at(keys[i], r.Time(i))
		if err := o.Fn.ProcessElement(o.reader, x, o.To); err != nil {
			return err
		}
	}
	return o.Flush()
}

func (o *keyedProcessor[K, T, B, R]) pushBroadcast(r *frame.Run) error {
	at := r.Hand()
	for i, x := range frame.Values[B](r) {
		*at = i
		t := r.Time(i)
		o.writer.SetTime(t)
		o.To.SetTime(t)
		if err := o.Fn.ProcessBroadcastElement(o.writer, x, o.To); err != nil {
			return err
		}
	}
	*at = frame.Passed
	return o.Flush()
}

func (o *keyedProcessor[K, T, B, R]) at(key K, t int64) {
	o.reader.SetKey(key)
	o.reader.SetTime(t)
	o.To.SetTime(t)
}

// apply implements ApplyToKeyedState. The keys are collected first: f may change the table that has them.
func (o *keyedProcessor[K, T, B, R]) apply(name string, f func(key K) error) error {
	found, err := o.tables.keys(name)
	if err != nil {
		return err
	}
	run := o.keys.Current()
	defer func() { run.Index = state.None }()
	for i, hash := range found.hashes {
		canonical := found.at(i)
		if err := o.keys.Decode(canonical, unsafe.Pointer(&o.key)); err != nil {
			return err
		}
		o.keys.At(canonical, hash)
		if err := f(o.key); err != nil {
			return err
		}
		if err := run.Err(); err != nil {
			return err
		}
	}
	return nil
}

// Flush implements keyed.Handler: failed accesses first, then what was emitted.
func (o *keyedProcessor[K, T, B, R]) Flush() error {
	if err := o.keys.Leave(); err != nil {
		return err
	}
	return o.Send()
}

// Fire implements keyed.Handler.
func (o *keyedProcessor[K, T, B, R]) Fire(d process.Domain, key []byte, at int64) error {
	if err := o.keys.Decode(key, unsafe.Pointer(&o.key)); err != nil {
		return err
	}
	o.at(o.key, at)
	if d == process.ProcessingTime {
		o.To.SetTime(frame.NoTime)
	}
	return o.Fn.OnTimer(o.reader, process.Timer{Domain: d, Millis: at}, o.To)
}

// Advance implements co.Hooks.
func (o *keyedProcessor[K, T, B, R]) Advance(watermark int64) error { return o.keys.Advance(watermark) }
