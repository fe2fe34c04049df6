package frame

import (
	"math/rand/v2"
	"slices"
	"testing"
)

type record struct {
	Key  string
	N    int64
	Ptr  *int
	Many []byte
}

func typeOf[T any](t testing.TB) *Type {
	t.Helper()
	typ, err := TypeOf[T]()
	if err != nil {
		t.Fatal(err)
	}
	return typ
}

// A column behaves as a slice of values beside a slice of timestamps, whatever is appended, gathered and cut.
func TestColumnBehavesAsSlices(t *testing.T) {
	typ := typeOf[record](t)
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 1))
		c := NewColumn(typ, 64)
		var values []int64
		var times []int64
		for step := 0; c.Room() > 8; step++ {
			switch rng.IntN(4) {
			case 0:
				ts := int64(NoTime)
				if rng.IntN(2) == 0 {
					ts = rng.Int64N(100)
				}
				n := rng.Int64()
				Add(c, record{N: n}, ts)
				values, times = append(values, n), append(times, ts)
			case 1, 2:
				src := NewColumn(typ, 8)
				timed := rng.IntN(2) == 0
				for range 8 {
					ts := int64(NoTime)
					if timed {
						ts = rng.Int64N(100)
					}
					Add(src, record{N: rng.Int64()}, ts)
				}
				r := src.Run()
				at := []uint16{5, 0, 7}
				if rng.IntN(2) == 0 {
					c.Gather(&r, at)
				} else {
					c.Append(&r, 2, 5)
					at = []uint16{2, 3, 4}
				}
				for _, i := range at {
					values = append(values, Values[record](&r)[i].N)
					times = append(times, r.Time(int(i)))
				}
			case 3:
				n := rng.IntN(len(values) + 1)
				c.Cut(n)
				values, times = values[:n], times[:n]
			}
			check(t, seed, c, values, times)
		}
		c.Reset()
		check(t, seed, c, nil, nil)
	}
}

func check(t *testing.T, seed uint64, c *Column, values, times []int64) {
	t.Helper()
	r := c.Run()
	var got, at []int64
	for i, x := range Values[record](&r) {
		got, at = append(got, x.N), append(at, r.Time(i))
	}
	if !slices.Equal(got, values) || !slices.Equal(at, times) {
		t.Fatalf("seed %d: column holds %v at %v, want %v at %v", seed, got, at, values, times)
	}
}

func TestResetLetsGoOfPointers(t *testing.T) {
	c := NewColumn(typeOf[record](t), 4)
	Add(c, record{Key: "k", Many: []byte("x")}, NoTime)
	r := c.Run()
	c.Reset()
	if x := Values[record](&r)[0]; x.Key != "" || x.Many != nil {
		t.Errorf("after Reset the column still holds %+v", x)
	}
}

func TestRunSliceSharesMemoryAndTimes(t *testing.T) {
	c := NewColumn(typeOf[int64](t), 8)
	for i := range int64(6) {
		Add(c, i*10, i)
	}
	r := c.Run()
	s := r.Slice(2, 5)
	if got := Values[int64](&s); !slices.Equal(got, []int64{20, 30, 40}) || !slices.Equal(s.Times, []int64{2, 3, 4}) {
		t.Errorf("slice holds %v at %v", got, s.Times)
	}
}

func TestFrameLenKeepsLargeElementsInSmallFrames(t *testing.T) {
	for _, c := range []struct {
		name string
		typ  *Type
		want int
	}{
		{"small", typeOf[int64](t), DefaultLen},
		{"large", typeOf[[1000]int64](t), 4},
		{"larger than a frame", typeOf[[9000]int64](t), 1},
	} {
		if got := c.typ.FrameLen(Bytes); got != c.want {
			t.Errorf("%s: %d elements a frame, want %d", c.name, got, c.want)
		}
	}
}

func TestRecodeLeavesNothingOfTheSender(t *testing.T) {
	f := New(typeOf[record](t), 4)
	many := []byte("abc")
	Add(&f.Column, record{Key: "k", N: 7, Many: many}, 5)
	if err := f.Recode(); err != nil {
		t.Fatal(err)
	}
	many[0] = 'X'
	r := f.Run()
	if x := Values[record](&r)[0]; x.Key != "k" || x.N != 7 || string(x.Many) != "abc" || r.Time(0) != 5 {
		t.Errorf("after the journey: %+v at %d", x, r.Time(0))
	}
}

func TestSharedFrameIsRecycledByItsLastReceiver(t *testing.T) {
	f := New(typeOf[int64](t), 1)
	if !f.Release() || f.Shared() {
		t.Error("a frame with one receiver is the receiver's to recycle")
	}
	f.Share(2)
	if !f.Shared() || f.Release() || !f.Release() {
		t.Error("only the last of two receivers may recycle")
	}
}

func TestCutLetsGoOfPointers(t *testing.T) {
	c := NewColumn(typeOf[record](t), 4)
	for range 3 {
		Add(c, record{Key: "k", Many: []byte("x")}, 9)
	}
	r := c.Run()
	c.Cut(1)
	xs := Values[record](&r)
	if xs[0].Key != "k" || xs[1].Key != "" || xs[2].Many != nil {
		t.Errorf("after Cut the column still holds %+v", xs)
	}
}

func TestFilledColumnHasTimesWhenToldSo(t *testing.T) {
	c := NewColumn(typeOf[int64](t), 4)
	for _, timed := range []bool{true, false, true} {
		values, times := Whole[int64](c)
		if len(values) != 4 || len(times) != 4 {
			t.Fatalf("room for %d values and %d times, want 4", len(values), len(times))
		}
		values[0], values[1], times[0], times[1] = 5, 6, 50, 60
		c.Filled(2, timed)
		want := []int64{NoTime, NoTime}
		if timed {
			want = []int64{50, 60}
		}
		r := c.Run()
		if xs := Values[int64](&r); !slices.Equal(xs, []int64{5, 6}) || r.Time(0) != want[0] || r.Time(1) != want[1] || (r.Times != nil) != timed {
			t.Errorf("timed %v: %v at %v", timed, xs, r.Times)
		}
		c.Reset()
	}
}

func TestMarksStandBehindTheElementsSoFar(t *testing.T) {
	f := New(typeOf[int64](t), 4)
	if !f.Empty() {
		t.Error("a new frame is not empty")
	}
	f.AddMark(Mark{Kind: Watermark, Value: 1, Pos: 77})
	if f.Empty() {
		t.Error("a frame with a mark is empty")
	}
	Add(&f.Column, int64(1), NoTime)
	Add(&f.Column, int64(2), NoTime)
	f.AddMark(Mark{Kind: End})
	if want := []Mark{{Kind: Watermark, Value: 1}, {Kind: End, Pos: 2}}; !slices.Equal(f.Marks, want) {
		t.Errorf("marks %v, want %v", f.Marks, want)
	}
	if f.Recycle(); !f.Empty() || f.Len() != 0 {
		t.Error("a recycled frame is not empty")
	}
}

func TestTypeOfNamesWhatCannotBeEncoded(t *testing.T) {
	typ, err := TypeOf[struct{ C chan int }]()
	if err == nil {
		t.Fatal("a channel was encoded")
	}
	c := NewColumn(typ, 2)
	Add(c, struct{ C chan int }{make(chan int)}, 3)
	r := c.Run()
	if x := Values[struct{ C chan int }](&r); x[0].C == nil || typ.Name == "" || !typ.Pointers {
		t.Errorf("the handle %q that comes with the error does not hold elements: %v", typ.Name, x)
	}
	if boxed, ok := typ.Box(r.At(0)).(struct{ C chan int }); !ok || boxed.C == nil {
		t.Errorf("boxed: %v", boxed)
	}
}
