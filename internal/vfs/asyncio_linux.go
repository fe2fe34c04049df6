//go:build amd64 || arm64 || loong64 || ppc64le || riscv64

package vfs

import (
	"os"
	"syscall"
	"unsafe"
)

// asyncIO is the kernel's asynchronous I/O.
type asyncIO struct {
	context uintptr
	event   *os.File // an eventfd that counts requests that are done
	done    [32]completion
}

// request is the kernel's struct iocb on machines with little-endian words.
type request struct {
	data         uint64 // that of its completion
	_            [2]uint32
	op           uint16
	_            int16
	fd           uint32
	addr, length uint64
	off          int64
	_            uint64
	flags, event uint32
}

// completion is the kernel's struct io_event.
type completion struct {
	data   uint64
	_      uint64
	result int64 // bytes, or an error number below zero
	_      int64
}

// Operations and flags of a request.
const (
	opWrite    = 1
	opDataSync = 3
	tellEvent  = 1 // flags: by the eventfd
)

// open asks for room for so many requests.
func (a *asyncIO) open(most int) error {
	fd, _, errno := syscall.Syscall(syscall.SYS_EVENTFD2, 0, syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
	if errno != 0 {
		return os.NewSyscallError("eventfd2", errno)
	}
	a.event = os.NewFile(fd, "eventfd")
	if _, _, errno := syscall.Syscall(syscall.SYS_IO_SETUP, uintptr(most), uintptr(unsafe.Pointer(&a.context)), 0); errno != 0 {
		_ = a.event.Close()
		return os.NewSyscallError("io_setup", errno)
	}
	return nil
}

// submit implements kernel.
func (a *asyncIO) submit(r request) error {
	r.flags = tellEvent
	conn, err := a.event.SyscallConn()
	if err != nil {
		return err
	}
	var errno syscall.Errno
	err = conn.Control(func(fd uintptr) {
		r.event = uint32(fd)
		p := &r
		_, _, errno = syscall.Syscall(syscall.SYS_IO_SUBMIT, a.context, 1, uintptr(unsafe.Pointer(&p)))
	})
	if err == nil && errno != 0 {
		err = os.NewSyscallError("io_submit", errno)
	}
	return err
}

// wait implements kernel. No processor is kept meanwhile.
func (a *asyncIO) wait() ([]completion, error) {
	for {
		n, _, errno := syscall.Syscall6(syscall.SYS_IO_GETEVENTS, a.context, 0, uintptr(len(a.done)), uintptr(unsafe.Pointer(&a.done)), 0, 0)
		if errno != 0 && errno != syscall.EINTR {
			return nil, os.NewSyscallError("io_getevents", errno)
		}
		if n > 0 && errno == 0 {
			return a.done[:n], nil
		}
		var count [8]byte
		if _, err := a.event.Read(count[:]); err != nil {
			return nil, err
		}
	}
}

// close implements kernel. It takes some tens of ms.
func (a *asyncIO) close() error {
	_, _, errno := syscall.Syscall(syscall.SYS_IO_DESTROY, a.context, 0, 0)
	if errno != 0 {
		_ = a.event.Close()
		return os.NewSyscallError("io_destroy", errno)
	}
	return a.event.Close()
}
