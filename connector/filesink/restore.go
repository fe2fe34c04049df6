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
	for i := range r.groups {
		if err := p.takeOverGroup(&r.groups[i]); err != nil {
			return err
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
	f := &part{bucket: o.bucket, name: o.name, created: o.created, changed: o.changed, elements: o.elements, alone: true}
	if err := p.create(f); err != nil {
		return err
	}
	p.closed = append(p.closed, f)
	n, err := io.CopyBuffer(raw{f}, io.LimitReader(old, o.size), make([]byte, block))
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
	return f.finish()
}

// raw puts bytes into a file as they are.
type raw struct{ f *part }

// Write implements io.Writer.
func (r raw) Write(b []byte) (int, error) { return len(b), r.f.put(b) }

// alreadyVisible accepts that a file was finished after the snapshot: by a job that went on and came to its end, or to a
// later checkpoint. It has its own name then, or is part of a merged file.
func (p *parts) alreadyVisible(o *openPart) error {
	size, err := sizeOf(p.fs, path.Join(p.folder(o.bucket), o.name))
	if size < 0 && o.joins != "" && err == nil {
		size, err = sizeOf(p.fs, path.Join(p.folder(o.bucket), o.joins))
	}
	switch {
	case err != nil:
		return err
	case size < 0:
		return fmt.Errorf("%w: there is neither it nor %s", errLost, o.name)
	case size < o.size:
		return fmt.Errorf("%w: it has become %s, which has %d bytes, not %d", errLost, o.name, size, o.size)
	}
	p.ctx.Counter("partFilesVisibleBefore", 1)
	return nil
}

// takeOverGroup goes on holding back closed files. If the snapshot is not the last one, they may have become visible since:
// merged, under the name of the group, or each by itself.
func (p *parts) takeOverGroup(g *group) error {
	if err := p.use(g.bucket); err != nil {
		return err
	}
	hidden, own := make([]int64, len(g.pieces)), make([]int64, len(g.pieces))
	for i := range g.pieces {
		var err error
		if hidden[i], own[i], err = p.found(g.bucket, &g.pieces[i]); err != nil {
			return err
		}
	}
	merged := own[0] >= 0 && (hidden[0] >= 0 || own[0] != g.pieces[0].size)
	var left []piece
	for i, c := range g.pieces {
		switch {
		case hidden[i] == c.size && merged:
			p.removals = append(p.removals, Committable{Bucket: g.bucket, Temp: c.temp, fresh: true})
		case hidden[i] == c.size:
			left = append(left, piece{c.temp, c.size, true})
		case hidden[i] < 0 && (merged || own[i] == c.size):
			p.ctx.Counter("partFilesVisibleBefore", 1)
		default:
			return fmt.Errorf("go on with %s: %w: it should have %d bytes: there are %d, and %d under its visible name (-1: no file)",
				path.Join(p.folder(g.bucket), c.temp), errLost, c.size, hidden[i], own[i])
		}
	}
	if len(left) == 0 {
		return nil
	}
	g.pieces, g.restored = left, true
	p.groups = append(p.groups, g)
	return nil
}

// found is what there is of a file that was held back: the sizes of the hidden and the visible one; -1: there is none. Where
// making it visible was broken off halfway, it is visible.
func (p *parts) found(bucket string, c *piece) (hidden, own int64, err error) {
	temp, name := path.Join(p.folder(bucket), c.temp), path.Join(p.folder(bucket), c.name())
	if hidden, err = sizeOf(p.fs, temp); err != nil {
		return 0, 0, err
	}
	if own, err = sizeOf(p.fs, name); err != nil || hidden < 0 || own < 0 {
		return hidden, own, err
	}
	half, err := copied(p.fs, temp, name)
	if half {
		p.removals = append(p.removals, Committable{Bucket: bucket, Temp: c.temp, fresh: true})
		hidden = -1
	}
	return hidden, own, err
}
