package pebble

// bloomFilter is a set of hashes that may say of a few others, too, that they are in it: a Bloom filter whose bits of a hash lie in
// one line of the processor's cache.
type bloomFilter []bloomLine

type bloomLine [8]uint64

const (
	// bloomBits is how many bits there are for a hash: about one hash in a thousand is taken for one that is in the set.
	bloomBits = 16
	// bloomProbes is how many of them are set.
	bloomProbes = 7
	lineBits    = 512
)

// newBloom makes the filter of n hashes.
func newBloom(n int) bloomFilter { return make(bloomFilter, bloomBytes(n)/(lineBits/8)) }

// bloomBytes is the size of the filter of n hashes.
func bloomBytes(n int) int64 { return (int64(n)*bloomBits/lineBits + 1) * (lineBits / 8) }

// line gives the line of a hash and the numbers by which its bits are found in it.
func (b bloomFilter) line(hash uint32) (line *bloomLine, bits uint64) {
	x := (uint64(hash) + 1) * 0x9e3779b97f4a7c15
	line = &b[(x>>32)*uint64(len(b))>>32]
	x = (x ^ x>>31) * 0xbf58476d1ce4e5b9
	return line, x ^ x>>29
}

func (b bloomFilter) add(hash uint32) {
	line, bits := b.line(hash)
	for range bloomProbes {
		line[bits>>6&7] |= 1 << (bits & 63)
		bits >>= 9
	}
}

func (b bloomFilter) has(hash uint32) bool {
	line, bits := b.line(hash)
	for range bloomProbes {
		if line[bits>>6&7]&(1<<(bits&63)) == 0 {
			return false
		}
		bits >>= 9
	}
	return true
}
