package checkpoint

import (
	"errors"
	"slices"

	"github.com/flott-dev/flott/internal/keygroup"
	"github.com/flott-dev/flott/internal/vfs"
)

// cursor reads the blocks of one table in one layer, key group by key group, through one chunk after the other.
type cursor struct {
	fs     vfs.FS
	folder string
	pieces []piece // what is still to be read; the first is the present one
	begun  bool    // blocks of the present piece were read
	left   int64   // of the present piece, if it was begun
	reader *chunkReader
	window window
	audit  *Audit // takes note of what was read; nil: nobody does
	seen   checked
	step   int // bytes that are read at a time; 0: as chunks are read alone
}

// piece is the blocks of one key group in one section.
type piece struct {
	chunk   *chunk
	section int // in the chunk
	index   int // of the section
	group   int
	at      int64 // in the chunk
	bytes   int64
}

// pieces are those of a table in one layer, for some key groups, in the order of the groups.
func (p *Part) pieces(table, layer int, groups keygroup.Range) []piece {
	var all []piece
	for i := range p.chunks {
		c := &p.chunks[i]
		if c.layer != layer {
			continue
		}
		at := int64(chunkHeader)
		for j := range c.sections {
			s := &c.sections[j]
			for _, g := range s.groups {
				if s.place == table && groups.Contains(g.group) {
					all = append(all, piece{chunk: c, section: j, index: s.index, group: g.group, at: at, bytes: g.bytes})
				}
				at += g.bytes
			}
		}
	}
	slices.SortStableFunc(all, func(a, b piece) int { return a.group - b.group })
	return all
}

// group is the key group of the next block; ok is false if there is none.
func (c *cursor) group() (group int, ok bool) {
	if len(c.pieces) == 0 {
		return 0, false
	}
	return c.pieces[0].group, true
}

// block gives the next block of a key group, valid until the next call; ok is false if the group has no more.
func (c *cursor) block(group int) (b block, ok bool, err error) {
	for len(c.pieces) > 0 && c.pieces[0].group == group {
		p := &c.pieces[0]
		if !c.begun {
			if err := c.enter(p); err != nil {
				return b, false, err
			}
			c.begun, c.left, c.seen = true, p.bytes, checked{}
		}
		if c.left > 0 {
			if b, err = c.window.next(p.index, p.group, c.left); err != nil {
				return b, false, err
			}
			c.left -= b.bytes()
			c.note(p, &b)
			return b, true, nil
		}
		c.pieces, c.begun = c.pieces[1:], false
	}
	return b, false, nil
}

// note takes a block down for the audit.
func (c *cursor) note(p *piece, b *block) {
	if c.audit == nil {
		return
	}
	c.seen.headers = append(c.seen.headers, b.header...)
	c.seen.rows += int64(b.rows)
	if c.left == 0 {
		c.audit.note(p.chunk, place{p.section, p.group}, c.seen)
	}
}

// enter goes to the beginning of a piece.
func (c *cursor) enter(p *piece) error {
	if c.reader == nil || c.reader.chunk != p.chunk {
		if err := c.close(); err != nil {
			return err
		}
		r, err := openChunk(c.fs, c.folder, p.chunk)
		if err != nil {
			return err
		}
		r.step = c.step
		c.reader = r
	} else if w := &c.window; w.at-int64(len(w.b)) == p.at && w.end > p.at {
		return nil
	}
	end := p.at
	for i := range c.pieces {
		if n := &c.pieces[i]; n.chunk != p.chunk || n.at != end {
			break
		}
		end += c.pieces[i].bytes
	}
	c.window.leave()
	c.window = window{r: c.reader, at: p.at, end: end}
	return nil
}

// close closes the chunk that is open.
func (c *cursor) close() error {
	if c.reader == nil {
		return nil
	}
	c.window.leave()
	err := c.reader.close()
	c.reader = nil
	return err
}

// closeAll closes cursors.
func closeAll(all []*cursor) error {
	var errs []error
	for _, c := range all {
		errs = append(errs, c.close())
	}
	return errors.Join(errs...)
}
