// Package sink holds the drivers of sinks: functions, printing, and the writers of connectors.
package sink

import (
	"context"
	"errors"
	"fmt"

	"github.com/flott-dev/flott/connector"
	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/operator"
)

// tail is embedded by sinks: one input, no output. It remembers the watermark for element contexts.
type tail struct {
	in        *frame.Type
	rt        *operator.Runtime
	watermark int64
}

func (t *tail) Type() *frame.Type              { return t.in }
func (t *tail) Output(string) *operator.Output { return nil }
func (t *tail) Close() error                   { return nil }
func (t *tail) Open(rt *operator.Runtime) error {
	t.rt, t.watermark = rt, frame.MinWatermark
	return nil
}

func (t *tail) Mark(m frame.Mark) error {
	if m.Kind == frame.Watermark {
		t.watermark = m.Value
	}
	return nil
}

// each calls a function for each element. It is written once for all types: its kernel calls the user.
type each struct {
	tail
	kernel func(r *frame.Run)
}

// Each returns the driver of a sink that calls f for each element; the pointer form lends the element for the call.
func Each[T any, F func(T) | func(*T)](typ *frame.Type, f F) operator.Operator {
	o := &each{tail: tail{in: typ}}
	switch f := any(f).(type) {
	case func(T):
		o.kernel = func(r *frame.Run) { callAll(r, f) }
	case func(*T):
		o.kernel = func(r *frame.Run) {
			xs := frame.Values[T](r)
			at := r.Hand()
			for i := range xs {
				*at = i
				f(&xs[i])
			}
			*at = frame.Passed
		}
	}
	return o
}

// callAll is unrolled because Go keeps no register across a closure call.
func callAll[T any](r *frame.Run, f func(T)) {
	xs := frame.Values[T](r)
	at := r.Hand()
	i := 0
	for ; i+4 <= len(xs); i += 4 {
		x := xs[i : i+4 : i+4]
		*at = i
		f(x[0])
		*at = i + 1
		f(x[1])
		*at = i + 2
		f(x[2])
		*at = i + 3
		f(x[3])
	}
	for ; i < len(xs); i++ {
		*at = i
		f(xs[i])
	}
	*at = frame.Passed
}

func (o *each) Inputs() []operator.Input { return []operator.Input{o} }

func (o *each) Push(r *frame.Run) error {
	o.kernel(r)
	return nil
}

// tryEach calls a function that can fail or wait.
type tryEach[T any] struct {
	tail
	f func(context.Context, T, connector.ElementContext) error
}

// TryEach returns the driver of a sink function that can fail or wait.
func TryEach[T any](typ *frame.Type, f func(context.Context, T, connector.ElementContext) error) operator.Operator {
	return &tryEach[T]{tail: tail{in: typ}, f: f}
}

func (o *tryEach[T]) Inputs() []operator.Input { return []operator.Input{o} }

func (o *tryEach[T]) Push(r *frame.Run) error {
	ctx := connector.ElementContext{Watermark: o.watermark, ProcessingTime: o.rt.Now}
	at := r.Hand()
	for i, x := range frame.Values[T](r) {
		*at = i
		ctx.Timestamp = r.Time(i)
		if err := o.f(o.rt.Ctx, x, ctx); err != nil {
			return err
		}
	}
	*at = frame.Passed
	return nil
}

// erased hands runs to a function that is written once for all types.
type erased struct {
	tail
	open func(rt *operator.Runtime) (push func(*frame.Run) error, closeFn func() error, err error)
	push func(*frame.Run) error
	shut func() error
}

// Erased returns the driver of a sink over runs of any type: print, discard.
func Erased(typ *frame.Type, open func(rt *operator.Runtime) (push func(*frame.Run) error, closeFn func() error, err error)) operator.Operator {
	return &erased{tail: tail{in: typ}, open: open}
}

func (o *erased) Inputs() []operator.Input { return []operator.Input{o} }

func (o *erased) Open(rt *operator.Runtime) (err error) {
	if err = o.tail.Open(rt); err != nil {
		return err
	}
	o.push, o.shut, err = o.open(rt)
	return err
}

func (o *erased) Push(r *frame.Run) error { return o.push(r) }

func (o *erased) Close() error {
	if o.shut == nil {
		return nil
	}
	return o.shut()
}

// writer drives a connector's Writer.
type writer[T any] struct {
	tail
	sink  connector.Sink[T]
	w     connector.Writer[T]
	runs  connector.RunWriter[T]
	alarm alarm

	ended bool // what came before the end of the input is flushed
}

// Writer returns the driver of a connector's sink.
func Writer[T any](typ *frame.Type, s connector.Sink[T]) operator.Operator {
	return &writer[T]{tail: tail{in: typ}, sink: s}
}

func (o *writer[T]) Inputs() []operator.Input { return []operator.Input{o} }

func (o *writer[T]) Open(rt *operator.Runtime) (err error) {
	if err = o.tail.Open(rt); err != nil {
		return err
	}
	if o.w, err = o.open(); err != nil {
		return fmt.Errorf("open the writer: %w", err)
	}
	o.runs, _ = o.w.(connector.RunWriter[T])
	o.alarm.open(o.w, o.rt)
	return nil
}

func (o *writer[T]) Push(r *frame.Run) error {
	xs := frame.Values[T](r)
	if o.runs != nil {
		return noted(r, o.runs.WriteRun(xs, r.Times))
	}
	ctx := connector.ElementContext{Watermark: o.watermark, ProcessingTime: o.rt.Now}
	at := r.Hand()
	for i, x := range xs {
		*at = i
		ctx.Timestamp = r.Time(i)
		if err := o.w.Write(x, ctx); err != nil {
			return err
		}
	}
	*at = frame.Passed
	return nil
}

// noted notes which element of the run an error is about, if it says so.
func noted(r *frame.Run, err error) error {
	if err == nil {
		return nil
	}
	var e *connector.ElementError
	if errors.As(err, &e) && e.Index >= 0 {
		r.Fail(e.Index)
	}
	return err
}

func (o *writer[T]) Mark(m frame.Mark) error {
	if m.Kind == frame.End {
		return o.end()
	}
	return o.tail.Mark(m)
}

// end makes everything visible, or ready to commit.
func (o *writer[T]) end() error {
	if err := o.w.Flush(true); err != nil {
		return fmt.Errorf("flush at the end of the input: %w", err)
	}
	o.ended = true
	o.alarm.end()
	return nil
}

func (o *writer[T]) Close() error {
	if o.w == nil {
		return nil
	}
	return o.w.Close()
}

type writerContext struct{ rt *operator.Runtime }

func (c writerContext) Context() context.Context     { return c.rt.Ctx }
func (c writerContext) Subtask() int                 { return c.rt.Subtask }
func (c writerContext) Parallelism() int             { return c.rt.Parallelism }
func (c writerContext) Attempt() int                 { return c.rt.Attempt }
func (c writerContext) Restored() bool               { return c.rt.Restored != nil }
func (c writerContext) Now() int64                   { return c.rt.Now }
func (c writerContext) Counter(name string, n int64) { operator.Count(c.rt, name, n) }
