// Package csv reads rows of comma-separated values into structs and writes them. It owns the syntax of rows and the
// conversion of fields, compiled once per type; files, splits and compression are package connector/file's, whose
// Format and sink it provides. Programs call it: file.New(csv.Format[Trade](csv.Header()), "trades/*.csv").
//
// Which fields a struct has in a file is said by tags: `csv:"price"` names the column, `csv:"-"` leaves the field out;
// without a tag the column has the field's name. Unexported fields are left out, the fields of embedded structs belong
// to the struct around. Fields are strings, []byte, bools, numbers, time.Time, types with UnmarshalText and MarshalText,
// and pointers to any of these: a pointer is nil where the field is empty and not quoted. A type that is no struct is a
// row with one column.
package csv

import (
	"errors"
	"strconv"
	"strings"
)

var (
	// ErrFieldCount says that a row ends before the last column that is wanted.
	ErrFieldCount = errors.New("row has too few fields")
	// ErrQuote says that a quoted field is not closed.
	ErrQuote = errors.New("quoted field without an end")
	// ErrAfterQuote says that a quoted field goes on behind its closing quote.
	ErrAfterQuote = errors.New("text behind the closing quote of a field")
	// ErrEmpty says that a field is empty that must not be.
	ErrEmpty = errors.New("empty field")
	// ErrSyntax says that the text of a field is no value of the type.
	ErrSyntax = errors.New("invalid syntax")
	// ErrRange says that a number does not fit into the field.
	ErrRange = errors.New("value out of range")
)

// Error is a row that can't be read. It is found with errors.As.
type Error struct {
	Path   string // of the file
	Line   int64  // on which the row begins, from 1; 0: not known
	Column int    // number of the column in the file, from 1; 0: the row as a whole
	Field  string // name of the column
	Text   string // of the field
	Err    error  // ErrFieldCount, ErrSyntax, ...
}

// Error implements error.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString("read " + e.Path)
	if e.Line > 0 {
		b.WriteString(", line " + strconv.FormatInt(e.Line, 10))
	}
	if e.Column > 0 {
		b.WriteString(", column " + strconv.Itoa(e.Column))
	}
	if e.Field != "" {
		b.WriteString(" (" + e.Field + ")")
	}
	b.WriteString(": ")
	if e.Text != "" {
		b.WriteString(strconv.Quote(e.Text) + ": ")
	}
	b.WriteString(e.Err.Error())
	return b.String()
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }
