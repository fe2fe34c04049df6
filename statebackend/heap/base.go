package heap

import "github.com/flott-dev/flott/statebackend"

// base is what a table knows of its changes since the last snapshot with Freezing.Anchor: which entries of its pages have
// changed and what was removed. A table of a job that takes no such snapshots knows nothing and pays nothing.
//
// What has expired is noted as any other removal when it is swept. What has expired and is not swept yet is left to the time
// that its rows bear, or is Deleted if it has changed: no merge of rows can give back what its time to live has ended.
type base struct {
	gone *deletions // nil: nothing is tracked
}

// changes are the changes of a table of a snapshot.
type changes struct {
	trackers []*tracker // one for each guard
	gone     *frozenDeletions
}

// tracked are the pages of a table's indexes.
type tracked struct {
	*guard
	entries int // of a page
}

// changed is the number of changed entries, 0 if they are not tracked.
func (t tracked) changed() int {
	if t.track == nil {
		return 0
	}
	return t.track.count()
}

// take gives a snapshot the changes of a table that holds size things, n of which have changed beside those that are gone;
// nil if the table has to be frozen whole. A snapshot that is a base begins the noting anew.
func (b *base) take(f *frozen, how statebackend.Freezing, l *ledger, n, size int, info *statebackend.TableInfo, pages ...tracked) *changes {
	var out *changes
	if how.Changes && b.knows(pages) && 8*(n+b.gone.n) < 7*size {
		out = b.handOver(f, info, !how.Anchor, pages)
	}
	if how.Anchor {
		b.end(pages)
		b.begin(l, f.id, pages)
	}
	return out
}

// knows says whether all changes were noted.
func (b *base) knows(pages []tracked) bool {
	if b.gone == nil || b.gone.lost {
		return false
	}
	for _, p := range pages {
		if p.track.lost {
			return false
		}
	}
	return true
}

func (b *base) handOver(f *frozen, info *statebackend.TableInfo, keep bool, pages []tracked) *changes {
	out := &changes{}
	for _, p := range pages {
		t, err := p.track.handOver(f, keep)
		if err != nil { // no memory for a copy
			out.drop(f)
			return nil
		}
		if !keep {
			p.track = nil
		}
		out.trackers = append(out.trackers, t)
	}
	out.gone = b.gone.freeze(f, info, keep)
	f.changes = append(f.changes, out)
	return out
}

// begin begins to note changes since snapshot id. The index notes by itself what is removed from it if it is the only one.
func (b *base) begin(l *ledger, id uint64, pages []tracked) {
	b.gone = newDeletions(l)
	for _, p := range pages {
		gone := b.gone
		if len(pages) > 1 {
			gone = nil
		}
		p.track = newTracker(l, p.entries, id, gone)
	}
}

// end forgets all changes.
func (b *base) end(pages []tracked) {
	for _, p := range pages {
		if p.track != nil {
			p.track.drop()
			p.track = nil
		}
	}
	if b.gone != nil {
		b.gone.log.close()
		b.gone = nil
	}
}

// drop gives the memory back.
func (c *changes) drop(f *frozen) {
	for _, t := range c.trackers {
		f.release(t.held)
		t.held = 0
	}
	if c.gone != nil {
		c.gone.drop(f)
	}
}

// only are the entries of the first index that a snapshot needs; nil: all.
func (c *changes) only() *pageBits {
	if c == nil {
		return nil
	}
	return &c.trackers[0].changed
}
