package filesink

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"sync/atomic"

	"github.com/flott-dev/flott/connector"
	"github.com/flott-dev/flott/internal/vfs"
)

// committer gives files their visible names.
type committer struct {
	fs       vfs.FS
	dir      string
	requests int // files at a time
	count    func(name string, n int64)

	visible, missing atomic.Int64 // not reported yet
}

// copying is implemented by file systems whose Rename copies and then removes, so that a crash in between leaves both names.
type copying interface {
	// Copied tells whether the file to is what a Rename of the file from, which exists, has left.
	Copied(from, to string) (bool, error)
}

// copied tells whether a visible file is what a commit of the hidden one has left that was broken off.
func copied(f vfs.FS, temp, name string) (bool, error) {
	if c, ok := f.(copying); ok {
		return c.Copied(temp, name)
	}
	return false, nil
}

// Commit implements connector.Committer. What is no longer needed goes last: whoever does not find it looks for what it has become.
func (c *committer) Commit(ctx context.Context, all []Committable) error {
	removals := func(f Committable) bool { return f.Name == "" }
	shown := slices.DeleteFunc(slices.Clone(all), removals)
	gone := slices.DeleteFunc(slices.Clone(all), func(f Committable) bool { return !removals(f) })
	for _, part := range [][]Committable{shown, gone} {
		err := together(len(part), c.requests, func(i int) error {
			if err := ctx.Err(); err != nil {
				return fmt.Errorf("file sink: commit: %w", err)
			}
			folder := path.Join(c.dir, part[i].Bucket)
			if err := c.commit(folder, &part[i]); err != nil {
				return fmt.Errorf("file sink: commit %s: %w", path.Join(folder, part[i].Name), err)
			}
			return nil
		})
		c.report()
		if err != nil {
			return err
		}
	}
	return c.sync(all)
}

// report counts what was done, on the goroutine that may.
func (c *committer) report() {
	for name, n := range map[string]*atomic.Int64{"partFilesCommitted": &c.visible, "partFilesMissing": &c.missing} {
		if n := n.Swap(0); n > 0 {
			c.count(name, n)
		}
	}
}

// sync makes the names survive.
func (c *committer) sync(all []Committable) error {
	var folders []string
	for i := range all {
		if folder := path.Join(c.dir, all[i].Bucket); !slices.Contains(folders, folder) {
			folders = append(folders, folder)
		}
	}
	for _, folder := range folders {
		if err := c.fs.SyncDir(folder); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("file sink: commit: sync %s: %w", folder, again(err))
		}
	}
	return nil
}

// commit commits one file.
func (c *committer) commit(folder string, f *Committable) error {
	temp, name := path.Join(folder, f.Temp), path.Join(folder, f.Name)
	if f.Name == "" {
		if err := c.fs.Remove(temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove %s: %w", temp, again(err))
		}
		return nil
	}
	hidden, err := c.size(temp)
	if err != nil {
		return err
	}
	visible, err := c.size(name)
	switch {
	case err != nil:
		return err
	case hidden < 0:
		return c.committed(f, visible)
	case hidden != f.Size:
		return fmt.Errorf("%s has %d bytes, but %d were written to it", temp, hidden, f.Size)
	case visible >= 0:
		return c.finish(temp, name)
	}
	if err := c.fs.Rename(temp, name); err != nil {
		return again(err)
	}
	c.visible.Add(1)
	return nil
}

// finish finishes a commit that was broken off between copying and removing: it decides about a hidden file whose visible name
// exists.
func (c *committer) finish(temp, name string) error {
	ours, err := copied(c.fs, temp, name)
	if err != nil {
		return again(err)
	}
	if !ours {
		return fmt.Errorf("%s is complete, but another file has its name: does another job write here with the same prefix?", temp)
	}
	if err := c.fs.Remove(temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove %s: %w", temp, again(err))
	}
	c.visible.Add(1)
	return nil
}

// committed decides about a file whose hidden name is gone. After a restore it may have become visible long ago, and others
// may have taken it away since.
func (c *committer) committed(f *Committable, visible int64) error {
	if visible == f.Size || visible >= 0 && !f.fresh {
		return nil
	}
	if f.fresh {
		return fmt.Errorf("%s has disappeared before it was committed", f.Temp)
	}
	c.missing.Add(1)
	return nil
}

// size is that of a file; -1: there is none.
func (c *committer) size(name string) (int64, error) {
	n, err := sizeOf(c.fs, name)
	if err != nil {
		return n, again(err)
	}
	return n, nil
}

// sizeOf is the size of a file; -1: there is none.
func sizeOf(f vfs.FS, name string) (int64, error) {
	info, err := f.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return -1, nil
	case err != nil:
		return -1, err
	}
	return info.Size(), nil
}

// again marks errors that another try may not meet.
func again(err error) error {
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrExist) {
		return err
	}
	return fmt.Errorf("%w (%w)", err, connector.ErrRetry)
}

// Close implements connector.Committer.
func (c *committer) Close() error { return nil }
