package sink

import (
	"errors"
	"fmt"
	"unsafe"

	"github.com/flott-dev/flott/checkpoint"
	"github.com/flott-dev/flott/connector"
	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/host"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/serde"
)

// A commit that may be tried again is tried up to commitTries times, after firstPause ms, then twice as long each time,
// longestPause at most.
const (
	commitTries  = 10
	firstPause   = 100
	longestPause = 10_000
)

// committing drives the writer of a two-phase-commit sink: what it prepares for a checkpoint is committed when that
// checkpoint, or a later one, is complete, and again after a restore from it. Where no checkpoint follows the end of the
// input, all is committed there. A task that fails or is cancelled before commits nothing.
type committing[T, C any] struct {
	writer[T]
	sink      connector.CommittingSink[T, C]
	typ       *serde.Handle // of C
	preparer  connector.CommittingWriter[T, C]
	committer connector.Committer[C]
	prepared  []prepared[C] // in the order of checkpoints
}

// prepared is what waits for a checkpoint.
type prepared[C any] struct {
	checkpoint   int64
	committables []C
}

// Committing returns the driver of a connector's sink with two-phase commit. committable is the handle of C.
func Committing[T, C any](typ *frame.Type, committable *serde.Handle, s connector.CommittingSink[T, C]) operator.Operator {
	return &committing[T, C]{writer: writer[T]{tail: tail{in: typ}, sink: s}, sink: s, typ: committable}
}

func (o *committing[T, C]) Inputs() []operator.Input { return []operator.Input{o} }

func (o *committing[T, C]) Open(rt *operator.Runtime) (err error) {
	if o.committer, err = o.sink.Committer(writerContext{rt}); err != nil {
		return fmt.Errorf("open the committer: %w", err)
	}
	if err = o.recommit(rt); err != nil {
		return err
	}
	if err = o.writer.Open(rt); err != nil {
		return err
	}
	var ok bool
	if o.preparer, ok = o.w.(connector.CommittingWriter[T, C]); !ok {
		return fmt.Errorf("open the writer: a %T of a committing sink does not prepare commits", o.w)
	}
	return nil
}

// recommit commits what the snapshot says was prepared: its checkpoint is complete.
func (o *committing[T, C]) recommit(rt *operator.Runtime) error {
	l := rt.Restored.List(committablesName)
	if l == nil || len(l.Items) == 0 {
		return nil
	}
	read, err := operator.Decoder(o.typ, l.Schema)
	if err != nil {
		return fmt.Errorf("restore what is to be committed: %w", err)
	}
	all := make([]C, len(l.Items))
	for i, item := range l.Items {
		if err := read(item, unsafe.Pointer(&all[i])); err != nil {
			return fmt.Errorf("restore what is to be committed: %w", err)
		}
	}
	o.rt = rt
	return o.commit(all, "after a restore")
}

// Snapshot implements operator.Snapshotter: everything that waits for a checkpoint, now also what was written since the
// last one.
func (o *committing[T, C]) Snapshot(s *operator.Snapshot) error {
	if err := o.flush(); err != nil {
		return err
	}
	fresh, err := o.preparer.Prepare()
	if err != nil {
		return fmt.Errorf("prepare the commit of checkpoint %d: %w", s.ID, err)
	}
	if len(fresh) != 0 {
		o.prepared = append(o.prepared, prepared[C]{s.ID, fresh})
	}
	l := checkpoint.List{Name: committablesName, Schema: o.typ.Schema()}
	for _, p := range o.prepared {
		for i := range p.committables {
			item, err := o.typ.Append(nil, unsafe.Pointer(&p.committables[i]))
			if err != nil {
				return fmt.Errorf("snapshot what is to be committed: %w", err)
			}
			l.Items = append(l.Items, item)
		}
	}
	s.Lists = append(s.Lists, l)
	return o.keep(s)
}

// CheckpointCompleted implements operator.CheckpointListener: what was prepared for the checkpoint and those before it is
// committed.
func (o *committing[T, C]) CheckpointCompleted(id int64) error {
	var all []C
	n := 0
	for n < len(o.prepared) && o.prepared[n].checkpoint <= id {
		all = append(all, o.prepared[n].committables...)
		n++
	}
	if n == 0 {
		return nil
	}
	if err := o.commit(all, fmt.Sprintf("with checkpoint %d", id)); err != nil {
		return err
	}
	o.prepared = o.prepared[n:]
	return nil
}

// CheckpointAborted implements operator.CheckpointListener: what was prepared waits for the next one.
func (o *committing[T, C]) CheckpointAborted(int64) error { return nil }

func (o *committing[T, C]) Mark(m frame.Mark) error {
	if m.Kind != frame.End {
		return o.tail.Mark(m)
	}
	if err := o.rt.Ctx.Err(); err != nil { // the word of a cancellation may come after the input's end
		return fmt.Errorf("commit at the end of the input: %w", err)
	}
	if err := o.end(); err != nil || o.rt.FinalCheckpoint {
		return err
	}
	last, err := o.preparer.Prepare()
	if err != nil {
		return fmt.Errorf("prepare the commit at the end of the input: %w", err)
	}
	var all []C
	for _, p := range o.prepared {
		all = append(all, p.committables...)
	}
	if all = append(all, last...); len(all) == 0 {
		return nil
	}
	o.prepared = nil
	return o.commit(all, "at the end of the input")
}

// commit commits, again while the committer says that another try may help.
func (o *committing[T, C]) commit(prepared []C, when string) error {
	pause := int64(firstPause)
	for try := 1; ; try++ {
		err := o.committer.Commit(o.rt.Ctx, prepared)
		if err == nil {
			return nil
		}
		if !errors.Is(err, connector.ErrRetry) || try == commitTries {
			return fmt.Errorf("commit %s, try %d: %w", when, try, err)
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
