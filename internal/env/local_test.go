package env

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/flott-dev/flott/internal/vfs"
)

// filesUnder are the files below a folder whose names end so.
func filesUnder(t *testing.T, dir, end string) (all []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() && strings.HasSuffix(name, end) {
			all = append(all, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// garble changes bytes in the middle of files.
func garble(t *testing.T, names []string) {
	t.Helper()
	if len(names) == 0 {
		t.Fatal("there are no files")
	}
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err == nil {
			b[len(b)/2] ^= 0x55
			err = os.WriteFile(name, b, 0o666)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// A program that is started again reads its state from the local disk, and from the storage what is not whole there.
func TestRecoveryReadsLocalCopiesThatAreWhole(t *testing.T) {
	for _, c := range []struct {
		name         string
		local, far   bool // damaged
		fromLocal    bool
		restored, ok bool
	}{
		{"all is whole", false, false, true, true, true},
		{"the storage is damaged", false, true, true, true, true},
		{"the copies are damaged", true, false, true, true, true},
		{"both are damaged", true, true, true, false, false},
		{"the storage is damaged and copies are not to be read", false, true, false, false, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			dir, local, seen := t.TempDir(), t.TempDir(), 0
			run := func(fail int64) error {
				seen = 0
				e := kept(1)
				s := &e.Settings.Checkpoints
				s.Recovery, s.InlineBytes, s.Local = dir, -1, LocalRecovery{Dirs: []string{local}, Backup: true, Read: c.fromLocal}
				tally(t, e, 100, func(x int64) error {
					if seen++; x == fail {
						return errBoom
					}
					return nil
				})
				x, err := e.Start(t.Context(), "job")
				if err != nil {
					return err // it is found out before anything runs
				}
				<-x.Done()
				return x.Err()
			}
			if run(65) == nil { // between two checkpoints: one under way at the failure leaves a file, as nobody waits for its end
				t.Fatal("it did not fail")
			}
			copies, files := filesUnder(t, local, ".copy"), filesUnder(t, dir, ".chunk")
			if len(copies) == 0 || len(copies) != len(files) {
				t.Errorf("%s: %d copies of %d files", c.name, len(copies), len(files))
			}
			if c.local {
				garble(t, copies)
			}
			if c.far {
				garble(t, files)
			}
			err := run(-1)
			if (err == nil) != c.ok || c.restored && (seen > 60 || seen < 30) {
				t.Errorf("%s: %d elements were read, error %v", c.name, seen, err)
			}
			if left := filesUnder(t, local, ".copy"); c.ok && len(left) != 0 {
				t.Errorf("%s: the job is over and its copies are left: %v", c.name, left)
			}
		})
	}
}

// A full local disk costs no checkpoint.
func TestFullLocalDiskFailsNoCheckpoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := vfs.NewMem()
		e := kept(1)
		s := &e.Settings.Checkpoints
		s.FS, s.Dir, s.InlineBytes, s.Retention = onlyFar{disk}, "/far", -1, RetainOnCancellation
		s.Local = LocalRecovery{Dirs: []string{"/near"}, Backup: true, Read: true}
		tally(t, e, 95, neverFail) // it ends between two checkpoints: one at its very end would fail, having no task to take it
		x := start(t, e)
		<-x.Done()
		if o := x.Checkpoints(); x.Err() != nil || o.Counts.Completed < 2 || o.Counts.Failed > 0 {
			t.Errorf("%v, %+v", x.Err(), o.Counts)
		}
	})
}

// onlyFar is a machine whose local disk is full.
type onlyFar struct{ vfs.FS }

func (f onlyFar) Create(name string, how vfs.Mode) (vfs.Writer, error) {
	if strings.HasPrefix(name, "/near") {
		return nil, &fs.PathError{Op: "create", Path: name, Err: vfs.ErrNoSpace}
	}
	return f.FS.Create(name, how)
}

func TestLocalRecoveryNeedsAFolder(t *testing.T) {
	e := kept(1)
	e.Settings.Checkpoints.Local.Backup = true
	tally(t, e, 1, neverFail)
	if _, err := e.Start(t.Context(), "job"); err == nil || !strings.Contains(err.Error(), "local-backup.dirs") {
		t.Errorf("error %v", err)
	}
}
