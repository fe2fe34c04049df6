package serde

import (
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"
)

// hashOfWidth hashes canonical keys of one width, the way Key.HashOne does.
func hashOfWidth(width uintptr) func(b []byte, seed uint64) uint64 {
	k := &Key{Width: width}
	return k.HashOne
}

// TestEveryInputBitFlipsEveryOutputBit is the avalanche test: for random keys, flipping one bit of the key or of the
// seed must flip each bit of the hash about half of the time.
func TestEveryInputBitFlipsEveryOutputBit(t *testing.T) {
	const rounds = 2000
	r := rand.New(rand.NewPCG(1, 1))
	for _, n := range []int{1, 2, 4, 8, 12, 16, 24, 40} {
		hash := hashOfWidth(uintptr(n))
		for _, sparse := range []bool{false, true} {
			if sparse && n < 8 {
				continue
			}
			b := make([]byte, n)
			for bit := range 8 * n {
				var flips [64]int
				for range rounds {
					for i := range b {
						b[i] = byte(r.Uint32())
						if sparse && i%8 > 1 {
							b[i] = 0
						}
					}
					seed := r.Uint64()
					before := hash(b, seed)
					b[bit/8] ^= 1 << (bit % 8)
					diff := before ^ hash(b, seed)
					for o := range flips {
						flips[o] += int(diff >> o & 1)
					}
				}
				for o, f := range flips {
					if p := float64(f) / rounds; p < 0.43 || p > 0.57 {
						t.Errorf("width %d sparse %v: input bit %d flips output bit %d with %.3f", n, sparse, bit, o, p)
					}
				}
			}
		}
	}
}

// structured key sets, as they come from real data.
func structuredKeys(width uintptr) map[string]func(i uint64) []byte {
	put := func(words ...uint64) []byte {
		b := make([]byte, width)
		for i := range b {
			if w := i / 8; w < len(words) {
				b[i] = byte(words[w] >> (8 * (i % 8)))
			}
		}
		return b
	}
	sets := map[string]func(uint64) []byte{
		"counting": func(i uint64) []byte { return put(i, 7) },
		"negative": func(i uint64) []byte { return put(-i, 1) },
		"grid":     func(i uint64) []byte { return put(i/128<<16|i%128, 0) },
	}
	if width >= 8 {
		sets["spaced 2^10"] = func(i uint64) []byte { return put(i<<10, 3) }
		sets["spaced 2^20"] = func(i uint64) []byte { return put(i<<20, 3) }
		sets["spaced 2^32"] = func(i uint64) []byte { return put(i<<32, 3) }
		sets["high bits"] = func(i uint64) []byte { return put(i<<48, 3) }
		sets["halves equal"] = func(i uint64) []byte { return put(i<<32|i, 0) }
		sets["millis"] = func(i uint64) []byte { return put(1_700_000_000_000+i*1000, 0) }
		sets["floats"] = func(i uint64) []byte { return put(math.Float64bits(float64(i)), 0) }
	}
	if width >= 16 {
		sets["counting second"] = func(i uint64) []byte { return put(7, i) }
		sets["both"] = func(i uint64) []byte { return put(i, i) }
		sets["second high"] = func(i uint64) []byte { return put(5, i<<48) }
		sets["wide grid"] = func(i uint64) []byte { return put(i/128, i%128<<57) }
	}
	return sets
}

// TestStructuredKeysSpreadOverHighLowAndMiddleBits throws key sets into buckets chosen by any window of the hash bits
// and compares the number of occupied buckets and the chi-square with those of a random function.
func TestStructuredKeysSpreadOverHighLowAndMiddleBits(t *testing.T) {
	const logBuckets, buckets = 11, 1 << 11
	const keys = 4 * buckets
	for _, width := range []uintptr{4, 8, 12, 16, 24} {
		hash := hashOfWidth(width)
		for name, key := range structuredKeys(width) {
			for _, seed := range []uint64{0, 1, 42, 0xdeadbeefcafe} {
				hashes := make([]uint64, keys)
				for i := range hashes {
					hashes[i] = hash(key(uint64(i)), seed)
				}
				for shift := 0; shift+logBuckets <= 64; shift++ {
					var count [buckets]int
					for _, h := range hashes {
						count[h>>shift&(buckets-1)]++
					}
					chi := 0.0
					for _, c := range count {
						d := float64(c) - float64(keys)/buckets
						chi += d * d / (float64(keys) / buckets)
					}
					// mean buckets-1, standard deviation sqrt(2*(buckets-1)) = 64
					if z := (chi - (buckets - 1)) / math.Sqrt(2*(buckets-1)); z > 6 {
						t.Errorf("width %d, %s, seed %d: bits %d-%d: chi-square is %.1f deviations too high",
							width, name, seed, shift, shift+logBuckets-1, z)
					}
				}
			}
		}
	}
}

func TestRunAndSingleKeyHashesAgree(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for _, width := range []uintptr{1, 2, 3, 4, 5, 8, 9, 12, 16, 17, 20, 31, 32, 33, 64} {
		k := &Key{Width: width}
		stride := width + 3
		mem := make([]byte, 10*stride)
		for i := range mem {
			mem[i] = byte(r.Uint32())
		}
		c := Canon{Width: width, P: unsafe.Pointer(&mem[0]), Stride: stride, N: 10}
		var out [10]uint64
		k.Hash(&c, 9, out[:])
		text := &Key{}
		ct := Canon{N: 10}
		for i := range out {
			if out[i] != k.HashOne(c.Bytes(i), 9) {
				t.Fatalf("width %d: key %d differs", width, i)
			}
			ct.Text = append(ct.Text, string(c.Bytes(i)))
		}
		text.Hash(&ct, 9, out[:])
		for i := range out {
			if out[i] != text.HashOne(ct.Bytes(i), 9) {
				t.Fatalf("text of %d bytes: key %d differs", width, i)
			}
		}
	}
}

func TestTextsOfZerosOfEveryLengthDiffer(t *testing.T) {
	k := &Key{}
	seen := map[uint64]int{}
	zeros := make([]byte, 200)
	for n := range len(zeros) {
		h := k.HashOne(zeros[:n], 3)
		if m, ok := seen[h]; ok {
			t.Fatalf("%d and %d zeros have one hash", n, m)
		}
		seen[h] = n
	}
}
