package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/flott-dev/flott/connector"
	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/stream"
	"github.com/flott-dev/flott/window"
)

// arrival is what comes to an operator next: an element, unless its value is 0, and then a watermark, unless that is 0.
type arrival struct {
	Row   int64 // its place in the order of arrival
	At    int64
	Value int64
	Mark  int64
}

// arrivals numbers what comes.
func arrivals(as ...arrival) []arrival {
	for i := range as {
		as[i].Row = int64(i)
	}
	return as
}

// pane is a firing of a window: the sum of its contents, what came last of them, and the watermark at that time.
type pane struct {
	Window    window.Time
	Sum       int64
	Last      int64
	Watermark int64
}

// summing is the window function that emits panes.
type summing struct{}

func newSumming(*window.Runtime) summing { return summing{} }

func (summing) Process(ctx *window.Context[string, window.Time], elements []arrival, out *process.Collector[pane]) error {
	p := pane{Window: ctx.Window(), Watermark: ctx.Watermark(), Last: elements[len(elements)-1].Row}
	for _, e := range elements {
		p.Sum += e.Value
	}
	out.Collect(p)
	return nil
}

// history runs a job with windows of a minute over what arrives, and returns its firings and the elements that were late.
func history(as []arrival, lateness time.Duration, trigger window.Trigger) (panes []pane, late []arrival, err error) {
	env := stream.NewEnv().SetParallelism(1)
	tag := process.NewOutputTag[arrival]("late")
	windowed := env.FromFunc("arrivals", arriving(as)).KeyBy(func(arrival) string { return "all" }).
		Window(window.Tumbling(time.Minute)).AllowedLateness(lateness).SideOutputLateData(tag)
	if trigger != nil {
		windowed = windowed.Trigger(trigger)
	}
	fired := windowed.Process(newSumming)
	fired.AddSink(func(_ context.Context, p pane, _ connector.ElementContext) error {
		panes = append(panes, p)
		return nil
	})
	fired.SideOutput(tag).AddSink(func(_ context.Context, a arrival, _ connector.ElementContext) error {
		late = append(late, a)
		return nil
	})
	_, err = env.Execute(context.Background(), "picture")
	return panes, late, err
}

// arriving is a source of what arrives.
func arriving(as []arrival) stream.SourceFunction[arrival] {
	return func(ctx context.Context, out *stream.SourceContext[arrival]) error {
		for _, a := range as {
			if a.Value != 0 && !out.CollectWithMillis(a, a.At) {
				return ctx.Err()
			}
			if a.Mark != 0 && !out.EmitWatermarkMillis(a.Mark) {
				return ctx.Err()
			}
		}
		return nil
	}
}

// diagram has event time to the right and the order of arrival downwards.
type diagram struct {
	*canvas
	x        axis
	top, row float64
	as       []arrival
}

// y is where an arrival is; its watermark comes half a row later.
func (d diagram) y(row int64, mark bool) float64 {
	y := d.top + d.row*float64(row)
	if mark {
		y += d.row / 2
	}
	return y
}

// reached is where the watermark comes to t, or the end of the picture.
func (d diagram) reached(t int64) float64 {
	for _, a := range d.as {
		if a.Mark >= t {
			return d.y(a.Row, true)
		}
	}
	return d.bottom()
}

func (d diagram) bottom() float64 { return d.y(int64(len(d.as)), false) }

// fired is where a pane was fired: by its last element, or by the watermark that came after that.
func (d diagram) fired(p pane) (y float64, byMark bool) {
	for _, a := range d.as {
		if a.Mark >= p.Watermark && p.Watermark > 0 {
			if a.Row < p.Last {
				break
			}
			return d.y(a.Row, true), true
		}
	}
	return d.y(p.Last, false), false
}

// life draws a window from its first element until it is complete, and on until it is dropped.
func (d diagram) life(w window.Time, lateness time.Duration, class string) {
	first := d.bottom()
	for _, a := range d.as {
		if a.Value != 0 && w.Start <= a.At && a.At < w.End {
			first = d.y(a.Row, false) - d.row*0.45
			break
		}
	}
	left, width := d.x.x(w.Start)+2, d.x.x(w.End)-d.x.x(w.Start)-4
	end, gone := d.reached(w.MaxTimestamp()), d.reached(w.MaxTimestamp()+lateness.Milliseconds())
	if gone > end {
		d.box("window kept "+class, left, end, width, gone-end, 4)
	}
	d.box("window "+class, left, first, width, end-first, 4)
}

// watermark draws the watermark as a line from above to below.
func (d diagram) watermark() {
	var b strings.Builder
	at := d.x.from
	fmt.Fprintf(&b, "M%s %s", num(d.x.x(at)), num(d.top-d.row*0.6))
	for _, a := range d.as {
		if a.Mark == 0 {
			continue
		}
		y := d.y(a.Row, true)
		fmt.Fprintf(&b, "L%s %sL%s %s", num(d.x.x(at)), num(y), num(d.x.x(a.Mark)), num(y))
		at = a.Mark
	}
	fmt.Fprintf(&b, "L%s %s", num(d.x.x(at)), num(d.bottom()))
	d.path("watermark", b.String())
}

// firings draws a line across the window for each pane, with its sum.
func (d diagram) firings(panes []pane) {
	for _, p := range panes {
		y, _ := d.fired(p)
		d.line("fire", d.x.x(p.Window.Start)+2, y, d.x.x(p.Window.End)-2, y)
		d.pill("result", d.x.x(p.Window.End)-2, y, fmt.Sprint(p.Sum))
	}
}

// elements draws what arrives, late elements hollow.
func (d diagram) elements(late []arrival) {
	for _, a := range d.as {
		if a.Value == 0 {
			continue
		}
		x, y := d.x.x(a.At), d.y(a.Row, false)
		if containsRow(late, a.Row) {
			d.dot("late", x, y, elementRadius)
			d.text(x, y+4, "latetext small mid", fmt.Sprint(a.Value))
			continue
		}
		d.element("a", x, y, fmt.Sprint(a.Value))
	}
}

func containsRow(as []arrival, row int64) bool {
	for _, a := range as {
		if a.Row == row {
			return true
		}
	}
	return false
}

// frame draws the axes: event time at the bottom, arrival on the left.
func (d diagram) frame() {
	d.x.draw(d.canvas, d.bottom(), d.top-d.row*0.6, 30_000, "04:05", "event time")
	d.arrow("axis", d.x.left-12, d.top-d.row*0.6, d.x.left-12, d.bottom()-6)
}
