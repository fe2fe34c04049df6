package main

import (
	"slices"
	"time"

	"github.com/flott-dev/flott/stream"
	"github.com/flott-dev/flott/window"
)

func windowJoin() ([]byte, error) {
	left := side(seconds(12), seconds(41), seconds(74), seconds(131), seconds(203), seconds(226))
	right := side(seconds(33), seconds(52), seconds(104), seconds(215))
	pairs, err := collected(func(env *stream.Env) *stream.Stream[pair] {
		return env.FromSlice(left).AssignAscendingTimestamps(sided.time).
			Join(env.FromSlice(right).AssignAscendingTimestamps(sided.time)).
			Where(func(sided) string { return "all" }).EqualTo(func(sided) string { return "all" }).
			Window(window.Tumbling(time.Minute)).
			Apply(paired)
	})
	if err != nil {
		return nil, err
	}
	c := newCanvas(pictureWidth, 240, "A join within windows",
		"Impressions and clicks of one key on a time axis, in windows of a minute. Within a window every impression is joined "+
			"with every click; a window with one side only gives nothing.")
	c.heading("Window(window.Tumbling(time.Minute)).Apply(f)", "every pair of one key and one window")
	x := axis{seconds(0), seconds(240), laneLeft + 44, laneRight}
	x.draw(c, 190, 54, 60_000, "15:04", "event time")
	var all []int64
	for _, e := range append(slices.Clone(left), right...) {
		all = append(all, e.At)
	}
	windows, _, err := contents(window.Tumbling(time.Minute), all)
	if err != nil {
		return nil, err
	}
	for _, w := range windows {
		c.box("window c", x.x(w.Start)+3, 60, x.x(w.End)-x.x(w.Start)-6, 124, 6)
	}
	sides(c, x, left, right, pairs, [2]string{"impressions", "clicks"}, 88, 156)
	return c.svg(), nil
}
