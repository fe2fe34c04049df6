// Package slices holds the fast driver of windows that lie on a grid and fire by their default trigger. It owns their
// contents: one column of accumulators per slice of time, by a dense number of the key; it gives exactly the results of the
// general driver (package windowing), faster, and is chosen where nobody can tell the difference. It knows no triggers,
// evictors or window functions with a context, and holds no user's type but through the kernels of package windows.
// Package stream makes it.
//
// # Slices
//
// Time is cut where a window starts or ends, so that an element is added to one accumulator however many windows it belongs
// to. Where each slice is one window (tumbling windows, windows with gaps between them, calendars) any incremental function
// will do. Windows that overlap need one that can be regrouped; a cover keeps what they have in common (totals and stacks),
// so that going from one window to the next costs what lies in the slices that come and go.
//
// # Late elements
//
// A window fires once the watermark has reached its last ms. A late element, whose window has fired but is still kept, is
// added to its slice, and each such window of its key is put together from its slices and emitted at once; the cover follows,
// for windows that have not fired. Slices are kept as long as one of their windows is.
//
// # Order
//
// Where the order of elements matters, a key whose elements come out of the order of their slices leaves them for as long as
// that can be seen (tangles).
//
// # Memory
//
// A slice that few keys are in is a list, others have a place for each key. Keys whose elements are all gone are forgotten
// when there are more of them than of others (roster.sweep). Accumulators lie in Go memory of their type.
//
// # Snapshots
//
// A snapshot shares columns and keys with the driver (windows.Shadow). It has a row for each accumulator of a slice, with how far windows had fired. A restored driver begins there: what
// has fired does not fire again, but for late elements. The ids of keys and the covers are made anew.
package slices

import (
	"fmt"
	"math"
	"unsafe"

	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/internal/operator/windows"
	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/serde"
	"github.com/flott-dev/flott/window"
)

// driver is the operator. Windows of processing time are those of the task's now; the clock takes the watermark's part.
type driver struct {
	operator.Unary
	spec    windows.Spec
	grid    grid
	clocked bool // by processing time
	k       *windows.Incremental
	side    *operator.Sides
	emitter operator.Emitter
	late    windows.Late

	columns columns
	keys    roster
	shelf   shelf
	current *slice // of the element at hand; nowhere at first
	outside slice  // the current one if the element is in no window that is kept
	nowhere slice
	recent  []uint64 // the ids of the slice that was dropped last: they are likely to come again
	last    int      // how many those are

	lateness int64
	passed   int64    // windows whose last ms is at most that have fired: the watermark, or a time that the clock is past
	sums     *sums    // nil as cover
	cover    cover    // nil: each slice is one window
	covered  span     // the window whose slices are in the cover
	from     int64    // but for those before from
	covering bool     // there are any
	tangles  *tangles // nil: the order does not matter
	hidden   []epoch  // of a clock that went back

	at     []uint32 // places of a run's accumulators in a listed slice
	fresh  []bool
	cursor cursor
	window window.Time    // that fires
	base   *whole         // that fires, if there is one
	left   []uint64       // by id: in base, and not emitted yet
	acc    unsafe.Pointer // an accumulator that is put together
	arms   [2]arm
	place  func(r *frame.Run) error
	piece  frame.Run

	alarm *operator.Callback
	due   int64 // of the alarm
	stale bool  // the alarm may be needed earlier
	ring  func(at int64) error

	live   []uint64 // by id, during a sweep
	sweeps int      // ids in use at which the next sweep is due
	drops  int      // slices since somebody looked for a need to sweep
}

// New returns the driver of windows on a grid. Either each slice is one window (a Period, or Size <= Slide), or k must be
// Regroupable. W is window.Time: windows go to k as such.
func New(spec windows.Spec, grid window.Grid, domain process.Domain, k *windows.Incremental) operator.Operator {
	return &driver{
		Unary: operator.Unary{In: spec.In, Out: operator.NewOutput(spec.Out)}, spec: spec, grid: newGrid(grid),
		clocked: domain == process.ProcessingTime, k: k.Own(), side: operator.NewSides(spec.Sides), passed: math.MinInt64,
	}
}

// Inputs implements operator.Operator.
func (o *driver) Inputs() []operator.Input { return []operator.Input{o} }

// Output implements operator.Operator.
func (o *driver) Output(tag string) *operator.Output {
	if tag == "" {
		return &o.Out
	}
	return o.side.Output(tag)
}

// Open implements operator.Operator.
func (o *driver) Open(rt *operator.Runtime) error {
	if err := o.Unary.Open(rt); err != nil {
		return err
	}
	rt.AtHand = o.atHand
	o.side.Open(rt)
	o.emitter.Open(&o.Out)
	if err := o.late.Open(o.RT, o.side, o.spec.Late, o.In); err != nil {
		return err
	}
	o.columns = columns{ledger: ledger{rt: rt}, accs: &o.k.Accs, deep: o.k.Acc.Layout == serde.Encoded}
	o.current = &o.nowhere
	o.at, o.fresh = make([]uint32, frame.MaxLen), make([]bool, frame.MaxLen)
	o.cursor, o.acc = newCursor(o.emitter.Column.Cap()), o.k.Accs.New(1)
	o.ring, o.sweeps, o.place = o.onTime, manyKeys, o.placeEvents
	if o.clocked {
		o.place = o.placeNow
	} else {
		o.lateness = o.spec.Lateness
	}
	if !o.grid.single {
		o.openCover()
	}
	o.keys = roster{ledger: &o.columns.ledger, key: o.spec.Key, memory: &o.k.Keys}
	if err := o.keys.open(rt); err != nil {
		return err
	}
	if err := o.restore(); err != nil {
		return fmt.Errorf("restore windows (%s): %w", o.spec.Place, err)
	}
	return nil
}

func (o *driver) openCover() {
	s := newSums(&o.columns, o.k, o.emitter.Column.Cap())
	o.sums = &s
	if o.k.SubtractColumn != nil {
		o.cover = &totals{sums: &s, o: o}
	} else {
		o.cover = newStacks(o, &s)
	}
	if !o.k.Commutative {
		o.tangles = newTangles(o)
	}
}

// Close implements operator.Operator.
func (o *driver) Close() error {
	if o.alarm != nil {
		o.RT.Timers.Cancel(o.alarm)
	}
	err := o.keys.close()
	o.lend(&o.shelf)
	for i := range o.hidden {
		o.lend(&o.hidden[i].shelf)
	}
	o.columns.drop()
	return err
}

// lend leaves what is on a shelf to the snapshots that need it.
func (o *driver) lend(h *shelf) {
	for _, s := range h.list {
		o.columns.lend(&s.column)
	}
	for _, x := range h.wholes {
		o.columns.lend(&x.column)
	}
}

// domain is the time of the windows.
func (o *driver) domain() process.Domain {
	if o.clocked {
		return process.ProcessingTime
	}
	return process.EventTime
}

// Push implements operator.Input.
func (o *driver) Push(r *frame.Run) error {
	if r.N <= frame.MaxLen {
		if err := o.place(r); err != nil {
			return err
		}
		return o.settle()
	}
	for from := 0; from < r.N; from += frame.MaxLen {
		o.piece = r.Slice(from, min(r.N, from+frame.MaxLen))
		o.RT.Run = &o.piece
		if err := o.place(&o.piece); err != nil {
			return err
		}
	}
	return o.settle()
}

// atHand is operator.Runtime's: the result that is being made, or the element that is being added with its key.
func (o *driver) atHand(r *frame.Run) string {
	if text := o.k.AtHand(); text != "" || r == nil {
		return text
	}
	i, ok := r.Culprit()
	if !ok || i >= o.keys.canon.N {
		return ""
	}
	return operator.AtHand(operator.NamedKey(o.keys.key.Key, o.keys.canon.Bytes(i)), operator.NamedElement(r, i))
}

// settle ends a stretch of work: what was emitted goes out.
func (o *driver) settle() error {
	o.late.Count()
	if o.keys.used() >= o.sweeps {
		if err := o.sweep(); err != nil {
			return err
		}
	}
	if o.clocked && o.stale {
		o.schedule()
	}
	if err := o.emitter.Flush(); err != nil {
		return err
	}
	return o.side.Flush()
}

// Mark implements operator.Input.
func (o *driver) Mark(m frame.Mark) error {
	if m.Kind == frame.Watermark && !o.clocked && m.Value > o.passed {
		if err := o.advance(m.Value); err != nil {
			return err
		}
		if err := o.settle(); err != nil {
			return err
		}
	}
	if err := o.side.Mark(m); err != nil {
		return err
	}
	return o.Out.Mark(m)
}
