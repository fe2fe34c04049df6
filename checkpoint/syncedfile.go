package checkpoint

import (
	"errors"

	"github.com/flott-dev/flott/internal/vfs"
)

// syncEvery is how much is written before the disk is told to begin. Otherwise it would idle while rows are encoded, and the
// last sync would wait for all of them. It is little, as who waits for the disk may keep a processor for as long.
const syncEvery = 2 << 20

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
