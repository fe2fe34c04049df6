package stream

import (
	"fmt"
	"math"

	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/internal/operator/source"
	"github.com/flott-dev/flott/process"
)

// SourceContext is what a source function emits through.
type SourceContext[T any] = process.SourceContext[T]

// SourceFunction produces the elements of a source; see FromFunc.
type SourceFunction[T any] = process.SourceFunction[T]

// FromFunc is a stream of what f emits, from one subtask. f runs on a goroutine of its own and may wait for outside data;
// the source ends when it returns, an error or panic fails the task. ctx ends when the task is cancelled or fails; f must
// return then. Snapshots know nothing of where f is: a job that is restored calls it anew, and what it emits again is
// counted again. A source that must not repeat itself is a connector.Source, or a source processor.
func (e *Env) FromFunc[T any](name string, f SourceFunction[T]) *Stream[T] {
	return e.fromFunc(name, f, false)
}

// FromParallelFunc is FromFunc with as many subtasks as the environment's parallelism says. f is called once per subtask;
// its context tells which one (Subtask, Parallelism).
func (e *Env) FromParallelFunc[T any](name string, f SourceFunction[T]) *Stream[T] {
	return e.fromFunc(name, f, true)
}

// AddSource is FromFunc under the name that Flink gives such sources, "Custom Source".
func (e *Env) AddSource[T any](f SourceFunction[T]) *Stream[T] {
	return e.fromFunc("Custom Source", f, false)
}

// AddParallelSource is FromParallelFunc under that name.
func (e *Env) AddParallelSource[T any](f SourceFunction[T]) *Stream[T] {
	return e.fromFunc("Custom Source", f, true)
}

// FromSourceProcessor is a stream of what a source processor emits, from one subtask: a function source whose state is part
// of snapshots, so that it goes on where it was after a restore (see process.SourceProcessor).
func (e *Env) FromSourceProcessor[T any, P process.SourceProcessor[T]](name string, constructor func(rt *process.Runtime) P) *Stream[T] {
	return fromProcessor[T](e, name, constructor, false)
}

// FromParallelSourceProcessor is FromSourceProcessor with as many subtasks as the environment's parallelism says, each with
// a processor of its own.
func (e *Env) FromParallelSourceProcessor[T any, P process.SourceProcessor[T]](name string, constructor func(rt *process.Runtime) P) *Stream[T] {
	return fromProcessor[T](e, name, constructor, true)
}

func fromProcessor[T any, P process.SourceProcessor[T]](e *Env, name string, constructor func(rt *process.Runtime) P, parallel bool) *Stream[T] {
	t := typeOf[T](e)
	if constructor == nil {
		e.report(fmt.Errorf("read from source processor %q: its constructor is nil", name))
	}
	c := e.sourceNode(name, t, parallel, func() operator.Operator { return source.Processor[T](t, constructor) })
	c.node.Stateful = true
	return &Stream[T]{c}
}

func (e *Env) fromFunc[T any](name string, f SourceFunction[T], parallel bool) *Stream[T] {
	t := typeOf[T](e)
	if f == nil {
		e.report(fmt.Errorf("read from source function %q: it is nil", name))
	}
	return &Stream[T]{e.sourceNode(name, t, parallel, func() operator.Operator { return source.Func(t, f) })}
}

// FromGenerator is a stream of f(0), f(1) ... f(n-1), without end if n is negative. Subtasks take indices in turn.
// ratePerSecond bounds the elements per second of all subtasks together, 0 means as fast as the job can take them; what a
// stall has held up is caught up for one second's worth at most. A job that is restored goes on with the next index, at
// any parallelism.
func (e *Env) FromGenerator[T any](n int64, f func(i int64) T, ratePerSecond float64) *Stream[T] {
	t := typeOf[T](e)
	if ratePerSecond < 0 || math.IsNaN(ratePerSecond) || math.IsInf(ratePerSecond, 0) {
		e.report(fmt.Errorf("generate elements at %v per second: the rate must be positive, or 0 for full speed", ratePerSecond))
	}
	return &Stream[T]{e.sourceNode("Data Generator Source", t, true, func() operator.Operator {
		return source.Generator(t, n, f, ratePerSecond)
	}).untimed()}
}
