package vfs

import (
	"bytes"
	"io/fs"
	"maps"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Mem is a file system in memory. It forgets, at a Crash, everything that was not synced. Times of change are what Touch
// says; without it each change is a millisecond later than the one before, from 1970 on. Names are absolute or not: "a"
// and "/a" are different files, and both folders "." and "/" exist from the beginning.
type Mem struct {
	mu    sync.Mutex
	names map[string]*node // as programs see them
	saved map[string]*node // as a crash leaves them
	ticks int64
}

// node is a file or folder.
type node struct {
	dir     bool
	data    []byte
	saved   []byte // what Sync left
	changed time.Time
}

// NewMem returns an empty file system.
func NewMem() *Mem {
	m := &Mem{names: map[string]*node{}, saved: map[string]*node{}}
	for _, root := range []string{".", "/"} {
		m.names[root] = &node{dir: true}
		m.saved[root] = m.names[root]
	}
	return m
}

// Crash forgets what was not synced: bytes without Writer.Sync and names without SyncDir.
func (m *Mem) Crash() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.names = map[string]*node{}
	for name, n := range m.saved {
		m.names[name] = &node{dir: n.dir, data: slices.Clone(n.saved), saved: n.saved, changed: n.changed}
	}
	m.saved = map[string]*node{}
	for name, n := range m.names {
		m.saved[name] = n
	}
}

// CrashPartly is Crash on a disk that had begun to write by itself: of what was not synced it has kept what rng says, names
// and beginnings of what was appended. A file that was moved has its old name or its new one.
func (m *Mem) CrashPartly(rng *rand.Rand) {
	m.mu.Lock()
	for _, name := range slices.Sorted(maps.Keys(m.names)) {
		n := m.names[name]
		if m.saved[name] != n && rng.IntN(2) == 0 {
			m.saved[name] = n
		}
		if grown := len(n.data) - len(n.saved); !n.dir && grown > 0 && bytes.HasPrefix(n.data, n.saved) {
			n.saved = slices.Clone(n.data[:len(n.saved)+rng.IntN(grown+1)])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(m.saved)) {
		if m.names[name] == nil && m.forgotten(name, rng) {
			delete(m.saved, name)
		}
	}
	for name := range m.saved {
		for dir := path.Dir(name); dir != "." && dir != "/"; dir = path.Dir(dir) {
			if m.saved[dir] == nil {
				delete(m.saved, name)
			}
		}
	}
	m.mu.Unlock()
	m.Crash()
}

// forgotten says whether the disk has heard that a name is no more. A file that was moved always has one name.
func (m *Mem) forgotten(name string, rng *rand.Rand) bool {
	n := m.saved[name]
	for other, now := range m.names {
		if now == n {
			return m.saved[other] == n
		}
	}
	return rng.IntN(2) == 0
}

// Touch sets the time of change of a file.
func (m *Mem) Touch(name string, t time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.get("touch", name)
	if err == nil {
		n.changed = t
	}
	return err
}

func (m *Mem) get(op, name string) (*node, error) {
	if n := m.names[path.Clean(name)]; n != nil {
		return n, nil
	}
	return nil, &fs.PathError{Op: op, Path: name, Err: fs.ErrNotExist}
}

// change stamps a node as changed now.
func (m *Mem) change(n *node) {
	m.ticks++
	n.changed = time.UnixMilli(m.ticks)
}

// Open implements FS.
func (m *Mem) Open(name string) (File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.get("open", name)
	if err != nil {
		return nil, err
	}
	return &memFile{m: m, name: path.Clean(name), node: n}, nil
}

// Create implements FS.
func (m *Mem) Create(name string, how Mode) (Writer, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	name = path.Clean(name)
	n := m.names[name]
	switch {
	case n != nil && how == Exclusive:
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrExist}
	case n != nil && n.dir:
		return nil, &fs.PathError{Op: "open", Path: name, Err: syscall.EISDIR}
	case n == nil:
		if err := m.needFolder("open", path.Dir(name), name); err != nil {
			return nil, err
		}
		n = &node{}
		m.names[name] = n
	case how == Truncate:
		n.data = nil
	}
	m.change(n)
	return &memWriter{m: m, name: name, node: n}, nil
}

func (m *Mem) needFolder(op, dir, name string) error {
	d := m.names[dir]
	if d == nil {
		return &fs.PathError{Op: op, Path: name, Err: fs.ErrNotExist}
	}
	if !d.dir {
		return &fs.PathError{Op: op, Path: name, Err: syscall.ENOTDIR}
	}
	return nil
}

// children are the names in a folder, sorted.
func (m *Mem) children(dir string) []string {
	var names []string
	for name := range m.names {
		if path.Dir(name) == dir && name != dir {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// ReadDir implements FS.
func (m *Mem) ReadDir(name string) ([]fs.DirEntry, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	name = path.Clean(name)
	if _, err := m.get("open", name); err != nil {
		return nil, err
	}
	if err := m.needFolder("readdir", name, name); err != nil {
		return nil, err
	}
	var entries []fs.DirEntry
	for _, c := range m.children(name) {
		entries = append(entries, fs.FileInfoToDirEntry(m.names[c].info(c)))
	}
	return entries, nil
}

// Stat implements FS.
func (m *Mem) Stat(name string) (fs.FileInfo, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.get("stat", name)
	if err != nil {
		return nil, err
	}
	return n.info(path.Clean(name)), nil
}

// Rename implements FS. What is refused, and with which error, is what package os does on Unix.
func (m *Mem) Rename(from, to string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	from, to = path.Clean(from), path.Clean(to)
	n, err := m.get("rename", from)
	if err != nil {
		return err
	}
	if err := m.needFolder("rename", path.Dir(to), to); err != nil {
		return err
	}
	switch old := m.names[to]; {
	case old != nil && old.dir: // the folder itself, too
		return &fs.PathError{Op: "rename", Path: to, Err: fs.ErrExist}
	case strings.HasPrefix(to, from+"/"):
		return &fs.PathError{Op: "rename", Path: to, Err: syscall.EINVAL}
	case old != nil && n.dir:
		return &fs.PathError{Op: "rename", Path: to, Err: syscall.ENOTDIR}
	}
	moved := map[string]*node{}
	for name, n := range m.names {
		if name == from || strings.HasPrefix(name, from+"/") {
			moved[to+name[len(from):]] = n
			delete(m.names, name)
		}
	}
	for name, n := range moved {
		m.names[name] = n
	}
	return nil
}

// Remove implements FS.
func (m *Mem) Remove(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	name = path.Clean(name)
	if _, err := m.get("remove", name); err != nil {
		return err
	}
	if len(m.children(name)) > 0 {
		return &fs.PathError{Op: "remove", Path: name, Err: syscall.ENOTEMPTY}
	}
	delete(m.names, name)
	return nil
}

// Truncate implements FS.
func (m *Mem) Truncate(name string, size int64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.get("truncate", name)
	if err != nil {
		return err
	}
	if size < 0 || size > int64(len(n.data)) {
		return &fs.PathError{Op: "truncate", Path: name, Err: fs.ErrInvalid}
	}
	n.data = n.data[:size:size]
	m.change(n)
	return nil
}

// MkdirAll implements FS.
func (m *Mem) MkdirAll(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	var missing []string
	dir := path.Clean(name)
	for ; m.names[dir] == nil; dir = path.Dir(dir) {
		missing = append(missing, dir)
	}
	if !m.names[dir].dir {
		return &fs.PathError{Op: "mkdir", Path: name, Err: syscall.ENOTDIR}
	}
	for _, dir := range missing {
		n := &node{dir: true}
		m.change(n)
		m.names[dir] = n
	}
	return nil
}

// SyncDir implements FS.
func (m *Mem) SyncDir(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	name = path.Clean(name)
	if err := m.needFolder("sync", name, name); err != nil {
		return err
	}
	for n := range m.saved {
		if path.Dir(n) == name && m.names[n] == nil {
			delete(m.saved, n)
		}
	}
	for _, c := range m.children(name) {
		m.saved[c] = m.names[c]
	}
	return nil
}

// memFile reads a file as it is at each call.
type memFile struct {
	m    *Mem
	name string
	node *node
	at   int64
}

func (f *memFile) Read(p []byte) (int, error) {
	n, err := f.ReadAt(p, f.at)
	f.at += int64(n)
	if n > 0 {
		err = nil
	}
	return n, err
}

func (f *memFile) ReadAt(p []byte, at int64) (int, error) {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if f.node.dir {
		return 0, &fs.PathError{Op: "read", Path: f.name, Err: syscall.EISDIR}
	}
	return bytes.NewReader(f.node.data).ReadAt(p, at)
}

func (f *memFile) Close() error { return nil }

func (f *memFile) Stat() (fs.FileInfo, error) {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	return f.node.info(f.name), nil
}

// memWriter writes at the end of a file.
type memWriter struct {
	m      *Mem
	name   string
	node   *node
	closed bool
}

func (w *memWriter) Write(p []byte) (int, error) {
	w.m.mu.Lock()
	defer w.m.mu.Unlock()
	if w.closed {
		return 0, &fs.PathError{Op: "write", Path: w.name, Err: fs.ErrClosed}
	}
	w.node.data = append(w.node.data, p...)
	w.m.change(w.node)
	return len(p), nil
}

func (w *memWriter) Sync() error {
	w.m.mu.Lock()
	defer w.m.mu.Unlock()
	w.node.saved = slices.Clone(w.node.data)
	return nil
}

func (w *memWriter) Close() error {
	w.m.mu.Lock()
	defer w.m.mu.Unlock()
	if w.closed {
		return &fs.PathError{Op: "close", Path: w.name, Err: fs.ErrClosed}
	}
	w.closed = true
	return nil
}

// info is a node's state at one moment.
func (n *node) info(name string) fs.FileInfo {
	return memInfo{path.Base(name), int64(len(n.data)), n.changed, n.dir}
}

type memInfo struct {
	name    string
	size    int64
	changed time.Time
	dir     bool
}

func (i memInfo) Name() string       { return i.name }
func (i memInfo) Size() int64        { return i.size }
func (i memInfo) ModTime() time.Time { return i.changed }
func (i memInfo) IsDir() bool        { return i.dir }
func (i memInfo) Sys() any           { return nil }

func (i memInfo) Mode() fs.FileMode {
	if i.dir {
		return fs.ModeDir | 0o777
	}
	return 0o666
}
