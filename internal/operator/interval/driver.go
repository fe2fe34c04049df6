// Package interval holds the driver of interval joins: two streams that are keyed alike, whose elements are paired when
// their timestamps lie within bounds of each other. It owns both sides' buffers, which are keyed state, and the
// event-time timers that clean them; it knows nothing of windows. Package stream makes it. Only the loops that hand
// elements to user closures are generic.
//
// # Buffers
//
// The elements of one side lie in a map per key and bucket of times, as wide as the interval (rounded up to a power of two
// ms): a search looks into two buckets at most and skips what lies there out of range, so that it costs what it finds,
// however much of the key is kept: because the watermark is far behind, or the interval far from zero. One map per key
// without buckets saves a tenth with 100,000 keys of few elements, and costs 300 times as much with one key that has 20 s
// of elements, one a millisecond (BenchmarkIntervalJoin).
//
// With many keys the time goes into waiting for memory: of each element a few lines that are in no cache. So the maps that the next
// elements of a run need are found together (statebackend.NearMapTable), and timers are taken together for the same reason: with
// 100,000 keys two thirds of the time.
//
// # Late elements
//
// As in Flink's IntervalJoinOperator an element is late if its timestamp is below the watermark: one that is at the
// watermark still joins with what is there. An element of time t is kept until the watermark is at t + the bound beyond
// which its partners would be late.
package interval

import (
	"unsafe"

	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/internal/operator/co"
	"github.com/flott-dev/flott/internal/operator/keyed"
	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/serde"
)

// Config is what a join is told beside its function.
type Config struct {
	Bounds Bounds
	// Late are the tags of the side outputs for late elements of either side; "" drops and counts them.
	Late [2]string
	Keys [2]*operator.Key
	// Sides are the types of the side outputs that somebody reads.
	Sides map[string]*frame.Type
}

// driver joins by a process.JoinFunction, or by a function of the elements' addresses.
type driver[A, B, R any] struct {
	co.Sided[process.JoinFunction[A, B, R], R]
	matcher
	construct      func(*process.Runtime) process.JoinFunction[A, B, R]
	ptr            func(*A, *B) R
	ctx            *process.JoinContext
	types          [2]*serde.Handle
	piece1, piece2 func(*frame.Run) error // bound once: a method value would be allocated at each use
	a              A                      // the pair at hand
	b              B
	joining        bool // the function is being called for it
}

// Process returns the driver of a join with a process function.
func Process[A, B, R any](in co.Inputs, out *frame.Type, c Config, construct func(*process.Runtime) process.JoinFunction[A, B, R]) operator.Operator {
	return newDriver(in, out, c, construct)
}

// Join returns the driver of a join with a plain function.
func Join[A, B, R any](in co.Inputs, out *frame.Type, c Config, f func(A, B) R) operator.Operator {
	return newDriver(in, out, c, func(*process.Runtime) process.JoinFunction[A, B, R] { return plain[A, B, R](f) })
}

// JoinPtr returns the driver of a join with a function that takes addresses.
func JoinPtr[A, B, R any](in co.Inputs, out *frame.Type, c Config, f func(*A, *B) R) operator.Operator {
	o := newDriver(in, out, c, func(*process.Runtime) process.JoinFunction[A, B, R] { return nil })
	o.ptr = f
	return o
}

// plain makes a process function of a function.
type plain[A, B, R any] func(A, B) R

// ProcessElement implements process.JoinFunction.
func (f plain[A, B, R]) ProcessElement(_ *process.JoinContext, a A, b B, out *process.Collector[R]) error {
	out.Collect(f(a, b))
	return nil
}

func newDriver[A, B, R any](in co.Inputs, out *frame.Type, c Config, construct func(*process.Runtime) process.JoinFunction[A, B, R]) *driver[A, B, R] {
	o := &driver[A, B, R]{construct: construct, types: [2]*serde.Handle{in.First.Handle, in.Second.Handle}}
	o.matcher = matcher{bounds: c.Bounds, tags: c.Late, keys: keyed.NewKeys(c.Keys[:]...), pair: o.join}
	o.Sides = operator.NewSides(c.Sides)
	o.piece1, o.piece2 = o.pushPiece1, o.pushPiece2
	o.Join(in, out, o, o.push1, o.push2)
	return o
}

func (o *driver[A, B, R]) Open(rt *operator.Runtime) (err error) {
	if err = o.Sided.Open(rt); err != nil {
		return err
	}
	if err = o.keys.OpenBatched(rt, o.Sides, o); err != nil {
		return err
	}
	into := [2]unsafe.Pointer{unsafe.Pointer(&o.a), unsafe.Pointer(&o.b)}
	if err = o.matcher.open(rt, o.Sides, o.types, into); err != nil {
		return err
	}
	rt.AtHand = o.atHand
	o.ctx = process.NewJoinContext(o.keys.Services())
	o.Fn, err = operator.Construct(rt, o.keys.Store(), o.keys.Current(), o.construct)
	return err
}

func (o *driver[A, B, R]) Close() error {
	err := o.Sided.Close()
	if e := o.keys.Close(); err == nil {
		err = e
	}
	return err
}

// Snapshot implements operator.Snapshotter: the buffers are tables of the store.
func (o *driver[A, B, R]) Snapshot(s *operator.Snapshot) error {
	if err := o.Calls.Snapshot(s); err != nil {
		return err
	}
	return o.keys.Snapshot(s)
}

func (o *driver[A, B, R]) push1(r *frame.Run) error { return o.keys.Each(r, o.piece1) }

func (o *driver[A, B, R]) push2(r *frame.Run) error { return o.keys.Each(r, o.piece2) }

func (o *driver[A, B, R]) pushPiece1(r *frame.Run) error {
	if _, err := o.keys.Begin(left, r); err != nil {
		return err
	}
	for i, x := range frame.Values[A](r) {
		o.a = x
		if err := o.accept(left, r, i); err != nil {
			return err
		}
	}
	return o.Flush()
}

func (o *driver[A, B, R]) pushPiece2(r *frame.Run) error {
	if _, err := o.keys.Begin(right, r); err != nil {
		return err
	}
	for i, x := range frame.Values[B](r) {
		o.b = x
		if err := o.accept(right, r, i); err != nil {
			return err
		}
	}
	return o.Flush()
}

// atHand is operator.Runtime's: the pair with its key, or the element whose partners are looked for.
func (o *driver[A, B, R]) atHand(r *frame.Run) string {
	key, what := o.keys.Hand(r)
	if !o.joining {
		return operator.AtHand(key, what)
	}
	return operator.AtHand(key, operator.Named("left element", o.a), operator.Named("right element", o.b))
}

// join calls the user's function for the pair at hand.
func (o *driver[A, B, R]) join() (err error) {
	l, r := o.times[left], o.times[right]
	o.To.SetTime(max(l, r))
	o.joining = true
	if o.ptr != nil {
		o.To.Collect(o.ptr(&o.a, &o.b))
	} else {
		o.ctx.SetPair(l, r)
		err = o.Fn.ProcessElement(o.ctx, o.a, o.b, o.To)
	}
	o.joining = err != nil
	return err
}

// Flush implements keyed.Handler: failed accesses first, then what was emitted. Nothing of the pair stays alive.
func (o *driver[A, B, R]) Flush() error {
	var (
		a A
		b B
	)
	o.a, o.b = a, b
	o.count()
	if err := o.keys.Leave(); err != nil {
		return err
	}
	return o.Send()
}

// Fire implements keyed.Handler: all timers are those that clean the buffers.
func (o *driver[A, B, R]) Fire(_ process.Domain, _ []byte, at int64) error { return o.clean(0, at) }

// FireAll implements keyed.BatchHandler.
func (o *driver[A, B, R]) FireAll(at []int64) error { return o.cleanAll(at) }

// Advance implements co.Hooks.
func (o *driver[A, B, R]) Advance(watermark int64) error { return o.keys.Advance(watermark) }
