package filesink

import (
	"errors"
	"fmt"
	"io"

	"github.com/flott-dev/flott/internal/vfs"
)

// block is the number of bytes that are gathered before they are compressed or written.
const block = 64 << 10

// part is a file that is being written, under its hidden name.
type part struct {
	bucket, temp, name string
	path               string // of the hidden file
	w                  vfs.Writer
	z                  compressor // nil: not compressed
	format             format     // nil: a file of records
	buf                []byte     // records that are to be compressed or written
	out                []byte     // what the compressor or the format made and is to be written
	size               int64      // bytes written, or in out
	elements           int64
	created, changed   int64 // ms
	unsynced           bool  // bytes were written since the last sync
	covered            bool  // a snapshot may refer to the file
	alone              bool  // it becomes visible as it is, without being merged
	head               int64 // bytes of what stands at the begin of each file
}

// weight is the size of the file with what is gathered and held.
func (p *part) weight() int64 {
	size := p.size + int64(len(p.buf))
	if p.format != nil {
		size += p.format.Held()
	}
	return size
}

// Write takes what the compressor or the format makes.
func (p *part) Write(b []byte) (int, error) {
	if len(p.out) == 0 && len(b) >= block {
		if err := p.put(b); err != nil {
			return 0, err
		}
		p.size += int64(len(b))
		return len(b), nil
	}
	p.out = append(p.out, b...)
	p.size += int64(len(b))
	if len(p.out) < block {
		return len(b), nil
	}
	if err := p.put(p.out); err != nil {
		return 0, err
	}
	p.out = p.out[:0]
	return len(b), nil
}

// put writes bytes to the file.
func (p *part) put(b []byte) error {
	if len(b) == 0 {
		return nil
	}
	p.unsynced = true
	n, err := p.w.Write(b)
	if err == nil && n < len(b) {
		err = io.ErrShortWrite
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", p.path, err)
	}
	return nil
}

// spill compresses or writes what was gathered.
func (p *part) spill() error {
	if p.z != nil {
		if _, err := p.z.Write(p.buf); err != nil {
			return fmt.Errorf("compress for %s: %w", p.path, err)
		}
	} else {
		if err := p.put(p.buf); err != nil {
			return err
		}
		p.size += int64(len(p.buf))
	}
	p.buf = p.buf[:0]
	return nil
}

// sync makes what was written survive a crash.
func (p *part) sync() error {
	if !p.unsynced {
		return nil
	}
	if err := p.w.Sync(); err != nil {
		return fmt.Errorf("write %s: sync: %w", p.path, err)
	}
	p.unsynced = false
	return nil
}

// finish writes the end of the file and closes it.
func (p *part) finish() error {
	if _, err := p.end(); err != nil {
		return err
	}
	return p.shut()
}

// end writes the end of the file. It returns the compressor for another file.
func (p *part) end() (compressor, error) {
	if err := p.spill(); err != nil {
		return nil, err
	}
	if p.z != nil {
		if err := p.z.Close(); err != nil {
			return nil, fmt.Errorf("compress for %s: %w", p.path, err)
		}
	}
	if p.format != nil {
		if err := p.format.Close(); err != nil {
			return nil, fmt.Errorf("write the end of %s: %w", p.path, err)
		}
	}
	if err := p.put(p.out); err != nil {
		return nil, err
	}
	if err := p.sync(); err != nil {
		return nil, err
	}
	z := p.z
	p.z, p.format, p.buf, p.out = nil, nil, nil, nil
	return z, nil
}

// shut closes a file that has its end.
func (p *part) shut() error {
	w := p.w
	p.w = nil
	if err := w.Close(); err != nil {
		return fmt.Errorf("close %s: %w", p.path, err)
	}
	return nil
}

// drop closes the file without finishing it, and removes it if no snapshot knows it.
func (p *part) drop(f vfs.FS) error {
	w := p.w
	p.w = nil
	if a, ok := w.(aborting); ok && !p.covered {
		return a.Abort() // it doesn't exist yet
	}
	var err error
	if w != nil {
		err = w.Close()
	}
	if !p.covered {
		err = errors.Join(err, f.Remove(p.path))
	}
	return err
}

// aborting is implemented by writers of files that exist when they are closed: Abort ends them without.
type aborting interface{ Abort() error }
