package localcopy

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"strings"
	"testing"

	"github.com/flott-dev/flott/internal/vfs"
)

const chunk = "/far/chk-1/aa-0-1.chunk"

// rig is a storage and a local disk.
type rig struct {
	*testing.T
	far, near *vfs.Faulty
	fs        *FS
}

func newRig(t *testing.T) *rig {
	r := &rig{T: t, far: vfs.NewFaulty(vfs.NewMem()), near: vfs.NewFaulty(vfs.NewMem())}
	r.fs = r.again(true, true)
	r.ok(r.far.MkdirAll("/far/chk-1"))
	return r
}

// again is the FS of a later process.
func (r *rig) again(write, read bool) *FS {
	return New(r.far, Options{Disk: r.near, Folders: []string{"/near/a", "/near/b"}, Write: write, Read: read})
}

func (r *rig) ok(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

func data() []byte { return bytes.Repeat([]byte("0123456789abcdef"), 40_000) }

// write writes a file as package checkpoint does, in pieces.
func (r *rig) write(name string) {
	r.Helper()
	w, err := r.fs.Create(name, vfs.Exclusive)
	r.ok(err)
	for b := data(); len(b) > 0; b = b[min(len(b), 100_000):] {
		_, err = w.Write(b[:min(len(b), 100_000)])
		r.ok(err)
	}
	r.ok(w.Sync())
	r.ok(w.Close())
}

// reads checks that a file is whole, from front to back and at other places, and how many files came from copies.
func (r *rig) reads(f *FS, name string, copies int64) {
	r.Helper()
	before, _ := f.Counts()
	file, err := f.Open(name)
	r.ok(err)
	got, err := io.ReadAll(file)
	r.ok(err)
	end := make([]byte, 20)
	n, err := file.ReadAt(end, int64(len(data()))-10)
	if !bytes.Equal(got, data()) || n != 10 || err != io.EOF || !bytes.HasSuffix(data(), end[:n]) {
		r.Errorf("%s has %d bytes, at its end %q, %v", name, len(got), end[:n], err)
	}
	i, err := file.Stat()
	r.ok(err)
	if i.Size() != int64(len(data())) || i.Name() != "aa-0-1.chunk" {
		r.Errorf("stat: %q of %d bytes", i.Name(), i.Size())
	}
	r.ok(file.Close())
	if after, _ := f.Counts(); after-before != copies {
		r.Errorf("%d files were read from copies, want %d", after-before, copies)
	}
}

// local are the files on the local disk.
func (r *rig) local() (names []string) {
	r.fs.each(func(name string) { names = append(names, name) })
	return names
}

func TestFileIsReadFromItsCopy(t *testing.T) {
	r := newRig(t)
	r.write(chunk)
	r.far.FailFrom(vfs.OpOpen, 1, errors.New("the storage is far away"))
	r.reads(r.fs, chunk, 1)
	r.reads(r.again(false, true), chunk, 1)
}

func TestStorageIsReadWhereCopiesAreNotWanted(t *testing.T) {
	r := newRig(t)
	r.write(chunk)
	r.reads(r.again(true, false), chunk, 0)
	r.fs = r.again(false, true)
	r.ok(r.far.Remove(chunk))
	r.write(chunk)
	r.reads(r.fs, chunk, 0)
	if left := r.local(); len(left) != 0 {
		t.Errorf("the copy of an older file of that name is left: %v", left)
	}
}

func TestCopyThatIsNotWholeIsPassedOver(t *testing.T) {
	for what, harm := range map[string]func(r *rig, name string) error{
		"missing":             func(r *rig, name string) error { return r.near.Remove(name) },
		"cut":                 func(r *rig, name string) error { return r.near.Truncate(name, 1000) },
		"cut to nothing":      func(r *rig, name string) error { return r.near.Truncate(name, 0) },
		"cut by a byte":       func(r *rig, name string) error { return r.near.Truncate(name, int64(len(data()))+trailLen-1) },
		"damaged in its data": func(r *rig, name string) error { return flip(r.near, name, 123_456) },
		"damaged in its end":  func(r *rig, name string) error { return flip(r.near, name, len(data())+9) },
		"of another size":     func(r *rig, name string) error { return flip(r.near, name, len(data())) },
	} {
		t.Run(what, func(t *testing.T) {
			r := newRig(t)
			r.write(chunk)
			r.ok(harm(r, r.fs.place(chunk)))
			r.reads(r.fs, chunk, 0)
			if left := r.local(); len(left) != 0 {
				t.Errorf("it is left: %v", left)
			}
		})
	}
}

// flip changes a bit of a file.
func flip(f vfs.FS, name string, at int) error {
	b, err := vfs.ReadFile(f, name)
	if err != nil {
		return err
	}
	b[at] ^= 4
	return vfs.WriteFile(f, name, b)
}

func TestLocalDiskThatFailsFailsNothing(t *testing.T) {
	boom := errors.New("the local disk is broken")
	for what, harm := range map[string]func(r *rig){
		"full at once":       func(r *rig) { r.near.Space(0) },
		"full in the middle": func(r *rig) { r.near.Space(250_000) },
		"full at the end":    func(r *rig) { r.near.Space(int64(len(data())) + 3) },
		"no folder":          func(r *rig) { r.near.FailFrom(vfs.OpMkdir, 1, boom) },
		"no file":            func(r *rig) { r.near.FailFrom(vfs.OpCreate, 1, boom) },
		"no close":           func(r *rig) { r.near.FailFrom(vfs.OpClose, 1, boom) },
		"no name":            func(r *rig) { r.near.FailFrom(vfs.OpRename, 1, boom) },
	} {
		t.Run(what, func(t *testing.T) {
			r := newRig(t)
			harm(r)
			r.write(chunk)
			r.reads(r.fs, chunk, 0)
			if _, lost := r.fs.Counts(); lost == 0 || len(r.local()) != 0 {
				t.Errorf("%d were lost; left: %v", lost, r.local())
			}
		})
	}
}

func TestCopyWhoseDiskFailsLaterIsReadFromTheStorage(t *testing.T) {
	r := newRig(t)
	r.write(chunk)
	file, err := r.fs.Open(chunk)
	r.ok(err)
	r.near.FailFrom(vfs.OpRead, 1, errors.New("the local disk is broken"))
	got, err := io.ReadAll(file)
	r.ok(errors.Join(err, file.Close()))
	if !bytes.Equal(got, data()) {
		t.Errorf("%d bytes", len(got))
	}
}

func TestFileThatFailsHasNoCopy(t *testing.T) {
	r := newRig(t)
	boom := errors.New("the storage is broken")
	r.far.Fail(vfs.OpClose, 1, boom)
	w, err := r.fs.Create(chunk, vfs.Exclusive)
	r.ok(err)
	_, err = w.Write(data())
	r.ok(err)
	if err := w.Close(); !errors.Is(err, boom) || len(r.local()) != 0 {
		t.Errorf("closed: %v, left: %v", err, r.local())
	}
}

func TestCopyGoesWithItsFile(t *testing.T) {
	r := newRig(t)
	r.write(chunk)
	r.ok(r.fs.Remove(chunk))
	if _, err := r.far.Stat(chunk); !errors.Is(err, fs.ErrNotExist) || len(r.local()) != 0 {
		t.Errorf("the file: %v; copies: %v", err, r.local())
	}
}

func TestSweepKeepsWhatIsNeeded(t *testing.T) {
	r := newRig(t)
	r.write(chunk)
	r.write("/far/chk-1/bb-0-1.file")
	_, err := r.fs.Create("/far/chk-1/cc-0-1.chunk", vfs.Exclusive) // its process ends
	r.ok(err)
	if n := len(r.local()); n != 3 {
		t.Fatalf("%d copies", n)
	}
	next := r.again(true, true)
	next.Sweep([]string{chunk})
	if left := r.local(); len(left) != 1 {
		t.Errorf("left: %v", left)
	}
	r.reads(next, chunk, 1)
	next.Clear()
	for _, dir := range []string{"/near/a", "/near/b"} {
		if _, err := r.near.Stat(dir); err == nil {
			t.Errorf("folder %s is left", dir)
		}
	}
}

func TestManifestsAreNotCopied(t *testing.T) {
	r := newRig(t)
	w, err := r.fs.Create("/far/chk-1/_metadata.new", vfs.Truncate)
	r.ok(err)
	_, err = io.Copy(w, strings.NewReader("manifest"))
	r.ok(errors.Join(err, w.Close()))
	r.ok(r.fs.Rename("/far/chk-1/_metadata.new", "/far/chk-1/_metadata"))
	b, err := vfs.ReadFile(r.fs, "/far/chk-1/_metadata")
	r.ok(err)
	if string(b) != "manifest" || len(r.local()) != 0 {
		t.Errorf("%q, copies: %v", b, r.local())
	}
}
