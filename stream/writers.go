package stream

import (
	"encoding/json/v2"
	"fmt"

	"github.com/flott-dev/flott/connector"
	"github.com/flott-dev/flott/connector/csv"
	"github.com/flott-dev/flott/connector/file"
	"github.com/flott-dev/flott/connector/jsonl"
	"github.com/flott-dev/flott/connector/socket"
)

// WriteMode says what happens to a target that exists.
type WriteMode uint8

const (
	// NoOverwrite fails, before anything is written.
	NoOverwrite WriteMode = iota
	// Overwrite replaces it.
	Overwrite
)

// WriteAsText writes the elements as lines of text, as package fmt prints them: to the file path at parallelism 1,
// otherwise to a folder of that name with a file per subtask: 1, 2 ... The sink has no part in checkpoints; see
// file.Sink.
func (s *Stream[T]) WriteAsText[M WriteMode](path string, mode M) *Sink {
	return s.writeFile("Text File", file.TextSink[T](path), WriteMode(mode))
}

// WriteAsCSV writes the elements, structs, as rows of comma-separated values, to a file or folder as WriteAsText does.
// csv.Comma and csv.RowDelimiter set the delimiters, csv.Header writes the names of the columns.
func (s *Stream[T]) WriteAsCSV[M WriteMode](path string, mode M, opts ...csv.Option) *Sink {
	return s.writeFile("CSV File", csv.Sink[T](path, opts...), WriteMode(mode))
}

// WriteAsJSONLines writes each element as a line with its JSON value, to a file or folder as WriteAsText does.
func (s *Stream[T]) WriteAsJSONLines[M WriteMode](path string, mode M, opts ...json.Options) *Sink {
	return s.writeFile("JSON Lines File", jsonl.Sink[T](path, opts...), WriteMode(mode))
}

func (s *Stream[T]) writeFile[W *file.Sink[T]](name string, to W, mode WriteMode) *Sink {
	w := (*file.Sink[T])(to)
	switch mode {
	case NoOverwrite:
	case Overwrite:
		w = w.Overwrite()
	default:
		s.c.env.report(fmt.Errorf("write to a file: unknown write mode %d", mode))
	}
	return s.SinkTo(w).Name(name)
}

// WriteToSocket sends what encode makes of each element to a TCP server; nothing is added between elements. Each subtask
// has a connection of its own. To connect again, use socket.NewSink with SinkTo.
func (s *Stream[T]) WriteToSocket[F func(T) []byte | func(T) ([]byte, error)](host string, port int, encode F) *Sink {
	var try func(T) ([]byte, error)
	switch f := any(encode).(type) {
	case func(T) []byte:
		try = func(x T) ([]byte, error) { return f(x), nil }
	case func(T) ([]byte, error):
		try = f
	}
	return s.SinkTo(socket.NewSink(host, port, try)).Name("Socket")
}

// OutputFormat writes the elements of one subtask somewhere, outside of checkpoints.
type OutputFormat[T any] interface {
	// Open is called first.
	Open(subtask, parallelism int) error
	// WriteRecord is called for each element.
	WriteRecord(x T) error
	// Close is called last, in success, failure and cancellation, also if Open has failed.
	Close() error
}

// CleanupOnError is implemented by output formats that take back what they have written if it has not become complete:
// it is called before Close if the input did not come to its end.
type CleanupOnError interface {
	// TryCleanupOnError removes what the subtask has written.
	TryCleanupOnError() error
}

// WriteUsingOutputFormat writes with formats that construct makes, one for each subtask.
func (s *Stream[T]) WriteUsingOutputFormat[F OutputFormat[T]](construct func() F) *Sink {
	return s.SinkTo(formatSink[T, F]{construct}).Name("Output Format")
}

// formatSink is an output format as a connector.
type formatSink[T any, F OutputFormat[T]] struct{ construct func() F }

// Writer implements connector.Sink.
func (f formatSink[T, F]) Writer(ctx connector.WriterContext) (connector.Writer[T], error) {
	w := &formatWriter[T]{format: f.construct()}
	if err := w.format.Open(ctx.Subtask(), ctx.Parallelism()); err != nil {
		err = fmt.Errorf("open the output format: %w", err)
		if e := w.Close(); e != nil {
			err = fmt.Errorf("%w (and then: %w)", err, e)
		}
		return nil, err
	}
	return w, nil
}

type formatWriter[T any] struct {
	format OutputFormat[T]
	ended  bool
}

func (w *formatWriter[T]) Write(x T, _ connector.ElementContext) error {
	return w.format.WriteRecord(x)
}

func (w *formatWriter[T]) Flush(end bool) error {
	w.ended = w.ended || end
	return nil
}

func (w *formatWriter[T]) Close() error {
	var err error
	if c, ok := w.format.(CleanupOnError); ok && !w.ended {
		err = c.TryCleanupOnError()
	}
	if e := w.format.Close(); err == nil {
		err = e
	}
	return err
}
