package nexmark

import "math/bits"

// Hash is the hash of a row that is being made, column after column. The checksum of a result is the sum of its rows'
// hashes: it does not depend on their order, and a row that is taken back is subtracted.
type Hash uint64

const (
	hashPrime = 0x9fb21c651e98df25
	textPrime = 0xd6e8feb86659fd93
)

// Int adds a number to the row.
func (h Hash) Int(x int64) Hash {
	high, low := bits.Mul64(uint64(h)^hashPrime, uint64(x)^textPrime)
	return Hash(bits.RotateLeft64(uint64(h), 23) + high ^ low)
}

// Text adds a string to the row.
func (h Hash) Text(s string) Hash {
	h = h.Int(int64(len(s)))
	for ; len(s) >= 16; s = s[16:] {
		high, low := bits.Mul64(word(s)^uint64(h), word(s[8:])^textPrime)
		h = Hash(bits.RotateLeft64(uint64(h), 29) + high ^ low)
	}
	if len(s) >= 8 {
		h = h.Int(int64(word(s)))
		s = s[8:]
	}
	var tail uint64
	for i := range len(s) {
		tail = tail<<8 | uint64(s[i])
	}
	return h.Int(int64(tail))
}

// word is the first eight bytes of s, read at once.
func word(s string) uint64 {
	_ = s[7]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}

// Sum ends the row: what it adds to a checksum.
func (h Hash) Sum() uint64 { return scramble(uint64(h)) }
