// Package murmur is the hash that makes operator ids of UIDs, as Flink does it. It never hashes keys (package serde does). The
// graph and the snapshot container call it.
package murmur

import (
	"encoding/binary"
	"math/bits"
)

const (
	c1 = 0x87c37b91114253d5
	c2 = 0x4cf5ad432745937f
)

// Sum128 is MurmurHash3 (x64, 128 bit, seed 0), the two halves in little-endian order: the hash that Flink makes of UIDs, so
// that a UID has the same operator id in both.
func Sum128(data []byte) [16]byte {
	var h1, h2 uint64
	tail := data
	for ; len(tail) >= 16; tail = tail[16:] {
		h1 ^= k1(binary.LittleEndian.Uint64(tail))
		h1 = (bits.RotateLeft64(h1, 27)+h2)*5 + 0x52dce729
		h2 ^= k2(binary.LittleEndian.Uint64(tail[8:]))
		h2 = (bits.RotateLeft64(h2, 31)+h1)*5 + 0x38495ab5
	}
	var rest [16]byte
	copy(rest[:], tail)
	h1 ^= k1(binary.LittleEndian.Uint64(rest[:]))
	h2 ^= k2(binary.LittleEndian.Uint64(rest[8:]))

	h1 ^= uint64(len(data))
	h2 ^= uint64(len(data))
	h1 += h2
	h2 += h1
	h1, h2 = mix(h1), mix(h2)
	h1 += h2
	h2 += h1

	var id [16]byte
	binary.LittleEndian.PutUint64(id[:], h1)
	binary.LittleEndian.PutUint64(id[8:], h2)
	return id
}

func k1(k uint64) uint64 { return bits.RotateLeft64(k*c1, 31) * c2 }

func k2(k uint64) uint64 { return bits.RotateLeft64(k*c2, 33) * c1 }

func mix(h uint64) uint64 {
	h ^= h >> 33
	h *= 0xff51afd7ed558ccd
	h ^= h >> 33
	h *= 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}
