package timers

import "encoding/binary"

const (
	arenaChunk   = 32 << 10
	smallest     = 16 // bytes of the first size class; each class is twice the one before
	arenaClasses = 9  // up to 4 KiB; larger blocks are chunks of their own
)

// arena holds payloads that do not fit into records: blocks of a power of two, used again by their class once they are
// freed.
type arena struct {
	chunks [][]byte
	free   [arenaClasses]uint64 // first free block+1 of each class; the next one is in its first 8 bytes
	fill   [arenaClasses]struct{ chunk, off int }
	holes  []int // chunks of large blocks that were freed
	held   int64
	used   int64 // by blocks that are not free
}

// A block's name: chunk number in the upper half, offset in the lower.

func classOf(n int) int {
	c := 0
	for smallest<<c < n {
		c++
	}
	return c
}

// take returns a block of at least n bytes.
func (a *arena) take(n int) uint64 {
	c := classOf(n)
	if c >= arenaClasses {
		a.used += int64(n)
		return a.takeLarge(n)
	}
	a.used += smallest << c
	if name := a.free[c]; name != 0 {
		a.free[c] = binary.LittleEndian.Uint64(a.block(name-1, 8))
		return name - 1
	}
	f := &a.fill[c]
	if f.off == 0 || f.off == arenaChunk {
		a.chunks = append(a.chunks, make([]byte, arenaChunk))
		a.held += arenaChunk
		f.chunk, f.off = len(a.chunks)-1, 0
	}
	name := uint64(f.chunk)<<32 | uint64(f.off)
	f.off += smallest << c
	return name
}

func (a *arena) takeLarge(n int) uint64 {
	a.held += int64(n)
	if last := len(a.holes) - 1; last >= 0 {
		at := a.holes[last]
		a.holes = a.holes[:last]
		a.chunks[at] = make([]byte, n)
		return uint64(at) << 32
	}
	a.chunks = append(a.chunks, make([]byte, n))
	return uint64(len(a.chunks)-1) << 32
}

// give frees a block of n bytes.
func (a *arena) give(name uint64, n int) {
	c := classOf(n)
	if c >= arenaClasses {
		a.held -= int64(n)
		a.used -= int64(n)
		a.chunks[name>>32] = nil
		a.holes = append(a.holes, int(name>>32))
		return
	}
	a.used -= smallest << c
	binary.LittleEndian.PutUint64(a.block(name, 8), a.free[c])
	a.free[c] = name + 1
}

// block is the first n bytes of a block.
func (a *arena) block(name uint64, n int) []byte {
	off := int(uint32(name))
	return a.chunks[name>>32][off : off+n : off+n]
}
