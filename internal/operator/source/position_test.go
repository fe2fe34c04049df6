package source

import (
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/flott-dev/flott/checkpoint"
	"github.com/flott-dev/flott/connector"
	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/operator"
	kit "github.com/flott-dev/flott/internal/operator/operatortest"
	"github.com/flott-dev/flott/serde"
)

// positioned are the sources that know where they are, of the numbers 0 ... n-1.
func positioned(t *testing.T, n int) map[string]func() operator.Operator {
	typ := kit.TypeOf[int64](t)
	return map[string]func() operator.Operator{
		"slice":     func() operator.Operator { return Slice(typ, kit.Numbers(n)) },
		"sequence":  func() operator.Operator { return Sequence(typ, 0, int64(n)-1) },
		"generator": func() operator.Operator { return Generator(typ, int64(n), func(i int64) int64 { return i }, 0) },
		"stamped": func() operator.Operator {
			return &stamped{Source: Sequence(typ, 0, int64(n)-1).(operator.Source), marks: &passing{Unary: operator.Unary{In: typ, Out: operator.NewOutput(typ)}}}
		},
		"iterator": func() operator.Operator {
			return Seq(typ, func(subtask, parallelism int) iter.Seq[int64] {
				return func(yield func(int64) bool) {
					for i := subtask; i < n; i += parallelism {
						if !yield(int64(i)) {
							return
						}
					}
				}
			})
		},
	}
}

// passing is an operator that changes nothing.
type passing struct{ operator.Unary }

func (o *passing) Inputs() []operator.Input        { return []operator.Input{o} }
func (o *passing) Push(r *frame.Run) error         { return o.Out.Push(r) }
func (o *passing) Open(rt *operator.Runtime) error { return o.Unary.Open(rt) }

// TestSourcesGoOnWhereTheyWere: whatever the parallelism before and after, each number is emitted once, and the numbers of
// one subtask keep their order.
func TestSourcesGoOnWhereTheyWere(t *testing.T) {
	for name, fresh := range positioned(t, 500) {
		for seed := range uint64(30) {
			rng := rand.New(rand.NewPCG(seed, 1))
			var got []int64
			var lists []checkpoint.List
			parallelism := 1 + rng.IntN(4)
			for round := range 5 {
				var next []checkpoint.List
				for subtask := range parallelism {
					op, rt := fresh(), kit.Runtime()
					rt.Subtask, rt.Parallelism, rt.RunLen = subtask, parallelism, 1+rng.IntN(40)
					if round > 0 {
						rt.Restored = &operator.Restored{Lists: lists}
					}
					out := kit.OpenAt(t, op, rt)
					for range rng.IntN(6) {
						if _, err := op.(operator.Source).Poll(); err != nil {
							t.Fatal(err)
						}
					}
					if round == 4 {
						kit.Must(t, drain(t, op, rt))
					}
					next = append(next, kit.Take(t, op).Restored().Lists...)
					got = append(got, numbersOf(t, name, out)...)
				}
				lists = []checkpoint.List{{Name: positionName, Mode: checkpoint.Union}}
				for _, l := range next {
					lists[0].Items = append(lists[0].Items, l.Items...)
				}
				if name != "iterator" {
					parallelism = 1 + rng.IntN(4)
				}
			}
			if slices.Sort(got); !slices.Equal(got, kit.Numbers(500)) {
				t.Fatalf("%s, seed %d: %d elements", name, seed, len(got))
			}
		}
	}
}

// numbersOf are the elements of an output, which must rise.
func numbersOf(t *testing.T, name string, out *kit.Recorder) []int64 {
	t.Helper()
	var xs []int64
	for _, text := range out.Values {
		var x int64
		if _, err := fmt.Sscan(text, &x); err != nil {
			t.Fatal(err)
		}
		xs = append(xs, x)
	}
	if name == "generator" && !slices.IsSorted(xs) {
		t.Fatalf("%s: %v", name, xs)
	}
	return xs
}

func TestGeneratorIsDealtUpToTheLastNumber(t *testing.T) {
	typ := kit.TypeOf[int64](t)
	op := Generator(typ, -1, func(i int64) int64 { return i }, 0).(*generator[int64])
	_, _ = openPart(t, op, 0, 1, frame.DefaultLen)
	op.rest[0].from = math.MaxInt64 - 9
	lists := kit.Take(t, op).Restored().Lists
	got := 0
	for subtask := range 3 {
		op, rt := Generator(typ, -1, func(i int64) int64 { return i }, 0), kit.Runtime()
		rt.Subtask, rt.Parallelism, rt.Restored = subtask, 3, &operator.Restored{Lists: lists}
		out := kit.OpenAt(t, op, rt)
		kit.Must(t, drain(t, op, rt))
		got += len(out.Values)
	}
	if got != 10 {
		t.Errorf("%d elements, want 10", got)
	}
}

func TestPositionsThatDoNotFitAreRefused(t *testing.T) {
	typ := kit.TypeOf[int64](t)
	restored := func(item []byte) *operator.Restored {
		return &operator.Restored{Lists: []checkpoint.List{{Name: positionName, Mode: checkpoint.Union, Items: [][]byte{item}}}}
	}
	for name, c := range map[string]struct {
		item []byte
		op   operator.Operator
		want string
	}{
		"malformed": {[]byte{0, 1, 0x80}, Sequence(typ, 1, 2), "malformed"},
		"short":     {[]byte{0}, Generator(typ, 3, func(i int64) int64 { return i }, 0), "malformed"},
		"beyond":    {[]byte{0, 1, 2, 20}, Slice(typ, kit.Numbers(10)), "elements 1 to 10 of a collection that has 10"},
		"divided": {
			[]byte{0, 2, 2, 0},
			Seq(typ, func(int, int) iter.Seq[int64] { return slices.Values(kit.Numbers(1)) }),
			"can't be divided anew",
		},
	} {
		rt := kit.Runtime()
		rt.Restored = restored(c.item)
		if err := c.op.Open(rt); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

func FuzzPosition(f *testing.F) {
	f.Add([]byte{0, 1, 2, 20})
	f.Add([]byte{3, 4, 1, 1, 1, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := decodePosition(b)
		if err != nil {
			return
		}
		rt := kit.Runtime()
		rt.Subtask, rt.Parallelism = p.subtask, p.parallelism
		var o operator.Snapshot
		snapshotStretches(&o, rt, p.parts)
		again, err := decodePosition(o.Lists[0].Items[0])
		if err != nil || again.subtask != p.subtask || again.parallelism != p.parallelism || !slices.Equal(again.parts, p.parts) {
			t.Errorf("%v became %v, %v", p, again, err)
		}
	})
}

func TestReaderKeepsItsSplits(t *testing.T) {
	done := []func(out *connector.Output[int64]) (connector.Status, error){}
	s := &scripted{polls: done, unfinished: []span{{Path: "a", From: 3, To: 9, Tags: []string{"x"}}, {Path: "b"}}}
	op, _, _, _ := openReader(t, s)
	taken := kit.Take(t, op)
	l := taken.List(splitsName)
	if l.Mode != checkpoint.Split || len(l.Items) != 2 || l.Schema == nil {
		t.Fatalf("list %+v", l)
	}
	kit.Must(t, op.(operator.CheckpointListener).CheckpointCompleted(5))
	kit.Must(t, op.(operator.CheckpointListener).CheckpointAborted(6))
	if got := strings.Join(s.log, ", "); got != "snapshot 1, committed 5" {
		t.Errorf("the reader heard %q", got)
	}

	fresh := &scripted{polls: done}
	again, rt, requests := Reader(kit.TypeOf[int64](t), handleOf[span](t), fresh), kit.Runtime(), 0
	rt.ToCoordinator = func([]byte) { requests++ }
	rt.Restored = taken.Restored()
	kit.OpenAt(t, again, rt)
	if fmt.Sprint(fresh.got) != fmt.Sprint(s.unfinished) || requests != 1 {
		t.Errorf("the restored reader has %v after %d requests", fresh.got, requests)
	}
}

func TestSplitsThatCannotBeReadAreRefused(t *testing.T) {
	other, err := serde.Of[int64]()
	kit.Must(t, err)
	for name, l := range map[string]checkpoint.List{
		"another type": {Items: [][]byte{{1, 2, 3, 4, 5, 6, 7, 8}}, Schema: other.Schema()},
		"cut":          {Items: [][]byte{{1}}},
	} {
		l.Name = splitsName
		op, rt := Reader(kit.TypeOf[int64](t), handleOf[span](t), &scripted{}), kit.Runtime()
		rt.ToCoordinator, rt.Restored = func([]byte) {}, &operator.Restored{Lists: []checkpoint.List{l}}
		kit.Record(t, op.Output(""), rt)
		if err := op.Open(rt); err == nil || !strings.Contains(err.Error(), "split") {
			t.Errorf("%s: error %v", name, err)
		}
		kit.Must(t, op.Close())
	}
}
