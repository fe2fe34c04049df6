package window

import (
	"fmt"
	"math"
	"time"

	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/watermark"
)

// StartWithOffset is the start of the window of size ms that ts belongs to if windows follow each other from offset on:
// the largest time <= ts that is offset modulo size, for negative times as well; math.MinInt64 if that is before the
// beginning of time. Flink: TimeWindow.getWindowStartWithOffset. size must be > 0. It is for custom assigners.
func StartWithOffset(ts, offset, size int64) int64 {
	return watermark.Add(ts, -since(ts, phase(offset, size), size))
}

// since is how long ts is after the start of its window, in [0, size). It needs no time before ts, so that it is exact at
// the ends of time, too.
func since(ts, phase, size int64) int64 {
	d := ts%size - phase
	d += size & (d >> 63) // both remainders may make it negative, no branch decides which
	d += size & (d >> 63)
	return d
}

// phase is offset modulo size, in [0, size), or 0 if there is no such size.
func phase(offset, size int64) int64 {
	if size <= 0 {
		return 0
	}
	p := offset % size
	return p + size&(p>>63)
}

// span is the window of size ms that began since ms before ts. Where it reaches beyond time it ends there.
func span(ts, since, size int64) Time {
	return Time{watermark.Add(ts, -since), watermark.Add(ts, size-since)}
}

// timeOf is the time that assigners of a domain look at.
func timeOf(d process.Domain, ts, now int64) (int64, error) {
	switch {
	case d == process.ProcessingTime:
		return now, nil
	case ts == math.MinInt64:
		return 0, ErrNoTimestamp
	}
	return ts, nil
}

// triggerOf is the default trigger of windows of a domain.
func triggerOf(d process.Domain) Trigger {
	if d == process.ProcessingTime {
		return ProcessingTimeTrigger()
	}
	return EventTimeTrigger()
}

// submilli stands for a duration that is not zero, but would be truncated to zero.
const submilli = math.MinInt64

// millis truncates a duration to ms.
func millis(d time.Duration) int64 {
	ms := d.Milliseconds()
	if ms == 0 && d != 0 {
		return submilli
	}
	return ms
}

// said is what the user said, as far as millis keeps it.
func said(ms int64) string {
	if ms == submilli {
		return "less than a millisecond"
	}
	return (time.Duration(ms) * time.Millisecond).String()
}

// checkLength says what is wrong with a size, slide or gap.
func checkLength(windows, what string, ms int64) error {
	if ms > 0 {
		return nil
	}
	return fmt.Errorf("make %s: the %s is %s; it must be at least 1ms", windows, what, said(ms))
}

// checkOffset says what is wrong with an offset; windows start every ms, which is called what.
func checkOffset(windows string, offset int64, what string, every int64) error {
	switch {
	case offset == submilli:
		return fmt.Errorf("make %s: the offset is %s; it must be whole milliseconds", windows, said(offset))
	case -every < offset && offset < every:
		return nil
	}
	return fmt.Errorf("make %s: the offset is %s; with a %s of %s it must be between %s and %s, both excluded", windows,
		said(offset), what, said(every), said(-every), said(every))
}

// written is an assigner as a program writes it.
func written(noun string, d process.Domain, offset int64, args ...string) string {
	if d == process.ProcessingTime {
		noun += "ProcessingTime"
	}
	s := noun + "("
	for i, a := range args {
		if i > 0 {
			s += ", "
		}
		s += a
	}
	s += ")"
	if offset != 0 {
		s += ".Offset(" + said(offset) + ")"
	}
	return s
}
