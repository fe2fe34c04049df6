// Package twophase turns a system that has transactions into an exactly-once sink: one transaction a subtask is open, it
// is prepared with each checkpoint and committed when the checkpoint is complete (Flink's TwoPhaseCommitSinkFunction). It
// owns the order of these steps, before and after failures, and the age of transactions; what a transaction is, the user's
// Transactions say. Streams write to a Sink with CommitTo.
package twophase

import (
	"context"
	"errors"
	"fmt"
	"time"
	"unsafe"

	"github.com/flott-dev/flott/connector"
	"github.com/flott-dev/flott/serde"
)

// Transactions is a system with transactions, as one subtask uses it. X names a transaction so that another process can
// commit or abort it; it is part of snapshots and must be encodable. All calls come from the subtask's goroutine.
type Transactions[T, X any] interface {
	// Begin begins a transaction. One that was begun behind the last complete checkpoint of a process that is killed is known to
	// no other: the system throws it away after a time of its own, or Begin gives names by which the next process finds it.
	Begin() (X, error)
	// Write adds an element to a transaction that has begun.
	Write(x X, element T, at connector.ElementContext) error
	// Prepare does all that could fail: afterwards Commit must be possible, also from another process and after a crash. No
	// Write follows.
	Prepare(x X) error
	// Commit makes a prepared transaction visible. It may be called again for one that is committed, which is success. An
	// error that wraps connector.ErrRetry is tried again.
	Commit(ctx context.Context, x X) error
	// Abort throws a transaction away, prepared or not. It may be called for one that is gone already.
	Abort(x X) error
	// Close releases the connection; called once.
	Close() error
}

// Pending is a transaction that was prepared.
type Pending[X any] struct {
	Transaction X
	// Begun is when it was begun, in ms since 1970.
	Begun int64
}

// Sink is a sink with a transaction between two checkpoints. It is made by New and may be used by all subtasks.
type Sink[T, X any] struct {
	open     func(connector.WriterContext) (Transactions[T, X], error)
	typ      *serde.Handle
	timeout  int64 // ms; 0: transactions live for ever
	forgives bool
}

// Option is a setting of New.
type Option func(*settings)

type settings struct {
	timeout  time.Duration
	forgives bool
}

// Timeout says how long the system keeps a transaction that is neither committed nor aborted; the default is for ever. It
// should be longer than the longest time that a job can be down, as what the system has thrown away can't be committed.
func Timeout(d time.Duration) Option { return func(s *settings) { s.timeout = d } }

// IgnoreFailuresAfterTimeout gives up transactions that can't be committed once they are older than the Timeout: their
// elements are lost, and counted in the metric lostTransactions. Without it the job fails until somebody decides.
func IgnoreFailuresAfterTimeout() Option { return func(s *settings) { s.forgives = true } }

// New makes a sink. open connects one subtask, twice: its writer and its committer have a connection each. It is an error if
// there is no open, X can't be encoded, or failures are to be ignored after a timeout that is not set.
func New[T, X any](open func(connector.WriterContext) (Transactions[T, X], error), opts ...Option) (*Sink[T, X], error) {
	var set settings
	for _, o := range opts {
		o(&set)
	}
	switch {
	case open == nil:
		return nil, errors.New("make a two-phase-commit sink: nothing opens the connection: the function is nil")
	case set.timeout < 0 || set.timeout > 0 && set.timeout < time.Millisecond:
		return nil, fmt.Errorf("make a two-phase-commit sink: a transaction timeout of %v: it must be 1 ms or more", set.timeout)
	case set.forgives && set.timeout == 0:
		return nil, errors.New("make a two-phase-commit sink: IgnoreFailuresAfterTimeout needs a Timeout")
	}
	typ, err := serde.Of[Pending[X]]()
	if err != nil {
		return nil, fmt.Errorf("make a two-phase-commit sink: %w", err)
	}
	return &Sink[T, X]{open: open, typ: typ, timeout: set.timeout.Milliseconds(), forgives: set.forgives}, nil
}

// Writer implements connector.Sink.
func (s *Sink[T, X]) Writer(ctx connector.WriterContext) (connector.Writer[T], error) {
	return s.writer(ctx, nil)
}

// RestoreWriter implements connector.StatefulSink: the transactions that were open at the snapshot are aborted, as what they
// hold is written again.
func (s *Sink[T, X]) RestoreWriter(ctx connector.WriterContext, _ int64, states []connector.WriterState) (connector.Writer[T], error) {
	return s.writer(ctx, states)
}

func (s *Sink[T, X]) writer(ctx connector.WriterContext, states []connector.WriterState) (_ connector.Writer[T], err error) {
	w := &writer[T, X]{sink: s, now: clockOf(ctx)}
	if w.txs, err = s.open(ctx); err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	for i := range states {
		if err == nil && states[i].Mine {
			err = w.abort(states[i].State)
		}
	}
	if err == nil {
		err = w.begin()
	}
	if err != nil {
		return nil, errors.Join(err, w.txs.Close())
	}
	return w, nil
}

// Committer implements connector.CommittingSink.
func (s *Sink[T, X]) Committer(ctx connector.WriterContext) (connector.Committer[Pending[X]], error) {
	txs, err := s.open(ctx)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	return &committer[T, X]{sink: s, txs: txs, now: clockOf(ctx), count: ctx.Counter}, nil
}

// clockOf is the processing time in ms. Contexts without one stand still: nothing grows old.
func clockOf(ctx connector.WriterContext) func() int64 {
	if t, ok := ctx.(connector.TimedContext); ok {
		return t.Now
	}
	return func() int64 { return 0 }
}

// writer has one transaction, which is open from the beginning: the snapshot names it, so that it can be aborted after a
// failure.
type writer[T, X any] struct {
	sink  *Sink[T, X]
	txs   Transactions[T, X]
	now   func() int64
	tx    Pending[X]
	open  bool
	wrote bool // something is in it
}

// begin begins the next transaction.
func (w *writer[T, X]) begin() error {
	tx, err := w.txs.Begin()
	if err != nil {
		return fmt.Errorf("begin a transaction: %w", err)
	}
	w.tx, w.open, w.wrote = Pending[X]{tx, w.now()}, true, false
	return nil
}

func (w *writer[T, X]) Write(x T, at connector.ElementContext) error {
	w.wrote = true
	if err := w.txs.Write(w.tx.Transaction, x, at); err != nil {
		return fmt.Errorf("write to a transaction: %w", err)
	}
	return nil
}

// Flush does nothing: Prepare does.
func (*writer[T, X]) Flush(bool) error { return nil }

// Prepare implements connector.CommittingWriter. A transaction with nothing in it stays open, unless it grows old.
func (w *writer[T, X]) Prepare() ([]Pending[X], error) {
	if !w.wrote {
		if old := w.sink.timeout / 2; old > 0 && w.now()-w.tx.Begun > old {
			return nil, errors.Join(w.abandon(), w.begin())
		}
		return nil, nil
	}
	if err := w.txs.Prepare(w.tx.Transaction); err != nil {
		return nil, fmt.Errorf("prepare a transaction: %w", err)
	}
	prepared := w.tx
	w.open = false // whoever commits has it now
	if err := w.begin(); err != nil {
		return nil, errors.Join(err, w.txs.Abort(prepared.Transaction))
	}
	return []Pending[X]{prepared}, nil
}

// Snapshot implements connector.StatefulWriter: it comes after Prepare and names the transaction that is open.
func (w *writer[T, X]) Snapshot(int64) ([]byte, error) {
	b, err := w.sink.typ.Append(nil, unsafe.Pointer(&w.tx))
	if err != nil {
		return nil, fmt.Errorf("snapshot the open transaction: %w", err)
	}
	return b, nil
}

// abandon aborts the open transaction.
func (w *writer[T, X]) abandon() error {
	if !w.open {
		return nil
	}
	w.open = false
	if err := w.txs.Abort(w.tx.Transaction); err != nil {
		return fmt.Errorf("abort the open transaction: %w", err)
	}
	return nil
}

// abort aborts what a snapshot says was open.
func (w *writer[T, X]) abort(state []byte) error {
	var tx Pending[X]
	if _, err := w.sink.typ.Read(state, unsafe.Pointer(&tx)); err != nil {
		return fmt.Errorf("restore the open transaction: %w", err)
	}
	if err := w.txs.Abort(tx.Transaction); err != nil {
		return fmt.Errorf("abort the transaction that was open: %w", err)
	}
	return nil
}

// Close aborts what is open.
func (w *writer[T, X]) Close() error { return errors.Join(w.abandon(), w.txs.Close()) }

type committer[T, X any] struct {
	sink  *Sink[T, X]
	txs   Transactions[T, X]
	now   func() int64
	count func(name string, n int64)
}

// Commit commits all, also those behind one that fails.
func (c *committer[T, X]) Commit(ctx context.Context, all []Pending[X]) error {
	var failed []error
	for i := range all {
		err := c.txs.Commit(ctx, all[i].Transaction)
		if err == nil {
			continue
		}
		if age := c.now() - all[i].Begun; c.sink.forgives && age > c.sink.timeout {
			c.count("lostTransactions", 1)
			continue
		}
		failed = append(failed, fmt.Errorf("commit a transaction: %w", err))
	}
	return errors.Join(failed...)
}

func (c *committer[T, X]) Close() error { return c.txs.Close() }
