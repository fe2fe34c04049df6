package file

import (
	"fmt"
	"strconv"
)

// TextSink writes elements as lines of text; see Sink for what happens where. An element is written as package fmt
// prints it: a string as it is, a type with a String method by that.
func TextSink[T any](path string) *Sink[T] { return NewSink(path, TextEncoding[T]("\n")) }

// TextEncoding is that of TextSink with another delimiter behind each element.
func TextEncoding[T any](delimiter string) Encoding[T] {
	form := textForm[T]()
	return TextEncodingFunc(delimiter, func(dst []byte, x T) []byte { return form(dst, x) })
}

// TextEncodingFunc writes what a function appends for each element, and a delimiter. Subtasks call it concurrently.
func TextEncodingFunc[T any](delimiter string, form func(dst []byte, x T) []byte) Encoding[T] {
	return Encoding[T]{Delimiter: delimiter, Open: func() func([]byte, T) ([]byte, error) {
		return func(dst []byte, x T) ([]byte, error) { return form(dst, x), nil }
	}}
}

// textForm chooses once per type how elements are printed: the common ones without package fmt, which allocates.
func textForm[T any]() func(dst []byte, x T) []byte {
	for _, f := range []any{
		func(dst []byte, x string) []byte { return append(dst, x...) },
		func(dst []byte, x int) []byte { return strconv.AppendInt(dst, int64(x), 10) },
		func(dst []byte, x int32) []byte { return strconv.AppendInt(dst, int64(x), 10) },
		func(dst []byte, x int64) []byte { return strconv.AppendInt(dst, x, 10) },
		func(dst []byte, x uint64) []byte { return strconv.AppendUint(dst, x, 10) },
		strconv.AppendBool,
	} {
		if f, ok := f.(func([]byte, T) []byte); ok {
			return f
		}
	}
	return func(dst []byte, x T) []byte { return fmt.Append(dst, x) }
}
