package streaming_test

import (
	"encoding/json"
	"strconv"
	"testing"
	"unicode/utf16"

	"github.com/flott-dev/flott/conformance"
	"github.com/flott-dev/flott/internal/keygroup"
)

type keyGroupCase struct {
	conformance.Head
	Op             string          `json:"op"`
	Hash           int32           `json:"hash"`
	Key            json.RawMessage `json:"key"`
	JavaHash       *int32          `json:"expect_java_hash"`
	Murmur         *int32          `json:"expect_murmur"`
	KeyGroup       map[string]int  `json:"expect_key_group"`
	MaxParallelism int             `json:"max_parallelism"`
	Parallelism    int             `json:"parallelism"`
	Value          int             `json:"value"`
	A              []int           `json:"a"`
	B              []int           `json:"b"`
	Symmetric      bool            `json:"symmetric"`
	Range          []int           `json:"range"`
	Expect         json.RawMessage `json:"expect"`
	Size           int             `json:"expect_size"`
	Contains       []int           `json:"expect_contains"`
	NotContains    []int           `json:"expect_not_contains"`
	ExpectError    any             `json:"expect_error"`
}

func TestKeyGroupVectors(t *testing.T) {
	s := conformance.Suite{Folder: "streaming", Family: "key_groups", Rewrite: *rewrite, Runners: map[string]conformance.Runner{}}
	for kind, run := range map[string]func(*testing.T, *keyGroupCase){
		"key_group_of_hash": func(t *testing.T, c *keyGroupCase) { checkGroups(t, c, c.Hash) },
		"key_group_of_java_string": func(t *testing.T, c *keyGroupCase) {
			var s string
			conformance.Strict(t, c.Key, &s)
			checkGroups(t, c, javaStringHash(s))
		},
		"key_group_of_java_long": func(t *testing.T, c *keyGroupCase) {
			var v conformance.Millis // a number, "min" or "max"
			conformance.Strict(t, c.Key, &v)
			checkGroups(t, c, int32(v^conformance.Millis(uint64(v)>>32)))
		},
		"ranges": checkRanges,
		"ranges_error": func(t *testing.T, c *keyGroupCase) {
			if _, err := keygroup.RangeOfSubtask(c.MaxParallelism, c.Parallelism, 0); err == nil {
				t.Error("no error")
			}
		},
		"operator_index_inverse":  checkInverse,
		"default_max_parallelism": func(t *testing.T, c *keyGroupCase) { checkInt(t, c, keygroup.DefaultMaxParallelism(c.Parallelism)) },
		"round_up_power_of_two":   func(t *testing.T, c *keyGroupCase) { checkInt(t, c, keygroup.RoundUpPowerOfTwo(c.Value)) },
		"range_intersection":      checkIntersection,
		"range_basics":            checkRange,
		"range_error": func(t *testing.T, c *keyGroupCase) {
			if _, err := keygroup.NewRange(c.Range[0], c.Range[1]); err == nil {
				t.Error("no error")
			}
		},
	} {
		s.Runners[kind] = func(t *testing.T, c conformance.Case) {
			var v keyGroupCase
			c.Decode(t, &v)
			run(t, &v)
		}
	}
	s.Run(t)
}

func javaStringHash(s string) int32 {
	h := int32(0)
	for _, u := range utf16.Encode([]rune(s)) {
		h = 31*h + int32(u)
	}
	return h
}

// checkGroups compares the key group of a hash code in both forms of the function. The murmur step itself is not
// exported: its result is fixed by its residues.
func checkGroups(t *testing.T, c *keyGroupCase, hash int32) {
	t.Helper()
	if c.JavaHash != nil && *c.JavaHash != hash {
		t.Errorf("Java hash %d, want %d", hash, *c.JavaHash)
	}
	if len(c.KeyGroup) == 0 && c.Murmur == nil {
		t.Fatal("the case expects nothing")
	}
	want := map[int]int{}
	for m, group := range c.KeyGroup {
		groups, err := strconv.Atoi(m)
		if err != nil {
			t.Fatal(err)
		}
		want[groups] = group
	}
	if c.Murmur != nil { // the residues by coprime numbers of groups fix the number
		for _, groups := range []int{32768, 32767, 32765} {
			want[groups] = int(*c.Murmur) % groups
		}
	}
	for groups, group := range want {
		out := make([]uint16, 1)
		keygroup.Groups([]uint64{uint64(uint32(hash)) | 0xabcdef01<<32}, uint32(groups), out)
		if got := keygroup.Of(uint32(hash), groups); got != group || int(out[0]) != group {
			t.Errorf("group %d and %d of %d, want %d", got, out[0], groups, group)
		}
	}
}

func checkInt(t *testing.T, c *keyGroupCase, got int) {
	t.Helper()
	var want int
	conformance.Strict(t, c.Expect, &want)
	if got != want {
		t.Errorf("%d, want %d", got, want)
	}
}

func checkRanges(t *testing.T, c *keyGroupCase) {
	var want [][2]int
	conformance.Strict(t, c.Expect, &want)
	if len(want) != c.Parallelism {
		t.Fatalf("%d ranges for parallelism %d", len(want), c.Parallelism)
	}
	for i, w := range want {
		r, err := keygroup.RangeOfSubtask(c.MaxParallelism, c.Parallelism, i)
		if err != nil || r.First != w[0] || r.Last != w[1] {
			t.Errorf("subtask %d: %v %v, want %v", i, r, err, w)
		}
	}
}

func checkInverse(t *testing.T, c *keyGroupCase) {
	next := 0
	for s := range c.Parallelism {
		r, err := keygroup.RangeOfSubtask(c.MaxParallelism, c.Parallelism, s)
		if err != nil || r.First != next {
			t.Fatalf("subtask %d: %v %v, want start %d", s, r, err, next)
		}
		for g := r.First; g <= r.Last; g++ {
			if got := keygroup.SubtaskOf(c.MaxParallelism, c.Parallelism, g); got != s {
				t.Fatalf("group %d belongs to %d, its range to %d", g, got, s)
			}
		}
		next = r.Last + 1
	}
	if next != c.MaxParallelism {
		t.Errorf("ranges end at %d of %d", next, c.MaxParallelism)
	}
}

func checkIntersection(t *testing.T, c *keyGroupCase) {
	var want []int
	conformance.Strict(t, c.Expect, &want)
	a, b := keygroup.Range{First: c.A[0], Last: c.A[1]}, keygroup.Range{First: c.B[0], Last: c.B[1]}
	for range 2 {
		r, ok := a.Intersect(b)
		if ok != (want != nil) || ok && r != (keygroup.Range{First: want[0], Last: want[1]}) {
			t.Errorf("%v with %v: %v %v, want %v", a, b, r, ok, want)
		}
		if !c.Symmetric {
			return
		}
		a, b = b, a
	}
}

func checkRange(t *testing.T, c *keyGroupCase) {
	r, err := keygroup.NewRange(c.Range[0], c.Range[1])
	if err != nil || r.Size() != c.Size {
		t.Fatalf("%v of size %d, %v", r, r.Size(), err)
	}
	for _, g := range c.Contains {
		if !r.Contains(g) {
			t.Errorf("%v has no %d", r, g)
		}
	}
	for _, g := range c.NotContains {
		if r.Contains(g) {
			t.Errorf("%v has %d", r, g)
		}
	}
}
