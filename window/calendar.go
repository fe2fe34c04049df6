package window

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/flott-dev/flott/process"
)

type calendarUnit uint8

const (
	day calendarUnit = iota
	week
	month
)

// CalendarAssigner is what Daily, Weekly and Monthly make: windows that follow each other as days, weeks or months do on
// the clocks of a place, so that a day has 23 or 25 hours when clocks change. It is immutable.
//
// A period begins at the first instant at which clocks show its beginning or later: where midnight is skipped, after the
// skip; where it comes twice, at the first. A day that a place skipped altogether has no window.
//
// Windows are computed from the time zone's rules whenever Assign is asked, which takes under a microsecond; the engine's
// fast path asks once a window. All processes of a job should have the same version of the time zone database: import
// time/tzdata into the program to be sure. time.Local is whatever the machine says, which may not be the same on two.
type CalendarAssigner struct {
	loc    *time.Location
	unit   calendarUnit
	first  time.Weekday // of a week
	offset int64        // ms
	domain process.Domain
}

// Daily makes a window of event time of each day at loc, from midnight to midnight (see CalendarAssigner and its Offset).
// A nil loc is an error of the job, an element without a timestamp one of the task. The default trigger is EventTimeTrigger.
func Daily(loc *time.Location) CalendarAssigner {
	return CalendarAssigner{loc: loc, unit: day, domain: process.EventTime}
}

// Weekly is Daily with weeks, which begin at midnight before firstDay: time.Monday by ISO 8601. Another value than a day
// of the week is an error of the job.
func Weekly(loc *time.Location, firstDay time.Weekday) CalendarAssigner {
	return CalendarAssigner{loc: loc, unit: week, first: firstDay, domain: process.EventTime}
}

// Monthly is Daily with months.
func Monthly(loc *time.Location) CalendarAssigner {
	return CalendarAssigner{loc: loc, unit: month, domain: process.EventTime}
}

// ProcessingTime makes it windows by the wall clock of the task when the element arrives there, which loc only tells how to
// read. The default trigger is ProcessingTimeTrigger.
func (a CalendarAssigner) ProcessingTime() CalendarAssigner {
	a.domain = process.ProcessingTime
	return a
}

// Offset lets days, weeks and months begin d after midnight, as the clock shows it: Daily(loc).Offset(6*time.Hour) makes
// days from six to six. The default is 0. d must be whole seconds and less than 24 hours, or more than -24, or it is an
// error of the job.
func (a CalendarAssigner) Offset(d time.Duration) CalendarAssigner {
	a.offset = millis(d)
	return a
}

// Assign implements Assigner.
func (a CalendarAssigner) Assign(dst []Time, ts, now int64) ([]Time, error) {
	ts, err := timeOf(a.domain, ts, now)
	if err != nil {
		return dst, err
	}
	if a.loc == nil {
		return dst, a.Check()
	}
	return append(dst, a.period(ts)), nil
}

// Domain implements Assigner.
func (a CalendarAssigner) Domain() process.Domain { return a.domain }

// DefaultTrigger implements Assigner.
func (a CalendarAssigner) DefaultTrigger() Trigger { return triggerOf(a.domain) }

// Grid implements Gridded.
func (a CalendarAssigner) Grid() Grid { return Grid{Period: a.period} }

// Check says what is wrong with the location, the first day of the week, and the offset.
func (a CalendarAssigner) Check() error {
	const windows = "calendar windows"
	switch {
	case a.loc == nil:
		return errors.New("make calendar windows: the location is nil; use time.UTC, or time.LoadLocation")
	case a.first < time.Sunday || a.first > time.Saturday:
		return fmt.Errorf("make %s: the first day of the week is %d; it must be time.Sunday, 0, to time.Saturday, 6", windows, a.first)
	case a.offset%1000 != 0:
		return fmt.Errorf("make %s: the offset is %s; it must be whole seconds", windows, said(a.offset))
	}
	return checkOffset(windows, a.offset, "day", (24 * time.Hour).Milliseconds())
}

// String is the assigner as it was written.
func (a CalendarAssigner) String() string {
	place := "nil"
	if a.loc != nil {
		place = a.loc.String()
	}
	var s string
	switch a.unit {
	case day:
		s = written("Daily", process.EventTime, a.offset, place)
	case week:
		s = written("Weekly", process.EventTime, a.offset, place, a.first.String())
	case month:
		s = written("Monthly", process.EventTime, a.offset, place)
	}
	if a.domain == process.ProcessingTime {
		s += ".ProcessingTime()"
	}
	return s
}

// Calendars count in seconds since 1970, which can't overflow where ms would: clock readings as if they were of UTC,
// instants as usual.

// period is the window that ts belongs to.
func (a CalendarAssigner) period(ts int64) Time {
	at := ts / 1000
	if ts%1000 < 0 {
		at--
	}
	_, ahead := time.Unix(at, 0).In(a.loc).Zone()
	from := a.floor(time.Unix(at+int64(ahead)-a.offset/1000, 0).UTC())
	start := a.instant(from)
	for {
		from = a.next(from)
		end := a.instant(from)
		if at < end {
			return Time{saturated(start), saturated(end)}
		}
		// Clocks went back over the end of the period before ts: it is the next one already.
		start = end
	}
}

// floor is the first day of the period that a day belongs to.
func (a CalendarAssigner) floor(t time.Time) time.Time {
	y, m, d := t.Date()
	switch a.unit {
	case week:
		d -= int(t.Weekday()-a.first+7) % 7
	case month:
		d = 1
	}
	return time.Date(y, m, d, 0, 0, 0, 0, time.UTC)
}

// next is the first day of the period after the one that begins with a day.
func (a CalendarAssigner) next(t time.Time) time.Time {
	switch a.unit {
	case week:
		return t.AddDate(0, 0, 7)
	case month:
		return t.AddDate(0, 1, 0)
	}
	return t.AddDate(0, 0, 1)
}

// instant is when the period that begins with a day begins: the first instant at which clocks show that or later.
func (a CalendarAssigner) instant(t time.Time) int64 {
	reading := t.Unix() + a.offset/1000
	// No place is a day ahead of UTC: before this no clock showed the reading.
	t = time.Unix(reading-24*60*60, 0).In(a.loc)
	for {
		_, ahead := t.Zone()
		at := reading - int64(ahead)
		start, end := t.ZoneBounds()
		if end.IsZero() || at < end.Unix() {
			if !start.IsZero() {
				at = max(at, start.Unix())
			}
			return at
		}
		t = end
	}
}

// saturated is an instant in ms.
func saturated(seconds int64) int64 {
	switch {
	case seconds > math.MaxInt64/1000:
		return math.MaxInt64
	case seconds < math.MinInt64/1000:
		return math.MinInt64
	}
	return seconds * 1000
}
