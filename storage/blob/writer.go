package blob

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"gocloud.dev/blob"
)

// writerMark is the metadata by which the object of an exclusive writer is told from that of another.
const writerMark = "flottwriter"

// contentType is that of what nobody knows more about.
const contentType = "application/octet-stream"

// writer writes an object, which appears when it is closed.
type writer struct {
	f      *FS
	name   string
	key    string
	mark   string // "": not exclusive
	pipe   *io.PipeWriter
	wait   *waiting
	sent   chan error // what became of the object
	err    error      // of writing, the first one
	closed bool
}

// newWriter begins to upload a file, exclusively if o says so. The driver is given a reader: some drivers' own writers do not
// survive a failing upload (azureblob 0.47 panics in Close).
func (f *FS) newWriter(name, k string, o *blob.WriterOptions) *writer {
	w := &writer{f: f, name: name, key: k, wait: f.wait(), sent: make(chan error, 1)}
	w.wait.pause()
	o.BufferSize, o.MaxConcurrency = f.options.PartBytes, f.options.Parts
	if o.IfNotExist {
		w.mark = o.Metadata[writerMark]
	}
	var bytes *io.PipeReader
	bytes, w.pipe = io.Pipe()
	go func() {
		err := f.bucket.Upload(w.wait.ctx, k, bytes, o)
		if err != nil {
			_ = bytes.CloseWithError(err)
		}
		w.sent <- err
	}()
	return w
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
	n, err := w.pipe.Write(p)
	w.wait.pause()
	w.err = w.f.failed("write", w.name, w.wait, err)
	return n, w.err
}

// Sync does nothing. The file's name does not survive before Close, so neither need its bytes. It may be called while another
// goroutine writes.
func (w *writer) Sync() error { return nil }

// Abort ends the writing in the place of Close: the file does not exist.
func (w *writer) Abort() error {
	if w.closed {
		return &fs.PathError{Op: "abort", Path: w.name, Err: fs.ErrClosed}
	}
	w.closed = true
	w.wait.end()
	_ = w.pipe.CloseWithError(errAborted)
	<-w.sent
	return nil
}

// errAborted is what an upload that is given up reads in the place of the rest.
var errAborted = errors.New("the upload was given up")

// Close makes the file exist, durably, unless writing failed.
func (w *writer) Close() error {
	if w.closed {
		return &fs.PathError{Op: "close", Path: w.name, Err: fs.ErrClosed}
	}
	w.closed = true
	defer w.wait.end()
	if w.err != nil { // whoever still sends it must not finish
		w.wait.end()
		_ = w.pipe.CloseWithError(w.err)
		<-w.sent
		return w.err
	}
	w.wait.progress()
	_ = w.pipe.Close()
	err := w.f.failed("close", w.name, w.wait, <-w.sent)
	if err == nil || w.mark == "" {
		return err
	}
	return w.settle(err)
}

// settle finds out what became of an exclusive file that could not be closed. A driver may have sent it twice, as the answer to
// the first one was lost, and have been told that it exists. Or it was told nothing, as some stores hang up on who is still sending
// what they have refused.
func (w *writer) settle(err error) error {
	refused := errors.Is(err, fs.ErrExist)
	if refused || !errors.Is(err, os.ErrDeadlineExceeded) {
		wait := w.f.wait()
		defer wait.end()
		there, unknown := w.f.bucket.Attributes(wait.ctx, w.key)
		switch mine := unknown == nil && there.Metadata[writerMark] == w.mark; {
		case refused && mine:
			return nil
		case !refused && !mine && unknown == nil:
			err = &fs.PathError{Op: "close", Path: w.name, Err: fmt.Errorf("%w, and this one could not be sent: %w", fs.ErrExist, err)}
		}
	}
	w.f.doubt(w.key, w.mark)
	return err
}
