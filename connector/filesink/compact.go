package filesink

import (
	"fmt"
	"math"
	"path"
	"slices"
	"strings"
)

// Merging is paid for in bytes: a portion is what is copied at once. Opening a file and making one survive a crash take
// time as well, and count as so many bytes.
const (
	mergeSync = 8 << 20 // bytes that are copied before they are made to survive, so that it doesn't take long at once
	openCost  = 64 << 10
	syncCost  = 1 << 20
)

// compaction is when small closed files become one.
type compaction struct {
	checkpoints int   // after so many at the latest; 0: they don't matter
	size        int64 // when so many bytes of a bucket wait; 0: they don't matter

	atCheckpoint, portion int64 // bytes that a checkpoint waits for, and elements
}

func (c compaction) on() bool { return c.checkpoints > 0 || c.size > 0 }

// group are closed hidden files of a bucket that will be visible as one, under the name that the first of them has. It is
// part of snapshots until that one is complete.
type group struct {
	bucket string
	whole  bool  // files of a format, which are read and written again; others are put one behind the other
	head   int64 // bytes at the begin of each file that the merged one has once
	age    int   // checkpoints since the first file
	pieces []piece

	restored bool // it comes from a snapshot: nothing is added to it
	due      bool // it is to be merged
}

// piece is a file of a group.
type piece struct {
	temp    string
	size    int64
	covered bool // a snapshot may refer to it
}

// name is the visible name that the file has alone.
func (c *piece) name() string {
	name, _, _ := strings.Cut(strings.TrimPrefix(c.temp, "."), inProgress)
	return name
}

// name is the visible name of the merged file. Nobody else has it.
func (g *group) name() string { return g.pieces[0].name() }

// bytes are those of all files.
func (g *group) bytes() (n int64) {
	for i := range g.pieces {
		n += g.pieces[i].size
	}
	return n
}

// compact holds back the closed files that are small, and merges those whose time has come: not all at once, but at the
// end of the input.
func (p *parts) compact(end bool) error {
	p.hold()
	for _, g := range p.groups {
		if !end && !g.due {
			g.age++
		}
		if end || p.ripe(g) {
			g.due, p.busy = true, true
			if p.joining[g.bucket] == g {
				delete(p.joining, g.bucket)
			}
		}
	}
	budget := p.compaction.atCheckpoint
	if end {
		budget = math.MaxInt64
	}
	return p.advance(budget)
}

// hold takes the files that are small from those that become visible as they are.
func (p *parts) hold() {
	if !p.compaction.on() {
		return
	}
	p.closed = slices.DeleteFunc(p.closed, func(f *part) bool {
		if f.alone || p.compaction.size > 0 && f.size >= p.compaction.size {
			return false
		}
		g := p.joining[f.bucket]
		if g == nil {
			g = &group{bucket: f.bucket, whole: p.whole, head: f.head}
			p.joining[f.bucket] = g
			p.groups = append(p.groups, g)
		}
		g.pieces = append(g.pieces, piece{temp: f.temp, size: f.size, covered: f.covered})
		return true
	})
}

// ripe tells whether a group has waited long enough.
func (p *parts) ripe(g *group) bool {
	c := p.compaction
	return !c.on() || c.checkpoints > 0 && g.age >= c.checkpoints || c.size > 0 && g.bytes() >= c.size
}

// advance goes on with merging until about so many bytes are copied.
func (p *parts) advance(budget int64) error {
	for budget > 0 && p.busy {
		if err := p.ctx.Context().Err(); err != nil {
			return fmt.Errorf("merge files: %w", err)
		}
		if p.merge == nil {
			i := slices.IndexFunc(p.groups, func(g *group) bool { return g.due })
			if i < 0 {
				p.busy = false
				return nil
			}
			g := p.groups[i]
			if !p.mergeable(g) {
				p.groups = slices.Delete(p.groups, i, i+1)
				p.release(g)
				continue
			}
			if err := p.beginMerge(g); err != nil {
				return err
			}
		}
		cost, done, err := p.merge.step()
		if err != nil {
			return err
		}
		if budget -= cost; done {
			p.merged()
		}
	}
	return nil
}

// work does what waits between elements. It returns the first error of the writer.
func (p *parts) work() error {
	if !p.busy || p.err != nil {
		return p.err
	}
	return p.fail(p.advance(p.compaction.portion))
}

// mergeable tells whether a group becomes one file. Whole files of before are not read again: a type that has changed since
// may have no place for what they hold.
func (p *parts) mergeable(g *group) bool {
	return len(g.pieces) > 1 && (!g.whole || p.refill != nil && !g.restored)
}

// release lets the files of a group become visible one by one.
func (p *parts) release(g *group) {
	for i := range g.pieces {
		c := &g.pieces[i]
		f := &part{bucket: g.bucket, temp: c.temp, name: c.name(), size: c.size, covered: c.covered, alone: true}
		f.path = path.Join(p.folder(f.bucket), f.temp)
		p.closed = append(p.closed, f)
	}
}

// merged takes what a merge has made for the files that it was made of. Those that no snapshot knows go at once.
func (p *parts) merged() {
	m := p.merge
	p.merge = nil
	p.groups = slices.DeleteFunc(p.groups, func(g *group) bool { return g == m.group })
	p.closed = append(p.closed, m.out)
	for i := range m.group.pieces {
		c := &m.group.pieces[i]
		if c.covered || p.fs.Remove(path.Join(m.folder, c.temp)) != nil {
			p.removals = append(p.removals, Committable{Bucket: m.group.bucket, Temp: c.temp, fresh: true})
		}
	}
	p.ctx.Counter("partFilesMerged", int64(len(m.group.pieces)))
}
