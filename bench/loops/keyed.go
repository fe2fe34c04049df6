package loops

import "math/bits"

// table counts per key: open addressing, keys and counts inline, no pointers.
type table struct {
	slots []slot
	mask  uint64
}

type slot struct {
	key   uint64
	count int64
}

func newTable(keys int) *table {
	size := 1 << bits.Len(uint(keys*3/2))
	return &table{make([]slot, size), uint64(size - 1)}
}

// add counts a whole batch: hash all, touch all, then update, so that cache misses overlap. A count of 0 is an empty slot.
func (t *table) add(b []Event, hs *[batchSize]uint64) (touched int64) {
	for i := range b {
		hs[i] = hash(b[i].Key) & t.mask
	}
	for i := range b {
		touched += t.slots[hs[i]].count & 1
	}
	for i := range b {
		j := hs[i]
		for {
			s := &t.slots[j]
			if s.count == 0 {
				*s = slot{b[i].Key, b[i].Val}
				break
			}
			if s.key == b[i].Key {
				s.count += b[i].Val
				break
			}
			j = (j + 1) & t.mask
		}
	}
	return touched
}

func (t *table) checksum() (sum uint64) {
	for _, s := range t.slots {
		if s.count != 0 {
			sum += CountChecksum(s.key, s.count)
		}
	}
	return sum
}

// CountChecksum is what a key and its final count add to the checksum of a count.
func CountChecksum(key uint64, count int64) uint64 { return key*31 + uint64(count)*key }

// Counts are the final counts of all keys.
type Counts struct{ tables []*table }

// KeyedCount adds up the events' values per key, for about keys keys, with workers producers and consumers. The checksum
// is that of all counts.
func KeyedCount(es []Event, keys, workers int) (*Counts, uint64) {
	c := &Counts{}
	for range workers {
		c.tables = append(c.tables, newTable(keys/workers+keys/(4*workers)))
	}
	hs := make([][batchSize]uint64, workers)
	exchange(es, workers, func(w int, b []Event) { c.tables[w].add(b, &hs[w]) })
	var sum uint64
	for _, t := range c.tables {
		sum += t.checksum()
	}
	return c, sum
}

// Rolling adds up f of every count that each key has gone through, 1 ... the final one.
func (c *Counts) Rolling(f func(key, count uint64) uint64) (sum uint64) {
	for _, t := range c.tables {
		for _, s := range t.slots {
			for n := range uint64(s.count) {
				sum += f(s.key, n+1)
			}
		}
	}
	return sum
}
