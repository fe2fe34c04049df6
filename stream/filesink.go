package stream

import (
	"github.com/flott-dev/flott/connector/file"
	"github.com/flott-dev/flott/connector/filesink"
)

// WriteToFiles writes the stream exactly once into part files below a folder: records of an encoding (file.TextEncoding,
// csv.Encoding, jsonl.Encoding) or whole files of a format (file.BulkEncoding). It is CommitTo with a filesink.Sink as New
// or NewBulk of package filesink make it: an hour of processing time is a folder, files have up to 128 MiB, are a minute old
// at most, and become visible with checkpoints and at the end of the input. For anything else, such as other folders,
// suffixes and compression, describe the sink and hand it to CommitTo.
func (s *Stream[T]) WriteToFiles[E file.Encoding[T] | file.BulkEncoding[T]](dir string, e E) *Sink {
	var w *filesink.Sink[T]
	switch e := any(e).(type) {
	case file.Encoding[T]:
		w = filesink.New(dir, e)
	case file.BulkEncoding[T]:
		w = filesink.NewBulk(dir, e)
	}
	return s.CommitTo(w).Name("File Sink")
}
