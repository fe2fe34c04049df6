package stream

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"unsafe"

	"github.com/flott-dev/flott/connector"
	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/graph"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/internal/operator/sink"
	"github.com/flott-dev/flott/serde"
)

// Sink is the end of a stream; its methods configure the operator.
type Sink struct{ c *core }

// ForEach calls f for each element, in the order of each subtask's stream. f takes the element or its address (for the
// time of the call). Subtasks call it concurrently.
func (s *Stream[T]) ForEach[F func(T) | func(*T)](f F) *Sink {
	typ := s.c.typ
	return s.c.sink("For Each", func() operator.Operator { return sink.Each[T](typ, f) })
}

// AddSink calls f for each element with its timestamp, watermark and processing time; an error fails the task, ctx ends
// with it. Subtasks call it concurrently.
func (s *Stream[T]) AddSink[E connector.ElementContext](f func(ctx context.Context, x T, at E) error) *Sink {
	typ := s.c.typ
	return s.c.sink("Function", func() operator.Operator {
		return sink.TryEach(typ, func(ctx context.Context, x T, at connector.ElementContext) error { return f(ctx, x, E(at)) })
	})
}

// SinkTo writes the stream with a connector's sink. One that commits in two phases goes to CommitTo: here it is a mistake.
func (s *Stream[T]) SinkTo[W connector.Sink[T]](w W) *Sink {
	typ, to := s.c.typ, placed[connector.Sink[T]](s.c.env, w)
	out := s.c.sink("Writer", func() operator.Operator { return sink.Writer[T](typ, to) })
	out.c.inspect(to)
	out.c.refuseCommitting(to)
	return out
}

// CommitTo writes the stream with a sink that commits in two phases: each subtask commits what its writer has prepared at
// the end of its input, with up to ten tries where the committer says that another one may help (connector.ErrRetry). A
// subtask that fails or is cancelled before commits nothing; what another one has committed by then stays.
func (s *Stream[T]) CommitTo[C any](w connector.CommittingSink[T, C]) *Sink {
	typ := s.c.typ
	committable, err := serde.Of[C](s.c.env.e.Settings.Serde...)
	if err != nil {
		s.c.env.report(fmt.Errorf("commit in two phases: %w", err))
	}
	w = placed(s.c.env, w)
	out := s.c.sink("Committing Writer", func() operator.Operator { return sink.Committing(typ, committable, w) })
	out.c.inspect(w)
	return out
}

// Discard reads the stream and drops it.
func (s *Stream[T]) Discard() *Sink { return s.c.discard() }

// Print writes a line per element to standard output; with more than one subtask each line begins with the subtask's
// number, from 1, and "> ".
func (s *Stream[T]) Print() *Sink { return s.c.print(os.Stdout, "Print to Std. Out", "") }

// PrintToErr is Print to standard error.
func (s *Stream[T]) PrintToErr() *Sink { return s.c.print(os.Stderr, "Print to Std. Err", "") }

// PrintAs is Print with an identifier before the subtask's number.
func (s *Stream[T]) PrintAs(id string) *Sink { return s.c.print(os.Stdout, "Print to Std. Out", id) }

// PrintTo is Print to w, which all subtasks of this process share: each run is one call of Write.
func (s *Stream[T]) PrintTo(w io.Writer) *Sink { return s.c.print(w, "Print", "") }

//go:noinline
func (c *core) discard() *Sink {
	typ := c.typ
	return c.sink("Discard", func() operator.Operator {
		return sink.Erased(typ, func(*operator.Runtime) (func(*frame.Run) error, func() error, error) {
			return func(*frame.Run) error { return nil }, nil, nil
		})
	})
}

//go:noinline
func (c *core) print(w io.Writer, name, id string) *Sink {
	typ := c.typ
	return c.sink(name, func() operator.Operator {
		return sink.Erased(typ, func(rt *operator.Runtime) (func(*frame.Run) error, func() error, error) {
			prefix := printPrefix(id, rt.Subtask, rt.Parallelism)
			buf := bufio.NewWriterSize(w, 64<<10)
			return func(r *frame.Run) error {
				for i := range r.N {
					buf.WriteString(prefix)
					fmt.Fprintln(buf, typ.Box(unsafe.Pointer(r.At(i))))
				}
				if err := buf.Flush(); err != nil {
					return fmt.Errorf("print: %w", err)
				}
				return nil
			}, nil, nil
		})
	})
}

// printPrefix is Flink's: "n> " with several subtasks, "id> " or "id:n> " with an identifier.
func printPrefix(id string, subtask, parallelism int) string {
	switch {
	case parallelism > 1 && id != "":
		return fmt.Sprintf("%s:%d> ", id, subtask+1)
	case parallelism > 1:
		return fmt.Sprintf("%d> ", subtask+1)
	case id != "":
		return id + "> "
	}
	return ""
}

// Name sets the sink's name in plans, metrics and errors.
func (s *Sink) Name(name string) *Sink { s.c.name(name); return s }

// Description sets a longer text for the plan.
func (s *Sink) Description(text string) *Sink { s.c.describe(text); return s }

// UID sets the sink's stable identity.
func (s *Sink) UID(uid string) *Sink { s.c.uid(uid); return s }

// UIDHash forces the identity itself: 32 hex digits.
func (s *Sink) UIDHash(hex string) *Sink { s.c.uidHash(hex); return s }

// Parallelism sets the sink's number of subtasks.
func (s *Sink) Parallelism(n int) *Sink { s.c.parallelism(n); return s }

// MaxParallelism sets the sink's number of key groups.
func (s *Sink) MaxParallelism(n int) *Sink { s.c.maxParallelism(n); return s }

// SlotSharingGroup puts the sink into a group.
func (s *Sink) SlotSharingGroup(group string) *Sink { s.c.slotGroup(group); return s }

// DisableChaining gives the sink a task of its own.
func (s *Sink) DisableChaining() *Sink { s.c.chaining(graph.Never); return s }

// StartNewChain keeps the sink out of its input's task.
func (s *Sink) StartNewChain() *Sink { s.c.chaining(graph.Head); return s }
