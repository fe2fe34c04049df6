package filesink

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
)

// folder is that of a bucket.
func (s *settings) folder(bucket string) string { return path.Join(s.dir, bucket) }

// root makes the sink's folder and those above it.
func (p *parts) root() error {
	var made []string // folders that hold a new name
	for dir := p.dir; ; dir = path.Dir(dir) {
		_, err := p.fs.Stat(dir)
		if err == nil {
			break
		}
		if !errors.Is(err, fs.ErrNotExist) || dir == path.Dir(dir) {
			return err
		}
		made = append(made, path.Dir(dir))
	}
	if err := p.fs.MkdirAll(p.dir); err != nil {
		return err
	}
	for _, dir := range made {
		if err := p.fs.SyncDir(dir); err != nil {
			return err
		}
	}
	return nil
}

// use makes the folder of a bucket ready for files: once, until the bucket is out of use.
func (p *parts) use(bucket string) error {
	if _, ready := p.buckets[bucket]; !ready {
		if err := checkBucket(bucket); err != nil {
			return err
		}
		folder := p.folder(bucket)
		if err := p.fs.MkdirAll(folder); err != nil {
			return err
		}
		for dir := folder; dir != p.dir; dir = path.Dir(dir) {
			p.unsynced[path.Dir(dir)] = true // whoever made it may not have come to its checkpoint
		}
		if err := p.sweep(bucket); err != nil {
			return fmt.Errorf("look for leftovers: %w", err)
		}
	}
	p.buckets[bucket] = true
	return nil
}

// sweep looks at the files that a bucket holds already: counts that are taken are not used again, and hidden files of the
// writer's that the snapshot does not cover go.
func (p *parts) sweep(bucket string) error {
	entries, err := p.fs.ReadDir(p.folder(bucket))
	if err != nil {
		return err
	}
	for _, e := range entries {
		is, ok := p.parse(e.Name())
		if !ok || is.id == p.id {
			continue
		}
		if p.leftover(bucket, e.Name(), is) {
			if err := p.fs.Remove(path.Join(p.folder(bucket), e.Name())); err == nil || errors.Is(err, fs.ErrNotExist) {
				continue
			}
			p.ctx.Counter("leftoversKept", 1) // it is hidden; a job does not fail of that
		}
		if is.subtask == p.ctx.Subtask() {
			p.next = max(p.next, is.count+1)
		}
	}
	return nil
}

// leftover tells whether a file is hidden, the writer's and younger than the snapshot. Where the job was restarted without one,
// as it has failed before its first checkpoint, that are those of the attempts before.
func (p *parts) leftover(bucket, name string, is parsed) bool {
	if p.keep || is.id == "" || is.ending != p.ending() {
		return false
	}
	if p.from == nil {
		return p.ctx.Attempt() > 0 && p.run != "" && strings.HasPrefix(is.id, p.run) && is.subtask%p.ctx.Parallelism() == p.ctx.Subtask()
	}
	return p.from.owns(is.subtask, p.ctx.Subtask(), p.ctx.Parallelism()) &&
		!p.from.covers(bucket, name, is, p.partName(is.subtask, is.count))
}

// clearAll removes what earlier runs have left under the sink's names and nobody knows: in a bucket and those below it, each
// writer its share of the subtasks of then. The files of the job's own writers, which may have begun already, stay.
func (p *parts) clearAll(bucket string) error {
	entries, err := p.fs.ReadDir(p.folder(bucket))
	if err != nil {
		return fmt.Errorf("look for leftovers: %w", err)
	}
	for _, e := range entries {
		at := path.Join(bucket, e.Name())
		if e.IsDir() && !hidden(e.Name()) {
			if err := p.clearAll(at); err != nil {
				return err
			}
		}
		is, ok := p.parse(e.Name())
		if e.IsDir() || !ok || is.id == "" || is.ending != p.ending() || is.subtask%p.ctx.Parallelism() != p.ctx.Subtask() ||
			p.run != "" && strings.HasPrefix(is.id, p.run) {
			continue
		}
		if err := p.fs.Remove(path.Join(p.dir, at)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			p.ctx.Counter("leftoversKept", 1)
		}
	}
	return nil
}
