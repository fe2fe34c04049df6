// Package window is what programs say about windows and what their window functions hold at run time: windows, assigners
// (which windows an element belongs to), triggers (when a window fires), evictors (which elements a function is not given)
// and the contract of window functions. It owns these rules, never elements or state: the engine's windowed operators call
// it, one goroutine per subtask, and keep contents, timers and trigger state.
//
// Assigners, triggers and evictors are descriptions: immutable values that all subtasks share. What looks at time and
// position only is an Assigner, Trigger or Evictor; what looks at elements is an ElementAssigner, ElementTrigger or
// ElementEvictor and goes to the methods whose names end in By.
//
// Times are ms since 1970, durations are truncated to ms; windows are half-open, [start, end).
package window

import (
	"fmt"
	"math"
)

// Window is what a type of windows must have. The type is part of the key of state, so that it must be one that can be a
// key of a stream (package serde); equal values are one window.
type Window interface {
	comparable
	// MaxTimestamp is the last ms that belongs to the window. Results have it as their timestamp, and the window is complete
	// once the watermark has reached it.
	MaxTimestamp() int64
}

// Time is a window of time, [Start, End) in ms since 1970.
type Time struct {
	Start int64
	End   int64
}

// MaxTimestamp is the last ms of the window.
func (w Time) MaxTimestamp() int64 {
	if w.End == math.MinInt64 {
		return w.End
	}
	return w.End - 1
}

// String prints the window as [start,end).
func (w Time) String() string { return fmt.Sprintf("[%d,%d)", w.Start, w.End) }

// Intersects says whether two windows overlap or touch; touching session windows merge (as in Flink).
func (w Time) Intersects(o Time) bool { return w.Start <= o.End && w.End >= o.Start }

// Cover is the smallest window that covers both.
func (w Time) Cover(o Time) Time { return Time{min(w.Start, o.Start), max(w.End, o.End)} }

// Global is the one window of GlobalWindows: all of time.
type Global struct{}

// MaxTimestamp is the end of time.
func (Global) MaxTimestamp() int64 { return math.MaxInt64 }

// String is "global".
func (Global) String() string { return "global" }
