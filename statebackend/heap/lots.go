package heap

import "github.com/flott-dev/flott/internal/keygroup"

// lots says which rows of a slab share pages. A small slab has one lot: its rows lie in the order in which they were made. A large
// one gives each key group pages of its own from some size on, so that a snapshot, which is written by key groups, need not deal
// rows out: it takes pages as they lie. Rows that were there before stay where they are, and their places are used for any group.
type lots struct {
	all    []lot    // the first one is of all groups, the others, if there are any, of a group each
	lotOf  []uint16 // by page
	first  int      // key group
	groups int      // 0: rows are not told apart
	max    int      // parallelism
	from   int      // rows from which on groups have pages of their own
}

// lot is what the rows of a group, or those of all groups, are made from.
type lot struct {
	next uint32 // the number of the next row that was never given
	end  uint32 // the number behind the last one of its page
	free uint32 // first of the chain of freed rows, plus one; it goes through their first 4 bytes
}

func (l *lot) hasRoom() bool { return l.free != 0 || l.next != l.end }

// pagesPerGroup is how many pages a group would have on average when it gets pages of its own: the last one is half empty.
const pagesPerGroup = 4

// tellApart lets key groups first to last of max have pages of their own once there are enough rows, of which a page has so many. A
// store that is never frozen may have no key groups: max is 0 then.
func (l *lots) tellApart(first, last, max, rows int) {
	if max == 0 {
		return
	}
	l.first, l.groups, l.max = first, last-first+1, max
	l.from = pagesPerGroup * l.groups * rows
}

// begin begins with a lot for each group, if there are enough rows now.
func (l *lots) begin(rows int) {
	if l.groups > 0 && len(l.all) == 1 && rows >= l.from {
		l.all = append(make([]lot, 0, 1+l.groups), l.all...)[:1+l.groups]
	}
}

// of is the number of the lot that a row is to be made from, whose key has a hash: one with room, or that of its group. What is free
// in pages of all groups is used first.
func (l *lots) of(hash uint64) int {
	if len(l.all) == 1 || l.all[0].hasRoom() {
		return 0
	}
	group := keygroup.Of(uint32(hash), l.max) - l.first
	if uint(group) >= uint(l.groups) {
		return 0
	}
	return 1 + group
}

// reset forgets all pages, as the slab is empty.
func (l *lots) reset() {
	l.all, l.lotOf = append(l.all[:0], lot{}), l.lotOf[:0]
}

// owners are the lots of all pages, for a snapshot; nil if they share one.
func (l *lots) owners() []uint16 {
	if len(l.all) == 1 {
		return nil
	}
	return append([]uint16(nil), l.lotOf...)
}
