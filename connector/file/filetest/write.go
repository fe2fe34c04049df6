package filetest

import (
	"context"
	"errors"

	"github.com/flott-dev/flott/connector"
)

// WriterContext is the context of a writer in a test.
type WriterContext struct {
	Ctx         context.Context  // nil: never ends
	Index       int              // of the subtask
	Number      int              // of subtasks; 0 is 1
	AttemptNow  int              // of the job
	RestoredJob bool             // it goes on from a snapshot
	Counts      map[string]int64 // the metrics
}

// Context implements connector.WriterContext.
func (c *WriterContext) Context() context.Context {
	if c.Ctx == nil {
		return context.Background()
	}
	return c.Ctx
}

// Subtask implements connector.WriterContext.
func (c *WriterContext) Subtask() int { return c.Index }

// Parallelism implements connector.WriterContext; 0 is 1.
func (c *WriterContext) Parallelism() int { return max(1, c.Number) }

// Attempt implements connector.WriterContext.
func (c *WriterContext) Attempt() int { return c.AttemptNow }

// Restored implements connector.RestoredContext.
func (c *WriterContext) Restored() bool { return c.RestoredJob }

// Counter implements connector.WriterContext.
func (c *WriterContext) Counter(name string, n int64) {
	if c.Counts == nil {
		c.Counts = map[string]int64{}
	}
	c.Counts[name] += n
}

// Write writes elements with one writer up to the end of the input and closes it.
func Write[T any](s connector.Sink[T], ctx *WriterContext, xs ...T) error {
	w, err := s.Writer(ctx)
	if err != nil {
		return err
	}
	for _, x := range xs {
		if err := w.Write(x, connector.ElementContext{}); err != nil {
			return errors.Join(err, w.Close())
		}
	}
	return errors.Join(w.Flush(true), w.Close())
}
