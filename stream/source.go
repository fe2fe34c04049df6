package stream

import (
	"iter"

	"github.com/flott-dev/flott/connector"
	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/internal/operator/source"
	"github.com/flott-dev/flott/serde"
)

// FromElements is a stream of the given elements, in order, from one subtask.
func (e *Env) FromElements[T any](xs ...T) *Stream[T] { return e.FromSlice(xs) }

// FromSlice is a stream of the elements of xs, in order, from one subtask. The slice must not be changed afterwards.
func (e *Env) FromSlice[T any](xs []T) *Stream[T] {
	t := typeOf[T](e)
	return &Stream[T]{e.collection("Collection Source", t, false, len(xs), func() operator.Operator { return source.Slice(t, xs) })}
}

// FromParallelSlice is a stream of the elements of xs: each subtask reads a contiguous part.
func (e *Env) FromParallelSlice[T any](xs []T) *Stream[T] {
	t := typeOf[T](e)
	return &Stream[T]{e.collection("Parallel Collection Source", t, true, len(xs), func() operator.Operator { return source.Slice(t, xs) })}
}

// collection is the source of n elements, of which none has a timestamp if there are any.
func (e *Env) collection(name string, t *frame.Type, parallel bool, n int, open func() operator.Operator) *core {
	c := e.sourceNode(name, t, parallel, open)
	if n != 0 {
		c.untimed()
	}
	return c
}

// FromSeq is a stream of what the iterator yields, from one subtask. The iterator must not wait for outside data: use
// FromFunc for that. A job that is restored starts it once more and leaves out as many elements as it had yielded, so it
// must yield the same ones each time.
func (e *Env) FromSeq[T any](seq iter.Seq[T]) *Stream[T] {
	t := typeOf[T](e)
	open := func(int, int) iter.Seq[T] { return seq }
	return &Stream[T]{e.sourceNode("Collection Source", t, false, func() operator.Operator { return source.Seq(t, open) }).untimed()}
}

// FromParallelSeq is a stream of what the iterators yield: open makes the one of each subtask (Flink:
// fromParallelCollection of a splittable iterator). After a restore they are started once more as that of FromSeq is; the
// parallelism must be what it was.
func (e *Env) FromParallelSeq[T any](open func(subtask, parallelism int) iter.Seq[T]) *Stream[T] {
	t := typeOf[T](e)
	return &Stream[T]{e.sourceNode("Parallel Collection Source", t, true, func() operator.Operator { return source.Seq(t, open) }).untimed()}
}

// FromSequence is a stream of the numbers from ... to, both included, from all subtasks; empty when from > to.
func (e *Env) FromSequence(from, to int64) *Stream[int64] {
	t := typeOf[int64](e)
	return &Stream[int64]{e.sourceNode("Sequence Source", t, true, func() operator.Operator { return source.Sequence(t, from, to) }).untimed()}
}

// FromCollection is FromSlice under Flink's name.
func (e *Env) FromCollection[T any](xs []T) *Stream[T] { return e.FromSlice(xs) }

// FromParallelCollection is FromParallelSeq under Flink's name: open gives each subtask its part of the collection.
func (e *Env) FromParallelCollection[T any](open func(subtask, parallelism int) iter.Seq[T]) *Stream[T] {
	return e.FromParallelSeq(open)
}

// GenerateSequence is FromSequence under the name of Flink 1.
func (e *Env) GenerateSequence(from, to int64) *Stream[int64] { return e.FromSequence(from, to) }

// FromSource is a stream of the elements of a connector's source.
func (e *Env) FromSource[T, S any](src connector.Source[T, S], name string) *Stream[T] {
	t := typeOf[T](e)
	split, err := serde.Of[S](e.e.Settings.Serde...)
	if err != nil {
		e.report(err)
	}
	src = placed(e, src)
	var c *core
	c = e.sourceNode(name, t, true, func() operator.Operator {
		return source.ReaderWithSides(t, split, src, c.node.Side, reportBad)
	})
	c.sided().inspect(src)
	c.node.NewCoordinator = func() operator.Coordinator { return source.Enumerator(split, src) }
	return &Stream[T]{c}
}
