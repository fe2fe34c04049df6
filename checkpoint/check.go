package checkpoint

import (
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"path"
	"strings"

	"github.com/flott-dev/flott/internal/keygroup"
)

// parseID reads an operator's id.
func parseID(id string) (raw [16]byte, err error) {
	if len(id) != 2*len(raw) || strings.ToLower(id) != id {
		return raw, fmt.Errorf("operator id %.100q is not 32 lower-case hex digits", id)
	}
	if _, err := hex.Decode(raw[:], []byte(id)); err != nil {
		return raw, fmt.Errorf("operator id %.100q is not 32 lower-case hex digits", id)
	}
	return raw, nil
}

// check reports what a manifest must not be.
func (m *Manifest) check() error {
	if m.Kind > Savepoint {
		return fmt.Errorf("unknown kind %d of snapshot", m.Kind)
	}
	ids := make(map[string]bool, len(m.Operators))
	for i := range m.Operators {
		o := &m.Operators[i]
		if _, err := parseID(o.ID); err != nil {
			return err
		}
		if ids[o.ID] {
			return fmt.Errorf("operator %s is there twice", o.ID)
		}
		ids[o.ID] = true
		if err := o.check(m.Kind); err != nil {
			return fmt.Errorf("operator %s: %w", o.ID, err)
		}
	}
	return nil
}

func (o *Operator) check(kind Kind) error {
	if err := keygroup.Validate(o.MaxParallelism, o.Parallelism); err != nil {
		return err
	}
	before := -1
	for _, p := range o.Parts {
		if p.Subtask <= before || p.Subtask >= o.Parallelism {
			return fmt.Errorf("a part of subtask %d after one of %d, of %d subtasks", p.Subtask, before, o.Parallelism)
		}
		before = p.Subtask
		err := p.check()
		if err == nil {
			err = p.owns(o)
		}
		if err == nil && kind == Savepoint {
			err = p.selfContained()
		}
		if err != nil {
			return fmt.Errorf("part of subtask %d: %w", p.Subtask, err)
		}
	}
	return nil
}

// owns checks that the part's key groups are those of its subtask.
func (p *Part) owns(o *Operator) error {
	first, last := keygroup.RangeOf(o.MaxParallelism, o.Parallelism, p.Subtask)
	if p.Finished || p.FirstGroup == first && p.LastGroup == last {
		return nil
	}
	return fmt.Errorf("key groups %d ... %d, but the subtask has %d ... %d of %d", p.FirstGroup, p.LastGroup, first, last, o.MaxParallelism)
}

// selfContained checks that a savepoint's files lie in its folder.
func (p *Part) selfContained() error {
	if _, earlier := p.Files(""); len(earlier) > 0 {
		return fmt.Errorf("file %q: all files of a savepoint must lie in its folder", earlier[0])
	}
	return nil
}

// check reports what a part must not be.
func (p *Part) check() error {
	if err := p.checkInfo(); err != nil {
		return err
	}
	if err := p.checkBases(); err != nil {
		return err
	}
	if p.files != nil {
		if err := p.files.check(); err != nil {
			return err
		}
	}
	return p.checkChunks()
}

// checkInfo checks what a part says of itself, but for its chunks.
func (p *Part) checkInfo() error {
	if p.Subtask < 0 || p.Subtask >= keygroup.MaxParallelismLimit {
		return fmt.Errorf("subtask %d does not exist", p.Subtask)
	}
	if p.Finished && (len(p.Tables)+len(p.Lists)+len(p.chunks) > 0 || p.files != nil) {
		return errors.New("a finished subtask has no state")
	}
	if _, err := keygroup.NewRange(p.FirstGroup, p.LastGroup); err != nil {
		return err
	}
	if n := len(p.Tables) + len(p.Lists); n > math.MaxUint16 {
		return fmt.Errorf("%d tables and lists: the most are %d", n, math.MaxUint16)
	}
	names := map[string]bool{}
	for i := range p.Tables {
		t := &p.Tables[i]
		if names[t.Name] {
			return fmt.Errorf("table %q is there twice", t.Name)
		}
		names[t.Name] = true
		if _, err := layoutOf(t); err != nil {
			return err
		}
	}
	clear(names)
	for i := range p.Lists {
		l := &p.Lists[i]
		if names[l.Name] {
			return fmt.Errorf("list %q is there twice", l.Name)
		}
		names[l.Name] = true
		if l.Mode > Broadcast {
			return fmt.Errorf("list %q: unknown %v", l.Name, l.Mode)
		}
	}
	return nil
}

func (p *Part) checkChunks() error {
	items := make([]int64, len(p.Lists))
	for i := range p.chunks {
		c := &p.chunks[i]
		if c.path == "" && int64(len(c.inline)) != c.size {
			return fmt.Errorf("chunk %d has %d bytes, not %d", i+1, len(c.inline), c.size)
		}
		if c.path != "" && (c.inline != nil || !isFilePath(c.path)) {
			return fmt.Errorf("chunk %d: %q is not the path of a file", i+1, c.path)
		}
		if c.layer < 0 || c.layer > maxLayer || i > 0 && c.layer < p.chunks[i-1].layer {
			return fmt.Errorf("chunk %d is of layer %d, out of order", i+1, c.layer)
		}
		size := int64(chunkHeader + digestBytes)
		for j := range c.sections {
			s := &c.sections[j]
			n, err := p.checkSection(s, c.layer)
			if err != nil {
				return fmt.Errorf("chunk %d, section %d: %w", i+1, j+1, err)
			}
			if l := s.place - len(p.Tables); l >= 0 {
				items[l] += s.rows
			}
			size += n
		}
		if size != c.size {
			return fmt.Errorf("chunk %d has %d bytes, but its sections make %d", i+1, c.size, size)
		}
	}
	for i, n := range items {
		if n != p.Lists[i].Items {
			return fmt.Errorf("list %q has %d items, but its sections have %d", p.Lists[i].Name, p.Lists[i].Items, n)
		}
	}
	return nil
}

// maxChunk bounds sizes, so that sums of them can't overflow.
const maxChunk = 1 << 50

// checkSection gives the bytes of a section.
func (p *Part) checkSection(s *section, layer int) (size int64, err error) {
	first, last := p.FirstGroup, p.LastGroup
	switch {
	case s.index < 0 || s.index > math.MaxUint16 || s.place < nobody || s.place >= len(p.Tables)+len(p.Lists):
		return 0, fmt.Errorf("there is no table or list %d", s.place)
	case s.place >= len(p.Tables):
		first, last = 0, 0
	case s.place == nobody:
		first, last = 0, keygroup.MaxParallelismLimit
	case !p.base(s.place).files && layer < p.base(s.place).layer:
		return 0, fmt.Errorf("rows of table %q in layer %d, below the whole table in layer %d", p.Tables[s.place].Name, layer, p.base(s.place).layer)
	}
	if s.rows < 1 || s.rows > maxChunk {
		return 0, fmt.Errorf("%d rows", s.rows)
	}
	before := -1
	for _, g := range s.groups {
		if g.group <= before || g.group < first || g.group > last || g.bytes < blockHeader || g.bytes > maxChunk {
			return 0, fmt.Errorf("%d bytes of key group %d after group %d, in %d ... %d", g.bytes, g.group, before, first, last)
		}
		before = g.group
		if size += g.bytes; size > maxChunk {
			return 0, fmt.Errorf("more than %d bytes", int64(maxChunk))
		}
	}
	return size, nil
}

// checkBases checks that no table lies on what is not there.
func (p *Part) checkBases() error {
	if p.bases == nil {
		return nil
	}
	if len(p.bases) != len(p.Tables) {
		return fmt.Errorf("%d tables with %d bases", len(p.Tables), len(p.bases))
	}
	for i, b := range p.bases {
		if b.layer < 0 || b.layer > maxLayer || b.files && p.files == nil {
			return fmt.Errorf("table %q lies on something that is not there", p.Tables[i].Name)
		}
		if b.files && !fileable(p.Tables[i].Kind) {
			return fmt.Errorf("table %q holds %s, which files of backends do not", p.Tables[i].Name, p.Tables[i].Kind)
		}
	}
	for i := range p.chunks {
		for j := range p.chunks[i].sections {
			s := &p.chunks[i].sections[j]
			if s.place < 0 || s.place >= len(p.Tables) {
				continue
			}
			if t := &p.Tables[s.place]; p.changes(s.place, p.chunks[i].layer) && !layerable(t.Kind) {
				return fmt.Errorf("table %q holds %s, which have no changes", t.Name, t.Kind)
			}
		}
	}
	return nil
}

// isFilePath says whether a path that is seen from a snapshot's folder can be that of a file.
func isFilePath(name string) bool {
	return name != "" && path.Clean(name) == name && name != "." && name != ".." && !strings.HasSuffix(name, "/..")
}
