package filesink

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"

	"github.com/flott-dev/flott/connector"
	"github.com/flott-dev/flott/internal/vfs"
)

// parts are the files of one writer. It knows nothing of elements.
type parts struct {
	settings
	ctx  connector.WriterContext
	id   string
	next int64     // the count of the next file
	from *coverage // nil: the job was not restored

	formatter func(w io.Writer) (format, error) // nil: files of records
	slow      bool                              // a policy or a format is to be asked whether a file is to be closed
	nextLook  int64                             // ms; 0: no look at the clock was taken

	open     map[string]*part  // by bucket
	last     *part             // the one of open that was written to last
	closed   []*part           // complete, to be prepared
	ended    []*part           // of these, those that are to be closed together
	settling bool              // files that get their end are closed together
	removals []Committable     // hidden files of before, which the next checkpoint makes needless
	buckets  map[string]bool   // whose folders are ready; true: used since the last snapshot
	unsynced map[string]bool   // folders with names that a crash would lose
	groups   []*group          // closed, held back to be merged, in the order in which they were begun
	joining  map[string]*group // those of groups to which files are added, by bucket
	merge    *merge            // the one at work; nil: none
	busy     bool              // there may be something to merge
	refill   refill            // nil: files of a format can't be read again
	blocks   []byte            // what merges copy with
	spare    []compressor
	buf      []byte // of a closed file
	err      error  // the first one; nothing is well after it
}

func (s *settings) newParts(ctx connector.WriterContext) *parts {
	return &parts{
		settings: *s, ctx: ctx, id: s.id(),
		open: map[string]*part{}, buckets: map[string]bool{}, unsynced: map[string]bool{},
		joining: map[string]*group{},
	}
}

// fail keeps the first error.
func (p *parts) fail(err error) error {
	if p.err == nil && err != nil {
		p.err = fmt.Errorf("file sink: %w", err)
	}
	return p.err
}

// at is the file to which the next element of a bucket goes.
func (p *parts) at(bucket string, now int64) (*part, error) {
	f := p.last
	if f == nil || f.bucket != bucket {
		f = p.open[bucket]
	}
	if f != nil && !p.young(f, now) && p.over(f, AtElement, now) {
		if err := p.close(f); err != nil {
			return nil, p.fail(err)
		}
		f = nil
	}
	if f == nil {
		var err error
		if f, err = p.begin(bucket, now); err != nil {
			return nil, p.fail(err)
		}
	}
	p.last = f
	return f, nil
}

// begin begins a file.
func (p *parts) begin(bucket string, now int64) (*part, error) {
	if err := p.use(bucket); err != nil {
		return nil, err
	}
	f := &part{bucket: bucket, name: p.partName(p.ctx.Subtask(), p.next), created: now, changed: now}
	p.next++
	if err := p.create(f); err != nil {
		return nil, err
	}
	p.open[bucket] = f
	if p.formatter != nil {
		var err error
		if f.format, err = p.formatter(f); err != nil {
			return nil, fmt.Errorf("begin %s: %w", f.path, err)
		}
		return f, nil
	}
	f.buf = append(p.buf[:0], p.settings.begin...)
	p.buf = nil
	var err error
	if f.z, err = p.compressor(); err != nil {
		return nil, err
	}
	if f.z != nil {
		f.z.Reset(f)
	}
	return f, p.endHead(f)
}

// endHead ends what stands at the begin of a file, so that it can be left out where the file is put behind another one: a
// compressed head becomes a part that can be decompressed by itself.
func (p *parts) endHead(f *part) error {
	if f.head = int64(len(f.buf)); f.z == nil || f.head == 0 || !p.compaction.on() {
		return nil
	}
	if err := f.spill(); err != nil {
		return err
	}
	if err := f.z.Close(); err != nil {
		return fmt.Errorf("compress for %s: %w", f.path, err)
	}
	f.head = f.size
	f.z.Reset(f)
	return nil
}

// create makes the hidden file.
func (p *parts) create(f *part) error {
	f.temp = tempName(f.name, p.id)
	f.path = path.Join(p.folder(f.bucket), f.temp)
	var err error
	if f.w, err = p.fs.Create(f.path, vfs.Exclusive); err != nil {
		return fmt.Errorf("begin %s: %w", f.path, err)
	}
	p.unsynced[p.folder(f.bucket)] = true
	return nil
}

func (p *parts) compressor() (compressor, error) {
	if n := len(p.spare); n > 0 {
		z := p.spare[n-1]
		p.spare = p.spare[:n-1]
		return z, nil
	}
	return p.compression.open()
}

// close closes an open file.
func (p *parts) close(f *part) error {
	delete(p.open, f.bucket)
	if p.last == f {
		p.last = nil
	}
	p.closed = append(p.closed, f)
	p.buf = f.buf // one closed file's memory is another one's
	z, err := f.end()
	if err != nil {
		return err
	}
	if z != nil {
		p.spare = append(p.spare, z)
	}
	if p.requests > 1 && p.settling {
		p.ended = append(p.ended, f)
		return nil
	}
	return f.shut()
}

// flush closes the files that are to be closed and makes all others survive a crash.
func (p *parts) flush(end bool, now int64) error {
	if p.err != nil {
		return p.err
	}
	err := p.settle(end, now)
	if err == nil {
		err = p.compact(end)
	}
	for _, dir := range slices.Sorted(maps.Keys(p.unsynced)) {
		if err == nil {
			err = p.fs.SyncDir(dir)
			delete(p.unsynced, dir)
		}
	}
	return p.fail(err)
}

// settle closes the open files that are to be closed, and syncs the others.
func (p *parts) settle(end bool, now int64) error {
	all := end || p.onCheckpoint || p.sealed()
	p.settling, p.ended = true, nil
	defer func() { p.settling = false }()
	for _, bucket := range slices.Sorted(maps.Keys(p.open)) {
		f := p.open[bucket]
		var err error
		if all || p.over(f, AtCheckpoint, now) {
			err = p.close(f)
		} else if err = f.spill(); err == nil {
			err = f.sync()
		}
		if err != nil {
			return err
		}
	}
	return together(len(p.ended), p.requests, func(i int) error { return p.ended[i].shut() })
}

// prepare gives away the closed files.
func (p *parts) prepare() ([]Committable, error) {
	if p.err != nil {
		return nil, p.err
	}
	var out []Committable
	for _, f := range p.closed {
		out = append(out, Committable{Bucket: f.bucket, Temp: f.temp, Name: f.name, Size: f.size, fresh: true})
	}
	out = append(out, p.removals...)
	p.closed, p.removals = nil, nil
	return out, nil
}

// snapshot is the state of a moment at which everything is flushed and prepared.
func (p *parts) snapshot() ([]byte, error) {
	if p.err != nil {
		return nil, p.err
	}
	s := state{next: p.next}
	for _, bucket := range slices.Sorted(maps.Keys(p.open)) {
		f := p.open[bucket]
		f.covered = true
		s.parts = append(s.parts, openPart{f.bucket, f.temp, f.name, f.size, f.created, f.changed, f.elements, ""})
	}
	for _, g := range p.groups {
		for i := range g.pieces {
			g.pieces[i].covered = true
		}
		s.groups = append(s.groups, *g)
	}
	if p.merge != nil {
		s.scratch = append(s.scratch, place{p.merge.group.bucket, p.merge.out.temp})
	}
	for _, bucket := range slices.Sorted(maps.Keys(p.buckets)) {
		switch {
		case p.buckets[bucket]:
			s.buckets = append(s.buckets, bucket)
			p.buckets[bucket] = false
		case p.open[bucket] == nil:
			delete(p.buckets, bucket)
		}
	}
	return s.append(nil), nil
}

// drop closes everything; of what was not given away, files stay that a snapshot may refer to.
func (p *parts) drop() error {
	var err error
	for _, bucket := range slices.Sorted(maps.Keys(p.open)) {
		err = errors.Join(err, p.open[bucket].drop(p.fs))
	}
	if p.merge != nil {
		err = errors.Join(err, p.merge.drop())
	}
	for _, g := range p.groups {
		p.release(g)
	}
	for _, f := range p.closed {
		err = errors.Join(err, f.drop(p.fs))
	}
	p.open, p.closed, p.groups, p.last, p.merge = map[string]*part{}, nil, nil, nil, nil
	if p.err != nil {
		return nil // it was told; what follows from it is no news
	}
	p.fail(fs.ErrClosed)
	if err != nil {
		return fmt.Errorf("file sink: %w", err)
	}
	return nil
}
