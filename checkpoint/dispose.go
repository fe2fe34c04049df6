package checkpoint

import (
	"errors"
	"fmt"
	"path"
)

// Dispose removes the savepoint in a folder for good: its manifest first, so that after a crash there is a whole savepoint or
// none, then its files, then the folder if nothing else is in it. All else is refused, and nothing of it removed: a folder
// without a manifest that can be read, a checkpoint, which is its job's and whose files other checkpoints may need, and a
// savepoint that names files outside of its folder. location may also be the manifest. A nil file system is the machine's.
func Dispose(f FS, location string) error {
	f = diskIfNil(f)
	m, err := Load(f, location)
	_, damaged := errors.AsType[*DamagedError](err)
	switch {
	case damaged:
		err = fmt.Errorf("%w: which files are its own can't be told; remove the folder by other means if nothing else is in it", err)
	case err != nil:
	case m.Kind != Savepoint:
		err = fmt.Errorf("it is a %v of job %q, which removes it itself: when the job is over and nothing is to go on from them, remove the folder of its checkpoints", m.Kind, m.JobName)
	default: // its files lie in its folder, or Load would not have taken it
		storage := &Storage{fs: f, dir: path.Dir(m.Folder), complete: map[string][]string{}, named: map[string]int{}}
		err = storage.Discard(m)
	}
	if err != nil {
		return fmt.Errorf("dispose of savepoint %s: %w", location, err)
	}
	return nil
}
