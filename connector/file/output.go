package file

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"

	"github.com/flott-dev/flott/connector"
	"github.com/flott-dev/flott/internal/vfs"
)

// outputBlock is the number of bytes that a sink gathers before it writes them.
const outputBlock = 64 << 10

// output is the file of one subtask. Whole records only are written.
type output struct {
	fs      vfs.FS
	name    string
	w       vfs.Writer // nil when closed
	buf     []byte
	folders []string // whose names are not synced yet: the file's and those made for it
	size    int64    // of the file, up to the last whole write
	err     error    // the first error; nothing is well after it
}

// write writes what was gathered.
func (o *output) write() error {
	if o.err != nil || len(o.buf) == 0 {
		return o.err
	}
	n, err := vfs.WriteAll(o.w, o.buf)
	if err == nil {
		o.size += int64(n)
		o.buf = o.buf[:0]
		return nil
	}
	o.err = fmt.Errorf("write %s: %w", o.name, err)
	if n > 0 {
		if terr := o.fs.Truncate(o.name, o.size); terr != nil {
			o.err = errors.Join(o.err, fmt.Errorf("cut off half a record: %w", terr))
		}
	}
	return o.err
}

// flush makes everything gathered durable; at the end of the input it closes the file, as some file systems tell only
// then that they are full.
func (o *output) flush(end bool) error {
	if o.w == nil {
		return o.err
	}
	if err := o.write(); err != nil {
		return err
	}
	err := o.w.Sync()
	for ; err == nil && len(o.folders) > 0; o.folders = o.folders[1:] {
		err = o.fs.SyncDir(o.folders[0])
	}
	if end {
		err = errors.Join(err, o.w.Close())
		o.w = nil
	}
	if err != nil {
		o.err = fmt.Errorf("write %s: %w", o.name, err)
	}
	return o.err
}

// close releases the file. What was not flushed is lost: the job has failed or was cancelled.
func (o *output) close() error {
	if o.w == nil {
		return nil
	}
	err := o.w.Close()
	o.w = nil
	if err != nil {
		return fmt.Errorf("close %s: %w", o.name, err)
	}
	return nil
}

// writer writes the elements of one subtask.
type writer[T any] struct {
	file      *output
	append    func(dst []byte, x T) ([]byte, error)
	delimiter string
}

// Write implements connector.Writer.
func (w *writer[T]) Write(x T, _ connector.ElementContext) error { return w.add(x, 0) }

// WriteRun implements connector.RunWriter.
func (w *writer[T]) WriteRun(xs []T, _ []int64) error {
	for i, x := range xs {
		if err := w.add(x, i); err != nil {
			return err
		}
	}
	return nil
}

// add takes element i of a run.
func (w *writer[T]) add(x T, i int) error {
	if w.file.err != nil {
		return w.file.err
	}
	buf, err := w.append(w.file.buf, x)
	if err != nil {
		return &connector.ElementError{Index: i, Err: fmt.Errorf("encode an element for %s: %w", w.file.name, err)}
	}
	w.file.buf = append(buf, w.delimiter...)
	if len(w.file.buf) < outputBlock {
		return nil
	}
	return w.file.write()
}

// Flush implements connector.Writer.
func (w *writer[T]) Flush(endOfInput bool) error { return w.file.flush(endOfInput) }

// Close implements connector.Writer.
func (w *writer[T]) Close() error { return w.file.close() }

// resume prepares a file of an earlier attempt for more: half a record at its end, left by a crash, is cut off. It
// returns the size.
func resume(f vfs.FS, name, delimiter string) (int64, error) {
	file, err := f.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	whole, size, err := lastEnd(file, delimiter)
	if err = errors.Join(err, file.Close()); err == nil && whole < size {
		err = f.Truncate(name, whole)
	}
	return whole, err
}

// lastEnd finds the place behind the last delimiter of a file.
func lastEnd(file vfs.File, delimiter string) (whole, size int64, err error) {
	info, err := file.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return 0, 0, err
	}
	size = info.Size()
	block := make([]byte, outputBlock)
	for end := size; end > 0; {
		start := max(0, end-int64(len(block)))
		text := block[:end-start]
		if _, err := file.ReadAt(text, start); err != nil {
			return 0, 0, err
		}
		if i := bytes.LastIndex(text, []byte(delimiter)); i >= 0 {
			return start + int64(i+len(delimiter)), size, nil
		}
		if start == 0 {
			break
		}
		end = start + int64(len(delimiter)) - 1 // a delimiter may lie across two blocks
	}
	return 0, size, nil
}
