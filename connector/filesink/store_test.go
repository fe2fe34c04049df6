package filesink_test

import (
	"bytes"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

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
		}).(*filesink.Sink[string]).OneByOne()
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
	dir := path.Dir(name)
	err := s.FS.MkdirAll(dir)
	for i, c := range dir { // from the top
		if err == nil && c == '/' {
			err = s.FS.SyncDir(path.Dir(dir[:i]))
		}
	}
	if err == nil {
		err = s.FS.SyncDir(path.Dir(dir))
	}
	if err == nil {
		err = s.FS.Rename(temp, name)
	}
	if err == nil {
		err = s.FS.SyncDir(dir)
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

// meeting is a store in which some calls wait until so many of their kind are under way.
type meeting struct {
	store
	closing, renaming *crowd
}

// crowd lets those through that come when all have come.
type crowd struct {
	mu   sync.Mutex
	left int
	open chan struct{}
}

func newCrowd(n int) *crowd { return &crowd{left: n, open: make(chan struct{})} }

func (c *crowd) wait() {
	c.mu.Lock()
	if c.left--; c.left == 0 {
		close(c.open)
	}
	c.mu.Unlock()
	<-c.open
}

func (m meeting) Create(name string, how vfs.Mode) (vfs.Writer, error) {
	w, err := m.store.Create(name, how)
	return meetingWriter{w, m.closing}, err
}

func (m meeting) Rename(from, to string) error {
	m.renaming.wait()
	if strings.HasSuffix(to, "/2/part-0-2") {
		return fs.ErrPermission
	}
	return m.store.Rename(from, to)
}

type meetingWriter struct {
	vfs.Writer
	closing *crowd
}

func (w meetingWriter) Close() error {
	w.closing.wait()
	return w.Writer.Close()
}

// Requests to a store take long, so those of a checkpoint are under way together.
func TestFilesOfAStoreAreClosedAndCommittedTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // who waits for others that don't come is a deadlock
		disk := vfs.NewMem()
		f := meeting{store{disk, new(atomic.Int64)}, newCrowd(3), newCrowd(3)}
		s := filesink.New("store://out", file.TextEncoding[string]("\n")).BucketBy(func(x string) string { return x }).
			PlacedBy(func(string) (connector.Place, error) {
				return connector.Place{FS: f, Path: "out", Remote: true}, nil
			}).(*filesink.Sink[string])
		ctx := &writerContext{filetest.WriterContext{Number: 1}, clock.NewManual(0)}
		w, err := s.Writer(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range []string{"0", "1", "2"} {
			if err := w.Write(x, connector.ElementContext{}); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Flush(false); err != nil {
			t.Fatal(err)
		}
		cs, err := w.(connector.CommittingWriter[string, filesink.Committable]).Prepare()
		if err != nil || len(cs) != 3 {
			t.Fatalf("prepared %v, %v", cs, err)
		}
		c, err := s.Committer(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Commit(t.Context(), cs); !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), "out/2/part-0-2") {
			t.Errorf("commit: %v", err)
		}
		if _, files, _ := contents(t, disk, "out"); !slices.Equal(files, []string{"out/0/part-0-0", "out/1/part-0-1"}) {
			t.Errorf("visible are %q", files)
		}
		if n := ctx.Counts["partFilesCommitted"]; n != 2 {
			t.Errorf("%d files were counted", n)
		}
	})
}
