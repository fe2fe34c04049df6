//go:build amd64 || arm64 || loong64 || ppc64le || riscv64

package vfs

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"unsafe"
)

// flaky is a kernel that refuses requests, writes parts, fails and answers out of order, as rnd says; a write that it fails
// may have left anything.
type flaky struct {
	rnd   *rand.Rand
	under []completion
	done  []completion
	syncs bool // it knows them
	lazy  bool // it refuses nothing
}

func (k *flaky) submit(r request) error {
	if !k.lazy && k.rnd.IntN(5) == 0 {
		return os.NewSyscallError("io_submit", syscall.EAGAIN)
	}
	if r.op == opDataSync {
		if !k.syncs {
			return os.NewSyscallError("io_submit", syscall.EINVAL)
		}
		k.under = append(k.under, completion{data: r.data})
		return nil
	}
	b := unsafe.Slice((*byte)(*(*unsafe.Pointer)(unsafe.Pointer(&r.addr))), r.length)
	result := int64(len(b))
	switch k.rnd.IntN(4) {
	case 0:
		result = k.rnd.Int64N(result)
	case 1:
		result = -int64(syscall.EIO)
	}
	if result > 0 {
		if _, err := syscall.Pwrite(int(r.fd), b[:result&^(directAlign-1)], r.off); err != nil {
			return err
		}
		result &^= directAlign - 1
	}
	k.under = append(k.under, completion{data: r.data, result: result})
	return nil
}

func (k *flaky) wait() ([]completion, error) {
	k.rnd.Shuffle(len(k.under), func(i, j int) { k.under[i], k.under[j] = k.under[j], k.under[i] })
	n := 1 + k.rnd.IntN(len(k.under))
	k.done = append(k.done[:0], k.under[:n]...)
	k.under = slices.Delete(k.under, 0, n)
	return k.done, nil
}

func (k *flaky) close() error { return nil }

// kernels are those that a writer must work with.
func kernels(t *testing.T, rnd *rand.Rand) map[string]kernel {
	t.Helper()
	all := map[string]kernel{"flaky": &flaky{rnd: rnd, syncs: true}, "without syncs": &flaky{rnd: rnd}}
	real := &asyncIO{}
	if err := real.open(directBuffers + directSyncs); err != nil {
		t.Logf("NOT TRIED with this machine's kernel: %v", err)
		return all
	}
	all["real"] = real
	return all
}

// direct is a writer by this machine's kernel; where it has none the test is skipped.
func direct(t *testing.T) DirectWriter {
	t.Helper()
	w, err := NewDirectWriter()
	if err != nil {
		t.Skipf("NOT TRIED: the kernel, or who limits it, gives no asynchronous I/O: %v", err)
	}
	return w
}

// TestDirectFilesHoldWhatWasWritten: whatever the pieces, and whatever the kernel does with them.
func TestDirectFilesHoldWhatWasWritten(t *testing.T) {
	for seed := range uint64(4) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		for name, k := range kernels(t, rnd) {
			t.Run(fmt.Sprint(name, seed), func(t *testing.T) {
				w := &directWriter{kernel: k}
				for range 2 { // a writer is used again
					writeDirectly(t, w, rnd, t.TempDir())
				}
				if err := w.Close(); err != nil {
					t.Fatal(err)
				}
			})
		}
	}
}

// writeDirectly writes some files and compares them.
func writeDirectly(t *testing.T, w *directWriter, rnd *rand.Rand, dir string) {
	t.Helper()
	var next []byte
	want := map[string][]byte{}
	for i := range 1 + rnd.IntN(9) {
		name := filepath.Join(dir, fmt.Sprint("f", i))
		if err := w.Create(name); err != nil {
			t.Fatal(err)
		}
		var all []byte
		for range rnd.IntN(12) {
			piece := make([]byte, rnd.IntN([]int{1, 100, directAlign, directBuffer, 3 * directBuffer}[rnd.IntN(5)]+1))
			for i := range piece {
				piece[i] = byte(rnd.Uint32())
			}
			all = append(all, piece...)
			var err error
			if next, err = w.Write(append(next, piece...)); err != nil {
				t.Fatal(err)
			}
		}
		var err error
		if next, err = w.End(next); err != nil {
			t.Fatal(err)
		}
		if len(next) > 0 {
			t.Fatalf("%d bytes are left at the end of a file", len(next))
		}
		want[name] = all
	}
	if err := w.Wait(); err != nil {
		t.Fatal(err)
	}
	for name, all := range want {
		if rnd.IntN(2) == 0 {
			if err := errors.Join(w.Remove(name), w.Remove(name)); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("removing %s twice: %v, want %v", name, err, fs.ErrNotExist)
			}
			if _, err := os.Stat(name); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s was removed and is there: %v", name, err)
			}
			continue
		}
		if got, err := os.ReadFile(name); err != nil || !bytes.Equal(got, all) {
			t.Fatalf("%s has %d bytes, want %d, or others; %v", name, len(got), len(all), err)
		}
	}
}

// scant is a budget with room for some buffers.
type scant struct{ room int64 }

func (b *scant) Reserve(n int64) error {
	if b.room < n {
		return errors.New("there is no more memory")
	}
	b.room -= n
	return nil
}

func (b *scant) Release(n int64) { b.room += n }

// TestDirectFilesCountAgainstABudget: with what there is, or only with what needs no room.
func TestDirectFilesCountAgainstABudget(t *testing.T) {
	for room, used := range map[int64]int{0: freeBuffers, 2*directBuffer + 1: freeBuffers + 2, 100 * directBuffer: directBuffers} {
		b := &scant{room: room}
		w := &directWriter{kernel: &flaky{rnd: rand.New(rand.NewPCG(2, 2)), lazy: true}}
		w.Use(b)
		name := filepath.Join(t.TempDir(), "f")
		if err := w.Create(name); err != nil {
			t.Fatal(err)
		}
		if _, err := w.End(make([]byte, 20*directBuffer)); err != nil {
			t.Fatal(err)
		}
		if w.used != used {
			t.Errorf("with room for %d bytes %d buffers were used, want %d", room, w.used, used)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if b.room != room {
			t.Errorf("%d bytes of %d are there at the end", b.room, room)
		}
		if info, err := os.Stat(name); err != nil || info.Size() != 20*directBuffer {
			t.Errorf("the file: %v, %v", info, err)
		}
	}
}

func TestDirectFilesHaveNewNames(t *testing.T) {
	w := direct(t)
	name := filepath.Join(t.TempDir(), "f")
	if err := w.Create(name); err != nil {
		t.Fatal(err)
	}
	if err := w.Wait(); err != nil { // it is not ended
		t.Fatal(err)
	}
	if err := w.Create(name); !errors.Is(err, fs.ErrExist) {
		t.Fatalf("the second file of a name: %v, want %v", err, fs.ErrExist)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestDirectRemovalIsThatOfNames: of links, and of what can't be opened, too.
func TestDirectRemovalIsThatOfNames(t *testing.T) {
	w := direct(t)
	dir := t.TempDir()
	name, link, other, folder := filepath.Join(dir, "f"), filepath.Join(dir, "link"), filepath.Join(dir, "other"), filepath.Join(dir, "full")
	if err := errors.Join(os.WriteFile(name, []byte("text"), 0o666), os.Symlink(name, link), os.Link(name, other), os.MkdirAll(filepath.Join(folder, "in"), 0o777)); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.Remove(link), w.Remove(name)); err != nil {
		t.Error(err)
	}
	if err := w.Remove(folder); err == nil {
		t.Error("a folder with something in it was removed")
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 2 {
		t.Errorf("%v is left, %v; want the other name and the folder", left, err)
	}
	if b, err := os.ReadFile(other); err != nil || string(b) != "text" {
		t.Errorf("the file is %q under its other name, %v", b, err)
	}
}

// TestWhatTheDiskRefusesIsTold: the file can't be written, neither beside the caller nor plainly.
func TestWhatTheDiskRefusesIsTold(t *testing.T) {
	dir := t.TempDir()
	w := &directWriter{kernel: &flaky{rnd: rand.New(rand.NewPCG(1, 1))}}
	if err := w.Create(filepath.Join(dir, "f")); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 3*directBuffer)
	for range 10 {
		var err error
		if b, err = w.Write(b); err != nil {
			break
		}
		b = append(b, make([]byte, 3*directBuffer)...)
	}
	err := w.Wait()
	if !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("the writer tells %v", err)
	}
	if err := w.Create(filepath.Join(t.TempDir(), "f")); err != nil { // what went wrong is over
		t.Fatal(err)
	}
	if _, err := w.End([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}
