package window

import (
	"time"

	"github.com/flott-dev/flott/process"
)

// TumblingAssigner is what Tumbling and TumblingProcessingTime make. It is immutable.
type TumblingAssigner struct {
	size, offset int64
	phase        int64 // offset modulo size
	domain       process.Domain
}

// Tumbling makes windows of event time of one size that follow each other without gaps: an element belongs to the one that
// its timestamp lies in. They start at 1970-01-01T00:00:00Z and at multiples of size before and after (see Offset).
// A size of less than 1 ms is an error of the job, an element without a timestamp one of the task. The default trigger is
// EventTimeTrigger. Flink: TumblingEventTimeWindows.
func Tumbling(size time.Duration) TumblingAssigner {
	return TumblingAssigner{size: millis(size), domain: process.EventTime}
}

// TumblingProcessingTime is Tumbling by the wall clock of the task when the element arrives there; timestamps don't
// matter. The default trigger is ProcessingTimeTrigger. Flink: TumblingProcessingTimeWindows.
func TumblingProcessingTime(size time.Duration) TumblingAssigner {
	return TumblingAssigner{size: millis(size), domain: process.ProcessingTime}
}

// Offset moves the windows by d: Tumbling(time.Hour).Offset(15*time.Minute) makes windows from quarter past to quarter past.
// The default is 0; -size < d < size, or it is an error of the job. Days of a time zone are better made by Daily, which
// knows about clock changes.
func (a TumblingAssigner) Offset(d time.Duration) TumblingAssigner {
	a.offset = millis(d)
	a.phase = phase(a.offset, a.size)
	return a
}

// Assign implements Assigner.
func (a TumblingAssigner) Assign(dst []Time, ts, now int64) ([]Time, error) {
	ts, err := timeOf(a.domain, ts, now)
	if err != nil {
		return dst, err
	}
	if a.size <= 0 {
		return dst, a.Check()
	}
	return append(dst, span(ts, since(ts, a.phase, a.size), a.size)), nil
}

// Domain implements Assigner.
func (a TumblingAssigner) Domain() process.Domain { return a.domain }

// DefaultTrigger implements Assigner.
func (a TumblingAssigner) DefaultTrigger() Trigger { return triggerOf(a.domain) }

// Grid implements Gridded.
func (a TumblingAssigner) Grid() Grid { return Grid{Size: a.size, Slide: a.size, Offset: a.phase} }

// Check says what is wrong with size and offset.
func (a TumblingAssigner) Check() error {
	if err := checkLength("tumbling windows", "size", a.size); err != nil {
		return err
	}
	return checkOffset("tumbling windows", a.offset, "size", a.size)
}

// String is the assigner as it was written.
func (a TumblingAssigner) String() string {
	return written("Tumbling", a.domain, a.offset, said(a.size))
}
