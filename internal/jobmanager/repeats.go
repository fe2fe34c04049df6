package jobmanager

import (
	"errors"
	"fmt"

	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/internal/task"
)

// repeats counts how often the same failure has come in a row: a record that can't be processed fails the job at the same
// place, for the same reason, after each restart. What fails for the same reason need not be the same record, though: a service
// that is down fails whatever comes, and a bug a record here and there.
type repeats struct {
	last  string
	times int
	// record is what the last failure had at hand, as far as it could tell; records how many of the last ones in a row had the
	// same at hand, 0 if it could not. other says that the one before had something else.
	record  string
	records int
	other   bool
}

// note takes a failure.
func (r *repeats) note(err error) {
	if key := failureKey(err); key != r.last || r.times == 0 {
		*r = repeats{last: key}
	}
	r.times++
	record := recordOf(err)
	r.other = record != "" && r.record != "" && record != r.record
	if record == "" || record != r.record {
		r.records = 0
	}
	if r.record = record; record != "" {
		r.records++
	}
}

// news reports whether people are to be told of the failure that was noted last: the first, the second, the fourth and so on of
// those with the same record, or, where none is named, with the same reason.
func (r *repeats) news() bool {
	n := r.times
	if r.records > 0 {
		n = r.records
	}
	return n&(n-1) == 0
}

// recordOf is what a failure had at hand, without timestamps, which may be those of each attempt; "" if it does not know.
func recordOf(err error) string {
	var at *task.Error
	if !errors.As(err, &at) || !operator.NamesRecord(at.Record) {
		return ""
	}
	return operator.WithoutTimestamps(at.Record)
}

// failureKey is what makes failures the same: operator, subtask and cause. Stacks, which differ, are left out.
func failureKey(err error) string {
	cause := err
	where := ""
	var at *task.Error
	if errors.As(err, &at) {
		where, cause = fmt.Sprintf("%s/%d: ", at.UID, at.Subtask), at.Cause
	}
	var p *operator.Panic
	if errors.As(cause, &p) {
		return fmt.Sprintf("%spanic: %v", where, p.Value)
	}
	return where + cause.Error()
}

// GaveUpError is the error of a job that failed for good after restarts.
type GaveUpError struct {
	// Restarts is how many failures were followed by a restart, Same how many of the last ones in a row, the one that ended the
	// job among them, were the same one: operator, subtask and cause.
	Restarts, Same int
	// SameRecord is how many of these named the same record, too; 0: the last one names none. OtherRecord says that the one before
	// the last named another.
	SameRecord  int
	OtherRecord bool
	// Last is that one.
	Last error
}

// Error tells all that.
func (e *GaveUpError) Error() string {
	if e.Same > 1 {
		return fmt.Sprintf("the job was restarted %s, and the same failure came %d times in a row%s: %v", times(e.Restarts), e.Same, e.records(), e.Last)
	}
	return fmt.Sprintf("the job was restarted %s and failed again: %v", times(e.Restarts), e.Last)
}

// records says at which records the same failure came.
func (e *GaveUpError) records() string {
	switch {
	case e.SameRecord == e.Same:
		return ", at the same record each time"
	case e.SameRecord > 1:
		return fmt.Sprintf(", the last %d times at the same record", e.SameRecord)
	case e.OtherRecord:
		return ", the last time at another record"
	}
	return ""
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// Unwrap is the last failure.
func (e *GaveUpError) Unwrap() error { return e.Last }
