package env

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path"

	"github.com/flott-dev/flott/internal/jobmanager"
	"github.com/flott-dev/flott/internal/localcopy"
)

// LocalRecovery has files of checkpoints kept on disks of this machine as well, where a restart finds them sooner.
type LocalRecovery struct {
	Dirs   []string // folders on local disks, over which files are spread
	Backup bool     // what is written is copied
	Read   bool     // restarts read the copies
}

func (l *LocalRecovery) validate() error {
	if (l.Backup || l.Read) && len(l.Dirs) == 0 {
		return errors.New("copies of checkpoints are to lie on local disks, and no folder is set: set execution.checkpointing.local-backup.dirs, or call WithLocalRecovery")
	}
	return nil
}

// copyLocally puts copies on local disks between the job and its storage, in folders of the job's own: they are named by where
// its checkpoints lie, so that a later process finds them if it goes on from there. What earlier processes have left and the
// snapshots to go on from don't need is for sweep.
func (e *Env) copyLocally(k *keeping) (sweep func(), err error) {
	c := &e.Settings.Checkpoints
	l := &c.Local
	if !l.Backup && !l.Read {
		return func() {}, nil
	}
	sum := sha256.Sum256([]byte(k.opt.Dir))
	o := localcopy.Options{Disk: c.disk(), Write: l.Backup, Read: l.Read}
	for _, dir := range l.Dirs {
		folder, err := onDisk(dir)
		if err != nil {
			return nil, fmt.Errorf("keep local copies of checkpoints: %w", err)
		}
		o.Folders = append(o.Folders, path.Join(folder, "job-"+hex.EncodeToString(sum[:8])))
	}
	copies := localcopy.New(k.opt.FS, o)
	k.opt.FS = copies
	if c.Recovery == "" {
		released := k.opt.Released
		k.opt.Released = func() {
			copies.Clear()
			if released != nil {
				released()
			}
		}
	}
	return func() { copies.Sweep(filesOf(k.opt.Completed)) }, nil
}

// filesOf are the files of snapshots.
func filesOf(all []jobmanager.Snapshot) (files []string) {
	for _, s := range all {
		files = append(files, s.Manifest.Files()...)
	}
	return files
}
