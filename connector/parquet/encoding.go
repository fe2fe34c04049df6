package parquet

import (
	"fmt"
	"io"

	"github.com/flott-dev/flott/connector/file"
	pq "github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress"
)

// DefaultRowGroupSize is the length in bytes of a row group unless RowGroupSize says otherwise.
const DefaultRowGroupSize = 32 << 20

// Codec is how pages are compressed.
type Codec uint8

const (
	// Snappy is the default: quick, and read by everything that reads Parquet.
	Snappy Codec = iota
	// Zstd makes smaller files and takes longer.
	Zstd
	// Uncompressed leaves pages as they are.
	Uncompressed
)

// codec is the library's.
func (c Codec) codec() (compress.Codec, error) {
	switch c {
	case Snappy:
		return &pq.Snappy, nil
	case Zstd:
		return &pq.Zstd, nil
	case Uncompressed:
		return &pq.Uncompressed, nil
	}
	return nil, fmt.Errorf("unknown codec %d", c)
}

// Option changes how files are written.
type Option func(*options)

type options struct {
	codec    Codec
	rowGroup int64
}

// Compression sets how pages are compressed; the default is Snappy.
func Compression(c Codec) Option { return func(o *options) { o.codec = c } }

// RowGroupSize sets the number of bytes, as an estimate before compression, from which a row group is complete; the
// default is DefaultRowGroupSize. A row group is what a reader reads as a whole and what a file is cut at, and as much
// memory is taken by each file that is being written.
func RowGroupSize(bytes int64) Option { return func(o *options) { o.rowGroup = bytes } }

// Encoding writes elements of the struct type T as Parquet files, with the columns that the tags of its fields say. It is
// used with filesink.NewBulk.
func Encoding[T any](opts ...Option) file.BulkEncoding[T] {
	o := options{rowGroup: DefaultRowGroupSize}
	for _, opt := range opts {
		opt(&o)
	}
	e := file.BulkEncoding[T]{Extension: ".parquet"}
	schema, err := schemaOf[T]()
	codec, cerr := o.codec.codec()
	switch {
	case err != nil:
		e.Err = fmt.Errorf("parquet encoding: %w", err)
	case cerr != nil:
		e.Err = fmt.Errorf("parquet encoding: %w", cerr)
	case o.rowGroup < 1:
		e.Err = fmt.Errorf("parquet encoding: row groups of %d bytes", o.rowGroup)
	}
	e.Open = func(to io.Writer) (file.BulkWriter[T], error) {
		if e.Err != nil {
			return nil, e.Err
		}
		w := &writer[T]{to: counter{w: to}, rowGroup: o.rowGroup}
		err := file.Guard(func() error {
			w.rows = pq.NewGenericWriter[T](&w.to, schema, pq.Compression(codec))
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("begin a Parquet file: %w", err)
		}
		return w, nil
	}
	return e
}

// counter counts what is written.
type counter struct {
	w io.Writer
	n int64
}

// Write implements io.Writer.
func (c *counter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}

// writer writes one file.
type writer[T any] struct {
	rows     *pq.GenericWriter[T]
	to       counter
	rowGroup int64
}

// writeRun is how many rows go to the library at once: it looks at its buffers after each portion only.
const writeRun = 256

// Write implements file.BulkWriter.
func (w *writer[T]) Write(xs []T) error {
	for len(xs) > 0 {
		n := min(len(xs), writeRun)
		err := file.Guard(func() error {
			_, err := w.rows.Write(xs[:n])
			if err == nil && w.Held() >= w.rowGroup {
				err = w.rows.Flush()
			}
			return err
		})
		if err != nil {
			return fmt.Errorf("write rows of a Parquet file: %w", err)
		}
		xs = xs[n:]
	}
	return nil
}

// Held implements file.BulkWriter.
func (w *writer[T]) Held() int64 { return max(0, w.rows.Size()-w.to.n) }

// Close implements file.BulkWriter.
func (w *writer[T]) Close() error {
	if err := file.Guard(w.rows.Close); err != nil {
		return fmt.Errorf("end a Parquet file: %w", err)
	}
	return nil
}
