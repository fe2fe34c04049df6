package env

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path"
	"strings"
	"time"

	"github.com/flott-dev/flott/checkpoint"
	"github.com/flott-dev/flott/internal/jobmanager"
	"github.com/flott-dev/flott/internal/vfs"
)

// recover prepares a job that goes on, after its process was killed, from the last checkpoint in its folder. Each job that
// a program executes has a folder of its own, numbered in their order. A job that has finished or was cancelled has left no
// checkpoint, so that it begins afresh.
func (e *Env) recover(ctx context.Context, k *keeping, name string) error {
	dir, err := onDisk(e.Settings.Checkpoints.Recovery)
	if err != nil {
		return fmt.Errorf("recover job %q: its lock: %w; checkpoints that are to lie elsewhere need SetCheckpointStorage, and WithSavepoint to go on from them", name, err)
	}
	e.recoveries++
	dir = path.Join(dir, fmt.Sprintf("job-%d-%s", e.recoveries, url.PathEscape(name)))
	k.opt.Dir, k.opt.Last = path.Join(dir, "checkpoints"), path.Join(dir, "last")
	sweep, err := e.copyLocally(k)
	if err == nil {
		err = k.opt.FS.MkdirAll(dir)
	}
	if err == nil && e.Settings.Checkpoints.FS == nil { // another file system is this process's own
		var unlock func()
		if unlock, err = e.lock(ctx, path.Join(dir, "lock")); err == nil {
			k.release, k.opt.Released = unlock, unlock
		}
	}
	if err == nil {
		err = k.findLast()
	}
	if err != nil {
		return fmt.Errorf("recover job %q: %w", name, err)
	}
	sweep()
	return nil
}

// A start waits up to lockTries times lockPause for a lock: a process that was killed has it until the system has taken the
// process down, and a supervisor starts the next one sooner than that.
const (
	lockTries = 200
	lockPause = 10 * time.Millisecond
)

// heldError says that another process has a lock.
type heldError struct{ name, holder string }

// Error says who, and what to do.
func (e *heldError) Error() string {
	return fmt.Sprintf("lock %s: process %s runs the job already, and has not ended for %v; wait until it has, or end it",
		e.name, e.holder, lockTries*lockPause)
}

// lock takes a file's lock, which may take a moment to become free.
func (e *Env) lock(ctx context.Context, name string) (unlock func(), err error) {
	pause := e.Settings.pause
	if pause == nil {
		pause = waitFor
	}
	for try := 0; ; try++ {
		unlock, err = lock(name)
		var held *heldError
		if !errors.As(err, &held) || try == lockTries {
			return unlock, err
		}
		if err := pause(ctx, lockPause); err != nil {
			return nil, fmt.Errorf("wait for %s: %w", name, err)
		}
	}
}

// waitFor waits for d, or for the end of ctx.
func waitFor(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// findLast finds what an earlier process has left, and removes its litter.
func (k *keeping) findLast() error {
	last, err := lastWord(k.opt)
	if err != nil {
		return err
	}
	storage, err := checkpoint.OpenStorage(k.opt.FS, k.opt.Dir)
	if err != nil {
		return err
	}
	found, err := storage.List()
	if err != nil {
		return err
	}
	for i := range found {
		if found[i].Err != nil {
			return fmt.Errorf("checkpoint %d can't be read; move its folder away to go on from an older one, or to begin afresh: %w", found[i].ID, found[i].Err)
		}
		k.opt.Completed = append(k.opt.Completed, jobmanager.Snapshot{FS: k.opt.FS, Manifest: found[i].Manifest})
	}
	if err := storage.Sweep(); err != nil || last == "" {
		return err
	}
	return k.recoverSavepoint(last)
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
	m, err := checkpoint.Load(k.opt.SavepointFS, folder)
	if err != nil {
		return fmt.Errorf("sinks have committed what is in the job's last savepoint, so that it can only go on from there: put it back, or remove the file %s to go on from the last checkpoint and have results twice: %w", k.opt.Last, err)
	}
	if n := len(k.opt.Completed); n == 0 || k.opt.Completed[n-1].Manifest.ID < m.ID {
		k.opt.Completed = append(k.opt.Completed, jobmanager.Snapshot{FS: k.opt.SavepointFS, Manifest: m})
	}
	return nil
}
