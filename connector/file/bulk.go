package file

import "io"

// BulkEncoding turns elements into whole files, whose formats have a begin, an end and blocks of many records: Parquet,
// Avro. What cuts a stream into files, and when, is the sink's (filesink.NewBulk). It is a description, shared by all
// subtasks, without mutable state.
type BulkEncoding[T any] struct {
	// Open begins a file, which goes to w. It is called on the subtask's goroutine, once per file.
	Open func(w io.Writer) (BulkWriter[T], error)
	// Extension is the usual end of the files' names, such as ".parquet"; "" for none.
	Extension string
	// Err is a mistake of the description, reported when the job is built.
	Err error
}

// BulkWriter writes one file. All its methods are called on the subtask's goroutine. A file can't be continued after a
// failure: the sink closes it at every checkpoint.
type BulkWriter[T any] interface {
	// Write adds elements, which it does not keep: their memory belongs to the caller.
	Write(xs []T) error
	// Held estimates the bytes that Close would still write, so that files can be cut by size.
	Held() int64
	// Close writes what is held and the end of the file. It doesn't close the file itself. It is not called for a file
	// that is given up.
	Close() error
}
