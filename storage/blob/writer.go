package blob

import (
	"crypto/rand"
	"errors"
	"io/fs"

	"gocloud.dev/blob"
)

// writerMark is the metadata by which the object of an exclusive writer is told from that of another.
const writerMark = "flottwriter"

// writer writes an object, which appears when it is closed.
type writer struct {
	f      *FS
	name   string
	key    string
	mark   string // "": not exclusive
	w      *blob.Writer
	wait   *waiting
	err    error // the first one
	closed bool
}

func (f *FS) newWriter(name, k string, exclusive bool) (*writer, error) {
	w := &writer{f: f, name: name, key: k, wait: f.wait()}
	o := &blob.WriterOptions{
		ContentType: "application/octet-stream", BufferSize: f.options.PartBytes, MaxConcurrency: f.options.Parts,
	}
	if exclusive {
		w.mark = rand.Text()
		o.IfNotExist = true
		o.Metadata = map[string]string{writerMark: w.mark}
	}
	var err error
	if w.w, err = f.bucket.NewWriter(w.wait.ctx, k, o); err != nil {
		err = f.failed("create", name, w.wait, err)
		w.wait.end()
		return nil, err
	}
	w.wait.pause()
	return w, nil
}

// Write hands bytes over; they are sent in the background.
func (w *writer) Write(p []byte) (int, error) {
	if w.closed {
		return 0, &fs.PathError{Op: "write", Path: w.name, Err: fs.ErrClosed}
	}
	if w.err != nil {
		return 0, w.err
	}
	w.wait.progress()
	n, err := w.w.Write(p)
	w.wait.pause()
	w.err = w.f.failed("write", w.name, w.wait, err)
	return n, w.err
}

// Sync does nothing. The file's name does not survive before Close, so neither need its bytes. It may be called while another
// goroutine writes.
func (w *writer) Sync() error { return nil }

// Close makes the file exist, durably, unless writing failed.
func (w *writer) Close() error {
	if w.closed {
		return &fs.PathError{Op: "close", Path: w.name, Err: fs.ErrClosed}
	}
	w.closed = true
	defer w.wait.end()
	if w.err != nil { // without a context there is no object
		err := w.err
		w.wait.end()
		_ = w.w.Close()
		return err
	}
	w.wait.progress()
	err := w.f.failed("close", w.name, w.wait, w.w.Close())
	if err == nil || w.mark == "" {
		return err
	}
	return w.settle(err)
}

// settle finds out what became of an exclusive file that could not be closed. A driver may have sent it twice, as the answer to
// the first one was lost, and have been told that it exists.
func (w *writer) settle(err error) error {
	if errors.Is(err, fs.ErrExist) {
		wait := w.f.wait()
		defer wait.end()
		if mine, other := w.f.marked(wait.ctx, w.key, w.mark); mine && other == nil {
			return nil
		}
	}
	w.f.doubt(w.key, w.mark)
	return err
}
