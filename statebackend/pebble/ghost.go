package pebble

// ghost remembers the hashes of rows that went from the small queue not long ago: about as many as the cache has rows. Each
// place remembers the last hash that belongs to it.
type ghost struct {
	marks []uint16
	mask  uint32
}

// add remembers a hash. The memory is taken when the first row goes: 2 bytes for each 128 of the cache.
func (g *ghost) add(hash uint32, limit int64) {
	if g.marks == nil {
		n := uint32(256)
		for int64(n) < limit/128 && n < 1<<24 {
			n *= 2
		}
		g.marks, g.mask = make([]uint16, n), n-1
	}
	g.marks[hash&g.mask] = mark(hash)
}

// has says whether a hash is remembered, and forgets it.
func (g *ghost) has(hash uint32) bool {
	if g.marks == nil || g.marks[hash&g.mask] != mark(hash) {
		return false
	}
	g.marks[hash&g.mask] = 0
	return true
}

// mark is what tells hashes of one place apart; never 0.
func mark(hash uint32) uint16 { return uint16(hash>>16) | 1 }
