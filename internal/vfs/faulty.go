package vfs

import (
	"errors"
	"io/fs"
	"math/rand/v2"
	"slices"
	"sync"
)

// Op is a kind of call that a Faulty can break.
type Op string

// The calls of FS, File and Writer.
const (
	OpOpen     Op = "open"
	OpCreate   Op = "create"
	OpReadDir  Op = "readdir"
	OpStat     Op = "stat"
	OpRename   Op = "rename"
	OpRemove   Op = "remove"
	OpTruncate Op = "truncate"
	OpMkdir    Op = "mkdir"
	OpSyncDir  Op = "syncdir"
	OpRead     Op = "read"
	OpWrite    Op = "write"
	OpSync     Op = "sync"
	OpClose    Op = "close"
)

// Faulty is a file system that fails on purpose: a call of a kind, counted, and writes beyond a number of bytes. Some faults
// are silent, as those of real disks are: the caller hears that all is well.
type Faulty struct {
	FS
	mu            sync.Mutex
	only          func(name string) bool // nil: all files
	calls         map[Op]int
	fail          map[Op]fault
	space         int64      // bytes that may still be written; negative: no limit
	rng           *rand.Rand // nil: nothing fails at random
	oneIn, spared int
	err           error
}

// fault is what happens to the calls of an Op from the nth on.
type fault struct {
	nth     int
	forever bool
	err     error // nil: the fault is silent
	harm    harm
	release chan struct{} // for a call that hangs
}

// harm is a silent fault.
type harm uint8

const (
	none harm = iota
	short
	corrupt
	lost
	hanging
)

// NewFaulty wraps a file system; at first nothing fails.
func NewFaulty(f FS) *Faulty {
	return &Faulty{FS: f, calls: map[Op]int{}, fail: map[Op]fault{}, space: -1}
}

// Only counts and breaks calls for the files, and folders, that match says; it must be called first.
func (f *Faulty) Only(match func(name string) bool) *Faulty {
	f.only = match
	return f
}

// Fail makes the nth call of op from now on, counted from 1, fail with err in an *fs.PathError, once.
func (f *Faulty) Fail(op Op, nth int, err error) { f.set(op, fault{nth: f.Calls(op) + nth, err: err}) }

// FailFrom makes the nth call of op from now on and all later ones fail.
func (f *Faulty) FailFrom(op Op, nth int, err error) {
	f.set(op, fault{nth: f.Calls(op) + nth, forever: true, err: err})
}

// ShortWrite makes the nth write from now on take half of its bytes and say so, without an error.
func (f *Faulty) ShortWrite(nth int) { f.set(OpWrite, fault{nth: f.Calls(OpWrite) + nth, harm: short}) }

// Corrupt makes the nth write from now on change a bit of the last of its bytes.
func (f *Faulty) Corrupt(nth int) { f.set(OpWrite, fault{nth: f.Calls(OpWrite) + nth, harm: corrupt}) }

// Lose makes the file of the nth close of a writer from now on vanish.
func (f *Faulty) Lose(nth int) { f.set(OpClose, fault{nth: f.Calls(OpClose) + nth, harm: lost}) }

// Hang makes the nth call of op from now on wait until release is called; then it goes on as if nothing had been.
func (f *Faulty) Hang(op Op, nth int) (release func()) {
	c := make(chan struct{})
	f.set(op, fault{nth: f.Calls(op) + nth, harm: hanging, release: c})
	return sync.OnceFunc(func() { close(c) })
}

// FailRandomly makes one in so many of the calls that change something fail with err, as rng draws them; the first ones are
// spared.
func (f *Faulty) FailRandomly(rng *rand.Rand, oneIn, spared int, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rng, f.oneIn, f.spared, f.err = rng, oneIn, spared, err
}

// changes are the calls that change something.
func (op Op) changes() bool {
	switch op {
	case OpOpen, OpReadDir, OpStat, OpRead, OpClose:
		return false
	}
	return true
}

// Heal lets calls of op succeed again.
func (f *Faulty) Heal(op Op) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.fail, op)
}

func (f *Faulty) set(op Op, what fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fail[op] = what
}

// Space lets n more bytes be written; then writes are cut off with ErrNoSpace. A negative n lifts the limit.
func (f *Faulty) Space(n int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.space = n
}

// Calls is the number of calls of op so far.
func (f *Faulty) Calls(op Op) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls[op]
}

// call counts a call and gives its error, having waited if it hangs.
func (f *Faulty) call(op Op, name string) error {
	_, err := f.harmed(op, name)
	return err
}

// harmed is call for those that know silent faults.
func (f *Faulty) harmed(op Op, name string) (harm, error) {
	what := f.count(op, name)
	if what.harm == hanging {
		<-what.release
	}
	if what.err != nil {
		return none, &fs.PathError{Op: string(op), Path: name, Err: what.err}
	}
	return what.harm, nil
}

// count counts a call and gives what happens to it.
func (f *Faulty) count(op Op, name string) fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.only != nil && !f.only(name) {
		return fault{}
	}
	f.calls[op]++
	what, ok := f.fail[op]
	if n := f.calls[op]; ok && (n == what.nth || n > what.nth && what.forever) {
		return what
	}
	if f.rng == nil || !op.changes() {
		return fault{}
	}
	if f.spared--; f.spared < 0 && f.rng.IntN(f.oneIn) == 0 {
		return fault{err: f.err}
	}
	return fault{}
}

// room takes up to n bytes from the space left.
func (f *Faulty) room(n int) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.space < 0 {
		return n
	}
	n = int(min(int64(n), f.space))
	f.space -= int64(n)
	return n
}

// Open implements FS.
func (f *Faulty) Open(name string) (File, error) {
	if err := f.call(OpOpen, name); err != nil {
		return nil, err
	}
	file, err := f.FS.Open(name)
	if err != nil {
		return nil, err
	}
	return &faultyFile{file, f, name}, nil
}

// Create implements FS.
func (f *Faulty) Create(name string, how Mode) (Writer, error) {
	if err := f.call(OpCreate, name); err != nil {
		return nil, err
	}
	w, err := f.FS.Create(name, how)
	if err != nil {
		return nil, err
	}
	return &faultyWriter{w, f, name}, nil
}

// ReadDir implements FS.
func (f *Faulty) ReadDir(name string) ([]fs.DirEntry, error) {
	if err := f.call(OpReadDir, name); err != nil {
		return nil, err
	}
	return f.FS.ReadDir(name)
}

// Stat implements FS.
func (f *Faulty) Stat(name string) (fs.FileInfo, error) {
	if err := f.call(OpStat, name); err != nil {
		return nil, err
	}
	return f.FS.Stat(name)
}

// Rename implements FS.
func (f *Faulty) Rename(from, to string) error {
	if err := f.call(OpRename, from); err != nil {
		return err
	}
	return f.FS.Rename(from, to)
}

// Remove implements FS.
func (f *Faulty) Remove(name string) error {
	if err := f.call(OpRemove, name); err != nil {
		return err
	}
	return f.FS.Remove(name)
}

// Truncate implements FS.
func (f *Faulty) Truncate(name string, size int64) error {
	if err := f.call(OpTruncate, name); err != nil {
		return err
	}
	return f.FS.Truncate(name, size)
}

// MkdirAll implements FS.
func (f *Faulty) MkdirAll(name string) error {
	if err := f.call(OpMkdir, name); err != nil {
		return err
	}
	return f.FS.MkdirAll(name)
}

// SyncDir implements FS.
func (f *Faulty) SyncDir(name string) error {
	if err := f.call(OpSyncDir, name); err != nil {
		return err
	}
	return f.FS.SyncDir(name)
}

type faultyFile struct {
	File
	f    *Faulty
	name string
}

func (r *faultyFile) Read(p []byte) (int, error) {
	if err := r.f.call(OpRead, r.name); err != nil {
		return 0, err
	}
	return r.File.Read(p)
}

func (r *faultyFile) ReadAt(p []byte, at int64) (int, error) {
	if err := r.f.call(OpRead, r.name); err != nil {
		return 0, err
	}
	return r.File.ReadAt(p, at)
}

type faultyWriter struct {
	Writer
	f    *Faulty
	name string
}

func (w *faultyWriter) Write(p []byte) (int, error) {
	what, err := w.f.harmed(OpWrite, w.name)
	if err != nil {
		return 0, err
	}
	switch {
	case what == short:
		return w.Writer.Write(p[:len(p)/2])
	case what == corrupt && len(p) > 0:
		p = slices.Clone(p)
		p[len(p)-1] ^= 1
	}
	n, err := w.Writer.Write(p[:w.f.room(len(p))])
	if err == nil && n < len(p) {
		err = &fs.PathError{Op: string(OpWrite), Path: w.name, Err: ErrNoSpace}
	}
	return n, err
}

func (w *faultyWriter) Sync() error {
	if err := w.f.call(OpSync, w.name); err != nil {
		return err
	}
	return w.Writer.Sync()
}

func (w *faultyWriter) Close() error {
	what, err := w.f.harmed(OpClose, w.name)
	if err = errors.Join(err, w.Writer.Close()); err == nil && what == lost {
		err = w.f.FS.Remove(w.name)
	}
	return err
}
