package serde

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"unsafe"
)

const benchRun = 512

func benchHash[K any](b *testing.B, make func(r *rand.Rand) K) {
	k, err := KeyOf[K]()
	if err != nil {
		b.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 2))
	var keys [benchRun]K
	for i := range keys {
		keys[i] = make(r)
	}
	col := Column{unsafe.Pointer(&keys[0]), benchRun, unsafe.Sizeof(keys[0])}
	var s KeyScratch
	out := new([benchRun]uint64)
	b.ReportAllocs()
	for b.Loop() {
		c, err := k.Canon(col, &s)
		if err != nil {
			b.Fatal(err)
		}
		k.Hash(&c, 42, out[:])
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/benchRun, "ns/key")
}

func randomText(least, most int) func(*rand.Rand) string {
	return func(r *rand.Rand) string {
		b := make([]byte, least+r.IntN(most-least+1))
		for i := range b {
			b[i] = byte('a' + r.IntN(26))
		}
		return string(b)
	}
}

type (
	packedKey struct {
		A    int64
		B, C int32
	}
	paddedKey struct {
		A int64
		B int32
		F float64
	}
	textKey struct {
		S string
		N int64
	}
)

func BenchmarkCanonAndHash(b *testing.B) {
	b.Run("int64", func(b *testing.B) { benchHash(b, (*rand.Rand).Int64) })
	b.Run("int32", func(b *testing.B) { benchHash(b, (*rand.Rand).Int32) })
	b.Run("float64", func(b *testing.B) { benchHash(b, (*rand.Rand).Float64) })
	b.Run("16bytes", func(b *testing.B) {
		benchHash(b, func(r *rand.Rand) [16]byte { return [16]byte{byte(r.Uint32()), 5: byte(r.Uint32())} })
	})
	for _, n := range [][2]int{{7, 7}, {3, 12}, {24, 24}, {36, 36}, {100, 100}} {
		b.Run(fmt.Sprintf("string%d-%d", n[0], n[1]), func(b *testing.B) { benchHash(b, randomText(n[0], n[1])) })
	}
	b.Run("struct16", func(b *testing.B) {
		benchHash(b, func(r *rand.Rand) packedKey { return packedKey{r.Int64(), r.Int32(), 1} })
	})
	b.Run("struct20padded", func(b *testing.B) {
		benchHash(b, func(r *rand.Rand) paddedKey { return paddedKey{r.Int64(), r.Int32(), r.Float64()} })
	})
	b.Run("struct-text", func(b *testing.B) {
		text := randomText(7, 7)
		benchHash(b, func(r *rand.Rand) textKey { return textKey{text(r), r.Int64()} })
	})
}

type bid struct {
	Auction, Bidder int64
	Price           float64
	Channel, URL    string
	At              int64
	Auto            bool
}

func BenchmarkCodec(b *testing.B) {
	h, err := Of[bid]()
	if err != nil {
		b.Fatal(err)
	}
	v := bid{1, 2, 3.5, "channel", "https://example.com/item/1", 99, true}
	buf, err := h.Append(nil, unsafe.Pointer(&v))
	if err != nil {
		b.Fatal(err)
	}
	b.Run("append", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			buf, _ = h.Append(buf[:0], unsafe.Pointer(&v))
		}
	})
	b.Run("read", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := h.Read(buf, unsafe.Pointer(&v)); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("clone", func(b *testing.B) {
		var c bid
		for b.Loop() {
			_ = h.Clone(unsafe.Pointer(&c), unsafe.Pointer(&v))
		}
	})
}

func BenchmarkHashOne(b *testing.B) {
	k, err := KeyOf[int64]()
	if err != nil {
		b.Fatal(err)
	}
	key := []byte("12345678")
	sum := uint64(0)
	b.Run("HashOne", func(b *testing.B) {
		for b.Loop() {
			sum += k.HashOne(key, 42)
		}
	})
	h := k.Hasher(42)
	b.Run("Hasher", func(b *testing.B) {
		for b.Loop() {
			sum += h.One(key)
		}
	})
}

func BenchmarkColumn(b *testing.B) {
	h, err := Of[bid]()
	if err != nil {
		b.Fatal(err)
	}
	var values [benchRun]bid
	for i := range values {
		values[i] = bid{1, 2, 3.5, "channel", "https://example.com/item/1", 99, true}
	}
	col := Column{unsafe.Pointer(&values[0]), benchRun, unsafe.Sizeof(values[0])}
	buf, err := h.AppendColumn(nil, col)
	if err != nil {
		b.Fatal(err)
	}
	perValue := func(b *testing.B) {
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/benchRun, "ns/value")
	}
	b.Run("append", func(b *testing.B) {
		for b.Loop() {
			buf, _ = h.AppendColumn(buf[:0], col)
		}
		perValue(b)
	})
	b.Run("read", func(b *testing.B) {
		for b.Loop() {
			if _, err := h.ReadColumn(buf, col); err != nil {
				b.Fatal(err)
			}
		}
		perValue(b)
	})
}

func BenchmarkEncodeMap(b *testing.B) {
	h, err := Of[map[string]int64]()
	if err != nil {
		b.Fatal(err)
	}
	v := map[string]int64{}
	for i := range 10 {
		v[fmt.Sprint("key", i)] = int64(i)
	}
	var buf []byte
	b.Run("append", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			buf, _ = h.Append(buf[:0], unsafe.Pointer(&v))
		}
	})
	b.Run("read", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := h.Read(buf, unsafe.Pointer(&v)); err != nil {
				b.Fatal(err)
			}
		}
	})
}
