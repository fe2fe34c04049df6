package file

import (
	"errors"
	"fmt"
	"strings"
)

var (
	// ErrTooLong says that a record is longer than its format allows.
	ErrTooLong = errors.New("record too long")
	// ErrNoMatch says that a path of a source matches no file.
	ErrNoMatch = errors.New("no file matches")

	// ErrWait is what the text of an Input answers if there will be more but nothing is there now.
	ErrWait = errors.New("no text at hand yet")

	errNoFile = errors.New("this text has no file to begin again")
)

// Error is an error at a place of a file.
type Error struct {
	Path   string // of the file
	Line   int64  // from 1; 0: not known
	Offset int64  // of the record or byte, from 0, in the decoded text
	Err    error  // what is wrong
}

// Error implements error.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString("read ")
	b.WriteString(e.Path)
	if e.Line > 0 {
		fmt.Fprintf(&b, ", line %d", e.Line)
	}
	fmt.Fprintf(&b, ", offset %d: %v", e.Offset, e.Err)
	return b.String()
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// Guard calls f and makes an error of a panic. It is for formats: many of the libraries that know them answer damaged files and
// types that they don't take by a panic.
func Guard(f func() error) (err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case error:
			err = r
		default:
			err = fmt.Errorf("%v", r)
		}
	}()
	return f()
}
