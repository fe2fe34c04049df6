// Package jsonl reads and writes JSON lines: one JSON value per line. It owns the step between a line and an element,
// which is encoding/json/v2's; files, splits and compression are package connector/file's, whose Format and sink it
// provides. Programs call it: file.New(jsonl.Format[Event](), "events/*.jsonl.gz").
package jsonl

import (
	"bytes"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"errors"

	"github.com/flott-dev/flott/connector"
	"github.com/flott-dev/flott/connector/file"
)

// Option carries options of encoding/json/v2 to where options of files are taken as well (stream.Env.ReadJSONLines).
type Option struct{ json json.Options }

// Options is an Option of options of encoding/json/v2; later ones win.
func Options(opts ...json.Options) Option { return Option{json.JoinOptions(opts...)} }

// JSON gives them back; nil for the zero Option.
func (o Option) JSON() json.Options { return o.json }

// ReadsJSONLines makes an Option a stream.JSONLinesOption.
func (Option) ReadsJSONLines() {}

// Format reads each line into an element of type T as encoding/json/v2 does, with its options (for example
// json.RejectUnknownMembers). Lines of white space are skipped. Files are cut into splits anywhere, as a line break can't
// be within a line's value. A line that can't be read is a *file.Error with the line and the offset of the byte at which
// it went wrong; see the methods SkipBad and OnBad of file.Source for other ways.
func Format[T any](opts ...json.Options) file.Format[T] {
	return format[T]{json.JoinOptions(opts...)}
}

// Source reads the files at paths; it is short for file.New with a Format without options.
func Source[T any](paths ...string) *file.Source[T] { return file.New(Format[T](), paths...) }

// Sink writes each element as a line to the file, or the folder of files, at path; see file.Sink for what happens where.
// Options are those of encoding/json/v2; values are written on one line whatever they say.
func Sink[T any](path string, opts ...json.Options) *file.Sink[T] {
	return file.NewSink(path, Encoding[T](opts...))
}

// Encoding is that of Sink, for sinks of files with more to say than a path.
func Encoding[T any](opts ...json.Options) file.Encoding[T] {
	options := json.JoinOptions(append(opts[:len(opts):len(opts)], jsontext.Multiline(false))...)
	return file.Encoding[T]{Open: func() func([]byte, T) ([]byte, error) {
		e := &encoder[T]{options: options}
		return e.append
	}}
}

// encoder holds what would be an allocation per element.
type encoder[T any] struct {
	options json.Options
	row     T
	dst     []byte
}

func (e *encoder[T]) append(dst []byte, x T) ([]byte, error) {
	e.row, e.dst = x, dst
	err := json.MarshalWrite(e, &e.row, e.options)
	dst, e.dst = e.dst, nil
	return dst, err
}

// Write implements io.Writer for MarshalWrite.
func (e *encoder[T]) Write(p []byte) (int, error) {
	e.dst = append(e.dst, p...)
	return len(p), nil
}

type format[T any] struct{ options json.Options }

// Check implements file.Format.
func (format[T]) Check() error { return nil }

// Splittable implements file.Format.
func (format[T]) Splittable() bool { return true }

// Decoder implements file.Format.
func (f format[T]) Decoder(in *file.Input) (file.Decoder[T], error) {
	return &decoder[T]{Records: file.NewRecords(in, "\n", 0), in: in, options: f.options}, nil
}

type decoder[T any] struct {
	*file.Records
	in      *file.Input
	options json.Options
	row     T
}

// Decode implements file.Decoder.
func (d *decoder[T]) Decode(out *connector.Output[T]) error {
	var zero T
	for n := out.Room(); n > 0; n-- {
		line, err := d.Next()
		if err != nil {
			return err
		}
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		d.row = zero
		err = json.Unmarshal(line, &d.row, d.options)
		if err == nil {
			out.Emit(d.row)
			continue
		}
		if err := d.bad(line, err); err != nil {
			return err
		}
	}
	d.row = zero
	return nil
}

// bad reports a line with the place at which it went wrong.
func (d *decoder[T]) bad(line []byte, cause error) error {
	at := d.Begin()
	return d.in.Bad(at, line, func(n int64) error {
		return &file.Error{Path: d.in.Path(), Line: n, Offset: at + within(cause), Err: cause}
	})
}

// within is the offset in the line at which an error occurred.
func within(err error) int64 {
	if e, ok := errors.AsType[*json.SemanticError](err); ok {
		return e.ByteOffset
	}
	if e, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		return e.ByteOffset
	}
	return 0
}
