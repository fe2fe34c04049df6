package env

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path"
	"strings"

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
	k.opt.FS, k.opt.Dir, k.opt.Last = vfs.OS{}, path.Join(dir, "checkpoints"), path.Join(dir, "last")
	last, err := lastWord(k.opt)
	if err != nil {
		return fmt.Errorf("recover job %q: %w", name, err)
	}
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
	if last != "" {
		if err := k.recoverSavepoint(last); err != nil {
			return fmt.Errorf("recover job %q: %w", name, err)
		}
	}
	return nil
}

// lastWord is the folder of the savepoint that an earlier process took last, "" if it took none. If the job is over, what is
// left of its checkpoints goes.
func lastWord(opt *jobmanager.CheckpointOptions) (string, error) {
	b, err := vfs.ReadFile(opt.FS, opt.Last)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	word := strings.TrimSpace(string(b))
	if err != nil || word != jobmanager.Over {
		return word, err
	}
	if err := vfs.RemoveAll(opt.FS, opt.Dir); err != nil {
		return "", err
	}
	if err := opt.FS.Remove(opt.Last); err != nil {
		return "", err
	}
	return "", opt.FS.SyncDir(path.Dir(opt.Last))
}

// recoverSavepoint has the job go on from a savepoint if it is newer than all checkpoints: sinks have committed what it
// covers.
func (k *keeping) recoverSavepoint(folder string) error {
	m, err := checkpoint.Load(vfs.OS{}, folder)
	if err != nil {
		return fmt.Errorf("sinks have committed what is in the job's last savepoint, so that it can only go on from there: put it back, or remove the file %s to go on from the last checkpoint and have results twice: %w", k.opt.Last, err)
	}
	if n := len(k.opt.Completed); n == 0 || k.opt.Completed[n-1].Manifest.ID < m.ID {
		k.opt.Completed = append(k.opt.Completed, jobmanager.Snapshot{FS: vfs.OS{}, Manifest: m})
	}
	return nil
}
