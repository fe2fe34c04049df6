package serde

import (
	"testing"
	"time"
	"unsafe"
)

// FuzzReadEverything decodes arbitrary bytes: no panic, no endless allocation, and what is accepted has one encoding,
// which its copy shares.
func FuzzReadEverything(f *testing.F) {
	h := everythingHandle(f)
	zero, full := everything{}, fullValue()
	for _, v := range []*everything{&zero, &full} {
		b, err := h.Append(nil, unsafe.Pointer(v))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
		f.Add(b[:len(b)/2])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var v, again, dup everything
		n, err := h.Read(b, unsafe.Pointer(&v))
		if n < 0 || n > len(b) {
			t.Fatalf("read %d of %d bytes", n, len(b))
		}
		if err != nil {
			return
		}
		over := skip{enclosed{Schema: h.Schema()}}
		if skipped, err := over.read(b, nil, maxDepth); err != nil || skipped != n {
			t.Fatalf("read %d bytes, skipped %d: %v", n, skipped, err)
		}
		first, err := h.Append(nil, unsafe.Pointer(&v))
		if err != nil {
			t.Fatal(err)
		}
		if n, err := h.Read(first, unsafe.Pointer(&again)); err != nil || n != len(first) {
			t.Fatal(n, err)
		}
		if err := h.Clone(unsafe.Pointer(&dup), unsafe.Pointer(&v)); err != nil {
			t.Fatal(err)
		}
		for _, x := range []*everything{&again, &dup} {
			if second, err := h.Append(nil, unsafe.Pointer(x)); err != nil || string(second) != string(first) {
				t.Fatalf("%v\n%x\n%x", err, first, second)
			}
		}
	})
}

type fuzzKey struct {
	S    string
	I    int32
	F    float64
	G    float32
	At   time.Time
	B    bool
	U    [2]uint16
	Last string
}

// FuzzDecodeKey decodes arbitrary bytes as keys: what is accepted is the canonical form of what comes out.
func FuzzDecodeKey(f *testing.F) {
	k := keyOf[fuzzKey](f)
	p := keyOf[mixedKey](f)
	var s KeyScratch
	for _, v := range []fuzzKey{{}, {"a", 1, 2, 3, time.Unix(1, 1), true, [2]uint16{1, 2}, "z"}} {
		c, err := k.Canon(columnOf([]fuzzKey{v}), &s)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(append([]byte(nil), c.Bytes(0)...))
	}
	f.Add(make([]byte, p.Width))
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, k := range []*Key{k, p} {
			v := k.New()
			if err := k.Decode(b, v); err != nil {
				continue
			}
			c, err := k.Canon(Column{v, 1, k.Size}, &s)
			if err != nil || string(c.Bytes(0)) != string(b) {
				t.Fatalf("%s: %x became %x, %v", k.Name, b, c.Bytes(0), err)
			}
		}
	})
}

// FuzzParseSchema parses arbitrary text: what is accepted is the text of the result.
func FuzzParseSchema(f *testing.F) {
	f.Add(everythingHandle(f).Schema().String())
	f.Add("map[[3]string]*struct{A int8;B ^2}")
	f.Add("oneof{\"*x\" bool;y custom(\"t\")}")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := ParseSchema(text)
		if err == nil && s.String() != text {
			t.Fatalf("%q became %q", text, s)
		}
	})
}
