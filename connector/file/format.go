package file

import "github.com/flott-dev/flott/connector"

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

// Decoder reads the records of one split. It is called on the subtask's goroutine.
type Decoder[T any] interface {
	// Decode emits elements until out.Room records are read; fewer is fine. io.EOF says that the split is at its end.
	// It returns errors of Input as they are. What it emits may point into the bytes of the Input for ever.
	Decode(out *connector.Output[T]) error
	// Position is where the record after the last emitted one begins.
	Position() int64
}
