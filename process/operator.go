package process

import "time"

// Operator is an operator of the user's own, for what functions over single elements can't do: it sees whole runs of
// elements. A constructor makes one per subtask, and all calls come on the subtask's goroutine. It may also implement
// WatermarkHandler, ProcessingTimeHandler, Finisher (end of the input) and Closer.
type Operator[T, R any] interface {
	// ProcessRun handles elements that came one after the other, with no watermark between. times are their timestamps in
	// ms since 1970, math.MinInt64 for an element without one; nil if no element has one. Both slices belong to the engine:
	// they are valid during the call and may not be changed. What is emitted has no timestamp unless out.SetTime gives it
	// one.
	ProcessRun(ctx *OperatorContext, xs []T, times []int64, out *Collector[R]) error
}

// WatermarkHandler is implemented by operators that act on event time.
type WatermarkHandler[R any] interface {
	// ProcessWatermark is called when the operator's watermark rises to ms; the watermark goes on after what is emitted.
	ProcessWatermark(ctx *OperatorContext, ms int64, out *Collector[R]) error
}

// ProcessingTimeHandler is implemented by operators that register timers.
type ProcessingTimeHandler[R any] interface {
	// OnProcessingTime is called once the wall clock is past the time ms of a timer.
	OnProcessingTime(ctx *OperatorContext, ms int64, out *Collector[R]) error
}

// OperatorContext is what an Operator sees beside elements. Its timestamp is "none": Emit sends to side outputs without a
// timestamp, EmitAt with one.
type OperatorContext struct{ Context }

// NewOperatorContext is for drivers and test harnesses.
func NewOperatorContext(s Services) *OperatorContext { return &OperatorContext{*NewContext(s)} }

// RegisterProcessingTimeTimer makes OnProcessingTime be called once the wall clock is past t (rounded up to ms). Timers
// are a set: one per time. They are not part of checkpoints; those that are left at the end of the input are dropped.
func (c *OperatorContext) RegisterProcessingTimeTimer(t time.Time) {
	c.services.Register(ProcessingTime, ceilMillis(t))
}

// DeleteProcessingTimeTimer takes a timer back; nothing happens if there is none.
func (c *OperatorContext) DeleteProcessingTimeTimer(t time.Time) {
	c.services.Delete(ProcessingTime, ceilMillis(t))
}
