package murmur

import (
	"encoding/binary"
	"encoding/hex"
	"math/bits"
	"strings"
	"testing"
)

// naive is MurmurHash3 (x64, 128 bit) as its author published it, byte by byte at the end, with its seed.
func naive(data []byte, seed uint32) (h [2]uint64) {
	h = [2]uint64{uint64(seed), uint64(seed)}
	take := func(i int, k uint64) {
		if i == 0 {
			h[0] ^= bits.RotateLeft64(k*0x87c37b91114253d5, 31) * 0x4cf5ad432745937f
			return
		}
		h[1] ^= bits.RotateLeft64(k*0x4cf5ad432745937f, 33) * 0x87c37b91114253d5
	}
	whole := len(data) / 16 * 16
	for at := 0; at < whole; at += 16 {
		take(0, binary.LittleEndian.Uint64(data[at:]))
		h[0] = (bits.RotateLeft64(h[0], 27)+h[1])*5 + 0x52dce729
		take(1, binary.LittleEndian.Uint64(data[at+8:]))
		h[1] = (bits.RotateLeft64(h[1], 31)+h[0])*5 + 0x38495ab5
	}
	var k [2]uint64
	for i, b := range data[whole:] {
		k[i/8] ^= uint64(b) << (i % 8 * 8)
	}
	if len(data)-whole > 8 {
		take(1, k[1])
	}
	if len(data) > whole {
		take(0, k[0])
	}
	h[0] ^= uint64(len(data))
	h[1] ^= uint64(len(data))
	h[0] += h[1]
	h[1] += h[0]
	for i := range h {
		h[i] ^= h[i] >> 33
		h[i] *= 0xff51afd7ed558ccd
		h[i] ^= h[i] >> 33
		h[i] *= 0xc4ceb9fe1a85ec53
		h[i] ^= h[i] >> 33
	}
	h[0] += h[1]
	h[1] += h[0]
	return h
}

func littleEndian(h [2]uint64) []byte {
	return binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, h[0]), h[1])
}

// TestNaiveIsTheHash computes the number by which SMHasher, the author's test suite, knows the hash: that of the hashes of the
// keys {}, {0}, {0, 1} and so on, with seeds from 256 down.
func TestNaiveIsTheHash(t *testing.T) {
	var key, hashes []byte
	for i := range 256 {
		hashes = append(hashes, littleEndian(naive(key, uint32(256-i)))...)
		key = append(key, byte(i))
	}
	if got := uint32(naive(hashes, 0)[0]); got != 0x6384BA69 {
		t.Errorf("%08x, want 6384ba69", got)
	}
}

func TestSum128IsTheHashOfSeedZero(t *testing.T) {
	data := make([]byte, 300)
	for i := range data {
		data[i] = byte(i*i + 7*i + 200)
	}
	for n := range data {
		if got, want := Sum128(data[:n]), littleEndian(naive(data[:n], 0)); string(got[:]) != string(want) {
			t.Errorf("%d bytes: %x, want %x", n, got, want)
		}
	}
}

// Ids of UIDs are in snapshots: they must stay what they are.
func TestSum128OfKnownTexts(t *testing.T) {
	for text, want := range map[string]string{
		"":      strings.Repeat("0", 32),
		"hello": "029bbd41b3a7d8cb191dae486a901e5b",
		"The quick brown fox jumps over the lazy dog": "6c1b07bc7bbc4be347939ac4a93c437a",
	} {
		if got := Sum128([]byte(text)); hex.EncodeToString(got[:]) != want {
			t.Errorf("%q: %x, want %s", text, got, want)
		}
	}
}

func FuzzSum128(f *testing.F) {
	f.Add([]byte("0123456789abcdef01234567"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if got, want := Sum128(data), littleEndian(naive(data, 0)); string(got[:]) != string(want) {
			t.Errorf("%x, want %x", got, want)
		}
	})
}
