package source

import (
	"errors"
	"fmt"
	"testing"

	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/operator"
	kit "github.com/flott-dev/flott/internal/operator/operatortest"
)

// stamper puts a watermark behind every run.
type stamper struct {
	operator.Unary
	runs   int64
	closed error
}

func (s *stamper) Inputs() []operator.Input { return []operator.Input{s} }
func (s *stamper) Close() error             { return s.closed }

func (s *stamper) Push(r *frame.Run) error {
	if err := s.Out.Push(r); err != nil {
		return err
	}
	s.runs++
	return s.Out.Mark(kit.Watermark(s.runs))
}

func (s *stamper) Finish() error { return s.Out.Mark(kit.Watermark(99)) }

func newStamper(typ *frame.Type) *stamper {
	return &stamper{Unary: operator.Unary{In: typ, Out: operator.NewOutput(typ)}}
}

func TestStampedSourceIsOneOperator(t *testing.T) {
	typ := kit.TypeOf[int64](t)
	paused := true
	var asked []int64
	op := Stamped(Slice(typ, kit.Numbers(3)), newStamper(typ), func(now int64) bool {
		asked = append(asked, now)
		return paused
	}, 20)
	out, rt := openPart(t, op, 0, 1, 2)
	src := op.(operator.Source)
	for range 3 {
		if status, err := src.Poll(); status != operator.Nothing || err != nil {
			t.Fatalf("paused: status %v, error %v", status, err)
		}
	}
	if at, ok := rt.Timers.Next(); !ok || at != 19 {
		t.Errorf("it asks again past %d (%v)", at, ok)
	}
	rt.Now = 20
	kit.Must(t, rt.Timers.Run(19))
	if _, ok := rt.Timers.Next(); ok {
		t.Error("it asks more than once")
	}
	paused = false
	kit.Must(t, drain(t, op, rt))
	kit.Must(t, op.(operator.Finisher).Finish())
	out.Want(t, "0", "1", "watermark 1", "2", "watermark 2", "watermark 99")
	if got := fmt.Sprint(asked); got != "[0 0 0 20 20 20]" {
		t.Errorf("it was asked at %s", got)
	}
	if err := op.(operator.EventReceiver).HandleEvent([]byte{1}); err == nil {
		t.Error("a slice takes events")
	}
}

func TestStampedSourceHandsOverEventsAndSideOutputs(t *testing.T) {
	typ := kit.TypeOf[int64](t)
	s := &scripted{}
	src := ReaderWithSides(typ, handleOf[span](t), s, map[string]*frame.Type{"bad": typ}, nil)
	op := Stamped(src, newStamper(typ), nil, 0)
	rt := kit.Runtime()
	rt.ToCoordinator = func([]byte) {}
	side := kit.Record(t, op.Output("bad"), rt)
	out := kit.OpenAt(t, op, rt)
	kit.Must(t, op.(operator.EventReceiver).HandleEvent([]byte{eventNoMore}))
	kit.Must(t, op.(operator.Finisher).Finish())
	if len(s.log) != 1 {
		t.Errorf("log %q", s.log)
	}
	side.Want(t, fmt.Sprint("watermark ", int64(frame.MaxWatermark)), "end")
	out.Want(t, "watermark 99") // after what the source does at its end
}

func TestStampedSourceTellsWhatIsWrong(t *testing.T) {
	typ, own := kit.TypeOf[int64](t), errors.New("own")
	op := Stamped(Slice(typ, kit.Numbers(1)), newStamper(kit.TypeOf[string](t)), nil, 1)
	if err := op.Open(kit.Runtime()); err == nil {
		t.Error("a source of numbers and watermarks of texts were joined")
	}
	marks := newStamper(typ)
	marks.closed = own
	if err := Stamped(Slice(typ, kit.Numbers(1)), marks, nil, 1).Close(); !errors.Is(err, own) {
		t.Errorf("error %v", err)
	}
}
