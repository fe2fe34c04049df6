package heap

import (
	"testing"
	"unsafe"

	"github.com/flott-dev/flott/serde"
)

// TestRowsAreComparedByAllOfTheirKey asks for rows by other keys directly: the tables reach these comparisons only when
// tags collide.
func TestRowsAreComparedByAllOfTheirKey(t *testing.T) {
	window, err := serde.KeyOf[pair]()
	ok(t, err)
	text, err := serde.KeyOf[string]()
	ok(t, err)
	a, b := []byte("0123456789abcdef"), []byte("0123456789abcdeF")
	t.Run("fixed", func(t *testing.T) { testSame(t, []int64{1, 1 << 60}, window, a, b) })
	t.Run("narrow", func(t *testing.T) { testSame(t, []int16{1, 256}, window, a, b) })
	t.Run("wide", func(t *testing.T) { testSame(t, []pair{{1, 2}, {1, 3}}, window, a, b) })
	t.Run("text", func(t *testing.T) { testSame(t, []string{"abc", "abd"}, window, a, b) })
	t.Run("text, text", func(t *testing.T) { testSame(t, []string{"ab", "abc"}, text, []byte("cd"), []byte("d")) })
	t.Run("fixed, text", func(t *testing.T) { testSame(t, []int64{1, 2}, text, []byte("a"), []byte("")) })
	t.Run("wide alone", func(t *testing.T) { testSame(t, []pair{{1, 2}, {3, 2}}, nil) })
	t.Run("text alone", func(t *testing.T) { testSame(t, []string{"abc", "abcd"}, nil) })
	t.Run("empty text alone", func(t *testing.T) { testSame(t, []string{"", "abc"}, nil) })
}

func testSame[K comparable](t *testing.T, keys []K, ns *serde.Key, suffixes ...[]byte) {
	k := newKit[K](t)
	l := &ledger{store: k.store, state: "s"}
	x, err := newRowIndex(l, rowShape{slot: 8, key: k.key, src: &k.store.run, suffix: ns})
	ok(t, err)
	k.run(keys...)
	if suffixes == nil {
		suffixes = [][]byte{nil}
	}
	rows := map[[2]int]unsafe.Pointer{}
	for s, suffix := range suffixes {
		if ns != nil {
			x.setSuffix(suffix)
		}
		for i := range keys {
			rows[[2]int{s, i}], _, _, err = x.insert(i, x.hashOf(i))
			ok(t, err)
		}
	}
	for s, suffix := range suffixes {
		if ns != nil {
			x.setSuffix(suffix)
		}
		for i := range keys {
			for at, row := range rows {
				if want := at == [2]int{s, i}; x.same(row, i) != want {
					t.Errorf("row %v, asked for key %d of suffix %d: same is %v", at, i, s, !want)
				}
			}
		}
	}
	if ns == nil && x.width == 0 {
		testCompareTexts(t, x, rows)
	}
}

// testCompareTexts offers the other key's row to each of two texts.
func testCompareTexts(t *testing.T, x *rowIndex, rows map[[2]int]unsafe.Pointer) {
	for _, swapped := range []bool{false, true} {
		out := []unsafe.Pointer{rows[[2]int{0, 0}], rows[[2]int{0, 1}]}
		if swapped {
			out[0], out[1] = out[1], out[0]
		}
		x.touchTexts(out)
		misses := len(x.compareTexts(x.src.canon.Text, out))
		if want := 2 * one(swapped); misses != want {
			t.Errorf("swapped is %v: %d misses, want %d", swapped, misses, want)
		}
	}
}

func TestSlabReusesRowsAsZeros(t *testing.T) {
	k := newKit[int64](t)
	s := newSlab(&ledger{store: k.store}, 24)
	first, row, err := s.make(0)
	ok(t, err)
	second, _, err := s.make(0)
	ok(t, err)
	for i := range bytesAt(row, 24) {
		bytesAt(row, 24)[i] = 0xff
	}
	s.drop(second)
	s.drop(first)
	if s.has(first) || s.has(second) || s.live != 0 {
		t.Error("the dropped rows are there")
	}
	again, row, err := s.make(0)
	ok(t, err)
	if again != first || string(bytesAt(row, 24)) != string(make([]byte, 24)) || !s.has(again) {
		t.Errorf("row %d again is %d: %x", first, again, bytesAt(row, 24))
	}
}
