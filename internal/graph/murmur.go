package graph

import (
	"encoding/binary"
	"math/bits"
)

const (
	murmurC1 = 0x87c37b91114253d5
	murmurC2 = 0x4cf5ad432745937f
)

// murmur128 is MurmurHash3 (x64, 128 bit, seed 0), the two halves in little-endian order: the hash that Flink makes of
// UIDs, so that a UID has the same operator id in both.
func murmur128(data []byte) ID {
	var h1, h2 uint64
	tail := data
	for ; len(tail) >= 16; tail = tail[16:] {
		h1 ^= murmurK1(binary.LittleEndian.Uint64(tail))
		h1 = (bits.RotateLeft64(h1, 27)+h2)*5 + 0x52dce729
		h2 ^= murmurK2(binary.LittleEndian.Uint64(tail[8:]))
		h2 = (bits.RotateLeft64(h2, 31)+h1)*5 + 0x38495ab5
	}
	var rest [16]byte
	copy(rest[:], tail)
	h1 ^= murmurK1(binary.LittleEndian.Uint64(rest[:]))
	h2 ^= murmurK2(binary.LittleEndian.Uint64(rest[8:]))

	h1 ^= uint64(len(data))
	h2 ^= uint64(len(data))
	h1 += h2
	h2 += h1
	h1, h2 = murmurMix(h1), murmurMix(h2)
	h1 += h2
	h2 += h1

	var id ID
	binary.LittleEndian.PutUint64(id[:], h1)
	binary.LittleEndian.PutUint64(id[8:], h2)
	return id
}

func murmurK1(k uint64) uint64 { return bits.RotateLeft64(k*murmurC1, 31) * murmurC2 }

func murmurK2(k uint64) uint64 { return bits.RotateLeft64(k*murmurC2, 33) * murmurC1 }

func murmurMix(h uint64) uint64 {
	h ^= h >> 33
	h *= 0xff51afd7ed558ccd
	h ^= h >> 33
	h *= 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}
