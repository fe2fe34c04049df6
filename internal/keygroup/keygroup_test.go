package keygroup

import (
	"encoding/json"
	"math/bits"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"unicode/utf16"
)

// naiveMurmur follows Flink's text: with its branches and 64-bit arithmetic.
func naiveMurmur(hash int32) int32 {
	h := uint32(0)
	k := uint32(hash)
	k = uint32(uint64(k) * 0xcc9e2d51)
	k = bits.RotateLeft32(k, 15)
	k = uint32(uint64(k) * 0x1b873593)
	h = bits.RotateLeft32(h^k, 13)
	h = uint32(uint64(h)*5 + 0xe6546b64)
	h ^= 4
	h ^= h >> 16
	h = uint32(uint64(h) * 0x85ebca6b)
	h ^= h >> 13
	h = uint32(uint64(h) * 0xc2b2ae35)
	h ^= h >> 16
	signed := int32(h)
	switch {
	case signed >= 0:
		return signed
	case signed != -1<<31:
		return -signed
	}
	return 0
}

// unmurmur is the inverse of the step before the sign is taken away.
func unmurmur(h uint32) uint32 {
	h ^= h >> 16
	h *= inverse32(0xc2b2ae35)
	h ^= h>>13 ^ h>>26
	h *= inverse32(0x85ebca6b)
	h ^= h >> 16
	h ^= 4
	h = (h - 0xe6546b64) * inverse32(5)
	h = bits.RotateLeft32(h, -13)
	h *= inverse32(0x1b873593)
	h = bits.RotateLeft32(h, -15)
	return h * inverse32(0xcc9e2d51)
}

func inverse32(odd uint32) uint32 {
	x := odd
	for range 5 {
		x *= 2 - odd*x
	}
	return x
}

func javaStringHash(s string) int32 {
	h := int32(0)
	for _, u := range utf16.Encode([]rune(s)) {
		h = 31*h + int32(u)
	}
	return h
}

func javaLongHash(v int64) int32 { return int32(v ^ int64(uint64(v)>>32)) }

type vector struct {
	ID, Op         string
	Hash           int32
	Key            json.RawMessage
	JavaHash       *int32         `json:"expect_java_hash"`
	Murmur         int32          `json:"expect_murmur"`
	KeyGroup       map[string]int `json:"expect_key_group"`
	MaxParallelism int            `json:"max_parallelism"`
	Parallelism    int
	Value          int
	A, B, Range    []int
	Expect         json.RawMessage
	Size           int   `json:"expect_size"`
	Contains       []int `json:"expect_contains"`
	NotContains    []int `json:"expect_not_contains"`
}

func vectors(t *testing.T) []vector {
	t.Helper()
	dir := os.Getenv("FLOTT_CONFORMANCE")
	if dir == "" {
		dir = filepath.Join("..", "..", "conformance", "testdata")
	}
	b, err := os.ReadFile(filepath.Join(dir, "streaming", "key_groups.json"))
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Cases []vector }
	if err := json.Unmarshal(b, &file); err != nil {
		t.Fatal(err)
	}
	if len(file.Cases) < 100 {
		t.Fatalf("only %d cases", len(file.Cases))
	}
	return file.Cases
}

func TestVectors(t *testing.T) {
	for _, v := range vectors(t) {
		t.Run(v.ID, func(t *testing.T) {
			switch v.Op {
			case "key_group_of_hash":
				checkGroups(t, v, v.Hash)
			case "key_group_of_java_string":
				var s string
				decode(t, v.Key, &s)
				checkGroups(t, v, javaStringHash(s))
			case "key_group_of_java_long":
				checkGroups(t, v, javaLongHash(longKey(t, v.Key)))
			case "ranges":
				checkRanges(t, v)
			case "ranges_error":
				if _, err := RangeOfSubtask(v.MaxParallelism, v.Parallelism, 0); err == nil {
					t.Fatal("no error")
				}
			case "operator_index_inverse":
				checkInverse(t, v.MaxParallelism, v.Parallelism)
			case "default_max_parallelism":
				checkInt(t, v.Expect, DefaultMaxParallelism(v.Parallelism))
			case "round_up_power_of_two":
				checkInt(t, v.Expect, RoundUpPowerOfTwo(v.Value))
			case "range_intersection":
				checkIntersection(t, v)
			case "range_basics":
				checkRange(t, v)
			case "range_error":
				if _, err := NewRange(v.Range[0], v.Range[1]); err == nil {
					t.Fatal("no error")
				}
			default:
				t.Fatalf("unknown op %q", v.Op)
			}
		})
	}
}

func decode(t *testing.T, raw json.RawMessage, to any) {
	t.Helper()
	if err := json.Unmarshal(raw, to); err != nil {
		t.Fatal(err)
	}
}

func longKey(t *testing.T, raw json.RawMessage) int64 {
	t.Helper()
	switch string(raw) {
	case `"max"`:
		return 1<<63 - 1
	case `"min"`:
		return -1 << 63
	}
	var v int64
	decode(t, raw, &v)
	return v
}

func checkInt(t *testing.T, raw json.RawMessage, got int) {
	t.Helper()
	var want int
	decode(t, raw, &want)
	if got != want {
		t.Fatalf("%d, want %d", got, want)
	}
}

func checkGroups(t *testing.T, v vector, hash int32) {
	t.Helper()
	if v.JavaHash != nil && *v.JavaHash != hash {
		t.Fatalf("Java hash %d, want %d", hash, *v.JavaHash)
	}
	if got := murmur(uint32(hash)); got != uint32(v.Murmur) {
		t.Fatalf("murmur %d, want %d", got, v.Murmur)
	}
	if len(v.KeyGroup) == 0 {
		t.Fatal("no groups in the vector")
	}
	for m, want := range v.KeyGroup {
		groups, err := strconv.Atoi(m)
		if err != nil {
			t.Fatal(err)
		}
		out := make([]uint16, 1)
		Groups([]uint64{uint64(uint32(hash)) | 0xabcdef01<<32}, uint32(groups), out)
		if got := Of(uint32(hash), groups); got != want || int(out[0]) != want {
			t.Fatalf("group %d and %d of %d, want %d", got, out[0], groups, want)
		}
	}
}

func checkRanges(t *testing.T, v vector) {
	t.Helper()
	var want [][2]int
	decode(t, v.Expect, &want)
	if len(want) != v.Parallelism {
		t.Fatalf("%d ranges for parallelism %d", len(want), v.Parallelism)
	}
	for i, w := range want {
		r, err := RangeOfSubtask(v.MaxParallelism, v.Parallelism, i)
		if err != nil || r.First != w[0] || r.Last != w[1] {
			t.Fatalf("subtask %d: %v %v, want %v", i, r, err, w)
		}
	}
}

func checkInverse(t *testing.T, maxParallelism, parallelism int) {
	t.Helper()
	next := 0
	for s := range parallelism {
		r, err := RangeOfSubtask(maxParallelism, parallelism, s)
		if err != nil || r.First != next {
			t.Fatalf("subtask %d of %d: %v %v, want start %d", s, parallelism, r, err, next)
		}
		for g := r.First; g <= r.Last; g++ {
			if got := SubtaskOf(maxParallelism, parallelism, g); got != s {
				t.Fatalf("group %d belongs to %d, its range to %d", g, got, s)
			}
		}
		next = r.Last + 1
	}
	if next != maxParallelism {
		t.Fatalf("ranges end at %d of %d", next, maxParallelism)
	}
}

func checkIntersection(t *testing.T, v vector) {
	t.Helper()
	var want []int
	decode(t, v.Expect, &want)
	a, b := Range{v.A[0], v.A[1]}, Range{v.B[0], v.B[1]}
	for range 2 {
		r, ok := a.Intersect(b)
		if ok != (want != nil) || ok && r != (Range{want[0], want[1]}) {
			t.Fatalf("%v with %v: %v %v, want %v", a, b, r, ok, want)
		}
		a, b = b, a
	}
}

func checkRange(t *testing.T, v vector) {
	t.Helper()
	r, err := NewRange(v.Range[0], v.Range[1])
	if err != nil || r.Size() != v.Size {
		t.Fatal(r, err)
	}
	for _, g := range v.Contains {
		if !r.Contains(g) {
			t.Fatalf("%v has no %d", r, g)
		}
	}
	for _, g := range v.NotContains {
		if r.Contains(g) {
			t.Fatalf("%v has %d", r, g)
		}
	}
}

func TestRangesThatDoNotMeetHaveNoIntersection(t *testing.T) {
	if r, ok := (Range{0, 3}).Intersect(Range{4, 9}); ok {
		t.Fatal(r)
	}
}

func TestGroupsAreFlinksForEveryMaxParallelism(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	// The hash whose murmur is -2^31 must give group 0 everywhere.
	extreme := unmurmur(1 << 31)
	if naiveMurmur(int32(extreme)) != 0 {
		t.Fatal("the inverse is wrong")
	}
	hashes := []uint64{0, uint64(extreme), 1<<64 - 1, uint64(unmurmur(1<<31 - 1)), uint64(unmurmur(1<<31 + 1)), 1 << 31}
	for len(hashes) < 40 {
		hashes = append(hashes, rnd.Uint64())
	}
	out := make([]uint16, len(hashes))
	for m := 1; m <= MaxParallelismLimit; m++ {
		Groups(hashes, uint32(m), out)
		for i, h := range hashes {
			want := int(naiveMurmur(int32(uint32(h)))) % m
			if int(out[i]) != want || Of(uint32(h), m) != want {
				t.Fatalf("hash %#x of %d: %d and %d, want %d", h, m, out[i], Of(uint32(h), m), want)
			}
		}
	}
}

func TestRandomParallelismsCoverAllGroups(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		m := 1 + rnd.IntN(2000)
		checkInverse(t, m, 1+rnd.IntN(m))
	}
}

func TestErrorsNameTheNumbers(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{Validate(0, 1), "keygroup: max parallelism 0 is outside 1 ... 32768"},
		{Validate(1<<15+1, 1), "keygroup: max parallelism 32769 is outside 1 ... 32768"},
		{Validate(128, 0), "keygroup: parallelism 0 is less than 1"},
		{Validate(4, 5), "keygroup: parallelism 5 is above max parallelism 4"},
		{second(RangeOfSubtask(4, 2, 2)), "keygroup: subtask 2 is outside 0 ... 1"},
		{second(NewRange(3, 2)), "keygroup: 3 ... 2 is no range of key groups"},
	} {
		if c.err == nil || c.err.Error() != c.want {
			t.Errorf("%v, want %s", c.err, c.want)
		}
	}
	if err := Validate(1<<15, 1<<15); err != nil {
		t.Error(err)
	}
}

func second(_ Range, err error) error { return err }

func BenchmarkGroups(b *testing.B) {
	rnd := rand.New(rand.NewPCG(5, 6))
	hashes, out := make([]uint64, 512), make([]uint16, 512)
	for i := range hashes {
		hashes[i] = rnd.Uint64()
	}
	for _, m := range []uint32{128, 720} {
		b.Run(strconv.Itoa(int(m)), func(b *testing.B) {
			for b.Loop() {
				Groups(hashes, m, out)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/512, "ns/key")
		})
	}
}
