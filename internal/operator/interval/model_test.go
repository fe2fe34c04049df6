package interval

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/internal/operator/co"
	kit "github.com/flott-dev/flott/internal/operator/operatortest"
	"github.com/flott-dev/flott/statebackend"
	"github.com/flott-dev/flott/watermark"
)

// item is an element of the model. What the operators get is made of it.
type item struct {
	key, id, at int64
}

// model is the join as Flink's operator has it: lists by time, and a timer for each.
type model struct {
	bounds    Bounds
	watermark int64
	sides     [2]map[int64]map[int64][]item // by key and time
	timers    map[timer]bool
	late      int64
}

type timer struct {
	side    int
	key, at int64 // of the elements
	due     int64
}

func newModel(b Bounds) *model {
	return &model{
		bounds: b, watermark: math.MinInt64, timers: map[timer]bool{},
		sides: [2]map[int64]map[int64][]item{{}, {}},
	}
}

// add gives the pairs that an element makes, those of one time in the order of their arrival.
func (m *model) add(side int, x item) (pairs []string) {
	if m.watermark != math.MinInt64 && x.at < m.watermark {
		m.late++
		return nil
	}
	byTime := m.sides[side][x.key]
	if byTime == nil {
		byTime = map[int64][]item{}
		m.sides[side][x.key] = byTime
	}
	byTime[x.at] = append(byTime[x.at], x)
	due := x.at
	if side == left && m.bounds.Upper > 0 {
		due = exact(x.at, m.bounds.Upper)
	}
	if side == right && m.bounds.Lower < 0 {
		due = exact(x.at, -m.bounds.Lower)
	}
	m.timers[timer{side, x.key, x.at, due}] = true
	other := m.sides[1-side][x.key]
	for _, at := range slices.Sorted(maps.Keys(other)) {
		for _, y := range other[at] {
			a, b := x, y
			if side == right {
				a, b = y, x
			}
			if m.bounds.has(a.at, b.at) {
				pairs = append(pairs, fmt.Sprintf("%d+%d@%d", a.id, b.id, max(a.at, b.at)))
			}
		}
	}
	return pairs
}

// has says whether two times are a pair, without sums that could leave the range.
func (b Bounds) has(l, r int64) bool {
	distance := float64(r) - float64(l)
	if math.Abs(distance) < 1<<50 {
		return b.Lower <= r-l && r-l <= b.Upper
	}
	return float64(b.Lower) <= distance && distance <= float64(b.Upper)
}

// exact is the sum, or the end of time.
func exact(t, d int64) int64 {
	if t > math.MaxInt64-d {
		return math.MaxInt64
	}
	return t + d
}

func (m *model) advance(watermark int64) {
	m.watermark = watermark
	for t := range m.timers {
		if t.due <= watermark && t.due != math.MaxInt64 {
			delete(m.timers, t)
			delete(m.sides[t.side][t.key], t.at)
		}
	}
}

// buffered are the elements of a side in the order of key and time.
func (m *model) buffered(side int) []string {
	var out []string
	for key, times := range m.sides[side] {
		for at, items := range times {
			for range items {
				out = append(out, fmt.Sprint(key, "@", at))
			}
		}
	}
	slices.Sort(out)
	return out
}

// elementType is a way to make elements of items.
type elementType[X any] struct {
	of func(item) X
	to func(X) item
}

// subject is a join under test.
type subject struct {
	push     func(side int, items []item) error
	advance  func(watermark int64) error
	take     func() []string
	buffered func(side int) []string
	dropped  func() any
}

// newSubject opens a join of elements of a type.
func newSubject[X any](t *testing.T, b Bounds, e elementType[X], near bool) subject {
	t.Helper()
	typ := kit.TypeOf[X](t)
	key := kit.KeyOf(t, func(x X) int64 { return e.to(x).key })
	op := Join(co.Inputs{First: typ, Second: typ}, kit.TypeOf[string](t), Config{Bounds: b, Keys: [2]*operator.Key{key, key}},
		func(a, b X) string { return fmt.Sprintf("%d+%d", e.to(a).id, e.to(b).id) })
	out, rt := kit.Open(t, op)
	if near { // as large buffers are used
		for side := range op.(*driver[X, X, string]).sides {
			op.(*driver[X, X, string]).sides[side].large = 0
		}
	}
	in := op.Inputs()
	return subject{
		push: func(side int, items []item) error {
			xs, times := []X{}, []int64{}
			for _, x := range items {
				xs, times = append(xs, e.of(x)), append(times, x.at)
			}
			return in[side].Push(kit.Run(t, times, xs...))
		},
		advance: func(ms int64) error {
			if err := in[0].Mark(kit.Watermark(ms)); err != nil {
				return err
			}
			err := in[1].Mark(kit.Watermark(ms))
			out.Got = slices.DeleteFunc(out.Got, func(s string) bool { return s == fmt.Sprint("watermark ", ms) })
			return err
		},
		take: func() []string {
			got := out.Got
			out.Got = nil
			return got
		},
		buffered: func(side int) []string { return buffered(t, &op.(*driver[X, X, string]).sides[side]) },
		dropped:  func() any { return rt.Host.(*kit.Host).Metrics[lateDropped].Read() },
	}
}

// buffered are the elements of a buffer's table in the order of key and time.
func buffered(t *testing.T, b *buffer) []string {
	t.Helper()
	var out []string
	kit.Must(t, b.table.Range(func(e *statebackend.Entry) bool {
		at := int64(binary.LittleEndian.Uint64(e.MapKey))
		if bucket := int64(binary.LittleEndian.Uint64(e.Namespace)); bucket != at>>b.shift {
			t.Errorf("an element of time %d lies in bucket %d of width 2^%d", at, bucket, b.shift)
		}
		out = append(out, fmt.Sprint(int64(binary.LittleEndian.Uint64(e.Key)), "@", at))
		return true
	}))
	slices.Sort(out)
	return out
}

// compareWithModel gives both the same random elements and watermarks.
func compareWithModel[X any](t *testing.T, seed uint64, e elementType[X]) {
	rng := rand.New(rand.NewPCG(seed, 0))
	width := int64(1) << rng.IntN(8)
	lower := rng.Int64N(4*width) - 2*width
	bounds := Bounds{Lower: lower, Upper: lower + rng.Int64N(width+1) - rng.Int64N(2)} // sometimes empty
	base := []int64{0, -1000, math.MaxInt64 - 3*width, math.MinInt64 + 1 + 5*width}[rng.IntN(4)]
	m, s := newModel(bounds), newSubject(t, bounds, e, rng.IntN(2) == 0)
	now, id := base, int64(0)
	for range 60 {
		side := rng.IntN(2)
		var items []item
		var want []string
		for range 1 + rng.IntN(12) {
			id++
			x := item{key: rng.Int64N(3), id: id, at: watermark.Add(now, rng.Int64N(4*width+2)-width)}
			items = append(items, x)
			want = append(want, m.add(side, x)...)
		}
		kit.Must(t, s.push(side, items))
		if got := s.take(); !slices.Equal(sorted(got), sorted(want)) {
			t.Fatalf("seed %d, bounds %+v: pairs\n got %q\nwant %q", seed, bounds, got, want)
		}
		if rng.IntN(3) == 0 {
			now = watermark.Add(now, rng.Int64N(width+1))
			if now > m.watermark {
				m.advance(now)
				kit.Must(t, s.advance(now))
			}
		}
		for side := range 2 {
			if got, want := s.buffered(side), m.buffered(side); !slices.Equal(got, want) {
				t.Fatalf("seed %d, bounds %+v at %d: side %d holds\n     %q\nwant %q", seed, bounds, m.watermark, side, got, want)
			}
		}
	}
	if got := s.dropped(); got != m.late {
		t.Errorf("seed %d: %v late elements counted, want %d", seed, got, m.late)
	}
}

func sorted(xs []string) []string { return slices.Sorted(slices.Values(xs)) }

// textItem has a layout with strings, sliceItem one that is encoded.
type textItem struct {
	Key, ID, At int64
	Text        string
}

type sliceItem struct{ Fields []int64 }

type fixedItem struct{ Key, ID, At int64 }

func fixedItems() elementType[fixedItem] {
	return elementType[fixedItem]{
		of: func(x item) fixedItem { return fixedItem{x.key, x.id, x.at} },
		to: func(x fixedItem) item { return item{x.Key, x.ID, x.At} },
	}
}

func textItems(t *testing.T) elementType[textItem] {
	return elementType[textItem]{
		of: func(x item) textItem { return textItem{x.key, x.id, x.at, fmt.Sprint("text ", x.id)} },
		to: func(x textItem) item {
			if want := fmt.Sprint("text ", x.ID); x.Text != want {
				t.Errorf("the element's text is %q, want %q", x.Text, want)
			}
			return item{x.Key, x.ID, x.At}
		},
	}
}

func sliceItems() elementType[sliceItem] {
	return elementType[sliceItem]{
		of: func(x item) sliceItem { return sliceItem{[]int64{x.key, x.id, x.at}} },
		to: func(x sliceItem) item { return item{x.Fields[0], x.Fields[1], x.Fields[2]} },
	}
}

func TestJoinIsFlinksForRandomElements(t *testing.T) {
	for seed := range uint64(60) {
		compareWithModel(t, 3*seed, fixedItems())
		compareWithModel(t, 3*seed+1, textItems(t))
		compareWithModel(t, 3*seed+2, sliceItems())
	}
}
