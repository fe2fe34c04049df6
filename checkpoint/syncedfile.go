package checkpoint

import (
	"errors"

	"github.com/flott-dev/flott/internal/vfs"
)

// syncEvery is how much is written before the disk is told to begin. Otherwise it would idle while rows are encoded, and the
// last sync would wait for all of them. It is little, as who waits for the disk may keep a processor for as long.
const syncEvery = 2 << 20

// How many files, of which size at least, may wait for the disk while the next ones are written.
const (
	maxClosing   = 8
	closingBytes = 256 << 10
)

// syncedFiles writes the files of a part in any file system, as a vfs.DirectWriter does on the machine's own.
type syncedFiles struct {
	fs      vfs.FS
	file    *syncedFile // nil: none is open
	size    int64       // of it
	closing []chan error
}

// Use implements vfs.DirectWriter: it has no buffers.
func (w *syncedFiles) Use(vfs.Budget) {}

// Create implements vfs.DirectWriter.
func (w *syncedFiles) Create(name string) error {
	file, err := w.fs.Create(name, vfs.Exclusive)
	if err == nil {
		w.file, w.size = &syncedFile{file: file}, 0
	}
	return err
}

// Write implements vfs.DirectWriter.
func (w *syncedFiles) Write(b []byte) (next []byte, err error) {
	w.size += int64(len(b))
	return b[:0], w.file.write(b)
}

// End implements vfs.DirectWriter: it waits until a small file is on disk, or has that be done beside what follows.
func (w *syncedFiles) End(b []byte) (next []byte, err error) {
	if b, err = w.Write(b); err != nil {
		return nil, err
	}
	file := w.file
	w.file = nil
	if w.size < closingBytes {
		return b, file.finish()
	}
	if len(w.closing) == maxClosing {
		err = <-w.closing[0]
		w.closing = w.closing[1:]
	}
	done := make(chan error, 1)
	w.closing = append(w.closing, done)
	go func() { done <- file.finish() }()
	return b, err
}

// Remove implements vfs.DirectWriter.
func (w *syncedFiles) Remove(name string) error { return w.fs.Remove(name) }

// Wait implements vfs.DirectWriter.
func (w *syncedFiles) Wait() error {
	var all []error
	if w.file != nil {
		all = append(all, w.file.finish())
		w.file = nil
	}
	for _, done := range w.closing {
		all = append(all, <-done)
	}
	w.closing = nil
	return errors.Join(all...)
}

// Close implements vfs.DirectWriter.
func (w *syncedFiles) Close() error { return w.Wait() }

// syncedFile is a file that is synced in the background while it is written.
type syncedFile struct {
	file    vfs.Writer
	dirty   int        // bytes written since the last sync began
	syncing chan error // nil: no sync is going on
}

// write appends b.
func (f *syncedFile) write(b []byte) error {
	if _, err := vfs.WriteAll(f.file, b); err != nil {
		return err
	}
	if f.dirty += len(b); f.dirty < syncEvery {
		return nil
	}
	if f.syncing != nil {
		select {
		case err := <-f.syncing:
			f.syncing = nil
			if err != nil {
				return err
			}
		default:
			return nil // the disk is behind; it gets more at once when it is done
		}
	}
	f.dirty = 0
	done := make(chan error, 1)
	f.syncing = done
	go func() { done <- f.file.Sync() }()
	return nil
}

// finish waits until everything is on disk and closes the file, in any case.
func (f *syncedFile) finish() error {
	var before error
	if f.syncing != nil {
		before = <-f.syncing
		f.syncing = nil
	}
	return errors.Join(before, f.file.Sync(), f.file.Close())
}
