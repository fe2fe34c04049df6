package serde

import (
	"math/bits"
	"unsafe"
)

// The hash of a canonical key is a durable format: it decides key groups and so where state lives. docs/formats/key-hash.md
// describes it byte for byte; golden values in the tests hold it in place.

// KeyHashVersion is the version of the key hash. Snapshots record it.
const KeyHashVersion = 1

// Constants with about half of their bits set, from the fractional parts of pi.
const (
	hashC0 = 0x243f6a8885a308d3
	hashC1 = 0x13198a2e03707345
	hashC2 = 0xa4093822299f31d1
	hashC3 = 0x082efa98ec4e6c89
)

// hashKeys are the two words that a seed becomes.
type hashKeys struct{ s0, s1 uint64 }

func keysOfSeed(seed uint64) hashKeys {
	return hashKeys{s0: fmix64(seed ^ hashC0), s1: fmix64(seed ^ hashC1)}
}

// fmix64 is a bijection in which every bit depends on every other.
func fmix64(x uint64) uint64 {
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	x *= 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}

// fold multiplies to 128 bits and folds the halves.
func fold(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	return hi ^ lo
}

// word hashes a key of up to 8 bytes, zero extended. One product is not enough, even if both of its factors depend on the
// key: keys spaced by a power of two then share bits.
func (h hashKeys) word(k uint64) uint64 { return fold(fold(k^h.s0, h.s1), hashC2) }

// pair hashes a key of 16 bytes.
func (h hashKeys) pair(a, b uint64) uint64 { return fold(fold(a^h.s0, b^h.s1), hashC2) }

// bytes hashes a key of any other length.
func (h hashKeys) bytes(p unsafe.Pointer, n int) uint64 {
	s := h.s0 ^ uint64(n)*hashC3
	var a, b uint64
	switch {
	case n > 16:
		left := n
		for ; left > 16; left -= 16 {
			s = fold(load64(p)^s, load64(unsafe.Add(p, 8))^h.s1)
			p = unsafe.Add(p, 16)
		}
		end := unsafe.Add(p, left-16)
		a, b = load64(end), load64(unsafe.Add(end, 8))
	case n >= 8:
		a, b = load64(p), load64(unsafe.Add(p, n-8))
	case n >= 4:
		a, b = uint64(load32(p)), uint64(load32(unsafe.Add(p, n-4)))
	case n > 0:
		a = uint64(*(*byte)(p)) | uint64(*(*byte)(unsafe.Add(p, n>>1)))<<8 | uint64(*(*byte)(unsafe.Add(p, n-1)))<<16
	}
	return hashKeys{s, h.s1}.pair(a, b)
}

// Hasher hashes canonical keys of one key type with one seed. It is a value: copy it where it is used.
type Hasher struct {
	keys  hashKeys
	width uintptr
}

// Hasher gives the hash function for a seed. Hashes with different seeds are unrelated; for one seed they never change, in
// any process and version. High and low bits are equally good.
func (k *Key) Hasher(seed uint64) Hasher { return Hasher{keys: keysOfSeed(seed), width: k.Width} }

// Hash writes one 64-bit hash per key to out, which must have room for c.N.
func (k *Key) Hash(c *Canon, seed uint64, out []uint64) { k.Hasher(seed).Run(c, out) }

// HashOne gives the hash that Hash gives for one canonical key. Who hashes many keeps a Hasher.
func (k *Key) HashOne(b []byte, seed uint64) uint64 { return k.Hasher(seed).One(b) }

// Run writes one hash per key to out, which must have room for c.N.
func (h Hasher) Run(c *Canon, out []uint64) {
	keys := h.keys
	out = out[:c.N]
	switch c.Width {
	case 0:
		for i, s := range c.Text[:len(out)] {
			out[i] = keys.bytes(unsafe.Pointer(unsafe.StringData(s)), len(s))
		}
	case 8:
		keys.words(c, out)
	case 4:
		keys.halves(c, out)
	case 2:
		for i := range out {
			out[i] = keys.word(uint64(load16(c.at(i))))
		}
	case 1:
		for i := range out {
			out[i] = keys.word(uint64(*(*byte)(c.at(i))))
		}
	case 16:
		keys.pairs(c, out)
	default:
		for i := range out {
			out[i] = keys.bytes(c.at(i), int(c.Width))
		}
	}
}

// words is the loop of 8-byte keys; most columns have nothing between the keys.
func (h hashKeys) words(c *Canon, out []uint64) {
	if c.Stride == 8 && uintptr(c.P)%8 == 0 && !bigEndian {
		for i, w := range unsafe.Slice((*uint64)(c.P), len(out)) {
			out[i] = h.word(w)
		}
		return
	}
	for i := range out {
		out[i] = h.word(load64(c.at(i)))
	}
}

// halves is the loop of 4-byte keys.
func (h hashKeys) halves(c *Canon, out []uint64) {
	if c.Stride == 4 && uintptr(c.P)%4 == 0 && !bigEndian {
		for i, w := range unsafe.Slice((*uint32)(c.P), len(out)) {
			out[i] = h.word(uint64(w))
		}
		return
	}
	for i := range out {
		out[i] = h.word(uint64(load32(c.at(i))))
	}
}

// pairs is the loop of 16-byte keys.
func (h hashKeys) pairs(c *Canon, out []uint64) {
	if c.Stride == 16 && uintptr(c.P)%8 == 0 && !bigEndian {
		words := unsafe.Slice((*[2]uint64)(c.P), len(out))
		for i := range words {
			out[i] = h.pair(words[i][0], words[i][1])
		}
		return
	}
	for i := range out {
		p := c.at(i)
		out[i] = h.pair(load64(p), load64(unsafe.Add(p, 8)))
	}
}

// One gives the hash of one canonical key.
func (h Hasher) One(b []byte) uint64 {
	p := unsafe.Pointer(unsafe.SliceData(b))
	if h.width == 0 || uintptr(len(b)) != h.width {
		return h.keys.bytes(p, len(b))
	}
	switch h.width {
	case 8:
		return h.keys.word(load64(p))
	case 4:
		return h.keys.word(uint64(load32(p)))
	case 2:
		return h.keys.word(uint64(load16(p)))
	case 1:
		return h.keys.word(uint64(*(*byte)(p)))
	case 16:
		return h.keys.pair(load64(p), load64(unsafe.Add(p, 8)))
	}
	return h.keys.bytes(p, len(b))
}
