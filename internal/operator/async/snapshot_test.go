package async

import (
	"bytes"
	"context"
	"slices"
	"testing"

	"github.com/flott-dev/flott/checkpoint"
	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/operator"
	kit "github.com/flott-dev/flott/internal/operator/operatortest"
	"github.com/flott-dev/flott/serde"
)

func (b *bench) mark(kind frame.MarkKind, value int64) {
	b.t.Helper()
	kit.Must(b.t, b.in.Mark(frame.Mark{Kind: kind, Value: value}))
}

func (b *bench) snapshot() *operator.Restored {
	b.t.Helper()
	var s operator.Snapshot
	kit.Must(b.t, b.op.(operator.Snapshotter).Snapshot(&s))
	return &operator.Restored{Lists: s.Lists}
}

func never(ctx context.Context, _ int64) ([]int64, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func tenfold(_ context.Context, x int64) ([]int64, error) { return []int64{10 * x}, nil }

// fill pushes elements with marks between them.
func (b *bench) fill() {
	kit.Must(b.t, b.push([]int64{5}, 1))
	b.mark(frame.Watermark, 5)
	kit.Must(b.t, b.push(nil, 2))
	b.mark(frame.Idle, 0)
	b.mark(frame.Watermark, 9)
	kit.Must(b.t, b.push([]int64{12, 11}, 3, 4))
	b.mark(frame.Watermark, 10)
}

// TestWhatIsUnderWayComesAgain, in its order, before anything new, also if there is less room than before.
func TestWhatIsUnderWayComesAgain(t *testing.T) {
	for _, capacity := range []int{1, 3, 20} {
		old := open(t, never, Options[int64, int64]{Capacity: 20})
		old.fill()
		first := restored(t, never, Options[int64, int64]{Capacity: capacity}, old.snapshot(), 1)
		b := restored(t, tenfold, Options[int64, int64]{Capacity: capacity}, first.snapshot(), 1)
		kit.Must(t, b.push([]int64{20}, 5))
		b.mark(frame.End, 0)
		b.want("10@5", "watermark 5", "20", "idle 0", "watermark 9", "30@12", "40@11", "watermark 10", "50@20", "end 0")
	}
}

func TestWhatWasEmittedDoesNotComeAgain(t *testing.T) {
	g := newGate(1, 2, 3)
	old := open(t, g.call, Options[int64, int64]{Order: Unordered, Capacity: 9})
	kit.Must(t, old.push(nil, 1, 2, 3))
	close(g[2])
	for len(old.out) == 0 {
		kit.Must(t, old.serve())
	}
	b := restored(t, tenfold, Options[int64, int64]{Capacity: 9}, old.snapshot(), 1)
	b.mark(frame.End, 0)
	slices.Sort(b.out)
	b.want("10", "30", "end 0")
}

func TestMarksMeanNothingAtAnotherParallelism(t *testing.T) {
	old := open(t, never, Options[int64, int64]{Capacity: 20})
	old.fill()
	b := restored(t, tenfold, Options[int64, int64]{Capacity: 2}, old.snapshot(), 2)
	b.mark(frame.Watermark, 10)
	b.mark(frame.End, 0)
	b.want("10@5", "20", "30@12", "40@11", "watermark 10", "end 0")
}

func TestElementsUnderWayThatCannotBeReadAreRefused(t *testing.T) {
	typ, err := frame.TypeOf[int64]()
	kit.Must(t, err)
	text, err := serde.Of[string]()
	kit.Must(t, err)
	for name, lists := range map[string][]checkpoint.List{
		"cut":           {{Name: elementsName, Items: [][]byte{{1, 2}}}},
		"short element": {{Name: elementsName, Items: [][]byte{make([]byte, 12)}}},
		"long element":  {{Name: elementsName, Items: [][]byte{make([]byte, 17)}}},
		"no pair":       {{Name: elementsName, Schema: text.Schema()}},
		"of text": {{Name: elementsName, Schema: &serde.Schema{Kind: serde.Struct, Fields: []serde.Field{
			{Name: "Time", Schema: typ.Handle.Schema()}, {Name: "Element", Schema: text.Schema()},
		}}}},
		"marks": {{Name: elementsName}, {Name: marksName, Items: [][]byte{{0, 1, 3}}}},
	} {
		rt := kit.Runtime()
		rt.Restored = &operator.Restored{Lists: lists}
		op := New(typ, typ, tenfold, Options[int64, int64]{Capacity: 2})
		kit.Record(t, op.Output(""), rt)
		if err := op.Open(rt); err == nil {
			t.Errorf("%s: no error", name)
		}
		kit.Must(t, op.Close())
	}
}

func FuzzMarks(f *testing.F) {
	f.Add([]byte{0, 1, 3, 1, 8})
	f.Fuzz(func(t *testing.T, b []byte) {
		_, _, marks, err := decodeMarks(bytes.Clone(b))
		if err == nil && 3*len(marks) > len(b) {
			t.Errorf("%d marks in %d bytes", len(marks), len(b))
		}
	})
}
