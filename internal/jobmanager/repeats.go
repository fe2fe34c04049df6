package jobmanager

import (
	"errors"
	"fmt"

	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/internal/task"
)

// repeats counts how often the same failure has come in a row: a record that can't be processed fails the job at the same
// place, for the same reason, after each restart.
type repeats struct {
	last  string
	times int
}

// note takes a failure and gives how often it has come since another one did.
func (r *repeats) note(err error) int {
	if key := failureKey(err); key != r.last || r.times == 0 {
		r.last, r.times = key, 0
	}
	r.times++
	return r.times
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
	// job among them, were the same one.
	Restarts, Same int
	// Last is that one.
	Last error
}

// Error tells all that.
func (e *GaveUpError) Error() string {
	times := "once"
	if e.Restarts > 1 {
		times = fmt.Sprintf("%d times", e.Restarts)
	}
	if e.Same > 1 {
		return fmt.Sprintf("the job was restarted %s, and the same failure came %d times in a row: %v", times, e.Same, e.Last)
	}
	return fmt.Sprintf("the job was restarted %s and failed again: %v", times, e.Last)
}

// Unwrap is the last failure.
func (e *GaveUpError) Unwrap() error { return e.Last }
