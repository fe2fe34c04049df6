package filesink

import (
	"errors"
	"fmt"
	"io"
	"path"

	"github.com/flott-dev/flott/connector"
	"github.com/flott-dev/flott/connector/file"
	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/vfs"
)

// merge is the making of one file of a group's. No snapshot covers it before it is complete: it is begun again.
type merge struct {
	fs     vfs.FS
	folder string
	group  *group
	out    *part
	refill refill
	buf    []byte

	at     int      // the file that is read
	in     vfs.File // nil: it is not open
	off    int64    // bytes of it that are done
	source source   // its elements, if it is one of a format
	since  int64    // bytes written since the last sync
}

// refill opens the elements of a closed file.
type refill func(path string, f vfs.File, size int64) (source, error)

// source hands elements of a file over to another one; io.EOF: that was all. A source is closed before its file.
type source interface {
	pour(to format) error
	io.Closer
}

// beginMerge begins the merged file.
func (p *parts) beginMerge(g *group) error {
	out := &part{bucket: g.bucket, name: p.partName(p.ctx.Subtask(), p.next), alone: true}
	p.next++
	if err := p.create(out); err != nil {
		return err
	}
	out.name = g.name()
	if p.blocks == nil {
		p.blocks = make([]byte, block)
	}
	p.merge = &merge{fs: p.fs, folder: p.folder(g.bucket), group: g, out: out, refill: p.refill, buf: p.blocks}
	if !g.whole {
		return nil
	}
	var err error
	if out.format, err = p.formatter(out); err != nil {
		return fmt.Errorf("begin %s: %w", out.path, err)
	}
	return nil
}

// step does a little and tells what it costs.
func (m *merge) step() (cost int64, done bool, err error) {
	if m.at == len(m.group.pieces) {
		return syncCost, true, m.out.finish()
	}
	before := m.out.size
	cost = block
	c := &m.group.pieces[m.at]
	if m.in == nil {
		cost, err = openCost, m.open(c)
	} else if m.source != nil {
		err = m.source.pour(m.out.format)
	} else {
		err = m.copy(c)
	}
	if err == io.EOF {
		err = m.next()
	}
	if err == nil {
		if m.since += m.out.size - before; m.since >= mergeSync {
			m.since = 0
			cost += syncCost
			err = m.out.sync()
		}
	}
	if err != nil {
		err = fmt.Errorf("merge %s into %s: %w", path.Join(m.folder, c.temp), m.out.path, err)
	}
	return cost, false, err
}

// open opens the next file.
func (m *merge) open(c *piece) error {
	name := path.Join(m.folder, c.temp)
	var err error
	if m.in, err = m.fs.Open(name); err != nil {
		return err
	}
	m.off = 0
	if m.at > 0 {
		m.off = min(m.group.head, c.size)
	}
	if m.group.whole {
		m.source, err = m.refill(name, m.in, c.size)
	}
	return err
}

// copy copies a block of bytes as they are.
func (m *merge) copy(c *piece) error {
	b := m.buf[:min(int64(len(m.buf)), c.size-m.off)]
	if len(b) == 0 {
		return io.EOF
	}
	n, err := m.in.ReadAt(b, m.off)
	switch {
	case n == len(b):
	case err == nil || err == io.EOF:
		return fmt.Errorf("%w: it has %d bytes, not %d", errLost, m.off+int64(n), c.size)
	default:
		return err
	}
	m.off += int64(n)
	m.out.size += int64(n)
	return m.out.put(b)
}

// next closes a file that is done.
func (m *merge) next() error {
	m.at++
	return m.close()
}

func (m *merge) close() error {
	var err error
	if m.source != nil {
		err = m.source.Close()
	}
	if m.in != nil {
		err = errors.Join(err, m.in.Close())
	}
	m.in, m.source = nil, nil
	return err
}

// drop gives the merged file up.
func (m *merge) drop() error { return errors.Join(m.close(), m.out.drop(m.fs)) }

// refiller reads files again with the format that the description has for it.
func (s *Sink[T]) refiller() (refill, error) {
	if s.reading == nil {
		return nil, nil
	}
	typ, err := frame.TypeOf[T]()
	if err != nil {
		return nil, fmt.Errorf("read files again, to compact them: %w", err)
	}
	return func(path string, f vfs.File, size int64) (source, error) {
		d, err := s.reading.Decoder(file.NewInput(path, io.NewSectionReader(f, 0, size)))
		if err != nil {
			return nil, err
		}
		col := frame.NewColumn(typ, bulkRun)
		return &decoding[T]{d: d, col: col, out: connector.NewOutput[T](col, func(frame.Mark) error { return nil })}, nil
	}, nil
}

// decoding is a source of decoded elements.
type decoding[T any] struct {
	d   file.Decoder[T]
	col *frame.Column
	out *connector.Output[T]
}

func (d *decoding[T]) pour(to format) error {
	d.col.Reset()
	end := d.d.Decode(d.out)
	if end != nil && end != io.EOF {
		return end
	}
	run := d.col.Run()
	if run.N > 0 {
		if err := to.(file.BulkWriter[T]).Write(frame.Values[T](&run)); err != nil {
			return err
		}
	}
	return end
}

// Close implements io.Closer.
func (d *decoding[T]) Close() error {
	if c, ok := d.d.(io.Closer); ok {
		return c.Close()
	}
	return nil
}
