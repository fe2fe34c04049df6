//go:build amd64 || arm64 || loong64 || ppc64le || riscv64

package vfs

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"unsafe"
)

const (
	freeBuffers   = 2       // that are not reserved from a budget
	directBuffers = 9       // of a writer: one is filled, the others are on their way
	directBuffer  = 1 << 20 // bytes
	directAlign   = 4 << 10 // of memory, offsets and lengths
	directSyncs   = 4       // files that become durable at a time

	// What a file is made longer by: the disk takes what lies within a file without waiting. It is much, as that waits for all
	// that is on its way; a file that is likely to become large is made large before anything is.
	directReserve = 16 << 20
	mostReserve   = 128 << 20

	directRemoved = directBuffers + 1<<32 // data of the requests of Remove

	adviseHuge = 14 // MADV_HUGEPAGE: the kernel pins and describes few large pages of a buffer in half the time of many small ones
)

// directWriter is a DirectWriter by the kernel's asynchronous I/O (io_submit) on files that are open with O_DIRECT. Who waits
// does so for an eventfd, by Go's poller, and keeps no processor.
type directWriter struct {
	kernel kernel
	memory []byte // mapped, as the kernel writes from it beside us; nil: none is needed yet
	slots  [directBuffers]directSlot
	used   int           // slots that have been
	budget Budget        // nil: there is none
	lent   *directSlot   // what the caller fills; nil: other memory
	file   *directFile   // that is being written; nil: none
	ending []*directFile // those that have ended, by number from 0; nil: durable and closed
	under  int           // requests under way
	likely int64         // size of a file; 0: small
	err    error         // the first one
}

// kernel works on requests beside the caller.
type kernel interface {
	// submit begins a request, or fails if there is no room for it, or the kernel does not do it beside the caller.
	submit(r request) error
	// wait gives requests that are done, at least one; they are valid until the next call.
	wait() ([]completion, error)
	// close ends the use; nothing may be under way.
	close() error
}

// directSlot is a buffer.
type directSlot struct {
	number int
	buf    []byte
	busy   bool // with the caller, or on its way
	file   *directFile
	off    int64 // where it goes
	length int
}

// directFile is a file.
type directFile struct {
	*os.File
	at       int64 // where the next buffer goes
	size     int64 // once it has ended
	reserved int64
	under    int // buffers on their way
	ended    bool
	number   int // among those that are ending
}

// NewDirectWriter makes a writer. It fails where the kernel, or who limits it, does not let it.
func NewDirectWriter() (DirectWriter, error) {
	a := &asyncIO{}
	if err := a.open(directBuffers + directSyncs); err != nil {
		return nil, err
	}
	return &directWriter{kernel: a}, nil
}

// Use implements DirectWriter.
func (w *directWriter) Use(b Budget) { w.budget = b }

// Create implements DirectWriter. Some file systems can't be written past the cache; then the kernel copies, and that is all.
func (w *directWriter) Create(name string) error {
	f, err := os.OpenFile(filepath.FromSlash(name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	_, _, _ = syscall.Syscall(syscall.SYS_FCNTL, f.Fd(), syscall.F_SETFL, syscall.O_DIRECT)
	w.file = &directFile{File: f}
	return nil
}

// Write implements DirectWriter.
func (w *directWriter) Write(b []byte) (next []byte, err error) {
	if !w.isLent(b) {
		return w.copied(b)
	}
	whole := len(b) &^ (directAlign - 1)
	if whole == 0 {
		return b, w.err
	}
	from := w.lent
	if err := w.lend(); err != nil {
		return nil, err
	}
	n := copy(w.lent.buf, b[whole:])
	w.send(w.file, from, whole)
	return w.lent.buf[:n], w.err
}

// isLent says whether b is in the buffer that the caller has. Otherwise that one is free again: more was appended than fits.
func (w *directWriter) isLent(b []byte) bool {
	if w.lent != nil && unsafe.SliceData(b) == unsafe.SliceData(w.lent.buf) {
		return true
	}
	if w.lent != nil {
		w.lent.busy, w.lent = false, nil
	}
	return false
}

// copied writes memory that is not ours.
func (w *directWriter) copied(b []byte) (next []byte, err error) {
	for {
		if err := w.lend(); err != nil {
			return nil, err
		}
		s := w.lent
		n := copy(s.buf, b)
		if b = b[n:]; n < len(s.buf) {
			return s.buf[:n], w.err
		}
		w.send(w.file, s, n)
	}
}

// End implements DirectWriter. The file is cut to its size once its last, whole block is there.
func (w *directWriter) End(b []byte) (next []byte, err error) {
	if !w.isLent(b) {
		if b, err = w.copied(b); err != nil {
			return nil, err
		}
	}
	f, last := w.file, w.lent
	w.file = nil
	f.size, f.ended, f.number = f.at+int64(len(b)), true, w.endingNumber()
	if f.at > 0 {
		w.likely = min(max(w.likely, f.size), mostReserve)
	}
	w.ending = append(w.ending[:f.number], f)
	if len(b) == 0 {
		w.advance(f)
		return b, w.err
	}
	whole := (len(b) + directAlign - 1) &^ (directAlign - 1)
	clear(last.buf[len(b):whole])
	w.send(f, last, whole)
	if err := w.lend(); err != nil {
		return nil, err
	}
	return w.lent.buf[:0], w.err
}

// endingNumber is the number behind that of the last file that is not durable yet.
func (w *directWriter) endingNumber() int {
	n := len(w.ending)
	for n > 0 && w.ending[n-1] == nil {
		n--
	}
	return n
}

// lend gives the caller a buffer. It waits until there is one.
func (w *directWriter) lend() error {
	if w.memory == nil {
		var err error
		w.memory, err = syscall.Mmap(-1, 0, directBuffers*directBuffer, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
		if err != nil {
			return os.NewSyscallError("mmap", err)
		}
		_ = syscall.Madvise(w.memory, adviseHuge) // a wish
		for i := range w.slots {
			w.slots[i] = directSlot{buf: w.memory[i*directBuffer:][:directBuffer:directBuffer], number: i}
		}
	}
	for {
		for i := range w.used {
			if s := &w.slots[i]; !s.busy {
				s.busy, w.lent = true, s
				return nil
			}
		}
		if w.another() {
			continue
		}
		if err := w.reap(); err != nil {
			return err
		}
	}
}

// send has the first n bytes of a buffer written behind what a file has. All that can be wrong is told by Wait.
func (w *directWriter) send(f *directFile, s *directSlot, n int) {
	w.reserve(f, f.at+int64(n))
	s.file, s.off, s.length = f, f.at, n
	f.at += int64(n)
	f.under++
	w.under++
	if err := w.kernel.submit(request{
		data: uint64(s.number), op: opWrite, fd: uint32(f.Fd()), addr: uint64(uintptr(unsafe.Pointer(&s.buf[0]))), length: uint64(n), off: s.off,
	}); err != nil {
		w.wrote(s, 0)
	}
}

// another says whether one more buffer may be used.
func (w *directWriter) another() bool {
	if w.used == directBuffers || w.used >= freeBuffers && w.budget != nil && w.budget.Reserve(directBuffer) != nil {
		return false
	}
	w.used++
	return true
}

// reserve makes a file long enough for what is about to be written, and more of it, unless it may be a small one. A failure does
// no harm, and a disk that is full will say so.
func (w *directWriter) reserve(f *directFile, end int64) {
	if end <= f.reserved || f.at == 0 && (f.ended || w.likely == 0) {
		return
	}
	n := max(directReserve, end-f.at)
	if f.at == 0 {
		n = max(n, w.likely)
	}
	_ = syscall.Fallocate(int(f.Fd()), 0, f.at, n)
	f.reserved = f.at + n
}

// wrote notes that the kernel is done with a buffer, of which it has written so many bytes, or failed. What it did not write is
// written in the plain way, which either works or tells what is wrong.
func (w *directWriter) wrote(s *directSlot, n int64) {
	f := s.file
	if n < int64(s.length) {
		n = max(n, 0)
		w.fail(writePlainly(f.Name(), s.buf[n:s.length], s.off+n))
	}
	s.busy, s.file = false, nil
	f.under--
	w.under--
	w.advance(f)
}

func (w *directWriter) fail(err error) {
	if w.err == nil {
		w.err = err
	}
}

func writePlainly(name string, b []byte, off int64) error {
	f, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	n, err := f.WriteAt(b, off)
	if err == nil && n < len(b) {
		err = io.ErrShortWrite
	}
	return errors.Join(err, f.Close())
}

// advance makes a file durable once it has ended and is written.
func (w *directWriter) advance(f *directFile) {
	if !f.ended || f.under > 0 {
		return
	}
	if f.reserved > f.size || f.at > f.size {
		w.fail(f.Truncate(f.size))
	}
	w.under++
	if err := w.kernel.submit(request{data: directBuffers + uint64(f.number), op: opDataSync, fd: uint32(f.Fd())}); err != nil {
		w.synced(f, err)
	}
}

// synced closes a file that is durable, or could not be made so beside us.
func (w *directWriter) synced(f *directFile, err error) {
	w.under--
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOTSUP) || errors.Is(err, syscall.EAGAIN) {
		err = writer{f.File}.Sync()
	} else if err != nil {
		err = &fs.PathError{Op: "sync", Path: f.Name(), Err: err}
	}
	w.fail(err)
	w.fail(f.Close())
	w.ending[f.number] = nil
}

// reap takes what the kernel is done with; it waits until there is something.
func (w *directWriter) reap() error {
	done, err := w.kernel.wait()
	if err != nil {
		return err
	}
	for _, e := range done {
		if e.data < directBuffers {
			w.wrote(&w.slots[e.data], e.result)
			continue
		}
		if e.data == directRemoved {
			w.under--
			continue
		}
		var err error
		if e.result < 0 {
			err = syscall.Errno(-e.result)
		}
		w.synced(w.ending[e.data-directBuffers], err)
	}
	return nil
}

// Remove implements DirectWriter. A request holds the file open when its name is gone and we have closed it: the kernel frees what
// it held when the request is done, on a thread of its own.
func (w *directWriter) Remove(name string) error {
	f, err := os.OpenFile(filepath.FromSlash(name), os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Remove(filepath.FromSlash(name)); err != nil || f == nil {
		return errors.Join(err, closed(f))
	}
	for w.under >= directBuffers {
		if err := w.reap(); err != nil {
			return errors.Join(err, f.Close())
		}
	}
	if w.kernel.submit(request{data: directRemoved, op: opDataSync, fd: uint32(f.Fd())}) == nil {
		w.under++
	}
	return f.Close()
}

// closed closes a file that may be nil.
func closed(f *os.File) error {
	if f == nil {
		return nil
	}
	return f.Close()
}

// Wait implements DirectWriter.
func (w *directWriter) Wait() error {
	for w.under > 0 {
		if err := w.reap(); err != nil {
			return err // the kernel may still use the memory, which stays
		}
	}
	if w.file != nil {
		w.fail(w.file.Close())
	}
	if w.memory != nil {
		w.fail(os.NewSyscallError("munmap", syscall.Munmap(w.memory)))
	}
	if w.budget != nil && w.used > freeBuffers {
		w.budget.Release(int64(w.used-freeBuffers) * directBuffer)
	}
	err := w.err
	*w = directWriter{kernel: w.kernel, likely: w.likely}
	return err
}

// Close implements DirectWriter.
func (w *directWriter) Close() error { return errors.Join(w.Wait(), w.kernel.close()) }
