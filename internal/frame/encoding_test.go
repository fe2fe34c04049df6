package frame

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"
)

func randomFrame(t testing.TB, rng *rand.Rand, n int) *Frame {
	f := New(typeOf[record](t), max(1, n))
	timed := rng.IntN(2) == 0
	for i := range n {
		for rng.IntN(4) == 0 {
			f.AddMark(Mark{Kind: MarkKind(rng.IntN(int(Probe) + 1)), Value: rng.Int64() - 1<<62})
		}
		ts := int64(NoTime)
		if timed {
			ts = rng.Int64N(1000) - 500
		}
		Add(&f.Column, record{Key: string(rune('a' + i%26)), N: rng.Int64(), Many: []byte{byte(i)}}, ts)
	}
	f.AddMark(Mark{Kind: Watermark, Value: MaxWatermark})
	return f
}

func TestEncodedFramesComeBackWhole(t *testing.T) {
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 7))
		f := randomFrame(t, rng, int(seed))
		b, err := f.Encode(nil)
		if err != nil {
			t.Fatal(err)
		}
		g, err := Decode(f.Type, nil, b)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		x, y := f.Run(), g.Run()
		if !slices.Equal(f.Marks, g.Marks) || !slices.Equal(x.Times, y.Times) || (x.Times == nil) != (y.Times == nil) {
			t.Fatalf("seed %d: marks %v times %v came back as %v %v", seed, f.Marks, x.Times, g.Marks, y.Times)
		}
		for i := range x.N {
			if !f.Type.Equal(x.At(i), y.At(i)) {
				t.Errorf("seed %d: element %d came back as %s", seed, i, f.Type.Format(y.At(i)))
			}
		}
		old, err := f.Type.Reader(f.Type.Schema())
		if err != nil {
			t.Fatal(err)
		}
		h, err := Decode(f.Type, old, b)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := h.Encode(nil); err != nil || !bytes.Equal(again, b) {
			t.Errorf("seed %d: by the reader of a schema another frame came back: %v", seed, err)
		}
		for cut := range b {
			if _, err := Decode(f.Type, nil, b[:cut]); err == nil {
				t.Fatalf("seed %d: %d of %d bytes are a frame", seed, cut, len(b))
			}
		}
	}
}

func FuzzDecodeFrame(f *testing.F) {
	typ := typeOf[record](f)
	for n := range 4 {
		b, err := randomFrame(f, rand.New(rand.NewPCG(uint64(n), 1)), n).Encode(nil)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		g, err := Decode(typ, nil, b)
		if err != nil {
			return
		}
		again, err := g.Encode(nil)
		if err != nil {
			t.Fatal(err)
		}
		h, err := Decode(typ, nil, again)
		if err != nil || h.Len() != g.Len() || !slices.Equal(h.Marks, g.Marks) {
			t.Fatalf("a frame of %d elements came back as another one: %v", g.Len(), err)
		}
	})
}
