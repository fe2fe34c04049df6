package process

import (
	"context"
	"time"

	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/host"
)

// SourceContext is what a function source emits through. The function runs on a goroutine of its own, beside the
// subtask, and may wait as long as it likes; its methods may be called from several goroutines at once, until the
// function has returned. Elements are handed over when a frame of them is full, or at once if the subtask has nothing
// else to do. When the job can't keep up, Collect waits: that is the backpressure.
//
// What a method returns says whether the task still wants elements; false means that the function should return (its
// context has ended, too).
type SourceContext[T any] struct {
	*Runtime
	feed *host.Feed[*frame.Frame]
}

// NewSourceContext is for drivers: the context fills frames of the feed.
func NewSourceContext[T any](rt *Runtime, feed *host.Feed[*frame.Frame]) *SourceContext[T] {
	return &SourceContext[T]{Runtime: rt, feed: feed}
}

// Collect emits x without a timestamp.
func (c *SourceContext[T]) Collect(x T) bool { return c.CollectWithMillis(x, frame.NoTime) }

// CollectWithTimestamp emits x with the event time at, truncated to milliseconds.
func (c *SourceContext[T]) CollectWithTimestamp(x T, at time.Time) bool {
	return c.CollectWithMillis(x, at.UnixMilli())
}

// CollectWithMillis emits x with a timestamp in ms since 1970; math.MinInt64 is none.
func (c *SourceContext[T]) CollectWithMillis(x T, ms int64) bool {
	f, ok := c.feed.Begin()
	if !ok {
		return false
	}
	frame.Add(&f.Column, x, ms)
	c.feed.Done(f.Room() == 0)
	return true
}

// EmitWatermark says that no element with a timestamp <= at (truncated to milliseconds) follows from this subtask. One
// that is not later than the last is dropped.
func (c *SourceContext[T]) EmitWatermark(at time.Time) bool {
	return c.EmitWatermarkMillis(at.UnixMilli())
}

// EmitWatermarkMillis is EmitWatermark in ms since 1970; math.MaxInt64 says that no element follows at all.
func (c *SourceContext[T]) EmitWatermarkMillis(ms int64) bool {
	return c.mark(frame.Mark{Kind: frame.Watermark, Value: ms})
}

// MarkAsTemporarilyIdle says that there may be no element for long: the subtask holds back nobody's watermark until its
// next element or watermark.
func (c *SourceContext[T]) MarkAsTemporarilyIdle() bool { return c.mark(frame.Mark{Kind: frame.Idle}) }

func (c *SourceContext[T]) mark(m frame.Mark) bool {
	f, ok := c.feed.Begin()
	if !ok {
		return false
	}
	f.AddMark(m)
	c.feed.Done(len(f.Marks) >= frame.MaxLen)
	return true
}

// Locked runs f so that no snapshot is taken meanwhile: what f collects and how it moves the position of the source belong
// together (Flink: the checkpoint lock). f must not wait for outside data, as a checkpoint waits for it. One goroutine at a
// time is in Locked; a call inside of f waits for ever.
func (c *SourceContext[T]) Locked(f func()) { c.feed.Section(f) }

// Subtask is the number of the subtask, from 0, and Parallelism how many there are.
func (c *SourceContext[T]) Subtask() int { return c.Info().Subtask }

// Parallelism is the number of subtasks.
func (c *SourceContext[T]) Parallelism() int { return c.Info().Parallelism }

// SourceFunction produces the elements of a source: see SourceContext. It ends the source by returning; an error fails
// the task. ctx ends when the task is cancelled or fails, and the function must return then.
type SourceFunction[T any] = func(ctx context.Context, out *SourceContext[T]) error

// SourceProcessor is a function source with state, made by a constructor that gets the subtask's runtime. Its state is
// operator state (Runtime.OperatorList) which Run changes, and collects what belongs to it, inside of SourceContext.Locked;
// or fields that SnapshotState (Checkpointed) brings into operator state. What was collected before a snapshot and has not
// left the source is part of the snapshot. SnapshotState and the calls of CheckpointListener come while no one is in Locked.
// Close (Closer), if there is one, is called when Run has returned, on its goroutine.
type SourceProcessor[T any] interface {
	// Run produces the elements, as a SourceFunction does. After a restore the constructor found the state of the snapshot,
	// and Run goes on from there.
	Run(ctx context.Context, out *SourceContext[T]) error
}
