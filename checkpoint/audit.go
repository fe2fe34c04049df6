package checkpoint

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"sync"

	"github.com/flott-dev/flott/internal/vfs"
	"github.com/flott-dev/flott/statebackend"
)

// Audit is a check of every byte of a snapshot that lets a job fill its state meanwhile: what a restore has read was checked as
// it was read, and is not read again. Any goroutine may call its methods.
type Audit struct {
	m    *Manifest
	fs   vfs.FS
	mu   sync.Mutex
	seen map[*chunk]map[place]checked
}

// place is the blocks of one key group in one section of a chunk.
type place struct{ section, group int }

// checked is what is left to check of blocks that were read: their headers, for the digest of the chunk, and their number of rows.
type checked struct {
	headers []byte
	rows    int64
}

// Audit begins a check. A nil file system is the machine's.
func (m *Manifest) Audit(f vfs.FS) *Audit {
	return &Audit{m: m, fs: diskIfNil(f), seen: map[*chunk]map[place]checked{}}
}

// Restore gives the tables of Manifest.Restore. What is read of them becomes part of the check.
func (a *Audit) Restore(operator string, subtask, parallelism, maxParallelism int) (statebackend.Restored, error) {
	o := a.m.Operator(operator)
	if o == nil {
		return nil, nil
	}
	r, err := a.m.restore(a.fs, o, subtask, parallelism, maxParallelism)
	if err != nil {
		return nil, fmt.Errorf("restore %s, subtask %d of %d, from %v %d in %s: %w", o.label(), subtask, parallelism, a.m.Kind, a.m.ID, a.m.Folder, err)
	}
	r.audit = a
	return r, nil
}

// Verify reads what was not read yet and checks it, as Manifest.Verify does.
func (a *Audit) Verify() error {
	if err := a.m.eachFile(a.fs, a.verify, (*storedFile).verify); err != nil {
		return fmt.Errorf("verify snapshot %s: %w", a.m.Folder, err)
	}
	return nil
}

// note takes down that all blocks of a key group were read.
func (a *Audit) note(c *chunk, p place, is checked) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.seen[c] == nil {
		a.seen[c] = map[place]checked{}
	}
	a.seen[c][p] = is
}

// find tells what was read.
func (a *Audit) find(c *chunk, p place) (checked, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	is, ok := a.seen[c][p]
	return is, ok
}

// verify reads what was not read of a chunk, and checks the whole.
func (a *Audit) verify(r *chunkReader) error {
	headers := sha256.New()
	var header [chunkHeader]byte
	if err := r.readAt(header[:], 0); err != nil {
		return err
	}
	headers.Write(header[:])
	at := int64(chunkHeader)
	for i := range r.chunk.sections {
		s := &r.chunk.sections[i]
		rows, err := a.section(r, i, at, headers)
		if err != nil {
			return err
		}
		if rows != s.rows {
			return r.damaged("section %d has %d rows and should have %d", i+1, rows, s.rows)
		}
		at += s.bytes()
	}
	if got := headers.Sum(nil); !bytes.Equal(got[:digestBytes], r.chunk.digest[:]) {
		return r.damaged("the digest of its blocks is %x and should be %x", got[:digestBytes], r.chunk.digest)
	}
	return nil
}

// section gives the number of rows of section i, which begins at byte at, and the headers of its blocks to a digest.
func (a *Audit) section(r *chunkReader, i int, at int64, headers io.Writer) (rows int64, err error) {
	s := &r.chunk.sections[i]
	add := func(header []byte, n int64) {
		_, _ = headers.Write(header) // a hash never fails
		rows += n
	}
	for rest := s.groups; len(rest) > 0; {
		if is, ok := a.find(r.chunk, place{i, rest[0].group}); ok {
			add(is.headers, is.rows)
			at += rest[0].bytes
			rest = rest[1:]
			continue
		}
		n := 1
		for ; n < len(rest); n++ {
			if _, ok := a.find(r.chunk, place{i, rest[n].group}); ok {
				break
			}
		}
		unread := section{index: s.index, groups: rest[:n]}
		err := r.blocks(&unread, at, func(b *block) (bool, error) {
			add(b.header, int64(b.rows))
			return true, nil
		})
		if err != nil {
			return 0, err
		}
		at += unread.bytes()
		rest = rest[n:]
	}
	return rows, nil
}
