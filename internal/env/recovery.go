package env

import (
	"fmt"
	"net/url"
	"path"

	"github.com/flott-dev/flott/checkpoint"
	"github.com/flott-dev/flott/internal/jobmanager"
	"github.com/flott-dev/flott/internal/vfs"
)

// recover prepares a job that goes on, after its process was killed, from the last checkpoint in its folder. Each job that
// a program executes has a folder of its own, numbered in their order. A job that has finished or was cancelled has left no
// checkpoint, so that it begins afresh.
func (e *Env) recover(k *keeping, name string) error {
	dir, err := slashed(e.Settings.Checkpoints.Recovery)
	if err != nil {
		return err
	}
	e.recoveries++
	dir = path.Join(dir, fmt.Sprintf("job-%d-%s", e.recoveries, url.PathEscape(name)))
	if err := (vfs.OS{}).MkdirAll(dir); err != nil {
		return fmt.Errorf("recover job %q: %w", name, err)
	}
	unlock, err := lock(path.Join(dir, "lock"))
	if err != nil {
		return fmt.Errorf("recover job %q: %w", name, err)
	}
	k.release = unlock
	k.opt.Released = unlock
	k.opt.FS, k.opt.Dir = vfs.OS{}, path.Join(dir, "checkpoints")
	storage, err := checkpoint.OpenStorage(k.opt.FS, k.opt.Dir)
	if err != nil {
		return fmt.Errorf("recover job %q: %w", name, err)
	}
	found, err := storage.List()
	if err != nil {
		return fmt.Errorf("recover job %q: %w", name, err)
	}
	for i := range found {
		if found[i].Err != nil {
			return fmt.Errorf("recover job %q: checkpoint %d can't be read; move its folder away to go on from an older one, or to begin afresh: %w", name, found[i].ID, found[i].Err)
		}
		k.opt.Completed = append(k.opt.Completed, jobmanager.Snapshot{FS: k.opt.FS, Manifest: found[i].Manifest})
	}
	if err := storage.Sweep(); err != nil {
		return fmt.Errorf("recover job %q: %w", name, err)
	}
	return nil
}
