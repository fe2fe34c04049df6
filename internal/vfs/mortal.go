package vfs

import (
	"errors"
	"io/fs"
	"sync"
)

// ErrDead is what every call to a Mortal answers once its process is dead.
var ErrDead = errors.New("the process is dead")

// Mortal is the file system of a process that dies: calls that change something are counted, and with the one after the
// last it is over. That call does nothing, but for a write, half of which gets through; all calls after it fail.
type Mortal struct {
	FS
	mu    sync.Mutex
	calls int
	last  int // negative: it does not die
	dead  bool
}

// NewMortal wraps the file system of a process that dies after so many calls; it lives on if last is negative.
func NewMortal(f FS, last int) *Mortal { return &Mortal{FS: f, last: last} }

// Calls is how many calls have changed something.
func (m *Mortal) Calls() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.calls
}

// Dead says whether the process has died.
func (m *Mortal) Dead() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.dead
}

// DieAfter has the process die after so many calls from now on.
func (m *Mortal) DieAfter(calls int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.last = m.calls + calls
}

// change counts a call that changes something; dying says that it is the one in which the process dies.
func (m *Mortal) change() (dying bool, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.dead {
		return false, ErrDead
	}
	if m.last >= 0 && m.calls >= m.last {
		m.dead = true
		return true, ErrDead
	}
	m.calls++
	return false, nil
}

// alive is for calls that change nothing.
func (m *Mortal) alive() error {
	if m.Dead() {
		return ErrDead
	}
	return nil
}

// Open implements FS.
func (m *Mortal) Open(name string) (File, error) {
	if err := m.alive(); err != nil {
		return nil, err
	}
	f, err := m.FS.Open(name)
	if err != nil {
		return nil, err
	}
	return mortalFile{f, m}, nil
}

// Create implements FS.
func (m *Mortal) Create(name string, how Mode) (Writer, error) {
	if _, err := m.change(); err != nil {
		return nil, err
	}
	w, err := m.FS.Create(name, how)
	if err != nil {
		return nil, err
	}
	return mortalWriter{w, m}, nil
}

// ReadDir implements FS.
func (m *Mortal) ReadDir(name string) ([]fs.DirEntry, error) {
	if err := m.alive(); err != nil {
		return nil, err
	}
	return m.FS.ReadDir(name)
}

// Stat implements FS.
func (m *Mortal) Stat(name string) (fs.FileInfo, error) {
	if err := m.alive(); err != nil {
		return nil, err
	}
	return m.FS.Stat(name)
}

// Rename implements FS.
func (m *Mortal) Rename(from, to string) error {
	return m.unlessDead(func() error { return m.FS.Rename(from, to) })
}

// Remove implements FS.
func (m *Mortal) Remove(name string) error {
	return m.unlessDead(func() error { return m.FS.Remove(name) })
}

// Truncate implements FS.
func (m *Mortal) Truncate(name string, size int64) error {
	return m.unlessDead(func() error { return m.FS.Truncate(name, size) })
}

// MkdirAll implements FS.
func (m *Mortal) MkdirAll(name string) error {
	return m.unlessDead(func() error { return m.FS.MkdirAll(name) })
}

// SyncDir implements FS.
func (m *Mortal) SyncDir(name string) error {
	return m.unlessDead(func() error { return m.FS.SyncDir(name) })
}

func (m *Mortal) unlessDead(f func() error) error {
	if _, err := m.change(); err != nil {
		return err
	}
	return f()
}

type mortalFile struct {
	File
	m *Mortal
}

func (f mortalFile) Read(p []byte) (int, error) {
	if err := f.m.alive(); err != nil {
		return 0, err
	}
	return f.File.Read(p)
}

func (f mortalFile) ReadAt(p []byte, at int64) (int, error) {
	if err := f.m.alive(); err != nil {
		return 0, err
	}
	return f.File.ReadAt(p, at)
}

type mortalWriter struct {
	Writer
	m *Mortal
}

func (w mortalWriter) Write(p []byte) (n int, err error) {
	dying, err := w.m.change()
	if dying {
		n, _ = w.Writer.Write(p[:len(p)/2])
	}
	if err != nil {
		return n, err
	}
	return w.Writer.Write(p)
}

func (w mortalWriter) Sync() error { return w.m.unlessDead(w.Writer.Sync) }

func (w mortalWriter) Close() error { return errors.Join(w.m.alive(), w.Writer.Close()) }
