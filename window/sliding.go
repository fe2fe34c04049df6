package window

import (
	"fmt"
	"time"

	"github.com/flott-dev/flott/process"
)

// maxOverlap is how many windows an element may belong to. Each window fires for itself and may keep the element once, so
// that more of them are a mistake in the units of size and slide: a day every second stays below it.
const maxOverlap = 100_000

// SlidingAssigner is what Sliding and SlidingProcessingTime make. It is immutable.
type SlidingAssigner struct {
	size, slide, offset int64
	domain              process.Domain
}

// Sliding makes windows of event time of one size, one of which starts every slide: an element belongs to all those that
// its timestamp lies in, size/slide of them. If slide is longer than size there are gaps between windows: an element there
// belongs to no window and is dropped, without being late. Windows start at 1970-01-01T00:00:00Z and at multiples of slide
// before and after (see Offset).
//
// A size or slide of less than 1 ms is an error of the job, and so is a size of more than 100,000 slides; an element
// without a timestamp is an error of the task. The default trigger is EventTimeTrigger. Flink: SlidingEventTimeWindows.
func Sliding(size, slide time.Duration) SlidingAssigner {
	return SlidingAssigner{size: millis(size), slide: millis(slide), domain: process.EventTime}
}

// SlidingProcessingTime is Sliding by the wall clock of the task when the element arrives there; timestamps don't matter.
// The default trigger is ProcessingTimeTrigger. Flink: SlidingProcessingTimeWindows.
func SlidingProcessingTime(size, slide time.Duration) SlidingAssigner {
	return SlidingAssigner{size: millis(size), slide: millis(slide), domain: process.ProcessingTime}
}

// Offset moves the windows by d. The default is 0; -slide < d < slide, or it is an error of the job.
func (a SlidingAssigner) Offset(d time.Duration) SlidingAssigner {
	a.offset = millis(d)
	return a
}

// Assign implements Assigner. The window that starts last comes first, as in Flink.
func (a SlidingAssigner) Assign(dst []Time, ts, now int64) ([]Time, error) {
	ts, err := timeOf(a.domain, ts, now)
	if err != nil {
		return dst, err
	}
	if a.size <= 0 || a.slide <= 0 {
		return dst, a.Check()
	}
	for d := since(ts, phase(a.offset, a.slide), a.slide); d < a.size; d += a.slide {
		dst = append(dst, span(ts, d, a.size))
	}
	return dst, nil
}

// Domain implements Assigner.
func (a SlidingAssigner) Domain() process.Domain { return a.domain }

// DefaultTrigger implements Assigner.
func (a SlidingAssigner) DefaultTrigger() Trigger { return triggerOf(a.domain) }

// Grid implements Gridded.
func (a SlidingAssigner) Grid() Grid {
	return Grid{Size: a.size, Slide: a.slide, Offset: phase(a.offset, a.slide)}
}

// Check says what is wrong with size, slide and offset.
func (a SlidingAssigner) Check() error {
	const windows = "sliding windows"
	if err := checkLength(windows, "size", a.size); err != nil {
		return err
	}
	if err := checkLength(windows, "slide", a.slide); err != nil {
		return err
	}
	if n := (a.size-1)/a.slide + 1; n > maxOverlap {
		return fmt.Errorf("make %s of %s every %s: each element would belong to %d windows, and no more than %d are allowed; "+
			"use a slide of %s or longer", windows, said(a.size), said(a.slide), n, maxOverlap, said((a.size-1)/maxOverlap+1))
	}
	return checkOffset(windows, a.offset, "slide", a.slide)
}

// String is the assigner as it was written.
func (a SlidingAssigner) String() string {
	return written("Sliding", a.domain, a.offset, said(a.size), said(a.slide))
}
