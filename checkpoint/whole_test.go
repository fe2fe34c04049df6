package checkpoint

import (
	"errors"
	"io/fs"
	"path"
	"slices"
	"testing"

	"github.com/flott-dev/flott/internal/vfs"
)

// whole is a file system whose files appear when they are closed.
type whole struct {
	vfs.FS
	before func(name string) // is called before a file appears
	fail   error             // of closing, after the file has appeared
}

func (whole) WholeFiles(string) bool { return true }

func (w whole) Create(name string, how vfs.Mode) (vfs.Writer, error) {
	if _, err := w.Stat(name); err == nil && how == vfs.Exclusive {
		return nil, &fs.PathError{Op: "create", Path: name, Err: fs.ErrExist}
	}
	return &wholeWriter{w: w, name: name, how: how}, nil
}

func (w whole) Rename(from, to string) error { return errors.New("not to be renamed: " + from) }

type wholeWriter struct {
	w    whole
	name string
	how  vfs.Mode
	data []byte
}

func (w *wholeWriter) Write(p []byte) (int, error) {
	w.data = append(w.data, p...)
	return len(p), nil
}

func (w *wholeWriter) Sync() error { return nil }

func (w *wholeWriter) Close() error {
	if w.w.before != nil {
		w.w.before(w.name)
	}
	f, err := w.w.FS.Create(w.name, w.how)
	if err != nil {
		return err
	}
	_, err = f.Write(w.data)
	return errors.Join(err, f.Close(), w.w.fail)
}

// begunBy begins checkpoint 1 and writes its parts.
func begunBy(t *testing.T, f vfs.FS, token string) (*Storage, *Manifest) {
	t.Helper()
	j, s, m := newJob(t, f), openStorage(t, f), &Manifest{ID: 1}
	folder, err := s.Begin(1)
	if err == nil {
		err = j.write(&Writer{FS: f, Folder: folder, InlineBytes: -1, Token: token}, m)
	}
	if err != nil {
		t.Fatal(err)
	}
	return s, m
}

func TestSecondOfTwoThatCompleteIsRefusedWhereFilesAppearWhole(t *testing.T) {
	disk := vfs.NewMem()
	next, ours := begunBy(t, whole{FS: disk}, "next")
	race := whole{FS: disk, before: func(name string) {
		if path.Base(name) == ManifestName {
			if _, err := next.Complete(ours); err != nil {
				t.Error(err)
			}
		}
	}}
	late, theirs := begunBy(t, race, "late")
	if _, err := late.Complete(theirs); !errors.Is(err, fs.ErrExist) {
		t.Fatalf("completed by two: %v", err)
	}
	if err := late.Remove(theirs.Folder, theirs.Files()); err != nil {
		t.Fatal(err)
	}
	m, err := Load(disk, ours.Folder)
	if err == nil {
		err = m.Verify(disk)
	}
	if err != nil {
		t.Error(err)
	}
	if left := names(t, disk, ours.Folder); len(left) != len(ours.Files())+1 {
		t.Errorf("left: %q", left)
	}
}

func TestManifestOfAnotherSurvivesThatACheckpointIsGivenUp(t *testing.T) {
	disk := vfs.NewMem()
	late, theirs := begunBy(t, disk, "late")
	next, ours := begunBy(t, disk, "next")
	if _, err := next.Complete(ours); err != nil {
		t.Fatal(err)
	}
	if err := late.Remove(theirs.Folder, theirs.Files()); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(disk, ours.Folder); err != nil {
		t.Error(err)
	}
	if err := next.Discard(ours); err != nil {
		t.Fatal(err)
	}
	if left := names(t, disk, "/job/checkpoints"); len(left) != 0 {
		t.Errorf("left: %q", left)
	}
}

func TestManifestInDoubtIsTakenBackWhereFilesAppearWhole(t *testing.T) {
	disk := vfs.NewMem()
	f := whole{FS: disk}
	_, m := begunBy(t, f, "")
	f.fail = errors.New("the answer was lost")
	s := openStorage(t, f)
	if _, err := s.Complete(m); !errors.Is(err, f.fail) {
		t.Fatalf("error %v", err)
	}
	if slices.Contains(names(t, disk, m.Folder), ManifestName) {
		t.Error("a snapshot that was given up exists")
	}
}
