package task

import (
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/flott-dev/flott/internal/exchange"
)

// Error is a failure in user code or in an operator: which operator, which subtask, and why.
type Error struct {
	Operator string // the operator's name
	UID      string // its stable identity
	Subtask  int    // from 0
	Attempt  int
	Cause    error
}

// Error names operator, subtask and cause.
func (e *Error) Error() string {
	return fmt.Sprintf("operator %q (%s), subtask %d: %v", e.Operator, e.UID, e.Subtask+1, e.Cause)
}

// Unwrap is the cause.
func (e *Error) Unwrap() error { return e.Cause }

// Panic is the cause of a failure that was a panic.
type Panic struct {
	Value any
	Stack []byte
}

// Error gives the panic's value and the stack.
func (p *Panic) Error() string { return fmt.Sprintf("panic: %v\n%s", p.Value, p.Stack) }

// Unwrap is the panic's value if it was an error.
func (p *Panic) Unwrap() error {
	err, _ := p.Value.(error)
	return err
}

// ErrGoexit is the cause of a failure that was an end of the subtask's goroutine.
var ErrGoexit = errors.New("the function called runtime.Goexit (t.Fatal and t.Skip of a test do)")

// Abandoned is the failure of a task whose Run did not return.
func (t *Task) Abandoned() error { return t.failure(ErrGoexit) }

func panicError(v any) error { return &Panic{Value: v, Stack: debug.Stack()} }

// failure names the operator at work, or the one that was when a link handed up the error.
func (t *Task) failure(err error) error {
	var named *Error
	if errors.Is(err, exchange.ErrCancelled) || errors.As(err, &named) {
		return err
	}
	at := t.scope.At
	if t.scope.Failed != nil && errors.Is(err, t.scope.Failed) {
		at = t.scope.FailedAt
	}
	return &Error{Operator: at.Name, UID: at.UID, Subtask: t.d.Subtask, Attempt: t.d.Attempt, Cause: err}
}
