package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/flott-dev/flott/window"
)

// lane is a horizontal strip of a picture: the elements of one key.
type lane struct {
	name, class string
	at          []int64 // when its elements took place
}

// lanes are the clicks of three users, which the pictures of tumbling windows and sessions share.
func lanes() []lane {
	return []lane{
		{"ann", "a", []int64{seconds(6), seconds(18), seconds(47), seconds(66), seconds(77), seconds(160), seconds(171), seconds(188)}},
		{"bob", "b", []int64{seconds(27), seconds(88), seconds(99), seconds(109), seconds(132), seconds(229)}},
		{"eve", "c", []int64{seconds(45), seconds(54), seconds(194), seconds(205), seconds(213), seconds(221)}},
	}
}

const laneHeight = 62

// contents assigns elements and counts how many each window has, windows in order of their starts.
func contents(a window.Assigner[window.Time], at []int64) (windows []window.Time, count map[window.Time]int, err error) {
	count = map[window.Time]int{}
	for _, t := range at {
		assigned, err := a.Assign(nil, t, t)
		if err != nil {
			return nil, nil, err
		}
		for _, w := range assigned {
			if count[w]++; count[w] == 1 {
				windows = append(windows, w)
			}
		}
	}
	slices.SortFunc(windows, func(a, b window.Time) int { return int(a.Start - b.Start) })
	return windows, count, nil
}

func tumbling() ([]byte, error) {
	size := time.Minute
	c := newCanvas(pictureWidth, 300, "Tumbling windows",
		"Clicks of three users on a time axis. Each user has a window for each minute in which there are clicks of theirs; "+
			"the number in the corner of a window is the count that it gives.")
	c.heading("Window(window.Tumbling(time.Minute))", "each key has windows of its own, where it has elements")
	x := axis{seconds(0), seconds(240), laneLeft, laneRight}
	bottom := 54 + 3*float64(laneHeight)
	x.draw(c, bottom, 54, 60_000, "15:04", "event time")
	for i, l := range lanes() {
		top := 54 + float64(i*laneHeight)
		c.text(margin, top+laneHeight/2+4, "strong", l.name)
		windows, count, err := contents(window.Tumbling(size), l.at)
		if err != nil {
			return nil, err
		}
		for _, w := range windows {
			c.box("window "+l.class, x.x(w.Start)+3, top+6, x.x(w.End)-x.x(w.Start)-6, laneHeight-12, 6)
			c.text(x.x(w.End)-12, top+22, "strong end", fmt.Sprint(count[w]))
		}
		for _, t := range l.at {
			c.element(l.class, x.x(t), top+laneHeight/2+4, "")
		}
	}
	return c.svg(), nil
}

func offset() ([]byte, error) {
	c := newCanvas(pictureWidth, 236, "The offset of windows",
		"The same hours, once as windows that begin at the full hour and once as windows that begin a quarter past.")
	c.heading("Tumbling(time.Hour)", "begins at multiples of the size since 1970, UTC; an offset moves the grid")
	x := axis{seconds(0), seconds(4 * 3600), laneLeft, laneRight}
	x.draw(c, 178, 54, 1_800_000, "15:04", "event time")
	element := seconds(2*3600 + 600)
	for i, row := range []struct {
		name     string
		assigner window.Assigner[window.Time]
	}{
		{"none", window.Tumbling(time.Hour)},
		{"15 min", window.Tumbling(time.Hour).Offset(15 * time.Minute)},
	} {
		top := 64 + float64(i*56)
		c.text(margin, top+26, "strong", row.name)
		var quarters []int64
		for t := x.from; t < x.to; t += 900_000 {
			quarters = append(quarters, t)
		}
		windows, _, err := contents(row.assigner, quarters)
		if err != nil {
			return nil, err
		}
		for _, w := range windows {
			if w.Start < x.from || w.End > x.to {
				continue
			}
			class := "window kept a"
			if w.Start <= element && element < w.End {
				class = "window a"
			}
			c.box(class, x.x(w.Start)+2, top, x.x(w.End)-x.x(w.Start)-4, 42, 6)
			c.text((x.x(w.Start)+x.x(w.End))/2, top+37, "dim small mid", clock(w.Start, "15:04")+" – "+clock(w.End, "15:04"))
		}
		c.element("a", x.x(element), top+14, "")
	}
	c.text(laneLeft, 222, "dim small", "one element, at 14:10: its window is filled")
	return c.svg(), nil
}

func sliding() ([]byte, error) {
	const size, slide = 60, 20
	at := []int64{seconds(5), seconds(11), seconds(34), seconds(52), seconds(62), seconds(73), seconds(77), seconds(108), seconds(126), seconds(145), seconds(151)}
	chosen := seconds(62)
	c := newCanvas(pictureWidth, 330, "Sliding windows",
		"Elements on a time axis; below them overlapping windows of a minute, one every twenty seconds, with the number of "+
			"elements in each. One element is marked: it is in three windows. At the bottom the slices of twenty seconds that "+
			"windows share.")
	c.heading("Window(window.Sliding(time.Minute, 20*time.Second))", "an element is in size / slide windows")
	x := axis{seconds(0), seconds(180), laneLeft + 20, laneRight}
	x.draw(c, 282, 54, slide*1000, "04:05", "event time")
	windows, count, err := contents(window.Sliding(size*time.Second, slide*time.Second), at)
	if err != nil {
		return nil, err
	}
	for _, w := range windows {
		if w.Start < x.from || w.End > x.to {
			continue
		}
		row := (w.Start - x.from) / (slide * 1000) % (size / slide)
		top := 98 + 40*float64(row)
		class := "window kept a"
		if w.Start <= chosen && chosen < w.End {
			class = "window b"
		}
		c.box(class, x.x(w.Start)+2, top, x.x(w.End)-x.x(w.Start)-4, 32, 6)
		c.text((x.x(w.Start)+x.x(w.End))/2, top+21, "strong mid", fmt.Sprint(count[w]))
	}
	c.text(margin, 138, "strong", "windows")
	c.text(margin, 247, "strong", "slices")
	for s := x.from; s < x.to; s += slide * 1000 {
		n := 0
		for _, t := range at {
			if s <= t && t < s+slide*1000 {
				n++
			}
		}
		c.box("slice", x.x(s)+2, 228, x.x(s+slide*1000)-x.x(s)-4, 28, 4)
		c.text(x.x(s+slide*500), 247, "mid", fmt.Sprint(n))
	}
	for _, t := range at {
		class := "a"
		if t == chosen {
			class = "b"
			c.line("pair", x.x(t), 76, x.x(t), 214)
		}
		c.element(class, x.x(t), 76, "")
	}
	c.text(laneLeft, 318, "dim small", "the filled windows are those of the orange element; each count is the sum of three slices")
	return c.svg(), nil
}
