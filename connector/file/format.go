package file

import (
	"io"

	"github.com/flott-dev/flott/connector"
)

// Format turns the bytes of files into elements. It is a description, shared by all subtasks, without mutable state.
type Format[T any] interface {
	// Check reports mistakes of the description, when the job is built.
	Check() error
	// Splittable reports whether a file may be cut at any byte, so that parts are read in parallel: the decoder of a part
	// then finds the first record that begins behind its start.
	Splittable() bool
	// Decoder opens the decoder of one split.
	Decoder(in *Input) (Decoder[T], error)
}

// Decoder reads the records of one split. It is called on the subtask's goroutine. One that is an io.Closer is closed
// when the split is done or given up.
type Decoder[T any] interface {
	// Decode emits elements until out.Room records are read; fewer is fine. io.EOF says that the split is at its end.
	// It returns errors of Input as they are. What it emits may point into the bytes of the Input for ever.
	Decode(out *connector.Output[T]) error
	// Position is where the record after the last emitted one begins.
	Position() int64
}

// BlockDecoder is the Decoder of a format whose records lie in blocks, so that reading can go on at blocks only (Avro,
// Parquet). Its Position is where the block begins of which it emits records. After a restore the Input begins there, and
// Input.Skip says how many of the block's records have been emitted before.
type BlockDecoder[T any] interface {
	Decoder[T]
	// Skip is the number of records of that block that were emitted.
	Skip() int64
}

// skipped is the Skip of a decoder, 0 if it has none.
func skipped[T any](d Decoder[T]) int64 {
	if b, ok := d.(BlockDecoder[T]); ok {
		return b.Skip()
	}
	return 0
}

// closeDecoder releases what a decoder holds.
func closeDecoder[T any](d Decoder[T]) error {
	if c, ok := d.(io.Closer); ok {
		return c.Close()
	}
	return nil
}
