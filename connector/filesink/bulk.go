package filesink

import (
	"fmt"
	"io"

	"github.com/flott-dev/flott/connector/file"
)

// bulkRun is the most elements that a format of whole files is handed at once: between two portions the file's size and age
// are looked at.
const bulkRun = 256

// NewBulk writes whole files of a format such as Parquet or Avro into a folder, which is made if it is missing. Such a file
// can't be written further after a failure, so all files are closed at each checkpoint, and everything before it becomes
// visible with it; the time between checkpoints is what makes files large. MaxPartSize counts what was written and what the
// format still holds, and is looked at every few hundred elements. The format's extension is the suffix of the files' names;
// PartSuffix replaces it. Compress has no place here: formats compress inside. All else is as with New.
func NewBulk[T any](dir string, e file.BulkEncoding[T]) *Sink[T] {
	s := describe[T](dir)
	s.bulk, s.whole, s.suffix = &e, true, e.Extension
	return s
}

// format is a file.BulkWriter, as far as it doesn't depend on the type of the elements.
type format interface {
	Held() int64
	Close() error
}

// formatter begins a file of a format.
func (s *Sink[T]) formatter() func(w io.Writer) (format, error) {
	if s.bulk == nil {
		return nil
	}
	return func(w io.Writer) (format, error) { return s.bulk.Open(w) }
}

// addAll writes elements of one bucket to files of a format.
func (w *writer[T]) addAll(bucket string, xs []T, now int64) error {
	most := bulkRun
	if w.policy != nil {
		most = 1 // it is asked before each element
	}
	for len(xs) > 0 {
		n := min(len(xs), most)
		f, err := w.at(bucket, now)
		if err != nil {
			return err
		}
		if err := f.format.(file.BulkWriter[T]).Write(xs[:n]); err != nil {
			return w.fail(fmt.Errorf("write elements to %s: %w", f.path, err))
		}
		f.changed = now
		f.elements += int64(n)
		xs = xs[n:]
	}
	return nil
}

// bulkWriter is a runWriter for formats of whole files: it hands over what lies side by side and belongs to one bucket.
type bulkWriter[T any] struct{ *writer[T] }

// WriteRun implements connector.RunWriter.
func (w *bulkWriter[T]) WriteRun(xs []T, times []int64) error {
	if err := w.work(); err != nil {
		return err
	}
	now := w.now()
	start, bucket := 0, ""
	for i := range xs {
		b, err := w.bucket(xs, times, i, now)
		switch {
		case err != nil:
			return err
		case i == 0:
			bucket = b
		case b != bucket:
			if err := w.addAll(bucket, xs[start:i], now); err != nil {
				return err
			}
			start, bucket = i, b
		}
	}
	return w.addAll(bucket, xs[start:], now)
}
