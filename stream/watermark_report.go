package stream

import "github.com/flott-dev/flott/internal/env"

// Watermarks is the event time of every subtask of every operator, in the order of the plan, and who holds it back: the
// answer to why a window does not fire. A report's String says it in a sentence. Subtasks go on while the reports are made,
// and what two of them say may be of two moments. It is nil before the job runs.
func (j *Job) Watermarks() []WatermarkReport { return j.x.Watermarks() }

// WatermarkReport is the event time of one subtask of an operator: its watermark, the watermarks of its inputs (Inputs),
// the greatest one of anybody upstream (Furthest, Lag), and who holds it back (HeldBy): first who sends to the operator,
// at last the source or strategy that all wait for.
type WatermarkReport = env.WatermarkReport

// WatermarkInput is the event time of one input of an operator.
type WatermarkInput = env.WatermarkInput

// WatermarkHolder is a subtask on the way from an operator to what holds its event time back.
type WatermarkHolder = env.WatermarkHolder

// HoldReason is why a WatermarkHolder holds others back.
type HoldReason = env.HoldReason

const (
	// HeldBefore: what feeds it does; the next holder tells.
	HeldBefore = env.HeldBefore
	// HeldWithoutElements: no element has come there, so there is no watermark yet.
	HeldWithoutElements = env.HeldWithoutElements
	// HeldWithoutStrategy: the source has emitted elements and no watermark, and no strategy makes any.
	HeldWithoutStrategy = env.HeldWithoutStrategy
	// HeldWithoutWatermarks: elements have come, but the strategy has made no watermark of them.
	HeldWithoutWatermarks = env.HeldWithoutWatermarks
	// HeldBehind: its watermarks are behind those of others.
	HeldBehind = env.HeldBehind
	// HeldInside: a later watermark has come to it, which it has not sent on: it waits for something itself.
	HeldInside = env.HeldInside
	// HeldOnTheWay: it has sent a later watermark, which its receiver has not handled yet.
	HeldOnTheWay = env.HeldOnTheWay
)
