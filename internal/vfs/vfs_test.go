package vfs_test

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/flott-dev/flott/internal/vfs"
)

// systems are the file systems that must behave the same, each with an empty folder.
func systems(t *testing.T) map[string]struct {
	fs  vfs.FS
	dir string
} {
	t.Helper()
	m := vfs.NewMem()
	if err := m.MkdirAll("/tmp/x"); err != nil {
		t.Fatal(err)
	}
	return map[string]struct {
		fs  vfs.FS
		dir string
	}{"OS": {vfs.OS{}, filepath.ToSlash(t.TempDir())}, "Mem": {m, "/tmp/x"}, "Faulty": {vfs.NewFaulty(vfs.OS{}), filepath.ToSlash(t.TempDir())}}
}

func write(t *testing.T, f vfs.FS, name string, how vfs.Mode, text string) error {
	t.Helper()
	w, err := f.Create(name, how)
	if err != nil {
		return err
	}
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
	return errors.Join(w.Sync(), w.Close())
}

func read(f vfs.FS, name string) string {
	data, err := vfs.ReadFile(f, name)
	if err != nil {
		return err.Error()
	}
	return string(data)
}

func list(f vfs.FS, dir string) string {
	entries, err := f.ReadDir(dir)
	if err != nil {
		return err.Error()
	}
	var all []string
	for _, e := range entries {
		all = append(all, fmt.Sprint(e.Name(), e.IsDir()))
	}
	return strings.Join(all, " ")
}

func TestSystemsBehaveTheSame(t *testing.T) {
	for name, s := range systems(t) {
		t.Run(name, func(t *testing.T) {
			at := func(name string) string { return path.Join(s.dir, name) }
			ok := func(err error) {
				t.Helper()
				if err != nil {
					t.Fatal(err)
				}
			}
			is := func(err, want error) {
				t.Helper()
				if !errors.Is(err, want) {
					t.Errorf("got %v, want %v", err, want)
				}
			}
			ok(write(t, s.fs, at("b"), vfs.Exclusive, "one"))
			is(write(t, s.fs, at("b"), vfs.Exclusive, "two"), fs.ErrExist)
			ok(write(t, s.fs, at("b"), vfs.Append, " more"))
			if got := read(s.fs, at("b")); got != "one more" {
				t.Errorf("appended: %q", got)
			}
			ok(write(t, s.fs, at("b"), vfs.Truncate, "12345"))
			ok(s.fs.Truncate(at("b"), 3))
			if got := read(s.fs, at("b")); got != "123" {
				t.Errorf("truncated: %q", got)
			}
			ok(s.fs.MkdirAll(at("d/e")))
			ok(s.fs.MkdirAll(at("d/e")))
			ok(write(t, s.fs, at("d/e/f"), vfs.Truncate, "x"))
			is(s.fs.MkdirAll(at("b/sub")), syscall.ENOTDIR)
			is(write(t, s.fs, at("no/where"), vfs.Truncate, "x"), fs.ErrNotExist)
			is(write(t, s.fs, at("d"), vfs.Truncate, "x"), syscall.EISDIR)
			is(s.fs.Remove(at("d")), syscall.ENOTEMPTY)
			is(s.fs.Remove(at("nothing")), fs.ErrNotExist)
			is(s.fs.Rename(at("nothing"), at("x")), fs.ErrNotExist)
			is(s.fs.Truncate(at("nothing"), 0), fs.ErrNotExist)
			_, err := s.fs.Open(at("nothing"))
			is(err, fs.ErrNotExist)
			_, err = s.fs.Stat(at("nothing"))
			is(err, fs.ErrNotExist)
			_, err = s.fs.ReadDir(at("nothing"))
			is(err, fs.ErrNotExist)
			_, err = s.fs.ReadDir(at("b"))
			is(err, syscall.ENOTDIR)
			ok(s.fs.Rename(at("b"), at("d/e/f")))
			if got := read(s.fs, at("d/e/f")); got != "123" {
				t.Errorf("renamed over another: %q", got)
			}
			ok(s.fs.Rename(at("d/e"), at("moved")))
			if got := list(s.fs, s.dir) + ", " + list(s.fs, at("moved")); got != "dtrue movedtrue, ffalse" {
				t.Errorf("listed %q", got)
			}
			ok(s.fs.SyncDir(s.dir))
			info, err := s.fs.Stat(at("moved/f"))
			ok(err)
			if info.Size() != 3 || info.IsDir() || !info.Mode().IsRegular() || info.Name() != "f" {
				t.Errorf("stat: %v", info)
			}
			f, err := s.fs.Open(at("moved/f"))
			ok(err)
			b := make([]byte, 5)
			if n, err := f.ReadAt(b, 1); n != 2 || err != io.EOF {
				t.Errorf("read at 1: %d, %v", n, err)
			}
			ok(f.Close())
			ok(vfs.RemoveAll(s.fs, at("moved")))
			ok(vfs.RemoveAll(s.fs, at("moved")))
			if got := list(s.fs, s.dir); got != "dtrue" {
				t.Errorf("after removing: %q", got)
			}
		})
	}
}

// A rename that can't be is refused by all, and changes nothing.
func TestSystemsRefuseTheSameRenames(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has other errors")
	}
	for name, s := range systems(t) {
		at := func(name string) string { return path.Join(s.dir, name) }
		err := errors.Join(s.fs.MkdirAll(at("d/e")), s.fs.MkdirAll(at("full/g")), write(t, s.fs, at("d/f"), vfs.Truncate, "x"))
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			from, to string
			want     error
		}{
			{"d", "d", fs.ErrExist},
			{"d/e", "d/e", fs.ErrExist},
			{"d/f", "d/f", nil},
			{"d", "full", fs.ErrExist},
			{"d/f", "full", fs.ErrExist},
			{"d", "d/e", fs.ErrExist},
			{"d", "d/new", syscall.EINVAL},
			{"d", "d/f", syscall.EINVAL},
			{"d", "d/new/er", fs.ErrNotExist},
			{"full", "d/f", syscall.ENOTDIR},
			{"d", "d/f/g", syscall.ENOTDIR},
			{"nothing", "d", fs.ErrNotExist},
			{"nothing", "nothing", fs.ErrNotExist},
		} {
			if err := s.fs.Rename(at(c.from), at(c.to)); !errors.Is(err, c.want) {
				t.Errorf("%s: rename %s to %s: %v, want %v", name, c.from, c.to, err, c.want)
			}
		}
		if got := list(s.fs, s.dir) + ", " + list(s.fs, at("d")) + ", " + list(s.fs, at("full")); got != "dtrue fulltrue, etrue ffalse, gtrue" {
			t.Errorf("%s: listed %q", name, got)
		}
	}
}

func TestRemoveAllDoesNotFollowLinks(t *testing.T) {
	dir := filepath.ToSlash(t.TempDir())
	keep := filepath.Join(t.TempDir(), "keep")
	if err := os.WriteFile(keep, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(dir+"/d", 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Dir(keep), dir+"/d/link"); err != nil {
		t.Skip(err)
	}
	if err := vfs.RemoveAll(vfs.OS{}, dir+"/d"); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(keep); err != nil {
		t.Error(err)
	}
}

func TestCrashForgetsWhatWasNotSynced(t *testing.T) {
	m := vfs.NewMem()
	w, err := m.Create("a", vfs.Truncate)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(w, "synced")
	if err := errors.Join(w.Sync(), m.SyncDir(".")); err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(w, " and not")
	if err := write(t, m, "unnamed", vfs.Truncate, "x"); err != nil {
		t.Fatal(err)
	}
	m.Crash()
	if got := list(m, ".") + " " + read(m, "a"); got != "afalse synced" {
		t.Errorf("after the crash: %q", got)
	}
	if err := m.Rename("a", "b"); err != nil {
		t.Fatal(err)
	}
	m.Crash()
	if got := list(m, "."); got != "afalse" {
		t.Errorf("a rename that was not synced: %q", got)
	}
	if err := errors.Join(m.Rename("a", "b"), m.SyncDir(".")); err != nil {
		t.Fatal(err)
	}
	m.Crash()
	if got := list(m, ".") + " " + read(m, "b"); got != "bfalse synced" {
		t.Errorf("a rename that was synced: %q", got)
	}
	if err := errors.Join(m.MkdirAll("d"), write(t, m, "d/f", vfs.Truncate, "x"), m.SyncDir("d")); err != nil {
		t.Fatal(err)
	}
	m.Crash()
	if got := list(m, "."); got != "bfalse" {
		t.Errorf("a folder whose name was not synced: %q", got)
	}
}

func TestTouchSetsTheTimeOfChange(t *testing.T) {
	m := vfs.NewMem()
	if err := write(t, m, "a", vfs.Truncate, ""); err != nil {
		t.Fatal(err)
	}
	want := time.Unix(77, 0)
	if err := m.Touch("a", want); err != nil {
		t.Fatal(err)
	}
	info, err := m.Stat("a")
	if err != nil || !info.ModTime().Equal(want) {
		t.Errorf("got %v, %v", info.ModTime(), err)
	}
}

func TestFaultyFailsTheCallsItWasToldTo(t *testing.T) {
	f := vfs.NewFaulty(vfs.NewMem())
	calls := map[vfs.Op]func() error{
		vfs.OpOpen:     func() error { _, err := f.Open("a"); return err },
		vfs.OpCreate:   func() error { _, err := f.Create("a", vfs.Truncate); return err },
		vfs.OpReadDir:  func() error { _, err := f.ReadDir("."); return err },
		vfs.OpStat:     func() error { _, err := f.Stat("a"); return err },
		vfs.OpRename:   func() error { return f.Rename("a", "a") },
		vfs.OpRemove:   func() error { return errors.Join(f.Remove("b"), write(t, f.FS, "b", vfs.Truncate, "")) },
		vfs.OpTruncate: func() error { return f.Truncate("a", 0) },
		vfs.OpMkdir:    func() error { return f.MkdirAll("d") },
		vfs.OpSyncDir:  func() error { return f.SyncDir(".") },
		vfs.OpRead:     func() error { return readOne(f) },
		vfs.OpWrite:    func() error { return writeOne(f) },
		vfs.OpSync:     func() error { return writeOne(f) },
		vfs.OpClose:    func() error { return writeOne(f) },
	}
	for _, name := range []string{"a", "b"} {
		if err := write(t, f.FS, name, vfs.Truncate, "x"); err != nil {
			t.Fatal(err)
		}
	}
	for op, call := range calls {
		f.Fail(op, 2, syscall.EIO)
		for i, want := range []error{nil, syscall.EIO, nil} {
			if err := call(); !errors.Is(err, want) || want == nil && err != nil {
				t.Errorf("%s, call %d: %v, want %v", op, i+1, err, want)
			}
		}
		f.FailFrom(op, 1, syscall.EIO)
		if err := errors.Join(call()); !errors.Is(err, syscall.EIO) {
			t.Errorf("%s for ever: %v", op, err)
		}
		if err := call(); !errors.Is(err, syscall.EIO) {
			t.Errorf("%s for ever: %v", op, err)
		}
		f.Heal(op)
		if err := call(); err != nil {
			t.Errorf("%s healed: %v", op, err)
		}
	}
}

func readOne(f vfs.FS) error {
	file, err := f.Open("b")
	if err != nil {
		return err
	}
	if _, err := file.Read(make([]byte, 1)); err != nil && err != io.EOF {
		return err
	}
	return file.Close()
}

func writeOne(f vfs.FS) error {
	w, err := f.Create("c", vfs.Truncate)
	if err != nil {
		return err
	}
	_, err = w.Write([]byte("x"))
	return errors.Join(err, w.Sync(), w.Close())
}

func TestSpaceEndsWithinAWrite(t *testing.T) {
	f := vfs.NewFaulty(vfs.NewMem())
	f.Space(3)
	w, err := f.Create("a", vfs.Truncate)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := w.Write([]byte("12")); n != 2 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	if n, err := w.Write([]byte("345")); n != 1 || !errors.Is(err, vfs.ErrNoSpace) {
		t.Errorf("%d, %v", n, err)
	}
	f.Space(-1)
	if _, err := w.Write([]byte("4")); err != nil {
		t.Error(err)
	}
	if got := read(f, "a"); got != "1234" {
		t.Errorf("got %q", got)
	}
}

// After a crash of a disk that has kept some of what was not synced, files have beginnings of their bytes, and what was moved
// has one name.
func TestCrashPartlyKeepsWhatADiskMayKeep(t *testing.T) {
	seen := map[string]int{}
	for seed := range uint64(300) {
		m := vfs.NewMem()
		for _, name := range []string{"moved", "removed", "grown"} {
			if err := write(t, m, name, vfs.Truncate, "old"); err != nil {
				t.Fatal(err)
			}
		}
		if err := m.SyncDir("."); err != nil {
			t.Fatal(err)
		}
		w, err := m.Create("grown", vfs.Append)
		if err == nil {
			_, err = io.WriteString(w, "new")
		}
		if err = errors.Join(err, m.Rename("moved", "to"), m.Remove("removed"), m.MkdirAll("d"), write(t, m, "d/f", vfs.Truncate, "x")); err != nil {
			t.Fatal(err)
		}
		m.CrashPartly(rand.New(rand.NewPCG(seed, 1)))
		seen[list(m, ".")]++
		grown := read(m, "grown")
		if !strings.HasPrefix("oldnew", grown) || !strings.HasPrefix(grown, "old") {
			t.Fatalf("grown is %q", grown)
		}
		seen[grown]++
		for _, name := range []string{"moved", "to"} {
			if _, err := m.Stat(name); err == nil {
				seen["one of them"]++
			}
		}
	}
	// d may have its name or not, removed its own or none, moved one of two; old, oldn, oldne and oldnew are possible.
	if len(seen) != 2*2*2+4+1 || seen["one of them"] != 300 {
		t.Errorf("seen %v", seen)
	}
}

func TestMortalDiesWithOneCallAndStaysDead(t *testing.T) {
	for last := range 9 {
		mem := vfs.NewMem()
		m := vfs.NewMortal(mem, last)
		steps := []func() error{
			func() error { return m.MkdirAll("d") },
			func() error { return write(t, mem, "d/a", vfs.Truncate, "x") },
			func() error { return m.SyncDir("d") },
			func() error { return m.Rename("d/a", "d/b") },
			func() error { return m.Truncate("d/b", 0) },
			func() error {
				w, err := m.Create("d/c", vfs.Exclusive) // 5th
				if err != nil {
					return err
				}
				n, err := w.Write([]byte("1234")) // 6th
				if err != nil && n != 2 {
					t.Errorf("half of what is written as it dies gets through, not %d bytes", n)
				}
				return errors.Join(err, w.Sync(), w.Close()) // 7th
			},
			func() error { return m.Remove("d/c") },
		}
		var err error
		for _, step := range steps {
			if err = step(); err != nil {
				break
			}
		}
		if dead := last < 8; m.Dead() != dead || dead != errors.Is(err, vfs.ErrDead) || m.Calls() != last {
			t.Errorf("dies after %d calls: %v after %d", last, err, m.Calls())
		}
		m.DieAfter(0)
		_ = m.MkdirAll("e")
		_, opened := m.Open("d")
		_, listed := m.ReadDir("d")
		_, stat := m.Stat("d")
		for _, err := range []error{opened, listed, stat, m.Remove("d/b"), m.SyncDir("d")} {
			if !errors.Is(err, vfs.ErrDead) {
				t.Errorf("a call after death: %v", err)
			}
		}
	}
}

func TestSilentFaults(t *testing.T) {
	create := func(f vfs.FS, name, text string) (n int, err error) {
		w, err := f.Create(name, vfs.Truncate)
		if err != nil {
			return 0, err
		}
		n, err = io.WriteString(w, text)
		return n, errors.Join(err, w.Close())
	}
	f := vfs.NewFaulty(vfs.NewMem()).Only(func(name string) bool { return name != "spared" })
	for _, c := range []struct {
		set  func(nth int)
		want string
		n    int
	}{
		{f.ShortWrite, "12", 2},
		{f.Corrupt, "1235", 4},
		{f.Lose, "open b: file does not exist", 4},
	} {
		c.set(2)
		for i, name := range []string{"spared", "a", "b", "c"} {
			want, length := "1234", 4
			if name == "b" {
				want, length = c.want, c.n
			}
			if n, err := create(f, name, "1234"); err != nil || n != length || read(f, name) != want {
				t.Errorf("file %d: %d bytes, %v, %q; want %d, %q", i, n, err, read(f, name), length, want)
			}
		}
	}
	release := f.Hang(vfs.OpRename, 1)
	done := make(chan error)
	go func() { done <- f.Rename("a", "z") }()
	for f.Calls(vfs.OpRename) == 0 {
		runtime.Gosched()
	}
	if got := read(f, "a"); got != "1234" {
		t.Errorf("while it hangs: %q", got)
	}
	release()
	if err := <-done; err != nil || read(f, "z") != "1234" {
		t.Errorf("released: %v, %q", err, read(f, "z"))
	}
}
