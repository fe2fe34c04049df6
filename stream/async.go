package stream

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/flott-dev/flott/internal/graph"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/internal/operator/async"
)

// DefaultAsyncCapacity is the number of elements under way in a subtask of an asynchronous operator that says nothing.
const DefaultAsyncCapacity = 100

// ErrAsyncTimeout is wrapped by the failure of a job whose asynchronous call took too long.
var ErrAsyncTimeout = async.ErrTimeout

// AsyncOptions are the settings of an asynchronous operator. The zero value waits for ever, fails at the first error and
// has DefaultAsyncCapacity.
type AsyncOptions[T, R any] struct {
	// Capacity bounds the elements and watermarks that are under way in a subtask; when it is reached the operator
	// backpressures. Default DefaultAsyncCapacity.
	Capacity int
	// Timeout bounds the time that an element is under way, all tries together, in processing time rounded up to ms.
	// The call's context ends with it. Default 0: without bound.
	Timeout time.Duration
	// OnTimeout gives the results of an element whose time is up, on the subtask's goroutine. Default: the job fails with
	// ErrAsyncTimeout.
	OnTimeout func(x T) ([]R, error)
	// Retry says whether and when a call is made again. Default: never.
	Retry AsyncRetry[R]
}

// AsyncRetry says when a call is made again. With a Multiplier the delays grow: Delay, Delay*Multiplier,
// Delay*Multiplier^2 ..., MaxDelay at most; without it they are all Delay. What the last try gave counts. A call that
// panicked is not made again.
type AsyncRetry[R any] struct {
	// MaxAttempts is how often a call is made again at most; the first time does not count. Default 0: never.
	MaxAttempts int
	// Delay is the pause before a call is made again, in processing time.
	Delay time.Duration
	// Multiplier lets each delay be that many times the one before; 0 and 1 keep it, others must be above 1.
	Multiplier float64
	// MaxDelay bounds growing delays. Default 0: without bound.
	MaxDelay time.Duration
	// IfError says for which errors the call is made again. Default: for all.
	IfError func(error) bool
	// IfResult says for which results the call is made again, for none of them for example. Default: never.
	IfResult func([]R) bool
}

// AsyncOrdered calls f for many elements at a time, each call on a goroutine of its own, and replaces each element by the
// results of its call, in the order of the elements (Flink: orderedWait). Results have the timestamp of their element. An
// error fails the job; ctx ends with the element's timeout or the job, and f must return then. f is called concurrently
// with itself. The operator begins a chain.
func (s *Stream[T]) AsyncOrdered[R any](f func(ctx context.Context, x T) ([]R, error), o AsyncOptions[T, R]) *Stream[R] {
	return s.async[R]("Async Ordered Wait", async.Ordered, f, o)
}

// AsyncUnordered is AsyncOrdered with results that go on as soon as they are there; they don't pass watermarks, so that
// no element becomes late (Flink: unorderedWait).
func (s *Stream[T]) AsyncUnordered[R any](f func(ctx context.Context, x T) ([]R, error), o AsyncOptions[T, R]) *Stream[R] {
	return s.async[R]("Async Unordered Wait", async.Unordered, f, o)
}

func (s *Stream[T]) async[R any](name string, order async.Order, f func(context.Context, T) ([]R, error), o AsyncOptions[T, R]) *Stream[R] {
	s.c.env.checkAsync(o.Capacity, o.Timeout)
	s.c.env.checkAsyncRetry(o.Retry.MaxAttempts, o.Retry.Multiplier, o.Retry.Delay, o.Retry.MaxDelay)
	opt := async.Options[T, R]{Order: order, Capacity: o.Capacity, Timeout: millisUp(o.Timeout), OnTimeout: o.OnTimeout}
	if opt.Capacity == 0 {
		opt.Capacity = DefaultAsyncCapacity
	}
	if o.Retry.MaxAttempts > 0 {
		opt.Retry = o.Retry.decide
	}
	in, out := s.c.typ, typeOf[R](s.c.env)
	c := s.c.apply(name, out, func() operator.Operator { return async.New(in, out, f, opt) })
	// While it waits it serves the subtask's mailbox: nothing above it in the chain may be in the middle of its work.
	c.node.Chaining, c.node.Yielding = graph.Head, true
	return &Stream[R]{c}
}

func (e *Env) checkAsync(capacity int, timeout time.Duration) {
	if capacity < 0 {
		e.report(fmt.Errorf("set capacity %d of an asynchronous operator: it must be at least 1", capacity))
	}
	if timeout < 0 {
		e.report(fmt.Errorf("set timeout %v of an asynchronous operator: it must not be negative", timeout))
	}
}

func (e *Env) checkAsyncRetry(attempts int, multiplier float64, delay, limit time.Duration) {
	switch {
	case attempts < 0:
		e.report(fmt.Errorf("set %d attempts of an asynchronous operator: they must not be negative", attempts))
	case delay < 0 || limit < 0:
		e.report(fmt.Errorf("set delays %v to %v of an asynchronous operator: they must not be negative", delay, limit))
	case multiplier != 0 && !(multiplier >= 1):
		e.report(fmt.Errorf("set delay multiplier %v of an asynchronous operator: it must be at least 1", multiplier))
	}
}

// millisUp is d in ms, rounded up.
func millisUp(d time.Duration) int64 {
	ms := d.Milliseconds()
	if d%time.Millisecond > 0 {
		ms++
	}
	return ms
}

// decide says whether what came of the tries-th call, from 1, is to be tried again, and in how many ms.
func (r AsyncRetry[R]) decide(tries int, results []R, err error) (delay int64, again bool) {
	if tries > r.MaxAttempts {
		return 0, false
	}
	if err != nil {
		again = r.IfError == nil || r.IfError(err)
	} else {
		again = r.IfResult != nil && r.IfResult(results)
	}
	return asyncDelay(tries, r.Delay, r.MaxDelay, r.Multiplier), again
}

// asyncDelay is the pause after the tries-th call in ms.
func asyncDelay(tries int, first, limit time.Duration, multiplier float64) int64 {
	d := float64(first)
	if multiplier > 1 {
		d *= math.Pow(multiplier, float64(tries-1))
	}
	if limit > 0 {
		d = min(d, float64(limit))
	}
	if d >= math.MaxInt64 {
		return millisUp(math.MaxInt64)
	}
	return millisUp(time.Duration(d))
}
