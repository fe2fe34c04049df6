package main

import (
	"fmt"
	"slices"
	"time"
	_ "time/tzdata" // the same picture on machines without a database of time zones

	"github.com/flott-dev/flott/window"
)

func calendar() ([]byte, error) {
	newYork, err := time.LoadLocation("America/New_York")
	if err != nil {
		return nil, err
	}
	c := newCanvas(pictureWidth, 388, "Days of a calendar",
		"The days around both changes of the clock in New York, 2021. Windows of the calendar begin at midnight there and are 23 "+
			"or 25 hours long on those days. Windows of 24 hours with an offset of five hours begin at midnight in winter and at "+
			"one o'clock in summer.")
	c.heading("window.Daily(newYork)", "from midnight to midnight, however long the day is")
	for i, day := range []time.Time{
		time.Date(2021, 3, 13, 0, 0, 0, 0, newYork),
		time.Date(2021, 11, 6, 0, 0, 0, 0, newYork),
	} {
		top := 54 + float64(i)*168
		x := axis{day.Add(-90 * time.Minute).UnixMilli(), day.AddDate(0, 0, 3).Add(90 * time.Minute).UnixMilli(), laneLeft + 64, laneRight}
		change := day.AddDate(0, 0, 1).Add(2 * time.Hour).UnixMilli()
		c.line("watermark", x.x(change), top+4, x.x(change), top+58)
		c.line("watermark", x.x(change), top+80, x.x(change), top+120)
		c.text(x.x(change)+8, top+12, "watermarktext small", "clocks change at 2:00")
		if err := days(c, x, top+20, "Daily(newYork)", window.Daily(newYork), newYork, "a"); err != nil {
			return nil, err
		}
		if err := days(c, x, top+82, "24 h, Offset(5h)", window.Tumbling(24*time.Hour).Offset(5*time.Hour), newYork, "b"); err != nil {
			return nil, err
		}
	}
	return c.svg(), nil
}

// days draws the windows that lie within x, with their length and with where they begin on the clocks of loc.
func days(c *canvas, x axis, top float64, name string, a window.Assigner[window.Time], loc *time.Location, class string) error {
	var hours []int64
	for t := x.from; t < x.to; t += 3_600_000 {
		hours = append(hours, t)
	}
	windows, _, err := contents(a, hours)
	if err != nil {
		return err
	}
	c.text(margin, top+25, "strong small", name)
	windows = slices.DeleteFunc(windows, func(w window.Time) bool { return w.Start < x.from || w.End > x.to })
	for _, w := range windows {
		start := time.UnixMilli(w.Start).In(loc)
		c.box("window "+class, x.x(w.Start)+2, top, x.x(w.End)-x.x(w.Start)-4, 38, 6)
		c.text((x.x(w.Start)+x.x(w.End))/2, top+24, "mid", fmt.Sprintf("%s: %.0f h", start.Format("Mon 2 Jan"), float64(w.End-w.Start)/3_600_000))
		c.text(x.x(w.Start), top+53, "dim small mid", start.Format("15:04"))
	}
	end := windows[len(windows)-1].End
	c.text(x.x(end), top+53, "dim small mid", time.UnixMilli(end).In(loc).Format("15:04"))
	return nil
}
