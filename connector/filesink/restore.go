package filesink

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"

	"github.com/flott-dev/flott/connector"
	"github.com/flott-dev/flott/internal/vfs"
)

// errLost says that bytes that a snapshot covers are not there any more.
var errLost = errors.New("the file does not hold what the snapshot covers")

// restore begins with what writers of before have left.
func (p *parts) restore(states []connector.WriterState) error {
	r, err := readStates(states)
	if err != nil {
		return err
	}
	p.from, p.next = &r.coverage, r.most
	for _, bucket := range r.buckets {
		if err := p.use(bucket); err != nil {
			return err
		}
		p.buckets[bucket] = false
	}
	for i := range r.parts {
		if err := p.takeOver(&r.parts[i]); err != nil {
			return fmt.Errorf("go on with %s: %w", path.Join(p.folder(r.parts[i].bucket), r.parts[i].temp), err)
		}
	}
	return nil
}

// takeOver goes on with a file in a copy: whoever wrote the old one may still do so, if it was not stopped but frozen, and
// the snapshot can be restored once more.
func (p *parts) takeOver(o *openPart) error {
	if err := p.use(o.bucket); err != nil {
		return err
	}
	old, err := p.fs.Open(path.Join(p.folder(o.bucket), o.temp))
	if errors.Is(err, fs.ErrNotExist) {
		return p.alreadyVisible(o)
	}
	if err != nil {
		return err
	}
	err = p.copy(o, old)
	if err = errors.Join(err, old.Close()); err != nil {
		return err
	}
	p.removals = append(p.removals, Committable{Bucket: o.bucket, Temp: o.temp, fresh: true})
	return nil
}

// copy copies what the snapshot covers. The file stays open if it is the only one of its bucket and can be written further.
func (p *parts) copy(o *openPart, old vfs.File) error {
	f := &part{bucket: o.bucket, name: o.name, created: o.created, changed: o.changed}
	if err := p.create(f); err != nil {
		return err
	}
	p.closed = append(p.closed, f)
	n, err := io.CopyBuffer(copying{f}, io.LimitReader(old, o.size), make([]byte, block))
	if err != nil {
		return err
	}
	if f.size = n; n < o.size {
		return fmt.Errorf("%w: it has %d bytes, not %d", errLost, n, o.size)
	}
	if p.open[o.bucket] == nil && !p.sealed() {
		p.closed, p.open[o.bucket] = p.closed[:len(p.closed)-1], f
		return nil
	}
	_, err = f.finish()
	return err
}

// copying puts bytes into a file as they are.
type copying struct{ f *part }

// Write implements io.Writer.
func (c copying) Write(b []byte) (int, error) { return len(b), c.f.put(b) }

// alreadyVisible accepts that a file was finished after the snapshot: by a job that went on and came to its end, or to a
// later checkpoint.
func (p *parts) alreadyVisible(o *openPart) error {
	info, err := p.fs.Stat(path.Join(p.folder(o.bucket), o.name))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w: there is neither it nor %s", errLost, o.name)
	case err != nil:
		return err
	case info.Size() < o.size:
		return fmt.Errorf("%w: it has become %s, which has %d bytes, not %d", errLost, o.name, info.Size(), o.size)
	}
	p.ctx.Counter("partFilesVisibleBefore", 1)
	return nil
}
