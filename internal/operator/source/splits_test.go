package source

import (
	"strings"
	"testing"

	"github.com/flott-dev/flott/connector"
	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/operator"
	kit "github.com/flott-dev/flott/internal/operator/operatortest"
)

// polling is a scripted source whose reader does f once.
func polling(f func(out *connector.Output[int64])) *scripted {
	return &scripted{polls: []func(out *connector.Output[int64]) (connector.Status, error){
		func(out *connector.Output[int64]) (connector.Status, error) {
			f(out)
			return connector.More, nil
		},
	}}
}

func TestReadersWatermarkIsTheLeastOfItsSplits(t *testing.T) {
	op, out, rt, _ := openReader(t, polling(func(out *connector.Output[int64]) {
		out.Watermark(1) // of the reader as a whole, before it names a split
		out.Idle()
		out.Split("a")
		out.EmitAt(1, 1)
		out.Watermark(5)
		out.Split("a") // it is at hand already
		out.EmitAt(2, 6)
		out.Split("b")
		out.EmitAt(3, 3)
		out.Watermark(4)
		out.Idle()
		out.Split("a")
		out.Idle() // all are: the greatest comes out, though it came out last
		out.Split("b")
		out.EmitAt(4, 4)
		out.Watermark(8)
		out.Watermark(frame.MaxWatermark) // not the end of the source
		out.Split("c")
		out.EndSplit("c")
		out.EndSplit("c")
		out.EndSplit("none")
	}))
	rt.RunLen = 100
	if _, err := op.(operator.Source).Poll(); err != nil {
		t.Fatal(err)
	}
	out.Want(t, "watermark 1", "idle", "active", "1@1", "watermark 5", "2@6", "3@3", "idle", "active", "4@4", "watermark 8")
	if got := op.(operator.SplitHolder).HeldSplit(); got != "b" {
		t.Errorf("held by split %q, want b", got)
	}
}

func TestElementsBetweenSplitsAreAnError(t *testing.T) {
	op, _, rt, _ := openReader(t, polling(func(out *connector.Output[int64]) {
		out.Split("a")
		out.EndSplit("a")
		out.Emit(1)
	}))
	rt.RunLen = 100
	if _, err := op.(operator.Source).Poll(); err == nil || !strings.Contains(err.Error(), "no split") {
		t.Errorf("error %v", err)
	}
}

// splitNotes notes what it is told of splits, between the elements.
type splitNotes struct {
	*stamper
	out *kit.Recorder
}

func (s *splitNotes) Split(name string, over bool) error {
	if over {
		name += " is over"
	}
	s.out.Got = append(s.out.Got, name)
	return nil
}

func (s *splitNotes) HeldSplit() string { return "x" }

func TestStampedSourceHandsOverSplits(t *testing.T) {
	typ := kit.TypeOf[int64](t)
	s := polling(func(out *connector.Output[int64]) {
		out.Split("a")
		out.Emit(1)
		out.Split("b")
		out.Emit(2)
		out.EndSplit("a")
		out.Emit(3)
		out.EndSplit("b")
	})
	notes := &splitNotes{stamper: newStamper(typ)}
	op := Stamped(Reader(typ, handleOf[span](t), s), notes, nil, 0)
	rt := kit.Runtime()
	rt.RunLen = 100
	rt.ToCoordinator = func([]byte) {}
	notes.out = kit.OpenAt(t, op, rt)
	if _, err := op.(operator.Source).Poll(); err != nil {
		t.Fatal(err)
	}
	notes.out.Want(t, "a", "1", "watermark 1", "b", "2", "watermark 2", "a is over", "3", "watermark 3", "b is over")
	if got := op.(operator.SplitHolder).HeldSplit(); got != "x" {
		t.Errorf("held by split %q", got)
	}
	if got := Stamped(Slice(typ, kit.Numbers(1)), newStamper(typ), nil, 0).(operator.SplitHolder).HeldSplit(); got != "" {
		t.Errorf("a slice is held by split %q", got)
	}
}
