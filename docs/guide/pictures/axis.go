package main

import "time"

// noon is where the time of most pictures begins, in ms.
const noon = int64(12 * 3600 * 1000)

// seconds is a time in ms, s seconds after noon.
func seconds(s int64) int64 { return noon + 1000*s }

// axis puts times in ms on a horizontal line.
type axis struct {
	from, to    int64
	left, right float64
}

// x is where t is.
func (a axis) x(t int64) float64 {
	return a.left + (a.right-a.left)*float64(t-a.from)/float64(a.to-a.from)
}

// draw draws the axis at height y, with the clock every step ms and thin lines up to top from there.
func (a axis) draw(c *canvas, y, top float64, step int64, layout, name string) {
	for t := a.from; t <= a.to; t += step {
		c.line("grid", a.x(t), top, a.x(t), y)
		c.line("axis", a.x(t), y, a.x(t), y+5)
		c.text(a.x(t), y+19, "dim small mid", clock(t, layout))
	}
	c.arrow("axis", a.left-12, y, a.right+16, y)
	c.text(a.right+16, y+34, "dim small end", name)
}

// clock is the time t of day.
func clock(t int64, layout string) string { return time.UnixMilli(t).UTC().Format(layout) }
