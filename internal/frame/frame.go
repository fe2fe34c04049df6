// Package frame is what travels: columns of elements and timestamps, cut by marks (watermarks, barriers, idleness, end
// of input). Frames, runs and everything that moves them are written once over a type handle; the typed view of a column
// is taken at the two ends that know T, once per run. The package owns the memory layout and the recycling rules, never
// waits, and knows nothing of operators or tasks.
package frame

import (
	"math"
	"unsafe"
)

// NoTime is the timestamp of an element without timestamp (Flink: Long.MIN_VALUE).
const NoTime = math.MinInt64

// MaxWatermark says that no element follows; MinWatermark is where every watermark starts.
const (
	MaxWatermark = math.MaxInt64
	MinWatermark = math.MinInt64
)

// MarkKind is the meaning of a mark.
type MarkKind uint8

const (
	// Watermark: no element with a timestamp <= Value follows.
	Watermark MarkKind = iota
	// Idle: the sender has no elements for now and holds back nobody's watermark.
	Idle
	// Active ends Idle.
	Active
	// Barrier: checkpoint Value starts here.
	Barrier
	// CancelBarrier: checkpoint Value will not come.
	CancelBarrier
	// LatencyMarker: sent at Value (ms of the source's clock).
	LatencyMarker
	// End: the input is over.
	End
	// Probe goes round a feedback loop to find out whether it is empty; a task passes it on once it has come on all its
	// open channels. Value names the loop and the round.
	Probe
)

// String gives the kind's name for traces and errors.
func (k MarkKind) String() string {
	return [...]string{"watermark", "idle", "active", "barrier", "cancel barrier", "latency marker", "end", "probe"}[k]
}

// Mark stands at a position of a frame: before the element of that index.
type Mark struct {
	Value int64
	Pos   int32
	Kind  MarkKind
	From  uint16 // of a LatencyMarker: the number of the source's subtask in the job
}

// Run is a stretch of elements without a mark inside, lent to an operator for the time of one Push: the operator may
// shorten or overwrite it in place unless it is Shared, and gives it back by returning.
type Run struct {
	Type   *Type
	P      unsafe.Pointer // first element
	N      int
	Times  []int64 // ms, one per element; nil when none of them has a timestamp
	Shared bool    // read-only: others see the same memory
	told   bool    // hand counts
	hand   int     // see Hand
}

// Passed is at hand when a loop has come to its end. It is small, as it stands in the code of every element type.
const Passed = math.MaxInt32

// Hand is where a loop that calls a function of the user for the run's elements notes which one is at hand, before each call, and
// Passed behind the last. If the function panics, or the loop ends with its error, Culprit knows the element. It is a variable
// beside the loop's index: the index itself would have to come back out of memory after each call.
func (r *Run) Hand() *int {
	r.told, r.hand = true, Passed
	return &r.hand
}

// Fail notes that a function of the user has failed at element i.
func (r *Run) Fail(i int) { r.told, r.hand = true, i }

// Culprit is the element that a function of the user has failed at; ok is false if that is not known.
func (r *Run) Culprit() (i int, ok bool) { return r.hand, r.told && r.hand >= 0 && r.hand < r.N }

// Values is the typed view of a run's elements. T must be the run's type: the chain asserted that when it was built.
func Values[T any](r *Run) []T {
	checkView[T](r.Type)
	return unsafe.Slice((*T)(r.P), r.N)
}

// Time is the timestamp of element i, NoTime if it has none.
func (r *Run) Time(i int) int64 {
	if r.Times == nil {
		return NoTime
	}
	return r.Times[i]
}

// Slice is the run of elements [from, to) on the same memory.
func (r *Run) Slice(from, to int) Run {
	s := Run{Type: r.Type, P: unsafe.Add(r.P, uintptr(from)*r.Type.Size), N: to - from, Shared: r.Shared}
	if r.Times != nil {
		s.Times = r.Times[from:to]
	}
	return s
}

// At is the address of element i.
func (r *Run) At(i int) unsafe.Pointer { return unsafe.Add(r.P, uintptr(i)*r.Type.Size) }
