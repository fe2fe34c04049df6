package parquet

import (
	"errors"
	"fmt"
	"io"

	"github.com/flott-dev/flott/connector"
	"github.com/flott-dev/flott/connector/file"
	pq "github.com/parquet-go/parquet-go"
)

// Format reads the rows of Parquet files into elements of the struct type T. Only the columns that T has are read; those of
// the file may be narrower (32 bits for 64, or a timestamp in another unit). A column that a file does not have is an
// error unless T has it as optional (a pointer to a value, or by the tag). Null is the zero value where a field is no pointer, 1970 for
// a time.
//
// Files are cut into splits at row groups: one belongs to the split in which it begins, so splits smaller than those are
// empty. After a restore reading goes on at the row. A file that is damaged fails the job with its name; there are no bad
// records to skip. Files that are compressed as a whole (.gz), or come from a stream, are errors.
func Format[T any]() file.Format[T] {
	f := &format[T]{}
	f.schema, f.err = schemaOf[T]()
	if f.err != nil {
		f.err = fmt.Errorf("parquet format: %w", f.err)
	}
	return f
}

// Source reads the files at paths; it is short for file.New with a Format.
func Source[T any](paths ...string) *file.Source[T] { return file.New(Format[T](), paths...) }

type format[T any] struct {
	schema *pq.Schema
	err    error
}

// Check implements file.Format.
func (f *format[T]) Check() error { return f.err }

// Splittable implements file.Format.
func (f *format[T]) Splittable() bool { return true }

// Decoder implements file.Format.
func (f *format[T]) Decoder(in *file.Input) (file.Decoder[T], error) {
	d := &decoder[T]{path: in.Path(), schema: f.schema, at: max(in.Start(), in.Offset()), skip: in.Skip()}
	err := file.Guard(func() (err error) {
		d.file, d.groups, err = open(in, f.schema)
		return err
	})
	if err != nil {
		return nil, d.name(err)
	}
	return d, nil
}

// decoder reads the row groups of one split.
type decoder[T any] struct {
	path   string
	schema *pq.Schema
	file   *opened
	groups []group // not read to their ends; the first is open if rows is not nil
	rows   *pq.GenericReader[T]
	at     int64 // where the row group of the last row begins
	skip   int64 // rows of it that were emitted
	buf    []T
}

// readRun is how many rows are read at once.
const readRun = 256

// Decode implements file.Decoder.
func (d *decoder[T]) Decode(out *connector.Output[T]) error {
	for out.Room() > 0 {
		if len(d.groups) == 0 {
			return io.EOF
		}
		n, err := d.read(min(out.Room(), readRun))
		if err != nil {
			return d.name(err)
		}
		out.EmitSlice(d.buf[:n])
		d.skip += int64(n)
		if d.skip < d.groups[0].rows {
			continue
		}
		if err := d.endGroup(); err != nil {
			return d.name(err)
		}
	}
	return nil
}

// read reads up to n rows, and one at least, of the first row group.
func (d *decoder[T]) read(most int) (n int, err error) {
	g := &d.groups[0]
	if d.rows == nil {
		if g.begin != d.at {
			d.at, d.skip = g.begin, 0
		}
		if d.skip == g.rows { // restored behind the last row
			return 0, nil
		}
		if err := file.Guard(d.openGroup); err != nil {
			return 0, err
		}
	}
	if d.buf == nil {
		d.buf = make([]T, readRun)
	}
	rows := d.buf[:min(int64(most), g.rows-d.skip)]
	clear(rows) // or the library writes into the slices of rows that were emitted
	err = file.Guard(func() error {
		n, err = d.rows.Read(rows)
		return err
	})
	if err == io.EOF && n > 0 {
		err = nil // told again if there should be more
	}
	if err == io.EOF || err == nil && n == 0 {
		err = fmt.Errorf("%w: a row group ends after %d rows of %d", ErrDamaged, d.skip, g.rows)
	}
	return n, err
}

// openGroup opens the first row group and skips what was emitted of it.
func (d *decoder[T]) openGroup() error {
	g := &d.groups[0]
	if err := d.file.checkPages(g, d.schema); err != nil {
		return err
	}
	d.rows = pq.NewGenericRowGroupReader[T](d.file.RowGroups()[g.index], d.schema)
	if d.skip == 0 {
		return nil
	}
	return d.rows.SeekToRow(d.skip)
}

func (d *decoder[T]) endGroup() error {
	d.groups = d.groups[1:]
	return d.Close()
}

// Position implements file.Decoder.
func (d *decoder[T]) Position() int64 { return d.at }

// Skip implements file.BlockDecoder.
func (d *decoder[T]) Skip() int64 { return d.skip }

// Close implements io.Closer.
func (d *decoder[T]) Close() error {
	if d.rows == nil {
		return nil
	}
	rows := d.rows
	d.rows = nil
	return file.Guard(rows.Close)
}

// name adds the file to an error that does not name it.
func (d *decoder[T]) name(err error) error {
	if _, ok := errors.AsType[*file.Error](err); ok || errors.Is(err, file.ErrSequential) {
		return err
	}
	return fmt.Errorf("read %s: %w", d.path, err)
}
