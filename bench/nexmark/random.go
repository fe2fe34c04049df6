package nexmark

import (
	"math"
	"math/bits"
	"strings"
)

// random is a sequence of random numbers that follows from a number: an event's choices depend on nothing but the seed
// and the event's number, so that events can be made in any order, by any number of workers.
type random struct{ state uint64 }

const golden = 0x9e3779b97f4a7c15

func randomOf(seed, n uint64) random { return random{scramble(seed+golden) ^ scramble(n*golden+1)} }

// scramble is a bijection that leaves no pattern in its argument's bits.
func scramble(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}

func (r *random) next() uint64 {
	r.state += golden
	return scramble(r.state)
}

// below is a number from 0 to n-1.
func (r *random) below(n int64) int64 {
	high, _ := bits.Mul64(r.next(), uint64(n))
	return int64(high)
}

// price is between 100 and 10^8; its logarithm is uniform.
func (r *random) price() int64 {
	u := float64(r.next()>>11) / (1 << 53)
	return int64(math.Round(math.Pow(10, u*6) * 100))
}

// text makes strings in memory that many of them share.
type text struct {
	random
	chunk *strings.Builder
	from  int // where the string at hand begins
}

const chunkBytes = 1 << 18

// begin starts a string of at most n bytes.
func (t *text) begin(n int) {
	if t.chunk == nil || t.chunk.Cap()-t.chunk.Len() < n {
		t.chunk = new(strings.Builder)
		t.chunk.Grow(chunkBytes)
	}
	t.from = t.chunk.Len()
}

// end gives the string that was begun.
func (t *text) end() string { return t.chunk.String()[t.from:] }

// words is a string of 3 to longest-1 characters: letters, and in one of 13 places the special one; blanks are cut off at
// both ends.
func (t *text) words(longest int, special byte) string {
	t.begin(longest)
	t.put(longest, special)
	return strings.TrimSpace(t.end())
}

func (t *text) put(longest int, special byte) {
	n := 3 + int(t.below(int64(longest-3)))
	var x uint64
	for i := range n {
		if i%4 == 0 {
			x = t.next()
		}
		v := uint32(x & 0xffff)
		x >>= 16
		if v < 1<<16/13 {
			t.chunk.WriteByte(special)
		} else {
			t.chunk.WriteByte('a' + byte(v%26))
		}
	}
}

// padding is a string of letters that brings a record of so many bytes to a size around the average, 80 % to 120 % of what
// is missing.
func (t *text) padding(size, average int) string {
	if size > average {
		return ""
	}
	missing := average - size
	delta := int(math.Round(float64(missing) * 0.2))
	n := missing - delta
	if delta > 0 {
		n += int(t.below(int64(2 * delta)))
	}
	t.begin(n)
	var x uint64
	for i := range n {
		if i%8 == 0 {
			x = t.next()
		}
		t.chunk.WriteByte('a' + byte(x&0xff*26>>8))
		x >>= 8
	}
	return t.end()
}

// digits are four groups of four digits.
func (t *text) digits() string {
	t.begin(19)
	for i := range 4 {
		if i > 0 {
			t.chunk.WriteByte(' ')
		}
		n := t.below(10_000)
		for d := int64(1000); d > 0; d /= 10 {
			t.chunk.WriteByte('0' + byte(n/d%10))
		}
	}
	return t.end()
}
