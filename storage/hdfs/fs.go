package hdfs

import (
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/colinmarc/hdfs/v2"

	"github.com/flott-dev/flott/internal/vfs"
)

// system is a cluster as a file system. What the name node knows (names, folders, renames) survives at once; what is written
// survives as its Writer says.
type system struct {
	client  *hdfs.Client
	timeout time.Duration
}

func newFS(client *hdfs.Client, timeout time.Duration) *system { return &system{client, timeout} }

// absolute is a name as the name node wants it.
func absolute(name string) string { return path.Clean("/" + name) }

// Open opens a file for reading.
func (s *system) Open(name string) (vfs.File, error) {
	r, err := s.client.Open(absolute(name))
	if err != nil {
		return nil, err
	}
	return &file{r: r, name: name, timeout: s.timeout}, nil
}

// Create opens a file for writing. Exclusive is decided by the name node, atomically. Truncate removes a file that is there and
// makes another: in between there is none. Append is not supported.
func (s *system) Create(name string, how vfs.Mode) (vfs.Writer, error) {
	if how == vfs.Append {
		return nil, &fs.PathError{Op: "append", Path: name, Err: errors.ErrUnsupported}
	}
	defaults, err := s.client.ServerDefaults()
	if err != nil {
		return nil, &fs.PathError{Op: "create", Path: name, Err: err}
	}
	create := func() (*hdfs.FileWriter, error) {
		return s.client.CreateFile(absolute(name), defaults.Replication, defaults.BlockSize, 0o644)
	}
	w, err := create()
	if how == vfs.Truncate && errors.Is(err, fs.ErrExist) {
		if err = s.client.Remove(absolute(name)); err == nil || errors.Is(err, fs.ErrNotExist) {
			w, err = create()
		}
	}
	if err != nil {
		return nil, err
	}
	return &writer{w: w, name: name, timeout: s.timeout}, nil
}

// ReadDir lists a folder by name.
func (s *system) ReadDir(name string) ([]fs.DirEntry, error) {
	infos, err := s.client.ReadDir(absolute(name))
	if err != nil {
		return nil, err
	}
	var all []fs.DirEntry
	for _, info := range infos {
		all = append(all, fs.FileInfoToDirEntry(info))
	}
	slices.SortFunc(all, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return all, nil
}

// Stat tells about a file or folder.
func (s *system) Stat(name string) (fs.FileInfo, error) { return s.client.Stat(absolute(name)) }

// Rename moves a file, over one that may be there: the name node does it at once.
func (s *system) Rename(from, to string) error {
	return s.client.Rename(absolute(from), absolute(to))
}

// Remove removes a file or an empty folder.
func (s *system) Remove(name string) error { return s.client.Remove(absolute(name)) }

// Truncate is not supported.
func (s *system) Truncate(name string, _ int64) error {
	return &fs.PathError{Op: "truncate", Path: name, Err: errors.ErrUnsupported}
}

// MkdirAll makes a folder and those above it.
func (s *system) MkdirAll(name string) error { return s.client.MkdirAll(absolute(name), 0o755) }

// SyncDir does nothing: the name node has written a change of names to its journal before it answers.
func (s *system) SyncDir(string) error { return nil }
