package operator

import (
	"errors"
	"fmt"
	"path"
	"runtime"
	"runtime/debug"
	"strings"
)

// Panic is a failure that was a panic of user code, or an operator's.
type Panic struct {
	Value any
	// Place is where it was, "folder/file.go:7"; "" if that is not known.
	Place string
	// Stack is that of the goroutine, as runtime/debug.Stack gives it.
	Stack []byte
}

// Recovered is the panic with the value that recover gave. A deferred function calls it, so that the stack is still there.
func Recovered(value any) *Panic {
	return &Panic{Value: value, Place: panicPlace(), Stack: debug.Stack()}
}

// panicPlace is the function nearest to the panic that is not the runtime's.
func panicPlace() string {
	pcs := make([]uintptr, 64)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(1, pcs)])
	panicking := false
	for {
		f, more := frames.Next()
		panicking = panicking || f.Function == "runtime.gopanic"
		if panicking && !strings.HasPrefix(f.Function, "runtime.") {
			return fmt.Sprintf("%s:%d", path.Join(path.Base(path.Dir(f.File)), path.Base(f.File)), f.Line)
		}
		if !more {
			return ""
		}
	}
}

// String is the panic without its stack, on one line if the value has one.
func (p *Panic) String() string {
	if p.Place == "" {
		return fmt.Sprintf("panic: %v", p.Value)
	}
	return fmt.Sprintf("panic: %v (%s)", p.Value, p.Place)
}

// Error gives the panic's value, its place, and the stack on the lines that follow.
func (p *Panic) Error() string { return p.String() + "\n" + string(p.Stack) }

// Unwrap is the panic's value if it was an error.
func (p *Panic) Unwrap() error {
	err, _ := p.Value.(error)
	return err
}

// WithoutStack is the text of an error without the stack of the panic that it wraps, which comes apart; "" if there is none.
func WithoutStack(err error) (text, stack string) {
	text = err.Error()
	var p *Panic
	if errors.As(err, &p) {
		stack = string(p.Stack)
		text = strings.Replace(text, p.Error(), p.String(), 1)
	}
	return text, stack
}
