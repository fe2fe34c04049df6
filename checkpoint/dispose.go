package checkpoint

import (
	"fmt"
	"path"

	"github.com/flott-dev/flott/internal/vfs"
)

// Dispose removes the snapshot in a folder for good: its manifest first, so that after a crash there is a whole snapshot or
// none, then its files, then the folder if nothing else is in it. What is no complete snapshot is refused, and so is one whose
// manifest can't be read. Files of a checkpoint that other checkpoints beside it name stay; the job that took it must not be
// running, as it might build upon it. A nil file system is the machine's.
func Dispose(f FS, location string) error {
	f = diskIfNil(f)
	m, err := Load(f, location)
	if err != nil {
		return fmt.Errorf("dispose: %w", err)
	}
	if err := m.dispose(f); err != nil {
		return fmt.Errorf("dispose of %v %s: %w", m.Kind, m.Folder, err)
	}
	return nil
}

func (m *Manifest) dispose(f vfs.FS) error {
	storage := &Storage{fs: f, dir: path.Dir(m.Folder), complete: map[string][]string{}, named: map[string]int{}}
	found, err := storage.List()
	if err != nil {
		return err
	}
	for i := range found {
		other := &found[i]
		switch {
		case other.Folder == m.Folder || m.Kind == Savepoint:
		case other.Err != nil:
			return fmt.Errorf("checkpoint %s beside it may need its files, but can't be read: %w", other.Folder, other.Err)
		default:
			storage.uses(other.Folder, other.Manifest.Files())
		}
	}
	return storage.Discard(m)
}
