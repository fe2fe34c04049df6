package filesink_test

import (
	"bytes"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/flott-dev/flott/connector"
	"github.com/flott-dev/flott/connector/file"
	"github.com/flott-dev/flott/connector/file/filetest"
	"github.com/flott-dev/flott/connector/filesink"
	"github.com/flott-dev/flott/internal/clock"
	"github.com/flott-dev/flott/internal/vfs"
)

// store makes of a disk what object stores are: files appear, whole and durably, when they are closed, and Rename copies before it
// removes.
type store struct {
	vfs.FS
	uploads *atomic.Int64
}

// stored writes with a sink to a store at "out" on a disk.
func stored(s *filesink.Sink[string], id func() string) func(vfs.FS) *filesink.Sink[string] {
	var uploads atomic.Int64
	return func(disk vfs.FS) *filesink.Sink[string] {
		return s.On(nil, id).PlacedBy(func(string) (connector.Place, error) {
			return connector.Place{FS: store{disk, &uploads}, Path: "out", Remote: true}, nil
		}).(*filesink.Sink[string])
	}
}

func (s store) Create(name string, how vfs.Mode) (vfs.Writer, error) {
	if _, err := s.Stat(name); err == nil && how == vfs.Exclusive {
		return nil, &fs.PathError{Op: "create", Path: name, Err: fs.ErrExist}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return &upload{to: s, name: name}, nil
}

// put makes a file at once.
func (s store) put(name string, data []byte) error {
	temp := "upload" + strconv.FormatInt(s.uploads.Add(1), 10)
	if err := vfs.WriteFile(s.FS, temp, data); err != nil {
		return err
	}
	if err := s.FS.MkdirAll(path.Dir(name)); err != nil {
		return err
	}
	err := s.FS.Rename(temp, name)
	for dir := path.Dir(name); err == nil && dir != "."; dir = path.Dir(dir) {
		err = errors.Join(s.FS.SyncDir(dir), s.FS.SyncDir(path.Dir(dir)))
	}
	return err
}

func (s store) Rename(from, to string) error {
	data, err := vfs.ReadFile(s.FS, from)
	if err == nil {
		err = s.put(to, data)
	}
	if err == nil {
		err = s.Remove(from)
	}
	return err
}

func (s store) Remove(name string) error {
	err := s.FS.Remove(name)
	if err == nil {
		err = s.FS.SyncDir(path.Dir(name))
	}
	return err
}

func (s store) ReadDir(name string) ([]fs.DirEntry, error) {
	entries, err := s.FS.ReadDir(name)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return entries, err
}

func (s store) MkdirAll(string) error { return nil }
func (s store) SyncDir(string) error  { return nil }

func (s store) Truncate(string, int64) error { return errors.ErrUnsupported }

// Copied goes by what files hold: no two hold the same.
func (s store) Copied(from, to string) (bool, error) {
	a, err := vfs.ReadFile(s.FS, from)
	if err != nil {
		return false, err
	}
	b, err := vfs.ReadFile(s.FS, to)
	return bytes.Equal(a, b), err
}

// upload is a file that is being written.
type upload struct {
	to     store
	name   string
	data   []byte
	closed bool
}

func (u *upload) Write(b []byte) (int, error) {
	if u.closed {
		return 0, fs.ErrClosed
	}
	u.data = append(u.data, b...)
	return len(b), nil
}

func (u *upload) Sync() error { return nil }

func (u *upload) Close() error {
	if u.closed {
		return fs.ErrClosed
	}
	u.closed = true
	return u.to.put(u.name, u.data)
}

func (u *upload) Abort() error {
	u.closed = true
	return nil
}

func put(t *testing.T, f vfs.FS, name, text string) {
	t.Helper()
	if err := errors.Join(f.MkdirAll(path.Dir(name)), vfs.WriteFile(f, name, []byte(text))); err != nil {
		t.Fatal(err)
	}
}

func TestURLIsRefusedUntilItIsOpened(t *testing.T) {
	s := filesink.New("s3://bucket/out", file.TextEncoding[string]("\n"))
	if err := s.Check(); err == nil || !strings.Contains(err.Error(), `"s3://bucket/out": a URL is opened by the environment`) {
		t.Errorf("without an environment: %v", err)
	}
	wrong := errors.New("nothing opens it")
	err := s.PlacedBy(func(string) (connector.Place, error) { return connector.Place{}, wrong }).(*filesink.Sink[string]).Check()
	if !errors.Is(err, wrong) {
		t.Errorf("an environment that can't open it: %v", err)
	}
	m := vfs.NewMem()
	local := filesink.New("file:///tmp/out", file.TextEncoding[string]("\n")).On(m, nil).PlacedBy(func(string) (connector.Place, error) {
		return connector.Place{FS: vfs.OS{}, Path: "/tmp/out"}, nil
	}).(*filesink.Sink[string])
	if err := local.Check(); err != nil {
		t.Errorf("a URL of the machine: %v", err)
	}
}

func TestFileOfAnotherIsNotTakenForACopy(t *testing.T) {
	m := vfs.NewMem()
	s := stored(filesink.New("store://out", file.TextEncoding[string]("\n")).NoBuckets(), ids())(m)
	put(t, m, "out/.part-0-0.inprogress.id", "ours\n")
	put(t, m, "out/part-0-0", "them\n")
	c, err := s.Committer(&writerContext{})
	if err != nil {
		t.Fatal(err)
	}
	hidden := filesink.Committable{Temp: ".part-0-0.inprogress.id", Name: "part-0-0", Size: 5}
	if err := c.Commit(t.Context(), []filesink.Committable{hidden}); err == nil || !strings.Contains(err.Error(), "another file has its name") {
		t.Errorf("commit: %v", err)
	}
	put(t, m, "out/part-0-0", "ours\n") // a commit was broken off
	if err := c.Commit(t.Context(), []filesink.Committable{hidden}); err != nil {
		t.Error(err)
	}
	if lines, _, left := contents(t, m, "out"); len(lines) != 1 || len(left) != 0 {
		t.Errorf("there are %q and %q", lines, left)
	}
}

// A job that fails before its first checkpoint begins anew; what its attempts have prepared until then nobody will ever commit.
func TestAttemptsWithoutACheckpointLeaveNothing(t *testing.T) {
	m := vfs.NewMem()
	described := filesink.New("out", file.TextEncoding[string]("\n")).NoBuckets().RollOnCheckpoint().On(m, nil)
	job := func() *filesink.Sink[string] {
		return described.PlacedBy(func(path string) (connector.Place, error) {
			return connector.Place{FS: m, Path: path}, nil
		}).(*filesink.Sink[string])
	}
	attempt := func(s *filesink.Sink[string], n int) (prepared []filesink.Committable) {
		ctx := &writerContext{filetest.WriterContext{Number: 1, AttemptNow: n}, clock.NewManual(0)}
		w, err := s.Writer(ctx)
		if err != nil {
			t.Fatal(err)
		}
		err = errors.Join(w.Write("a", connector.ElementContext{}), w.Flush(false))
		prepared, perr := w.(connector.CommittingWriter[string, filesink.Committable]).Prepare()
		if err = errors.Join(err, perr, w.Close()); err != nil {
			t.Fatal(err)
		}
		return prepared
	}
	kept := attempt(job(), 0) // a job that a savepoint may have been taken of
	s := job()
	attempt(s, 0)
	attempt(s, 1)
	last := attempt(s, 2)
	_, files, hidden := contents(t, m, "out")
	if want := []string{"out/" + kept[0].Temp, "out/" + last[0].Temp}; len(files) != 0 || !slices.Equal(hidden, want) {
		t.Errorf("there are %q and %q, want %q", files, hidden, want)
	}
	attempt(s.KeepLeftovers(), 3)
	if _, _, hidden = contents(t, m, "out"); len(hidden) != 3 {
		t.Errorf("there are %q", hidden)
	}
}
