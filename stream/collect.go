package stream

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/flott-dev/flott/connector"
)

// ExecuteAndCollect executes what was built in the stream's environment and returns the elements of the stream, in the
// order in which one subtask received them. All of them must fit into memory; see ExecuteAndIterate.
func ExecuteAndCollect[T any](ctx context.Context, s *Stream[T], name string) ([]T, error) {
	return gatherAll(ExecuteAndIterate(ctx, s, name), -1)
}

// ExecuteAndCollectLimit is ExecuteAndCollect that ends the job once it has limit elements, fewer if there are no more.
func ExecuteAndCollectLimit[T any](ctx context.Context, s *Stream[T], name string, limit int) ([]T, error) {
	if limit < 1 {
		return nil, fmt.Errorf("collect at most %d elements of job %q: the limit must be at least 1", limit, name)
	}
	return gatherAll(ExecuteAndIterate(ctx, s, name), limit)
}

func gatherAll[T any](all iter.Seq2[T, error], limit int) (xs []T, err error) {
	for x, err := range all {
		if err != nil {
			return xs, err
		}
		if xs = append(xs, x); len(xs) == limit {
			break
		}
	}
	return xs, nil
}

// ExecuteAndIterate executes what was built in the stream's environment, when it is iterated over, and yields the
// elements of the stream while the job runs. If the job fails, the last pair has its error. A loop that is left early
// cancels the job. It may be iterated over once.
func ExecuteAndIterate[T any](ctx context.Context, s *Stream[T], name string) iter.Seq2[T, error] {
	c := CollectAsync(s)
	return func(yield func(T, error) bool) {
		job, err := s.c.env.ExecuteAsync(ctx, name)
		if err != nil {
			var zero T
			yield(zero, err)
			return
		}
		c.All(job)(yield)
	}
}

// Collected takes the elements of a stream to the program that has built it: see CollectAsync.
type Collected[T any] struct{ batches chan []T }

// CollectAsync makes the elements of the stream come to this program once the job has been started with ExecuteAsync:
// range over All of the result. The job waits while nobody does. After a restart of the job elements may come again.
func CollectAsync[T any](s *Stream[T]) *Collected[T] {
	c := &Collected[T]{batches: make(chan []T, 4)}
	s.SinkTo(collectSink[T]{c}).Name("Collect").Parallelism(1)
	return c
}

// All yields the elements as they come, until the job has ended. If it fails, the last pair has its error. A loop that is
// left early cancels the job.
func (c *Collected[T]) All(job *Job) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for {
			select {
			case xs := <-c.batches:
				if !yieldAll(xs, yield) {
					job.Cancel()
					<-job.Done()
					return
				}
				continue
			case <-job.Done():
			}
			c.rest(job, yield)
			return
		}
	}
}

// rest yields what is left when the job has ended.
func (c *Collected[T]) rest(job *Job, yield func(T, error) bool) {
	for {
		select {
		case xs := <-c.batches:
			if !yieldAll(xs, yield) {
				return
			}
			continue
		default:
		}
		if _, err := job.Wait(); err != nil {
			var zero T
			yield(zero, err)
		}
		return
	}
}

func yieldAll[T any](xs []T, yield func(T, error) bool) bool {
	for _, x := range xs {
		if !yield(x, nil) {
			return false
		}
	}
	return true
}

// collectSink hands runs to a Collected.
type collectSink[T any] struct{ c *Collected[T] }

// Writer implements connector.Sink.
func (s collectSink[T]) Writer(ctx connector.WriterContext) (connector.Writer[T], error) {
	return &collectWriter[T]{ctx: ctx.Context(), to: s.c.batches}, nil
}

type collectWriter[T any] struct {
	ctx context.Context
	to  chan<- []T
}

func (w *collectWriter[T]) WriteRun(xs []T, _ []int64) error {
	select {
	case w.to <- slices.Clone(xs):
		return nil
	case <-w.ctx.Done():
		return w.ctx.Err()
	}
}

// Write implements connector.Writer; the engine prefers WriteRun.
func (w *collectWriter[T]) Write(x T, _ connector.ElementContext) error {
	return w.WriteRun([]T{x}, nil)
}

func (w *collectWriter[T]) Flush(bool) error { return nil }
func (w *collectWriter[T]) Close() error     { return nil }
