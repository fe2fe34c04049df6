package windowing

import (
	"encoding/binary"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/flott-dev/flott/agg"
	kit "github.com/flott-dev/flott/internal/operator/operatortest"
	"github.com/flott-dev/flott/internal/operator/windows"
	"github.com/flott-dev/flott/serde"
	"github.com/flott-dev/flott/window"
)

// codings counts how often accumulators were encoded, and their bytes.
type codings struct{ n, bytes int }

// values is an accumulator with a codec of its own.
type values struct{ all []int64 }

func (c *codings) append(dst []byte, v values) ([]byte, error) {
	c.n++
	c.bytes += 8 * len(v.all)
	dst = binary.LittleEndian.AppendUint64(dst, uint64(len(v.all)))
	for _, x := range v.all {
		dst = binary.LittleEndian.AppendUint64(dst, uint64(x))
	}
	return dst, nil
}

func (*codings) read(src []byte) (v values, n int, err error) {
	for n = 8; n <= 8*int(binary.LittleEndian.Uint64(src)); n += 8 {
		v.all = append(v.all, int64(binary.LittleEndian.Uint64(src[n:])))
	}
	return v, n, nil
}

// collecting collects values, of which it shows number and sum.
type collecting struct{}

func (collecting) Create() values             { return values{} }
func (collecting) Add(acc *values, e event)   { acc.all = append(acc.all, e.N) }
func (collecting) Merge(acc, other *values)   { acc.all = append(acc.all, other.all...) }
func (collecting) Result(acc *values) []int64 { return slices.Clone(acc.all) }

func collectingKernels(t *testing.T, c *codings) *windows.Incremental {
	t.Helper()
	h, err := serde.Of[values](serde.WithCodec(c.append, c.read))
	kit.Must(t, err)
	if h.Layout != serde.Encoded {
		t.Fatalf("the layout is %v", h.Layout)
	}
	return windows.Program[event, string, window.Time, values, []int64, string]{
		Aggregate: agg.Aggregate[event, values, []int64](collecting{}),
		Emit: func(x *string, info *window.Info[string, window.Time], r []int64) {
			inOrder := slices.IsSorted(r)
			*x = fmt.Sprintf("%s %v: %d, in order %v", info.Key, info.Window, len(r), inOrder)
		},
	}.Incremental(h)
}

// TestLargeAccumulatorsCostAConstantPerElement counts what is encoded: it must not grow with the square of the elements.
func TestLargeAccumulatorsCostAConstantPerElement(t *testing.T) {
	const n = 20_000
	c := &codings{}
	op := Aggregate(specOf[string](t), Definition[event, window.Time]{Assigner: window.Tumbling(time.Hour)}, collectingKernels(t, c))
	out, tables := openSpied(t, op)
	for i := range int64(n) {
		pushTimes(t, op, i)
	}
	if perElement := float64(c.bytes) / n; perElement > 60 {
		t.Errorf("%d elements: %d accumulators of %d bytes were encoded, %.1f bytes an element", n, c.n, c.bytes, perElement)
	}
	if got := tables[pendingName].Len() + tables[accumulatorsName].Len(); got != 2 {
		t.Errorf("%d lists and accumulators, want one of each", got)
	}
	mark(t, op, int64(time.Hour/time.Millisecond))
	out.Want(t, fmt.Sprintf("a [0,3600000): %d, in order true@3599999", n), "watermark 3600000")
	for name, table := range tables {
		if table.Len() != 0 {
			t.Errorf("%d entries are left in table %q", table.Len(), name)
		}
	}
}

// TestSmallAccumulatorsWaitForFewElements: a window of few elements encodes nothing.
func TestSmallAccumulatorsWaitForFewElements(t *testing.T) {
	c := &codings{}
	op := Aggregate(specOf[string](t), Definition[event, window.Time]{Assigner: window.Session(5 * time.Millisecond)}, collectingKernels(t, c))
	out, _ := kit.Open(t, op)
	pushTimes(t, op, 0, 2)
	mark(t, op, 10)
	out.Want(t, "a [0,7): 2, in order true@6", "watermark 10")
	if c.n != 0 {
		t.Errorf("%d accumulators were encoded", c.n)
	}
	pushTimes(t, op, 20, 30, 25, 28) // two sessions become one: what waits in both is folded and merged
	mark(t, op, 100)
	if got := out.Take(); got != "a [20,35): 4, in order false@34, watermark 100" {
		t.Errorf("got %s", got)
	}
}

func TestLimitsFollowTheAccumulator(t *testing.T) {
	for _, c := range []struct {
		in   int // bytes of an element
		size int // of the accumulator
		want uint32
	}{
		{16, 0, 16},
		{16, 256, 16},
		{16, 1600, 100},
		{128, 0, 2},
		{128, 1600, 100},
		{1024, 0, 0},
		{1024, 1 << 20, 8 << 10},
		{16, 1 << 30, mostPending},
	} {
		l := &logged{in: kit.TypeOf[int64](t)}
		h := *l.in.Handle
		h.Size = uintptr(c.in)
		typ := *l.in
		typ.Handle = &h
		l.in = &typ
		l.least = l.leastPending()
		if got := l.limit(c.size); got != c.want {
			t.Errorf("elements of %d bytes, accumulator of %d: %d may wait, want %d", c.in, c.size, got, c.want)
		}
	}
}
