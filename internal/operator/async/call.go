package async

import (
	"context"
	"errors"
	"fmt"
	"time"
	"unsafe"

	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/watermark"
)

// ErrTimeout is wrapped by the failure of a task whose call took too long.
var ErrTimeout = errors.New("async call timed out")

// errEnded is the failure of a call whose function ended its goroutine.
var errEnded = errors.New("the function ended its goroutine")

// Options are the settings of an operator.
type Options[T, R any] struct {
	Order Order
	// Capacity bounds the elements and watermarks under way; at least 1.
	Capacity int
	// Timeout is how long an element may be under way, all tries together, in ms of processing time; 0: for ever.
	Timeout int64
	// OnTimeout gives the results of an element whose time is up; nil: the task fails.
	OnTimeout func(x T) ([]R, error)
	// Retry says whether the function is to be called again after its tries-th call, from 1, and in how many ms. Nil:
	// never. Panics are not retried.
	Retry func(tries int, results []R, err error) (delay int64, again bool)
}

// caller calls f for each element.
type caller[T, R any] struct {
	driver
	f       func(context.Context, T) ([]R, error)
	opt     Options[T, R]
	emitter operator.Emitter
	out     *process.Collector[R]
	lent    frame.Run
	lentAt  [1]int64
	failed  *call[T, R] // that fails the task
}

// New returns the driver of an operator that calls f for each element on goroutines of their own. f is called
// concurrently with itself.
func New[T, R any](in, out *frame.Type, f func(context.Context, T) ([]R, error), opt Options[T, R]) operator.Operator {
	return &caller[T, R]{
		driver: driver{Unary: operator.Unary{In: in, Out: operator.NewOutput(out)}, order: opt.Order, capacity: opt.Capacity},
		f:      f, opt: opt,
	}
}

func (o *caller[T, R]) Inputs() []operator.Input { return []operator.Input{o} }

func (o *caller[T, R]) Open(rt *operator.Runtime) error {
	o.emitter.Open(&o.Out)
	o.out = process.NewCollector[R](o.emitter.Column, o.emitter.Flush)
	o.again = o.resubmit
	rt.AtHand = o.atHand
	if err := o.open(rt, o.out.Flush); err != nil {
		return err
	}
	return o.restore(rt)
}

// atHand is operator.Runtime's: the element whose call has failed, which is none of those that come in.
func (o *caller[T, R]) atHand(*frame.Run) string {
	if o.failed == nil {
		return ""
	}
	return operator.AtHand(operator.NamedElement(o.failed.Lend(), 0))
}

// resubmit calls the function for an element of a snapshot. There is room in the queue.
func (o *caller[T, R]) resubmit(element []byte, time int64) error {
	c := &call[T, R]{o: o, time: time, ctx: o.ctx}
	if err := o.read(element, unsafe.Pointer(&c.x)); err != nil {
		return err
	}
	c.Call = c
	o.queue.TryPut(&c.Entry)
	c.begin()
	return nil
}

func (o *caller[T, R]) Push(r *frame.Run) error {
	for i, x := range frame.Values[T](r) {
		c := &call[T, R]{o: o, x: x, time: r.Time(i), ctx: o.ctx}
		c.Call = c
		if err := o.admit(&c.Entry); err != nil {
			return err
		}
		c.begin()
	}
	return o.drain()
}

// call is an element under way.
type call[T, R any] struct {
	Entry
	o       *caller[T, R]
	x       T
	time    int64
	ctx     context.Context
	cancel  context.CancelCauseFunc // only with a timeout
	timeout *operator.Callback
	again   *operator.Callback // the next try
	tries   int
	attempt attempt[T, R]
	results []R
}

// begin starts the clock and the first try.
func (c *call[T, R]) begin() {
	o := c.o
	if o.opt.Timeout > 0 {
		c.ctx, c.cancel = context.WithCancelCause(c.ctx)
		c.timeout = o.RT.Timers.Schedule(watermark.Add(o.RT.Now, o.opt.Timeout), c.expire)
	}
	c.try()
}

func (c *call[T, R]) try() {
	c.tries++
	c.attempt = attempt[T, R]{call: c}
	c.o.RT.Spawn.Go(c.attempt.run)
}

// complete ends the call with its results.
func (c *call[T, R]) complete(results []R) {
	timers := c.o.RT.Timers
	if c.timeout != nil {
		timers.Cancel(c.timeout)
		c.cancel(nil)
	}
	if c.again != nil {
		timers.Cancel(c.again)
	}
	c.results = results
	c.o.queue.Complete(&c.Entry)
}

// expire is called when the element's time is up.
func (c *call[T, R]) expire(int64) error {
	o := c.o
	o.RT.At, o.RT.Run = o.RT, nil
	if err := o.drain(); err != nil || c.done { // what came in time counts, even if nobody has looked yet
		return err
	}
	c.cancel(ErrTimeout)
	o.failed = c
	if o.opt.OnTimeout == nil {
		return fmt.Errorf("wait for the call of an element: %w after %v", ErrTimeout, time.Duration(o.opt.Timeout)*time.Millisecond)
	}
	results, err := o.opt.OnTimeout(c.x)
	if err != nil {
		return fmt.Errorf("handle the timeout of an element: %w", err)
	}
	o.failed = nil
	c.complete(results)
	return o.drain()
}

// retry is called when the pause before the next try is over.
func (c *call[T, R]) retry(int64) error {
	c.again = nil
	c.try()
	return nil
}

// Emit implements Call.
func (c *call[T, R]) Emit() {
	out := c.o.out
	out.SetTime(c.time)
	for _, r := range c.results {
		out.Collect(r)
	}
}

// Lend implements Call.
func (c *call[T, R]) Lend() *frame.Run {
	o := c.o
	o.lent = frame.Run{Type: o.In, P: unsafe.Pointer(&c.x), N: 1, Shared: true}
	if c.time != frame.NoTime {
		o.lentAt[0] = c.time
		o.lent.Times = o.lentAt[:]
	}
	return &o.lent
}

// attempt is the present try of a call. Its goroutine writes it; once it is delivered it is the subtask's, who may start
// the next.
type attempt[T, R any] struct {
	call     *call[T, R]
	results  []R
	err      error
	returned bool
}

func (a *attempt[T, R]) run() {
	defer a.end()
	a.results, a.err = a.call.o.f(a.call.ctx, a.call.x)
	a.returned = true
}

// end is deferred, so that it sees panics and goroutines that were ended.
func (a *attempt[T, R]) end() {
	if !a.returned {
		a.err = errEnded
		if p := recover(); p != nil {
			a.err = operator.Recovered(p)
		}
	}
	a.call.o.deliver(a)
}

// settle takes the attempt's outcome to the subtask.
func (a *attempt[T, R]) settle() error {
	c := a.call
	if c.done {
		return nil // its time was up
	}
	o := c.o
	o.failed = c
	if retry := o.opt.Retry; retry != nil && a.returned {
		if delay, again := retry(c.tries, a.results, a.err); again {
			if delay <= 0 {
				c.try()
			} else {
				c.again = o.RT.Timers.Schedule(watermark.Add(o.RT.Now, delay), c.retry)
			}
			o.failed = nil
			return nil
		}
	}
	if a.err != nil {
		return fmt.Errorf("call the function for an element: %w", a.err)
	}
	o.failed = nil
	c.complete(a.results)
	return nil
}
