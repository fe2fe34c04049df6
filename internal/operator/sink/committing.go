package sink

import (
	"errors"
	"fmt"

	"github.com/flott-dev/flott/connector"
	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/host"
	"github.com/flott-dev/flott/internal/operator"
)

// A commit that may be tried again is tried up to commitTries times, after firstPause ms, then twice as long each time,
// longestPause at most.
const (
	commitTries  = 10
	firstPause   = 100
	longestPause = 10_000
)

// committing drives the writer of a two-phase-commit sink: what it prepared is committed at the end of the input. A task
// that fails or is cancelled before commits nothing.
type committing[T, C any] struct {
	writer[T]
	sink      connector.CommittingSink[T, C]
	preparer  connector.CommittingWriter[T, C]
	committer connector.Committer[C]
}

// Committing returns the driver of a connector's sink with two-phase commit.
func Committing[T, C any](typ *frame.Type, s connector.CommittingSink[T, C]) operator.Operator {
	return &committing[T, C]{writer: writer[T]{tail: tail{in: typ}, sink: s}, sink: s}
}

func (o *committing[T, C]) Inputs() []operator.Input { return []operator.Input{o} }

func (o *committing[T, C]) Open(rt *operator.Runtime) (err error) {
	if err = o.writer.Open(rt); err != nil {
		return err
	}
	var ok bool
	if o.preparer, ok = o.w.(connector.CommittingWriter[T, C]); !ok {
		return fmt.Errorf("open the writer: a %T of a committing sink does not prepare commits", o.w)
	}
	if o.committer, err = o.sink.Committer(writerContext{rt}); err != nil {
		return fmt.Errorf("open the committer: %w", err)
	}
	return nil
}

func (o *committing[T, C]) Mark(m frame.Mark) error {
	if m.Kind != frame.End {
		return o.tail.Mark(m)
	}
	if err := o.rt.Ctx.Err(); err != nil { // the word of a cancellation may come after the input's end
		return fmt.Errorf("commit at the end of the input: %w", err)
	}
	if err := o.end(); err != nil {
		return err
	}
	prepared, err := o.preparer.Prepare()
	if err != nil {
		return fmt.Errorf("prepare the commit at the end of the input: %w", err)
	}
	if len(prepared) == 0 {
		return nil
	}
	return o.commit(prepared)
}

// commit commits, again while the committer says that another try may help.
func (o *committing[T, C]) commit(prepared []C) error {
	pause := int64(firstPause)
	for try := 1; ; try++ {
		err := o.committer.Commit(o.rt.Ctx, prepared)
		if err == nil {
			return nil
		}
		if !errors.Is(err, connector.ErrRetry) || try == commitTries {
			return fmt.Errorf("commit at the end of the input, try %d: %w", try, err)
		}
		if err := o.pause(pause); err != nil {
			return err
		}
		pause = min(2*pause, longestPause)
	}
}

// pause waits at the subtask's waiting point.
func (o *committing[T, C]) pause(ms int64) error {
	until := o.rt.Clock.Millis() + ms
	for o.rt.Clock.Millis() < until {
		if err := o.rt.Ctx.Err(); err != nil {
			return fmt.Errorf("wait to commit again: %w", err)
		}
		o.rt.Waiter.Wait(host.Idle, until)
	}
	return nil
}

func (o *committing[T, C]) Close() error {
	err := o.writer.Close()
	if o.committer != nil {
		err = errors.Join(err, o.committer.Close())
	}
	return err
}
