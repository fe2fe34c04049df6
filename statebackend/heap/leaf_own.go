package heap

import (
	"cmp"
	"math/bits"
	"slices"
	"unsafe"
)

// Pages that belong to one key group each need not be dealt out: they are taken as they lie, group by group, before those of all
// groups. Each is copied to the same memory, which stays in the processor's cache, so that the updater has it back at once.

// ownPages calls f for the entries of each page of one group; false if f has returned false. What the updater has copied is left for
// what follows.
func (l *leaf) ownPages(f func(group int, from, to uint32) bool) bool {
	for _, page := range l.pagesByGroup() {
		n := l.takePage(int(page))
		if n > 0 && !f(l.first+int(l.lots[page])-1, 0, n) {
			return false
		}
	}
	return true
}

// pagesByGroup are the pages of one group each, in the order of groups.
func (l *leaf) pagesByGroup() []uint32 {
	var all []uint32
	for page := range l.lots {
		if l.isOwn(page) {
			all = append(all, uint32(page))
		}
	}
	slices.SortFunc(all, func(a, b uint32) int {
		return cmp.Or(cmp.Compare(l.lots[a], l.lots[b]), cmp.Compare(a, b))
	})
	return all
}

// isOwn says whether a page is one of those that ownPages takes.
func (l *leaf) isOwn(page int) bool { return l.bare && l.lots != nil && l.lots[page] != 0 }

// takePage copies the entries of a page to the begin of the memory for copies and says how many they are.
func (l *leaf) takePage(page int) (n uint32) {
	v, _ := l.sh.view(page)
	defer l.sh.done(page)
	for w := range v.words() {
		live := l.postpone(&v, w)
		for live != 0 {
			first := bits.TrailingZeros64(live)
			run := bits.TrailingZeros64(^(live >> first))
			copyBytes(l.entry(n), unsafe.Add(v.base, uintptr(w*64+first)*v.size), uintptr(run)*v.size)
			n += uint32(run)
			live &^= (1<<run - 1) << first
		}
	}
	return n
}
