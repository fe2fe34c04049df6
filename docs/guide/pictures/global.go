package main

import (
	"fmt"

	"github.com/flott-dev/flott/stream"
	"github.com/flott-dev/flott/window"
)

func global() ([]byte, error) {
	c := newCanvas(pictureWidth, 278, "Global windows with a count trigger",
		"The same elements in two windows that never end. The upper one fires with every third element and keeps its contents, so "+
			"that each result holds all elements so far; the lower one drops them when it fires.")
	c.heading("Window(window.GlobalWindows()).Trigger(...)", "one window that never ends")
	var as []arrival
	for i, v := range []int64{4, 1, 7, 2, 5, 3, 8} {
		as = append(as, arrival{At: seconds([]int64{9, 31, 44, 70, 83, 119, 141}[i]), Value: v})
	}
	as = arrivals(as...)
	x := axis{seconds(0), seconds(170), laneLeft, laneRight}
	for i, row := range []struct {
		name    string
		trigger window.Trigger
		class   string
	}{
		{"CountTrigger(3)", window.CountTrigger(3), "a"},
		{"PurgingTrigger(CountTrigger(3))", window.PurgingTrigger(window.CountTrigger(3)), "c"},
	} {
		panes, err := collected(func(env *stream.Env) *stream.Stream[pane] {
			return env.FromSlice(as).KeyBy(func(arrival) string { return "all" }).
				Window(window.GlobalWindows()).Trigger(row.trigger).
				Apply(func(_ window.Info[string, window.Global], xs []arrival, emit func(pane)) {
					p := pane{Last: xs[len(xs)-1].Row}
					for _, x := range xs {
						p.Sum += x.Value
					}
					emit(p)
				})
		})
		if err != nil {
			return nil, err
		}
		top := 78 + float64(i)*96
		c.text(margin, top-10, "strong small", row.name)
		left, right := x.x(as[0].At)-24, x.right+10
		c.path("window "+row.class, fmt.Sprintf("M%[2]s %[3]sH%[1]sV%[4]sH%[2]s", num(left), num(right), num(top), num(top+54)))
		for _, a := range as {
			c.element(row.class, x.x(a.At), top+27, fmt.Sprint(a.Value))
		}
		for _, p := range panes {
			at := x.x(as[p.Last].At) + 18
			c.line("fire", at, top-2, at, top+56)
			c.pill("result", at, top-8, fmt.Sprint(p.Sum))
		}
	}
	c.arrow("axis", x.left-12, 246, x.right+16, 246)
	c.text(x.right+16, 264, "dim small end", "order of arrival")
	return c.svg(), nil
}
