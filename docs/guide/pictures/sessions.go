package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/flott-dev/flott/window"
)

// merged assigns the elements of one key in order and merges their windows, as the engine does.
func merged(a interface {
	window.Assigner[window.Time]
	window.Merger[window.Time]
}, at []int64,
) ([]window.Time, error) {
	var all []window.Time
	for _, t := range at {
		next, err := a.Assign(nil, t, t)
		if err != nil {
			return nil, err
		}
		for _, w := range next {
			if !slices.Contains(all, w) {
				all = append(all, w)
			}
		}
		var results []window.Time
		var gone []window.Time
		a.Merge(all, func(result window.Time, sources []window.Time) {
			results, gone = append(results, result), append(gone, sources...)
		})
		all = slices.DeleteFunc(all, func(w window.Time) bool { return slices.Contains(gone, w) })
		all = append(all, results...)
	}
	slices.SortFunc(all, func(a, b window.Time) int { return int(a.Start - b.Start) })
	return all, nil
}

func sessions() ([]byte, error) {
	const gap = 20
	c := newCanvas(pictureWidth, 300, "Session windows",
		"Clicks of three users on a time axis. Clicks of a user that lie less than twenty seconds apart are in one window, "+
			"which ends twenty seconds after the last of them.")
	c.heading("Window(window.Session(20*time.Second))", "a session ends after a gap without elements of its key")
	x := axis{seconds(0), seconds(250), laneLeft, laneRight}
	x.draw(c, 54+3*laneHeight, 54, 60_000, "04:05", "event time")
	for i, l := range lanes() {
		top := 54 + float64(i*laneHeight)
		c.text(margin, top+laneHeight/2+4, "strong", l.name)
		windows, err := merged(window.Session(gap*time.Second), l.at)
		if err != nil {
			return nil, err
		}
		for _, w := range windows {
			last := w.End - gap*1000
			c.box("window "+l.class, x.x(w.Start), top+6, x.x(w.End)-x.x(w.Start), laneHeight-12, 6)
			c.line("gap", x.x(last)+elementRadius+1, top+laneHeight/2+4, x.x(w.End)-2, top+laneHeight/2+4)
			n := 0
			for _, t := range l.at {
				if w.Start <= t && t < w.End {
					n++
				}
			}
			c.text(x.x(w.End)-7, top+22, "strong end", fmt.Sprint(n))
		}
		for _, t := range l.at {
			c.element(l.class, x.x(t), top+laneHeight/2+4, "")
		}
	}
	return c.svg(), nil
}

func sessionMerge() ([]byte, error) {
	const gap = 20
	at := []int64{seconds(10), seconds(42), seconds(27)}
	c := newCanvas(pictureWidth, 272, "How sessions merge",
		"Three elements of one key in order of arrival. Each opens a window of its own, twenty seconds long. The first two are "+
			"apart; the third comes between them, and its window touches both: the three become one.")
	c.heading("window.Session(20*time.Second)", "each element opens a window; those that touch merge")
	x := axis{seconds(0), seconds(80), laneLeft + 50, laneRight}
	x.draw(c, 220, 54, 10_000, "04:05", "event time")
	for i := range at {
		top := 58 + float64(i)*54
		c.text(margin, top+26, "strong", [...]string{"first", "second", "third, late"}[i])
		before, err := merged(window.Session(gap*time.Second), at[:i])
		if err != nil {
			return nil, err
		}
		after, err := merged(window.Session(gap*time.Second), at[:i+1])
		if err != nil {
			return nil, err
		}
		for _, w := range after {
			class := "window a"
			if slices.Contains(before, w) {
				class = "window kept a"
			}
			c.box(class, x.x(w.Start), top, x.x(w.End)-x.x(w.Start), 44, 6)
			c.text(x.x(w.End)-6, top+38, "dim small end", clock(w.Start, "04:05")+" – "+clock(w.End, "04:05"))
		}
		for j, t := range at[:i+1] {
			class := "a"
			if j == i {
				class = "b"
			}
			c.element(class, x.x(t), top+16, fmt.Sprint(j+1))
		}
	}
	return c.svg(), nil
}
