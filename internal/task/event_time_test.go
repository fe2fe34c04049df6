package task

import (
	"fmt"
	"slices"
	"testing"

	"github.com/flott-dev/flott/internal/frame"
)

// show is an input as others see it: watermark, idleness, the channel that holds it, and the channels.
func (e *EventTime) show() string {
	s := fmt.Sprintf("%s held by %d:", showMark(watermark(e.Watermark())), e.Held())
	if e.Idle() {
		s = "idle at " + s
	}
	for i := range e.Channels() {
		c := e.Channel(i)
		s += " " + showMark(watermark(c.Watermark))
		if c.Idle {
			s += " idle"
		}
		if c.Behind {
			s += " behind"
		}
	}
	return s
}

func TestOthersSeeWhatHoldsEventTimeBack(t *testing.T) {
	const none = "watermark -9223372036854775808"
	e := newEcho(t, "", 2)
	b := newBench(t, []int{2, 1}, e)
	b.build()
	var got []string
	e.mark = func(m frame.Mark) error {
		if m.Kind != frame.End {
			got = append(got, b.task.EventTime()[0].show())
		}
		return nil
	}
	if s := b.task.EventTime()[0].show(); s != none+" held by 0: "+none+" "+none {
		t.Errorf("before the first element: %s", s)
	}
	idle, active, last := mark(frame.Idle), mark(frame.Active), watermark(frame.MaxWatermark)
	b.send(1, watermark(10))
	b.send(0, watermark(5))
	b.send(1, idle)
	b.send(0, watermark(12))
	b.send(1, active, watermark(11))
	b.send(0, idle)
	b.send(1, watermark(12), idle)
	b.send(0, active, last, mark(frame.End))
	b.send(1, last, mark(frame.End))
	b.send(2, last, mark(frame.End))
	if err := b.run(); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"watermark 5 held by 0: watermark 5 watermark 10",
		"watermark 5 held by 0: watermark 5 watermark 10", // the other input ends
		"watermark 10 held by 1: watermark 12 watermark 10",
		"watermark 12 held by 0: watermark 12 watermark 10 idle",
		"idle at watermark 12 held by -1: watermark 12 idle watermark 10 idle",
		"watermark 12 held by 1: watermark 12 idle watermark 10 behind",
		"idle at watermark 12 held by -1: last watermark watermark 12 idle",
		"last watermark held by -1: last watermark last watermark", // it is active,
		"last watermark held by -1: last watermark last watermark", // and then over
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}
