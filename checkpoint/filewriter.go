package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/flott-dev/flott/statebackend"
)

// backendFiles writes the files of a backend, except those that the earlier part has.
func (p *partWriter) backendFiles(state *State) error {
	if len(state.Files) == 0 {
		return nil
	}
	if len(state.Files) > 1 {
		return fmt.Errorf("%d sets of files: an operator has one store", len(state.Files))
	}
	set := state.Files[0]
	p.part.files = &fileSet{format: set.Format, meta: set.Meta}
	had, err := earlierFiles(state, set.Format, p.folder)
	if err != nil {
		return err
	}
	for i := range set.Files {
		f := &set.Files[i]
		stored, ok := had[f.Name]
		if !ok || stored.size != f.Size {
			if stored, err = p.backendFile(f); err != nil {
				return fmt.Errorf("file %q of the state backend: %w", f.Name, err)
			}
		}
		p.part.files.files = append(p.part.files.files, stored)
	}
	return p.part.files.check()
}

// earlierFiles are the files of the earlier part, as this one names them.
func earlierFiles(state *State, format, folder string) (map[string]storedFile, error) {
	if state.Earlier == nil || state.Earlier.files == nil || state.Earlier.files.format != format {
		return nil, nil
	}
	earlier, err := state.Earlier.Reuse(state.EarlierFolder, folder)
	if err != nil {
		return nil, err
	}
	had := make(map[string]storedFile, len(earlier.files.files))
	for _, f := range earlier.files.files {
		had[f.name] = f
	}
	return had, nil
}

// backendFile copies one file.
func (p *partWriter) backendFile(f *statebackend.File) (s storedFile, err error) {
	r, err := f.Open()
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	s = storedFile{name: f.Name, size: f.Size}
	if s.path, err = p.create(fileSuffix); err != nil {
		return s, err
	}
	digest := newFileDigest()
	n, err := p.copyFile(r, digest)
	if err != nil {
		return s, err
	}
	if n != f.Size {
		return s, fmt.Errorf("it has %d bytes and not %d, as it was said to have", n, f.Size)
	}
	s.digest = digest.sum()
	return s, nil
}

// copyFile writes all of r into the file that was made, and ends it.
func (p *partWriter) copyFile(r io.Reader, digest *fileDigest) (n int64, err error) {
	p.buf = slices.Grow(p.buf[:0], flushBytes)
	for {
		if p.ctx.Err() != nil {
			return n, context.Cause(p.ctx)
		}
		had := len(p.buf)
		k, err := io.ReadFull(r, p.buf[had:cap(p.buf)])
		n += int64(k)
		p.buf = p.buf[:had+k]
		digest.write(p.buf[had:])
		if err == io.EOF || err == io.ErrUnexpectedEOF {
			break
		}
		if err == nil {
			p.buf, err = p.to.Write(p.buf)
		}
		if err != nil {
			return n, err
		}
	}
	p.buf, err = p.to.End(p.buf)
	return n, err
}
