package flotttest

import (
	"fmt"
	"math"
)

// NoTime is the timestamp of an element that has none.
const NoTime int64 = math.MinInt64

// MaxWatermark is the last watermark of a stream: no element follows. MinWatermark is where every watermark starts.
const (
	MaxWatermark int64 = math.MaxInt64
	MinWatermark int64 = math.MinInt64
)

// Element is an element, the Value, with its timestamp, the Time.
type Element[T any] struct {
	Value T
	Time  int64 // ms since 1970; NoTime for none
}

// At is the element v with a timestamp in ms since 1970.
func At[T any](v T, ms int64) Element[T] { return Element[T]{v, ms} }

// Untimed is the element v without a timestamp.
func Untimed[T any](v T) Element[T] { return Element[T]{v, NoTime} }

// String gives value@time, or the value alone.
func (e Element[T]) String() string {
	if e.Time == NoTime {
		return fmt.Sprint(e.Value)
	}
	return fmt.Sprintf("%v@%d", e.Value, e.Time)
}

// Kind is what an event is.
type Kind uint8

// The kinds of events.
const (
	IsElement Kind = iota
	IsWatermark
	IsIdle
	IsActive
	IsEnd
)

// Event is one thing that came out of an operator: its Kind says whether an element, a watermark, idleness or the end.
type Event[R any] struct {
	Kind      Kind
	Element   Element[R]
	Watermark int64 // ms since 1970
}

// String gives value@time, "watermark t", "idle", "active" or "end".
func (e Event[R]) String() string {
	switch e.Kind {
	case IsElement:
		return e.Element.String()
	case IsWatermark:
		return fmt.Sprintf("watermark %d", e.Watermark)
	case IsIdle:
		return "idle"
	case IsActive:
		return "active"
	}
	return "end"
}
