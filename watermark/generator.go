package watermark

import "math"

// Generator makes watermarks from elements. One subtask owns it; it is never called concurrently.
type Generator[T any] interface {
	// OnEvent is called for each element with its timestamp in ms (math.MinInt64: none). x is valid during the call and
	// may not be changed. What it emits follows the element at once.
	OnEvent(x *T, ms int64, out *Emitter)
	// OnPeriodic is called every auto watermark interval of the job (processing time; 200 ms by default, 0: never), also
	// without elements, but not while the subtask is idle by WithIdleness.
	OnPeriodic(out *Emitter)
}

// Emitter takes what a generator emits. It is used during the call that it was passed to, only.
type Emitter struct {
	at    int64
	grown bool
	idle  bool
	said  bool // whether idle and what the stream was told may differ
}

// NewEmitter is for drivers and test harnesses.
func NewEmitter() *Emitter { return &Emitter{at: math.MinInt64} }

// Watermark says that no element with a timestamp <= ms follows in this subtask. One that does not grow is dropped. It
// ends idleness. math.MaxInt64 means that no element follows at all.
func (e *Emitter) Watermark(ms int64) {
	if ms > e.at {
		e.at, e.grown = ms, true
	}
	e.Active()
}

// Idle says that there are no elements for now: the subtask holds back nobody's watermark until the next watermark or
// element, or until Active.
func (e *Emitter) Idle() {
	if !e.idle {
		e.idle, e.said = true, true
	}
}

// Active ends Idle.
func (e *Emitter) Active() {
	if e.idle {
		e.idle, e.said = false, true
	}
}

// Pending reports, to drivers, whether something was emitted since the last Take.
func (e *Emitter) Pending() bool { return e.grown || e.said }

// Take hands what was emitted to the driver: the highest watermark, whether it has grown since the last Take, and
// whether the generator is idle.
func (e *Emitter) Take() (ms int64, grown, idle bool) {
	ms, grown, idle = e.at, e.grown, e.idle
	e.grown, e.said = false, false
	return ms, grown, idle
}
