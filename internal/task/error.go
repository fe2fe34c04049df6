package task

import (
	"errors"
	"fmt"

	"github.com/flott-dev/flott/internal/exchange"
)

// Error is a failure in user code or in an operator: which operator, which subtask, and why.
type Error struct {
	Operator string // the operator's name
	UID      string // its stable identity
	GivenUID string // the UID that the user has given it; "": none
	Subtask  int    // from 0
	Attempt  int
	// Record says what the operator had at hand, as in "at element {...}", or how long the run was that it was at work on; ""
	// if neither.
	Record string
	Cause  error
}

// Error names operator, subtask, record and cause: the operator by the UID that the user knows, if there is one.
func (e *Error) Error() string {
	record := e.Record
	if record != "" {
		record = ", " + record
	}
	uid := e.UID
	if e.GivenUID != "" {
		uid = fmt.Sprintf("UID %q", e.GivenUID)
	}
	return fmt.Sprintf("operator %q (%s), subtask %d%s: %v", e.Operator, uid, e.Subtask+1, record, e.Cause)
}

// Unwrap is the cause.
func (e *Error) Unwrap() error { return e.Cause }

// ErrGoexit is the cause of a failure that was an end of the subtask's goroutine.
var ErrGoexit = errors.New("the function called runtime.Goexit (t.Fatal and t.Skip of a test do)")

// Abandoned is the failure of a task whose Run did not return.
func (t *Task) Abandoned() error {
	if t.abandoned == nil {
		return t.failure(ErrGoexit)
	}
	return t.abandoned
}

// failure names the operator at work, or the one that was when a link handed up the error.
func (t *Task) failure(err error) error {
	var named *Error
	if errors.Is(err, exchange.ErrCancelled) || errors.As(err, &named) {
		return err
	}
	at, record := t.scope.FailedAt, t.scope.FailedOn
	if t.scope.Failed == nil || !errors.Is(err, t.scope.Failed) {
		at, record = t.scope.At, t.scope.Record()
	}
	return &Error{Operator: at.Name, UID: at.UID, GivenUID: at.GivenUID, Subtask: t.d.Subtask, Attempt: t.d.Attempt, Record: record, Cause: err}
}
