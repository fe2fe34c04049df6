package main

import (
	"time"

	"github.com/flott-dev/flott/window"
)

func lateness() ([]byte, error) {
	const allowed = 30 * time.Second
	as := arrivals(
		arrival{At: seconds(8), Value: 5},
		arrival{At: seconds(41), Value: 3, Mark: seconds(21)},
		arrival{At: seconds(76), Value: 6, Mark: seconds(45)},
		arrival{At: seconds(33), Value: 2},
		arrival{At: seconds(94), Value: 4, Mark: seconds(64)},
		arrival{At: seconds(25), Value: 1},
		arrival{At: seconds(112), Value: 7, Mark: seconds(94)},
		arrival{At: seconds(50), Value: 9},
		arrival{At: seconds(103), Value: 8, Mark: seconds(124)},
	)
	c := newCanvas(pictureWidth, 514, "Allowed lateness",
		"Elements by event time, to the right, and order of arrival, downwards; the watermark as a line from the upper left to the "+
			"lower right. A window is complete when the watermark has reached its end, and gives its sum. It is kept until the "+
			"watermark is thirty seconds further: an element that comes meanwhile makes it fire again. A later one is too late.")
	c.heading("AllowedLateness(30*time.Second)", "windows are kept for a while after they have fired")
	d := diagram{c, axis{seconds(0), seconds(150), laneLeft + 56, laneRight}, 84, 42, as}
	panes, late, err := history(as, allowed, nil)
	if err != nil {
		return nil, err
	}
	d.frame()
	d.text(margin, d.top-6, "dim small", "order of")
	d.text(margin, d.top+8, "dim small", "arrival")
	first, second := window.Time{Start: seconds(0), End: seconds(60)}, window.Time{Start: seconds(60), End: seconds(120)}
	d.life(first, allowed, "a")
	d.life(second, allowed, "c")
	d.watermark()
	d.firings(panes)
	d.elements(late)
	for _, a := range late {
		d.text(d.x.x(a.At)-16, d.y(a.Row, false)+5, "latetext small end", "too late: side output")
	}
	gone := d.reached(first.MaxTimestamp() + allowed.Milliseconds())
	d.text(d.x.x(first.Start)+10, gone-8, "dim small", "complete, and kept")
	d.text(d.x.x(seconds(64))+8, d.y(5, false)+4, "watermarktext small", "watermark")
	return c.svg(), nil
}
