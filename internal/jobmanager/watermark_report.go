package jobmanager

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// WatermarkReport is the event time of one subtask of an operator, and what holds it back. Watermarks are in ms since
// 1970: math.MinInt64 before the first one, math.MaxInt64 once no element follows any more.
type WatermarkReport struct {
	Operator    string // as in plans: "Window", "Source: sensors"
	UID         string // its stable identity, 32 hex digits
	Subtask     int    // from 0
	Parallelism int    // the operator's number of subtasks
	// Watermark is the operator's event time: the least watermark of its inputs, those left out that are idle. Of a source
	// or a strategy (AssignTimestampsAndWatermarks) it is the watermark that it has made.
	Watermark int64
	// Sent is the last watermark that the operator has sent on; math.MinInt64 of a sink.
	Sent int64
	// Idle says that all inputs are idle, or that the source is.
	Idle bool
	// Furthest is the greatest watermark that anything that feeds the operator has made so far. As long as it is greater
	// than Watermark, the operator waits for somebody.
	Furthest int64
	// Inputs are the operator's inputs in their order. Those of strategies are left out: their watermarks end there.
	Inputs []WatermarkInput
	// Input is the index of the input that holds the operator's event time back, -1 if none does.
	Input int
	// HeldBy is who holds the operator's event time back: first who sends to the operator, then who sends to that one, at
	// last the source or strategy, or the operator on the way, that all wait for. It is empty if nobody does: all are
	// equally far, or idle, or at their end.
	HeldBy []WatermarkHolder
}

// WatermarkInput is the event time of one input of an operator.
type WatermarkInput struct {
	Watermark int64
	Idle      bool // all its channels that have not ended are idle
	// Channels is how many subtasks send to the input, Silent how many of them are idle.
	Channels, Silent int
	// HeldBy is who holds the input back, as WatermarkReport.HeldBy; the operator's is that of its input furthest behind.
	HeldBy []WatermarkHolder
}

// WatermarkHolder is a subtask on the way from an operator to what holds its event time back.
type WatermarkHolder struct {
	Operator string // as in plans
	UID      string
	Subtask  int // from 0
	// Others is how many more subtasks of the same operator are equally far behind.
	Others int
	// Watermark is the last one that it has sent on.
	Watermark int64
	// Elements is how many have come to it; of a source, how many it has emitted.
	Elements int64
	// Source is the source in the same task for whose elements the strategy makes watermarks.
	Source string
	// Split is the split that holds the source back, if its reader tells splits apart.
	Split  string
	Reason HoldReason
	// Waiting is the number of frames on the way, for HeldOnTheWay.
	Waiting int
}

// HoldReason is why somebody holds event time back.
type HoldReason uint8

const (
	// HeldBefore: what feeds it does; the next holder tells.
	HeldBefore HoldReason = iota
	// HeldWithoutElements: no element has come there, so there is no watermark yet.
	HeldWithoutElements
	// HeldWithoutStrategy: the source has emitted elements and no watermark, and no strategy makes any.
	HeldWithoutStrategy
	// HeldWithoutWatermarks: elements have come, but the strategy has made no watermark of them.
	HeldWithoutWatermarks
	// HeldBehind: its watermarks are behind those of others.
	HeldBehind
	// HeldInside: a later watermark has come to it, which it has not sent on: it waits for something itself, an answer of
	// an async function for example.
	HeldInside
	// HeldOnTheWay: it has sent a later watermark, which has not been received: the receiver is busy, or what it sends to
	// takes nothing.
	HeldOnTheWay
)

// Lag is how far the operator's event time lies behind Furthest; 0 if either is not a point in time.
func (r WatermarkReport) Lag() time.Duration { return lag(r.Watermark, r.Furthest) }

func lag(at, furthest int64) time.Duration {
	if furthest <= at || at == math.MinInt64 || furthest == math.MaxInt64 {
		return 0
	}
	ms := furthest - at
	if ms < 0 || ms > math.MaxInt64/int64(time.Millisecond) {
		return math.MaxInt64
	}
	return time.Duration(ms) * time.Millisecond
}

// String says it in a sentence, with what can be done.
func (r WatermarkReport) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "operator %q subtask %d of %d: %s", r.Operator, r.Subtask+1, r.Parallelism, point(r.Watermark))
	if r.Idle {
		b.WriteString(", idle")
	}
	for i, in := range r.Inputs {
		if in.Silent > 0 && in.Channels > 1 {
			fmt.Fprintf(&b, ", %d of %d channels%s idle", in.Silent, in.Channels, r.ofInput(i))
		}
	}
	if len(r.HeldBy) == 0 {
		return b.String()
	}
	if d := r.Lag(); d > 0 {
		fmt.Fprintf(&b, ", %v behind", d)
	}
	fmt.Fprintf(&b, ", held back%s by %v", r.ofInput(r.Input), r.HeldBy[0])
	root := r.HeldBy[len(r.HeldBy)-1]
	if len(r.HeldBy) > 1 {
		fmt.Fprintf(&b, ", behind which is %v", root)
	}
	if advice := root.advice(); advice != "" {
		b.WriteString("; " + advice)
	}
	return b.String()
}

// ofInput names one of several inputs.
func (r WatermarkReport) ofInput(i int) string {
	if len(r.Inputs) < 2 {
		return ""
	}
	return fmt.Sprintf(" of input %d", i+1)
}

// String names the subtask and says why it holds others back.
func (h WatermarkHolder) String() string {
	s := fmt.Sprintf("%q subtask %d", h.Operator, h.Subtask+1)
	if h.Others == 1 {
		s += " (and one more)"
	} else if h.Others > 1 {
		s += fmt.Sprintf(" (and %d more)", h.Others)
	}
	if h.Source != "" {
		s += fmt.Sprintf(" at %q", h.Source)
	}
	if h.Split != "" {
		s += fmt.Sprintf(" with split %q", h.Split)
	}
	if why := h.why(); why != "" {
		s += ", which " + why
	}
	return s
}

func (h WatermarkHolder) why() string {
	switch h.Reason {
	case HeldWithoutElements:
		return "has had no element and sent no watermark yet"
	case HeldWithoutStrategy:
		return fmt.Sprintf("has emitted %d elements and no watermark", h.Elements)
	case HeldWithoutWatermarks:
		return fmt.Sprintf("has made no watermark of %d elements", h.Elements)
	case HeldBehind:
		return "is at " + point(h.Watermark)
	case HeldInside:
		return "has got a later watermark than " + point(h.Watermark) + " and waits before it sends it on"
	case HeldOnTheWay:
		return fmt.Sprintf("has sent %s, which was not handled yet (frames on the way: %d)", point(h.Watermark), h.Waiting)
	}
	return ""
}

func (h WatermarkHolder) advice() string {
	const idleness = "if it may be silent for long, mark it idle: watermark.Strategy.WithIdleness"
	switch h.Reason {
	case HeldWithoutElements, HeldBehind:
		return idleness
	case HeldWithoutStrategy:
		return "watermarks come from a strategy: AssignTimestampsAndWatermarks"
	case HeldWithoutWatermarks:
		return "does the strategy make watermarks, and does the auto watermark interval let it?"
	case HeldOnTheWay:
		return "the receiver is busy or backpressured"
	}
	return ""
}

// point is a watermark for people.
func point(ms int64) string {
	switch ms {
	case math.MinInt64:
		return "no watermark yet"
	case math.MaxInt64:
		return "the end"
	}
	if t := time.UnixMilli(ms).UTC(); t.Year() >= 0 && t.Year() <= 9999 {
		return "watermark " + t.Format("2006-01-02T15:04:05.000Z")
	}
	return fmt.Sprintf("watermark %d", ms)
}
