package heap

import (
	"unsafe"

	"github.com/flott-dev/flott/serde"
)

// source is a run of keys with their hashes.
type source struct {
	canon  serde.Canon
	hashes []uint64
	words  []uint64 // the keys as words, nil until someone asks
	wide   []uint64 // scratch behind words
}

func (s *source) set(c *serde.Canon, hashes []uint64) {
	s.canon, s.hashes, s.words = *c, hashes[:c.N], nil
}

// widen gives keys of up to 8 bytes as words: their bytes in memory order, then zeros.
func (s *source) widen() []uint64 {
	if s.words != nil {
		return s.words
	}
	c := &s.canon
	if c.N == 0 {
		return nil
	}
	if c.Width == 8 && c.Stride == 8 && uintptr(c.P)&7 == 0 {
		s.words = unsafe.Slice((*uint64)(c.P), c.N)
		return s.words
	}
	if cap(s.wide) < c.N {
		s.wide = make([]uint64, max(c.N, 512))
	}
	s.words = s.wide[:c.N]
	p := c.P
	switch c.Width {
	case 8:
		for i := range s.words {
			s.words[i] = *(*uint64)(unsafe.Add(p, uintptr(i)*c.Stride))
		}
	case 4:
		clear(s.words)
		for i := range s.words {
			*(*uint32)(unsafe.Pointer(&s.words[i])) = *(*uint32)(unsafe.Add(p, uintptr(i)*c.Stride))
		}
	default:
		clear(s.words)
		for i := range s.words {
			copyBytes(unsafe.Pointer(&s.words[i]), unsafe.Add(p, uintptr(i)*c.Stride), c.Width)
		}
	}
	return s.words
}

func copyBytes(dst, src unsafe.Pointer, n uintptr) {
	copy(unsafe.Slice((*byte)(dst), n), unsafe.Slice((*byte)(src), n))
}

func clearBytes(p unsafe.Pointer, n uintptr) { clear(unsafe.Slice((*byte)(p), n)) }

func bytesAt(p unsafe.Pointer, n uintptr) []byte { return unsafe.Slice((*byte)(p), n) }

// equalBytes compares n bytes, a word at a time.
func equalBytes(a, b unsafe.Pointer, n uintptr) bool {
	if n < 8 {
		return string(bytesAt(a, n)) == string(bytesAt(b, n))
	}
	last := n - 8
	for i := uintptr(0); i < last; i += 8 {
		if *(*uint64)(unsafe.Add(a, i)) != *(*uint64)(unsafe.Add(b, i)) {
			return false
		}
	}
	return *(*uint64)(unsafe.Add(a, last)) == *(*uint64)(unsafe.Add(b, last))
}

// one is 1 for true; the compiler makes it without a branch.
func one(b bool) int {
	n := 0
	if b {
		n = 1
	}
	return n
}
