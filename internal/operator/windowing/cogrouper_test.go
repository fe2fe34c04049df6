package windowing

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/internal/operator/co"
	kit "github.com/flott-dev/flott/internal/operator/operatortest"
	"github.com/flott-dev/flott/internal/operator/windows"
	"github.com/flott-dev/flott/window"
)

// note is an element of the second stream.
type note struct {
	Key   string
	Texts []string
}

func (n note) key() string { return n.Key }

type coGroup struct {
	op  operator.Operator
	out *kit.Recorder
	rt  *operator.Runtime
}

func openCoGroup(t *testing.T, lateness int64, left Definition[event, window.Time], right Definition[note, window.Time]) coGroup {
	t.Helper()
	op := newCoGroup(t, lateness, left, right)
	out, rt := kit.Open(t, op)
	return coGroup{op, out, rt}
}

func newCoGroup(t *testing.T, lateness int64, left Definition[event, window.Time], right Definition[note, window.Time]) operator.Operator {
	t.Helper()
	spec := windows.Spec{Out: kit.TypeOf[string](t), Lateness: lateness, Place: "job.go:34"}
	in := co.Inputs{First: kit.TypeOf[event](t), Second: kit.TypeOf[note](t)}
	keys := [2]*operator.Key{kit.KeyOf(t, event.key), kit.KeyOf(t, note.key)}
	return CoGroup(spec, in, keys, left, right, func(info window.Info[string, window.Time], as []event, bs []note, emit func(string)) {
		emit(fmt.Sprintf("%s %v %v %v", info.Key, info.Window, as, bs))
	})
}

func (c coGroup) first(t *testing.T, at int64, n int64) {
	t.Helper()
	kit.Must(t, c.op.Inputs()[0].Push(kit.Run(t, []int64{at}, event{"a", n})))
}

func (c coGroup) second(t *testing.T, at int64, text string) {
	t.Helper()
	kit.Must(t, c.op.Inputs()[1].Push(kit.Run(t, []int64{at}, note{"a", []string{text}})))
}

func (c coGroup) marks(t *testing.T, first, second frame.Mark) {
	t.Helper()
	kit.Must(t, c.op.Inputs()[0].Mark(first))
	kit.Must(t, c.op.Inputs()[1].Mark(second))
}

func TestBothStreamsShareWindows(t *testing.T) {
	c := openCoGroup(t, 0,
		Definition[event, window.Time]{Assigner: tumbling(10)}, Definition[note, window.Time]{Assigner: tumbling(10)})
	c.first(t, 1, 1)
	c.second(t, 2, "x")
	c.first(t, 3, 2)
	c.second(t, 15, "y")
	c.first(t, 27, 3)
	kit.Must(t, c.op.Inputs()[0].Mark(kit.Watermark(100)))
	c.out.Want(t) // the second input holds the watermark back
	kit.Must(t, c.op.Inputs()[1].Mark(kit.Watermark(30)))
	c.out.Want(t, "a [0,10) [{a 1} {a 2}] [{a [x]}]@9", "a [10,20) [] [{a [y]}]@19", "a [20,30) [{a 3}] []@29", "watermark 30")
	c.second(t, 5, "late")
	if n := c.rt.Host.(*kit.Host).Metrics[windows.LateDropped].Read(); n != int64(1) {
		t.Errorf("%v late elements, want 1", n)
	}
	c.marks(t, kit.End(), kit.End())
	c.out.Want(t, "end")
}

func TestLateElementsOfEitherStreamGoToTheirSideOutput(t *testing.T) {
	define := func(late, lateSecond string, sides map[string]*frame.Type) operator.Operator {
		spec := windows.Spec{Out: kit.TypeOf[string](t), Place: "job.go:34", Late: late, LateSecond: lateSecond, Sides: sides}
		in := co.Inputs{First: kit.TypeOf[event](t), Second: kit.TypeOf[note](t)}
		w := TimeDefinition[window.Time]{Assigner: tumbling(10)}
		return CoGroup(spec, in, [2]*operator.Key{kit.KeyOf(t, event.key), kit.KeyOf(t, note.key)}, w, w,
			func(info window.Info[string, window.Time], as []event, bs []note, emit func(string)) {
				emit(fmt.Sprint(as, bs))
			})
	}
	events, notes := kit.TypeOf[event](t), kit.TypeOf[note](t)
	for name, c := range map[string]struct {
		late        [2]string
		sides       map[string]*frame.Type
		left, right []string // what side outputs hold
		dropped     int64
	}{
		"both":         {[2]string{"l", "r"}, map[string]*frame.Type{"l": events, "r": notes}, []string{"{a 1}@5"}, []string{"{a [x]}@6"}, 0},
		"left":         {[2]string{"l", ""}, map[string]*frame.Type{"l": events}, []string{"{a 1}@5"}, nil, 1},
		"right":        {[2]string{"", "r"}, map[string]*frame.Type{"r": notes}, nil, []string{"{a [x]}@6"}, 1},
		"nobody reads": {[2]string{"l", "r"}, nil, nil, nil, 0},
		"none":         {[2]string{}, nil, nil, nil, 2},
	} {
		t.Run(name, func(t *testing.T) {
			g := coGroup{op: define(c.late[0], c.late[1], c.sides), rt: kit.Runtime()}
			late := map[string][]string{"l": c.left, "r": c.right}
			sides := map[string]*kit.Recorder{}
			for tag := range c.sides {
				sides[tag] = kit.Record(t, g.op.Output(tag), g.rt)
			}
			g.out = kit.OpenAt(t, g.op, g.rt)
			g.marks(t, kit.Watermark(20), kit.Watermark(20))
			g.first(t, 5, 1)
			g.second(t, 6, "x")
			g.second(t, 25, "y")
			g.marks(t, kit.Watermark(30), kit.Watermark(30))
			g.out.Want(t, "watermark 20", "[] [{a [y]}]@29", "watermark 30")
			for tag, side := range sides {
				side.Want(t, append(append([]string{"watermark 20"}, late[tag]...), "watermark 30")...)
			}
			if n := g.rt.Host.(*kit.Host).Metrics[windows.LateDropped].Read(); n != c.dropped {
				t.Errorf("%v elements are counted as dropped, want %d", n, c.dropped)
			}
		})
	}
	op := define("l", "r", map[string]*frame.Type{"r": events})
	if err := op.Open(kit.Runtime()); err == nil || !strings.Contains(err.Error(), `side output "r": it is read as`) {
		t.Errorf("got %v", err)
	}
	kit.Must(t, op.Close())
}

// halfSessions assigns sessions that depend on the element.
type halfSessions struct{ window.SessionAssigner }

func (s halfSessions) AssignElement(dst []window.Time, x *note, ts, now int64) ([]window.Time, error) {
	return append(dst, window.Time{Start: ts, End: ts + int64(len(x.Texts[0]))}), nil
}

func TestSessionsOfBothStreamsMerge(t *testing.T) {
	c := openCoGroup(t, 0,
		Definition[event, window.Time]{Assigner: window.Session(5 * time.Millisecond)},
		Definition[note, window.Time]{ElementAssigner: halfSessions{window.Session(5 * time.Millisecond)}})
	c.first(t, 10, 1)
	c.first(t, 0, 2)
	c.second(t, 4, "six...")
	c.second(t, 40, "x")
	c.marks(t, kit.Watermark(50), kit.Watermark(50))
	c.out.Want(t, "a [0,15) [{a 2} {a 1}] [{a [six...]}]@14", "a [40,41) [] [{a [x]}]@40", "watermark 50")
}

func TestEvictorSeesBothStreamsInOrderOfArrival(t *testing.T) {
	seen := &oddSides{}
	c := openCoGroup(t, 0,
		Definition[event, window.Time]{Assigner: tumbling(10), Evictor: seen, Trigger: window.CountTrigger(4)},
		Definition[note, window.Time]{Assigner: tumbling(10)})
	c.second(t, 5, "x")
	c.first(t, 4, 1)
	c.second(t, 3, "y")
	c.first(t, 2, 2)
	c.out.Want(t, "a [0,10) [{a 1} {a 2}] [{a [y]}]@9")
	for n := range int64(4) {
		c.first(t, 6+n, 10+n)
	}
	c.out.Want(t, "a [0,10) [{a 2} {a 10} {a 11} {a 12} {a 13}] []@9")
	want := fmt.Sprint([][]int64{{5, 4, 3, 2}, {4, 3, 2}, {3, 2, 6, 7, 8, 9}, {2, 6, 7, 8, 9}})
	if got := fmt.Sprint(seen.times); got != want {
		t.Errorf("the evictor has seen %v, want %v", got, want)
	}
}

// oddSides evicts the first element, before and after, and notes what it sees.
type oddSides struct{ times [][]int64 }

func (o *oddSides) EvictBefore(e *window.Eviction) {
	o.times = append(o.times, append([]int64(nil), e.Times...))
	e.Evict(0)
}
func (o *oddSides) EvictAfter(e *window.Eviction) { o.EvictBefore(e) }

func TestElementTriggersOfTwoStreamsAreRefused(t *testing.T) {
	for want, op := range map[string]operator.Operator{
		"looks at elements": newCoGroup(t, 0,
			Definition[event, window.Time]{Assigner: tumbling(10), ElementTrigger: window.DeltaTrigger(1, delta)},
			Definition[note, window.Time]{Assigner: tumbling(10)}),
		"exactly one assigner": newCoGroup(t, 0, Definition[event, window.Time]{Assigner: tumbling(10)}, Definition[note, window.Time]{}),
	} {
		if err := op.Open(kit.Runtime()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
		kit.Must(t, op.Close())
	}
}
