package main

import (
	"time"

	"github.com/flott-dev/flott/window"
)

func triggers() ([]byte, error) {
	const allowed = 40 * time.Second
	as := arrivals(
		arrival{At: seconds(10), Value: 5},
		arrival{At: seconds(35), Value: 3, Mark: seconds(12)},
		arrival{At: seconds(22), Value: 4, Mark: seconds(34)},
		arrival{Mark: seconds(66)},
		arrival{At: seconds(44), Value: 1},
		arrival{At: seconds(17), Value: 7},
		arrival{Mark: seconds(102)},
	)
	c := newCanvas(pictureWidth, 462, "Early, on-time and late firings",
		"The same elements of one window twice, by event time, to the right, and order of arrival, downwards. The window fires "+
			"after every second element, when the watermark reaches its end, and for each element after that. On the left its "+
			"contents stay, and every result corrects the one before; on the right they are purged, and each result holds what "+
			"is new.")
	early := window.OnTime().Early(window.CountTrigger(2)).Late(window.CountTrigger(1))
	for i, half := range []struct {
		code, more, words string
		trigger           window.Trigger
	}{
		{"OnTime().Early(CountTrigger(2)).", "         Late(CountTrigger(1))", "contents stay", early},
		{"PurgingTrigger(OnTime().Early(...)", "                        .Late(...))", "contents are dropped by each firing", window.PurgingTrigger(early)},
	} {
		left := margin + 44 + float64(i)*374
		c.text(left-24, 30, "code", half.code)
		c.text(left-24, 47, "code", half.more)
		c.text(left-24, 67, "dim", half.words)
		c.text(left-24, 88, "dim small", "order of arrival")
		d := diagram{c, axis{seconds(0), seconds(110), left, left + 300}, 122, 42, as}
		panes, late, err := history(as, allowed, half.trigger)
		if err != nil {
			return nil, err
		}
		d.frame()
		w := window.Time{Start: seconds(0), End: seconds(60)}
		d.life(w, allowed, "a")
		d.watermark()
		d.firings(panes)
		d.elements(late)
		seen := map[string]bool{}
		for _, p := range panes {
			y, byMark := d.fired(p)
			word := "early"
			switch {
			case byMark:
				word = "on time"
			case p.Watermark >= w.MaxTimestamp():
				word = "late"
			}
			if !seen[word] {
				d.text(d.x.x(w.End)+24, y+4, "strong small", word)
			}
			seen[word] = true
		}
	}
	return c.svg(), nil
}
