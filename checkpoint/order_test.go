package checkpoint

import (
	"errors"
	"path"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/flott-dev/flott/internal/vfs"
)

// logging is a file system that notes the calls that change something.
type logging struct {
	vfs.FS
	calls []string
}

func (l *logging) note(call, name string) {
	l.calls = append(l.calls, call+" "+strings.TrimPrefix(name, "/job/checkpoints/"))
}

// took gives the calls since the last time, equal neighbours once.
func (l *logging) took() []string {
	calls := slices.Compact(l.calls)
	l.calls = nil
	return calls
}

func (l *logging) Create(name string, how vfs.Mode) (vfs.Writer, error) {
	l.note("create", name)
	w, err := l.FS.Create(name, how)
	return &loggingWriter{w, l, name}, err
}

func (l *logging) Rename(from, to string) error {
	l.note("rename", from)
	return l.FS.Rename(from, to)
}

func (l *logging) Remove(name string) error {
	l.note("remove", name)
	return l.FS.Remove(name)
}

func (l *logging) SyncDir(name string) error {
	l.note("syncdir", name)
	return l.FS.SyncDir(name)
}

type loggingWriter struct {
	vfs.Writer
	l    *logging
	name string
}

func (w *loggingWriter) Write(b []byte) (int, error) {
	w.l.note("write", w.name)
	return w.Writer.Write(b)
}

func (w *loggingWriter) Sync() error {
	w.l.note("sync", w.name)
	return w.Writer.Sync()
}

// TestOrderOfCalls holds what no file system of ours can show: a disk may keep any of the changes that were not synced and
// forget others, so that each step must be synced before the next one relies on it.
func TestOrderOfCalls(t *testing.T) {
	l := &logging{FS: vfs.NewMem()}
	s := openStorage(t, l)
	expect := func(what, want string) {
		t.Helper()
		if got := strings.Join(l.took(), "\n"); got != strings.TrimSpace(want) {
			t.Errorf("%s:\n%s\nwant:\n%s", what, got, strings.TrimSpace(want))
		}
	}
	l.took()
	folder, err := s.Begin(1)
	if err != nil {
		t.Fatal(err)
	}
	expect("begin", "syncdir /job/checkpoints")
	w := &Writer{FS: l, Folder: folder, InlineBytes: -1}
	p, err := w.Write(t.Context(), op(1), 0, 0, 15, &State{Lists: []List{{Name: "l", Items: [][]byte{make([]byte, flushBytes), make([]byte, 10)}}}})
	if err != nil {
		t.Fatal(err)
	}
	own, _ := p.Files(folder)
	file := "chk-1/" + path.Base(own[0])
	expect("write", "create "+file+"\nwrite "+file+"\nsync "+file+"\nsyncdir chk-1")
	m := one(folder, p, 16)
	m.ID = 1
	if _, err := s.Complete(m); err != nil {
		t.Fatal(err)
	}
	expect("complete", "create chk-1/_metadata.new\nwrite chk-1/_metadata.new\nsync chk-1/_metadata.new\nrename chk-1/_metadata.new\nsyncdir chk-1")
	if err := s.Discard(m); err != nil {
		t.Fatal(err)
	}
	expect("discard", "remove chk-1/_metadata\nremove chk-1/_metadata.new\nsyncdir chk-1\nremove "+file+"\nremove chk-1")
}

func TestAWrittenPartSurvivesACrash(t *testing.T) {
	fs, w := folder(t)
	p, err := w.Write(t.Context(), op(1), 0, 0, 15, &State{Lists: []List{{Name: "l", Items: items("i", 3)}}})
	if err != nil {
		t.Fatal(err)
	}
	fs.Crash()
	if err := one("/s", p, 16).Verify(fs); err != nil {
		t.Error(err)
	}
}

func TestASnapshotThatCouldNotBeSyncedDoesNotExist(t *testing.T) {
	f := vfs.NewFaulty(vfs.NewMem())
	j := newJob(t, f)
	s := openStorage(t, f)
	folder, err := s.Begin(1)
	if err != nil {
		t.Fatal(err)
	}
	m := &Manifest{ID: 1}
	if err := j.write(&Writer{FS: f, Folder: folder}, m); err != nil {
		t.Fatal(err)
	}
	f.Fail(vfs.OpSyncDir, 1, syscall.EIO)
	if _, err := s.Complete(m); !errors.Is(err, syscall.EIO) {
		t.Fatal(err)
	}
	if m, err := s.Latest(); m != nil || err != nil {
		t.Errorf("latest is %v, %v", m, err)
	}
	if _, err := s.Complete(m); err != nil {
		t.Errorf("the second time: %v", err)
	}
}

func TestASnapshotThatCouldNotBeDiscardedIsWhole(t *testing.T) {
	for _, op := range []vfs.Op{vfs.OpRemove, vfs.OpSyncDir} {
		f := vfs.NewFaulty(vfs.NewMem())
		j := newJob(t, f)
		s := openStorage(t, f)
		m, err := j.checkpoint(s, 1)
		if err != nil {
			t.Fatal(err)
		}
		f.Fail(op, 1, syscall.EIO)
		if err := s.Discard(m); !errors.Is(err, syscall.EIO) {
			t.Errorf("%s: %v", op, err)
		}
		if err := m.Verify(f); err != nil {
			t.Errorf("%s: its files are gone: %v", op, err)
		}
		if err := s.Discard(m); err != nil {
			t.Errorf("%s, again: %v", op, err)
		}
		if left := names(t, f, "/job/checkpoints"); len(left) > 0 {
			t.Errorf("%s left %q", op, left)
		}
	}
}
