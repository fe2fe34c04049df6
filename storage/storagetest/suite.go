// Package storagetest is the suite that every file system that snapshots are kept in must pass: what package checkpoint
// demands of one, tried call by call and by whole snapshots. It owns no file system and knows nothing of how one works; the
// tests of storages, in this repository and elsewhere, call Run.
//
// Object stores are no disks, and the suite does not ask them to be: folders need not exist before something is in them, a
// file may appear when it is closed, and cutting and appending may be unsupported.
package storagetest

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path"
	"testing"

	"github.com/flott-dev/flott/checkpoint"
	"github.com/flott-dev/flott/internal/vfs"
)

// Run tests a file system. open gives a folder that nobody else uses, empty, and a file system with it; it is called once for
// each test of the suite. Opening the same folder again, in another file system, is up to reopen, which stands for another
// process; nil: the file system lives in one process only.
func Run(t *testing.T, open func(t *testing.T) (f checkpoint.FS, dir string), reopen func(t *testing.T) checkpoint.FS) {
	t.Helper()
	for _, c := range []struct {
		name string
		f    func(t *place)
	}{
		{"file holds what was written", fileHoldsWhatWasWritten},
		{"large file is read from anywhere", largeFileIsReadFromAnywhere},
		{"file is read by several goroutines", fileIsReadBySeveralGoroutines},
		{"file is synced while it is written", fileIsSyncedWhileItIsWritten},
		{"truncating writer replaces the file", truncatingWriterReplacesTheFile},
		{"exclusive writer replaces nothing", exclusiveWriterReplacesNothing},
		{"one of many exclusive writers wins", oneOfManyExclusiveWritersWins},
		{"what does not exist is said not to exist", whatDoesNotExistIsSaidNotToExist},
		{"folders list what is in them", foldersListWhatIsInThem},
		{"long folder is listed whole", longFolderIsListedWhole},
		{"names keep their letters", namesKeepTheirLetters},
		{"rename moves over another file", renameMovesOverAnotherFile},
		{"remove removes files and empty folders", removeRemovesFilesAndEmptyFolders},
		{"unsupported calls change nothing", unsupportedCallsChangeNothing},
		{"many goroutines have files of their own", manyGoroutinesHaveFilesOfTheirOwn},
		{"snapshot comes back in another process", snapshotComesBackInAnotherProcess},
		{"checkpoints share files until the last is gone", checkpointsShareFilesUntilTheLastIsGone},
		{"litter of a killed process is swept", litterOfAKilledProcessIsSwept},
		{"complete snapshot is not begun again", completeSnapshotIsNotBegunAgain},
		{"savepoint lies where it was asked to", savepointLiesWhereItWasAskedTo},
		{"process that stood still harms no successor", processThatStoodStillHarmsNoSuccessor},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, dir := open(t)
			again := f
			if reopen != nil {
				again = reopen(t)
			}
			c.f(&place{T: t, fs: f, again: again, dir: path.Clean(dir)})
		})
	}
}

// place is a folder under test.
type place struct {
	*testing.T
	fs    checkpoint.FS
	again checkpoint.FS // the same, for another process
	dir   string
}

func (p *place) at(name string) string { return path.Join(p.dir, name) }

// ok ends the test if something failed.
func (p *place) ok(err error) {
	p.Helper()
	if err != nil {
		p.Fatal(err)
	}
}

// is checks that an error is of the kind wanted and names the file.
func (p *place) is(what string, err, want error) {
	p.Helper()
	if !errors.Is(err, want) {
		p.Errorf("%s: error %v, want %v", what, err, want)
		return
	}
	if _, named := errors.AsType[*fs.PathError](err); !named {
		if _, named := errors.AsType[*os.LinkError](err); !named {
			p.Errorf("%s: %T %v names no file", what, err, err)
		}
	}
}

// write makes a file durably, as package checkpoint does.
func (p *place) write(name string, how vfs.Mode, data []byte) error {
	w, err := p.fs.Create(name, how)
	if err != nil {
		return err
	}
	_, err = w.Write(data)
	if err == nil {
		err = w.Sync()
	}
	if err = errors.Join(err, w.Close()); err != nil {
		return err
	}
	return p.fs.SyncDir(path.Dir(name))
}

// make makes a file, and the folder that it is in.
func (p *place) make(name, text string) {
	p.Helper()
	p.ok(p.fs.MkdirAll(path.Dir(name)))
	p.ok(p.write(name, vfs.Truncate, []byte(text)))
}

// holds checks what is in a file, as this process and as another see it.
func (p *place) holds(name string, want []byte) {
	p.Helper()
	for _, f := range []checkpoint.FS{p.fs, p.again} {
		got, err := vfs.ReadFile(f, name)
		p.ok(err)
		if !bytes.Equal(got, want) {
			p.Fatalf("%s has %d bytes, %.40q; want %d, %.40q", name, len(got), got, len(want), want)
		}
		info, err := f.Stat(name)
		p.ok(err)
		if info.Size() != int64(len(want)) || info.IsDir() || !info.Mode().IsRegular() || info.Name() != path.Base(name) {
			p.Fatalf("stat of %s: %q of %d bytes, mode %v", name, info.Name(), info.Size(), info.Mode())
		}
	}
}

// list gives the names in a folder; those of folders end in a slash.
func (p *place) list(dir string) []string {
	p.Helper()
	entries, err := p.fs.ReadDir(dir)
	p.ok(err)
	names := []string{}
	for _, e := range entries {
		name := e.Name()
		if e.IsDir() {
			name += "/"
		}
		names = append(names, name)
	}
	return names
}

// pattern is n bytes that differ from place to place.
func pattern(n int) []byte {
	b := make([]byte, n)
	x := uint32(1)
	for i := range b {
		x = x*1664525 + 1013904223
		b[i] = byte(x >> 24)
	}
	return b
}
