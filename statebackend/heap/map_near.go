package heap

import "unsafe"

// Near implements statebackend.NearMapTable: it finds the maps of all keys at once, and reads a byte of their first and last
// entries.
func (t *mapTable) Near(from, to int) {
	x := t.owners
	var slots [block]unsafe.Pointer
	for at := from; at < to; at += block {
		n := min(block, to-at)
		x.match(at, x.blockHashes(at, n), slots[:n])
		var sum byte
		for _, slot := range slots[:n] {
			if slot == nil {
				continue
			}
			if head := (*mapHead)(slot); head.first != 0 {
				sum += *(*byte)(t.entries.rows.at(head.first - 1))
				sum += *(*byte)(t.entries.rows.at(head.last - 1))
			}
		}
		x.touched += sum
	}
}
