package stream

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/graph"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/internal/operator/iterate"
	"github.com/flott-dev/flott/internal/vfs"
)

// DefaultFeedbackMemory is how many bytes of fed-back elements each subtask of an iteration keeps in memory.
const DefaultFeedbackMemory = 32 << 20

// IterativeStream is the beginning of a feedback loop: the elements of the stream that Iterate was called on, and those
// that CloseWith feeds back.
type IterativeStream[T any] struct {
	*Stream[T]
	loop *loop
}

// loop is a feedback loop that is being built.
type loop struct {
	env  *Env
	head *graph.Node
	run  *iterate.Loop
	tail *graph.Node // nil until it is closed
}

// Iterate begins a feedback loop on s, which CloseWith closes. The operators between the two are its body: they handle the
// stream's elements and those that are fed back alike, until they let an element leave the loop or drop it. What is fed
// back goes before new elements, from a queue that goes on in files when it outgrows its memory, so that a loop whose body
// adds elements does not block itself.
//
// When the stream ends, the loop goes on until no element is in it any more, whatever the body drops or adds and at any
// parallelism; only then does the body see the last watermark, and the end. With a maximum wait (at most one is given)
// the loop also ends, once the stream has, when nothing has been fed back for that time: elements that are still under
// way then are lost. How many, the log, the metric and the accumulator numFeedbackRecordsDropped tell.
//
// Watermarks of the stream pass the loop as they come; feedback makes none and holds none back, so that elements that
// went round may be late. A loop may contain another one; other streams may join its body, and it does not end before
// they have (a stream of an outer loop must enter an inner one at its beginning). The subtasks are as many as those of the
// stream's operator; IterativeStream.Parallelism changes that.
//
// It is a function, not a method, so that only programs with loops pay for compiling them.
func Iterate[T any](s *Stream[T], maxWait ...time.Duration) *IterativeStream[T] {
	c, l := s.c.iterate(maxWait)
	return &IterativeStream[T]{Stream: &Stream[T]{c}, loop: l}
}

// CloseWith closes the loop: the elements of feedback, which must come from the iterative stream, go back to its
// beginning. They find their subtask as the stream's elements do unless feedback says otherwise (Rebalance, KeyBy ...).
// Feedback that comes from several places is united first. The result is feedback itself.
func (s *IterativeStream[T]) CloseWith(feedback *Stream[T]) *Stream[T] {
	s.loop.close(feedback.c, true)
	return feedback
}

// Parallelism sets the number of subtasks of both ends of the loop.
func (s *IterativeStream[T]) Parallelism(n int) *IterativeStream[T] {
	s.Stream.Parallelism(n)
	s.loop.follow()
	return s
}

// FeedbackMemory sets how many bytes of fed-back elements each subtask keeps in memory before it writes to files in the
// system's folder for temporary files. Default: DefaultFeedbackMemory.
func (s *IterativeStream[T]) FeedbackMemory(bytes int64) *IterativeStream[T] {
	s.loop.memory(bytes)
	return s
}

// WithFeedbackType makes a loop whose feedback is of another type than its stream: the body begins with the two of them
// connected. Nothing else may read the iterative stream itself.
func (s *IterativeStream[T]) WithFeedbackType[F any]() *ConnectedIterativeStreams[T, F] {
	back := s.loop.second(s.c, typeOf[F](s.c.env))
	return &ConnectedIterativeStreams[T, F]{ConnectedStreams: &ConnectedStreams[T, F]{s.c.with(back)}, loop: s.loop}
}

// ConnectedIterativeStreams is the beginning of a feedback loop with feedback of its own type: the first stream is the
// one that Iterate was called on, the second one is what is fed back.
type ConnectedIterativeStreams[T, F any] struct {
	*ConnectedStreams[T, F]
	loop *loop
}

// CloseWith closes the loop: the elements of feedback, which must come from the iterative streams, are the second stream.
// The result is feedback itself.
func (s *ConnectedIterativeStreams[T, F]) CloseWith(feedback *Stream[F]) *Stream[F] {
	s.loop.close(feedback.c, false)
	return feedback
}

// iterate makes a loop's head.
func (c *core) iterate(maxWait []time.Duration) (*core, *loop) {
	e := c.env
	wait := int64(0)
	switch {
	case len(maxWait) > 1:
		e.report(fmt.Errorf("iterate: %d maximum waits are given", len(maxWait)))
	case len(maxWait) == 1 && maxWait[0] < time.Millisecond:
		e.report(fmt.Errorf("iterate: the maximum wait %v is less than a millisecond", maxWait[0]))
	case len(maxWait) == 1:
		wait = maxWait[0].Milliseconds()
	}
	n := newNode(graph.IterationHead, "Iteration Head", c.typ)
	n.Inputs = c.edges()
	n.Parallelism = c.ownParallelism()
	l := &loop{env: e, head: n, run: iterate.NewLoop(iterate.Options{
		ID: e.loops, MaxWait: wait, Memory: DefaultFeedbackMemory, FS: vfs.OS{}, Dir: os.TempDir,
	})}
	e.loops++
	typ := c.typ
	n.New = func() operator.Operator { return iterate.Head(l.run, typ, typ) }
	n.NewCoordinator = iterate.Coordinator
	return e.add(n), l
}

// ownParallelism is that of the one operator that the stream comes from, unset if there are several.
func (c *core) ownParallelism() int {
	if len(c.from) != 1 {
		return unset
	}
	n := c.from[0].node
	if n.NonParallel {
		return 1
	}
	return n.Parallelism
}

var errClosed = errors.New("the iteration is closed: unite what is fed back")

// close makes the loop's tail.
func (l *loop) close(feedback *core, sameType bool) {
	if l.tail != nil {
		l.env.report(fmt.Errorf("close an iteration: %w", errClosed))
		return
	}
	typ := feedback.typ
	n := newNode(graph.IterationTail, "Iteration Tail", typ)
	n.Inputs = feedback.edges()
	for i := range n.Inputs {
		if e := &n.Inputs[i]; e.Partitioner == nil {
			e.Partitioner = l.partitioner(sameType)
		}
	}
	n.New = func() operator.Operator { return iterate.Tail(l.run, typ) }
	back := graph.Edge{From: n, Feedback: true}
	if !sameType {
		back.Input = 1
	}
	l.head.Inputs = append(l.head.Inputs, back)
	l.tail = n
	l.follow()
	l.env.add(n)
}

// partitioner is how the loop's stream finds the subtasks of the head, if feedback can go the same way.
func (l *loop) partitioner(sameType bool) *graph.Partitioner {
	p := l.head.Inputs[0].Partitioner
	if p == nil || p.Strategy == graph.Forward || !sameType && (p.Strategy == graph.Hash || p.Strategy == graph.Custom) {
		return nil
	}
	return p
}

// follow gives both ends the same number of subtasks.
func (l *loop) follow() {
	if l.tail != nil {
		l.tail.Parallelism = l.head.Parallelism
	}
}

func (l *loop) memory(bytes int64) {
	if bytes < 0 {
		l.env.report(fmt.Errorf("set the memory of feedback to %d bytes: it must not be negative", bytes))
		return
	}
	l.run.Memory = bytes
}

// second is the stream of what is fed back.
func (l *loop) second(c *core, typ *frame.Type) *core {
	in := c.typ
	l.head.New = func() operator.Operator { return iterate.Head(l.run, in, typ) }
	return c.sided().side(iterate.FeedbackTag, typ)
}
