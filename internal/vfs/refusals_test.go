package vfs_test

import (
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path"
	"runtime"
	"syscall"
	"testing"

	"github.com/flott-dev/flott/internal/vfs"
)

func TestSystemsRefuseTheSame(t *testing.T) {
	for name, s := range systems(t) {
		t.Run(name, func(t *testing.T) {
			at := func(name string) string { return path.Join(s.dir, name) }
			for _, err := range []error{
				write(t, s.fs, at("file"), vfs.Truncate, "text"), s.fs.MkdirAll(at("folder/below")), s.fs.MkdirAll(at("other")),
			} {
				if err != nil {
					t.Fatal(err)
				}
			}
			for what, err := range map[string]error{
				"a file over a folder":  s.fs.Rename(at("file"), at("folder")),
				"a folder over a file":  s.fs.Rename(at("folder"), at("file")),
				"a folder over another": s.fs.Rename(at("other"), at("folder")),
				"into no folder":        s.fs.Rename(at("file"), at("nowhere/file")),
				"into a file":           s.fs.Rename(at("other"), at("file/other")),
				"a file below a file":   func() error { _, err := s.fs.Create(at("file/below"), vfs.Truncate); return err }(),
				"names of no folder":    s.fs.SyncDir(at("nowhere")),
			} {
				if err == nil {
					t.Errorf("%s: no error", what)
				}
			}
			if got := read(s.fs, at("file")) + ", " + list(s.fs, s.dir) + ", " + list(s.fs, at("folder")); got != "text, filefalse foldertrue othertrue, belowtrue" {
				t.Errorf("what was refused has changed something: %s", got)
			}
			if err := s.fs.Rename(at("file"), at("file")); err != nil || read(s.fs, at("file")) != "text" {
				t.Errorf("a file over itself: %v, %q", err, read(s.fs, at("file")))
			}
			info, err := s.fs.Stat(at("folder"))
			if err != nil || !info.IsDir() || !info.Mode().IsDir() {
				t.Errorf("stat of a folder: %v, %v", info, err)
			}
			f, err := s.fs.Open(at("folder"))
			if err == nil {
				_, err = f.Read(make([]byte, 1))
				_ = f.Close()
			}
			if !errors.Is(err, syscall.EISDIR) {
				t.Errorf("a folder is read: %v", err)
			}
			w, err := s.fs.Create(at("closed"), vfs.Truncate)
			if err != nil {
				t.Fatal(err)
			}
			if err := w.Close(); err != nil {
				t.Error(err)
			}
			if n, err := w.Write([]byte("x")); n != 0 || !errors.Is(err, fs.ErrClosed) {
				t.Errorf("written after it was closed: %d, %v", n, err)
			}
			if err := w.Close(); !errors.Is(err, fs.ErrClosed) {
				t.Errorf("closed twice: %v", err)
			}
			if got := read(s.fs, at("closed")); got != "" {
				t.Errorf("the file holds %q", got)
			}
		})
	}
}

// A Mem has no holes: sizes that a file does not have are refused.
func TestMemTruncatesToWhatThereIs(t *testing.T) {
	m := vfs.NewMem()
	if err := write(t, m, "a", vfs.Truncate, "123"); err != nil {
		t.Fatal(err)
	}
	for size, want := range map[int64]error{-1: fs.ErrInvalid, 4: fs.ErrInvalid, 3: nil} {
		if err := m.Truncate("a", size); !errors.Is(err, want) {
			t.Errorf("to %d bytes: %v, want %v", size, err, want)
		}
	}
	if err := m.Truncate("a", 0); err != nil || read(m, "a") != "" {
		t.Errorf("to nothing: %v, %q", err, read(m, "a"))
	}
}

// What lies in a folder goes with the folder's name, whatever the disk had kept of it.
func TestCrashPartlyLeavesNothingWithoutItsFolder(t *testing.T) {
	kept := 0
	for seed := range uint64(100) {
		m := vfs.NewMem()
		if err := errors.Join(m.MkdirAll("a/b"), write(t, m, "a/b/f", vfs.Truncate, "x"), m.SyncDir("a/b")); err != nil {
			t.Fatal(err)
		}
		m.CrashPartly(rand.New(rand.NewPCG(seed, 1)))
		_, file := m.Stat("a/b/f")
		_, inner := m.Stat("a/b")
		_, outer := m.Stat("a")
		if file == nil && (inner != nil || outer != nil) || inner == nil && outer != nil {
			t.Fatalf("seed %d: the file %v, its folder %v, the one above %v", seed, file, inner, outer)
		}
		if file == nil {
			kept++
		}
	}
	if kept == 0 || kept == 100 {
		t.Errorf("%d of 100 disks have kept the file", kept)
	}
}

// A disk that has begun to write keeps nothing of a file that was cut but what was synced or all of the cut.
func TestCrashPartlyKeepsOldBytesOfAFileThatWasCut(t *testing.T) {
	for seed := range uint64(20) {
		m := vfs.NewMem()
		if err := errors.Join(write(t, m, "a", vfs.Truncate, "old"), m.SyncDir(".")); err != nil {
			t.Fatal(err)
		}
		w, err := m.Create("a", vfs.Truncate)
		if err == nil {
			_, err = io.WriteString(w, "another")
		}
		if err != nil {
			t.Fatal(err)
		}
		m.CrashPartly(rand.New(rand.NewPCG(seed, 1)))
		if got := read(m, "a"); got != "old" {
			t.Fatalf("seed %d: the file holds %q", seed, got)
		}
	}
}

func TestRemoveAllTellsWhatFails(t *testing.T) {
	for _, op := range []vfs.Op{vfs.OpStat, vfs.OpReadDir, vfs.OpRemove} {
		for nth := 1; nth <= 2; nth++ { // of the folder, and of what is in it
			m := vfs.NewMem()
			if err := errors.Join(m.MkdirAll("d/e"), write(t, m, "d/e/f", vfs.Truncate, "x")); err != nil {
				t.Fatal(err)
			}
			f := vfs.NewFaulty(m)
			f.Fail(op, nth, syscall.EIO)
			if err := vfs.RemoveAll(f, "d"); !errors.Is(err, syscall.EIO) {
				t.Errorf("call %d of %s fails: %v", nth, op, err)
			}
			if err := vfs.RemoveAll(f, "d"); err != nil {
				t.Errorf("again, after call %d of %s had failed: %v", nth, op, err)
			}
			if _, err := m.Stat("d"); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("the folder is still there: %v", err)
			}
		}
	}
	f := vfs.NewFaulty(vfs.NewMem())
	if err := f.MkdirAll("d"); err != nil {
		t.Fatal(err)
	}
	f.Fail(vfs.OpRemove, 1, fs.ErrNotExist)
	if err := vfs.RemoveAll(f, "d"); err != nil {
		t.Errorf("a folder that went with its last file: %v", err)
	}
}

// What can't be read or written whole is an error, and what is not written is not synced.
func TestWholeFilesOrErrors(t *testing.T) {
	for op, syncs := range map[vfs.Op]int{vfs.OpCreate: 0, vfs.OpWrite: 0, vfs.OpSync: 1, vfs.OpClose: 1} {
		f := vfs.NewFaulty(vfs.NewMem())
		f.Fail(op, 1, syscall.EIO)
		if err := vfs.WriteFile(f, "a", []byte("text")); !errors.Is(err, syscall.EIO) {
			t.Errorf("%s fails: %v", op, err)
		}
		if got := f.Calls(vfs.OpSync); got != syncs {
			t.Errorf("%s fails: synced %d times, want %d", op, got, syncs)
		}
		if err := vfs.WriteFile(f, "a", []byte("text")); err != nil || read(f, "a") != "text" {
			t.Errorf("again: %v, %q", err, read(f, "a"))
		}
		if closed, created := f.Calls(vfs.OpClose), f.Calls(vfs.OpCreate); op != vfs.OpCreate && closed != created {
			t.Errorf("%s fails: %d files were opened and %d closed", op, created, closed)
		}
	}
	f := vfs.NewFaulty(vfs.NewMem())
	f.ShortWrite(1)
	if err := vfs.WriteFile(f, "a", []byte("text")); !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("a write that takes half: %v", err)
	}
	if err := vfs.WriteFile(f, "a", []byte("text")); err != nil {
		t.Fatal(err)
	}
	for _, op := range []vfs.Op{vfs.OpOpen, vfs.OpRead} {
		f.Fail(op, 1, syscall.EIO)
		if data, err := vfs.ReadFile(f, "a"); !errors.Is(err, syscall.EIO) {
			t.Errorf("%s fails: %q, %v", op, data, err)
		}
	}
}

func TestFaultyFailsAtRandomWhatChangesSomething(t *testing.T) {
	f := vfs.NewFaulty(vfs.NewMem())
	f.FailRandomly(rand.New(rand.NewPCG(1, 1)), 1, 3, syscall.EIO) // each call but the first three
	if err := vfs.WriteFile(f, "a", []byte("x")); err != nil {     // creates, writes and syncs
		t.Errorf("the first three calls: %v", err)
	}
	if got := read(f, "a"); got != "x" {
		t.Errorf("reading is no change: %q", got)
	}
	for _, err := range []error{f.Remove("a"), f.MkdirAll("d"), f.Rename("a", "b")} {
		if !errors.Is(err, syscall.EIO) {
			t.Errorf("a later call: %v", err)
		}
	}
	failed := 0
	f.FailRandomly(rand.New(rand.NewPCG(1, 1)), 4, 0, syscall.EIO)
	for range 1000 {
		if f.MkdirAll("d") != nil {
			failed++
		}
	}
	if failed < 200 || failed > 300 {
		t.Errorf("%d of 1000 calls have failed, one in 4 should", failed)
	}
}

func TestFilesOfADeadProcessCannotBeRead(t *testing.T) {
	mem := vfs.NewMem()
	if err := write(t, mem, "a", vfs.Truncate, "text"); err != nil {
		t.Fatal(err)
	}
	m := vfs.NewMortal(mem, -1)
	for range 10 { // it lives on
		if err := m.MkdirAll("d"); err != nil {
			t.Fatal(err)
		}
	}
	f, err := m.Open("a")
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 2)
	if n, err := f.Read(b); n != 2 || err != nil {
		t.Errorf("read %d, %v", n, err)
	}
	w, err := m.Create("b", vfs.Truncate)
	if err != nil {
		t.Fatal(err)
	}
	m.DieAfter(0)
	if err := m.MkdirAll("e"); !errors.Is(err, vfs.ErrDead) {
		t.Errorf("the call in which it dies: %v", err)
	}
	if n, err := f.Read(b); n != 0 || !errors.Is(err, vfs.ErrDead) {
		t.Errorf("read %d, %v after death", n, err)
	}
	if n, err := f.ReadAt(b, 0); n != 0 || !errors.Is(err, vfs.ErrDead) {
		t.Errorf("read %d, %v after death", n, err)
	}
	if n, err := w.Write(b); n != 0 || !errors.Is(err, vfs.ErrDead) {
		t.Errorf("wrote %d, %v after death", n, err)
	}
	if err := w.Close(); !errors.Is(err, vfs.ErrDead) {
		t.Errorf("closed after death: %v", err)
	}
	if got := read(mem, "b"); got != "" {
		t.Errorf("the dead have written %q", got)
	}
}

// Where there is nothing to sync, as with devices, syncing is no error.
func TestWhatCannotBeSyncedNeedNot(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("it has no such device")
	}
	w, err := vfs.OS{}.Create(os.DevNull, vfs.Append)
	if err != nil {
		t.Skip(err)
	}
	if err := errors.Join(w.Sync(), w.Close()); err != nil {
		t.Error(err)
	}
	f, err := vfs.OS{}.Open(vfs.Stdin)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stdin.Stat(); err != nil {
		t.Errorf("the process's input is closed: %v", err)
	}
}
