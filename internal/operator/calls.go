package operator

import (
	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/process"
)

// Calls is embedded by drivers of process functions, whatever their inputs: the collector that functions emit to, their
// side outputs, and the calls that every function may have.
type Calls[R any] struct {
	Sides *Sides
	To    *process.Collector[R]

	rt      *Runtime
	main    *Output
	emitter Emitter
}

// Init says where functions emit to; drivers call it in their constructors.
func (c *Calls[R]) Init(main *Output, sides *Sides) { c.main, c.Sides = main, sides }

// Output is Operator's.
func (c *Calls[R]) Output(tag string) *Output {
	if tag == "" {
		return c.main
	}
	return c.Sides.Output(tag)
}

// Open makes the buffers; the main output must be bound.
func (c *Calls[R]) Open(rt *Runtime) {
	c.rt = rt
	c.Sides.Open(rt)
	c.emitter.Open(c.main)
	c.To = process.NewCollector[R](c.emitter.Column, c.emitter.Flush)
}

// Send pushes what was emitted.
func (c *Calls[R]) Send() error {
	if err := c.To.Flush(); err != nil {
		return err
	}
	return c.Sides.Flush()
}

// Forward emits a mark, to the side outputs as well.
func (c *Calls[R]) Forward(m frame.Mark) error {
	if err := c.Sides.Mark(m); err != nil {
		return err
	}
	return c.main.Mark(m)
}

// Snapshot implements Snapshotter with what functions on streams without keys have.
func (c *Calls[R]) Snapshot(s *Snapshot) error { return c.rt.SnapshotFunctions(s) }

// CheckpointCompleted implements CheckpointListener.
func (c *Calls[R]) CheckpointCompleted(id int64) error { return c.call(id, c.rt.FunctionsCompleted) }

// CheckpointAborted implements CheckpointListener.
func (c *Calls[R]) CheckpointAborted(id int64) error { return c.call(id, c.rt.FunctionsAborted) }

// call lets the functions hear of a checkpoint; what they emit then goes on.
func (c *Calls[R]) call(id int64, tell func(int64) error) error {
	c.To.SetTime(frame.NoTime)
	if err := tell(id); err != nil {
		return err
	}
	return c.Send()
}

// Finish calls the function's hook for the end of the operator, if it has one; the driver sends.
func (c *Calls[R]) Finish(function any) error {
	c.To.SetTime(frame.NoTime)
	if f, ok := function.(process.Finisher[R]); ok {
		return f.Finish(c.To)
	}
	return nil
}

// CloseFunction closes a function that can be closed; nil is none.
func CloseFunction(function any) error {
	if c, ok := function.(process.Closer); ok {
		return c.Close()
	}
	return nil
}
