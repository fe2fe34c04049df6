package window_test

import (
	"fmt"
	"time"

	"github.com/flott-dev/flott/window"
)

const minute = int64(time.Minute / time.Millisecond)

// show prints the windows of some timestamps, each with the clock ten minutes later.
func show(a window.Assigner[window.Time], times ...int64) {
	for _, ts := range times {
		ws, err := a.Assign(nil, ts, ts+10*minute)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Print(clock(ts), ":")
		for _, w := range ws {
			fmt.Printf(" %s-%s", clock(w.Start), clock(w.End))
		}
		fmt.Println()
	}
}

func clock(ms int64) string { return time.UnixMilli(ms).UTC().Format("15:04") }

func ExampleTumbling() {
	show(window.Tumbling(time.Hour), 0, 59*minute, 60*minute)
	// Output:
	// 00:00: 00:00-01:00
	// 00:59: 00:00-01:00
	// 01:00: 01:00-02:00
}

func ExampleTumblingAssigner_Offset() {
	// From a quarter past to a quarter past.
	show(window.Tumbling(time.Hour).Offset(15*time.Minute), 60*minute, 75*minute)
	// Output:
	// 01:00: 00:15-01:15
	// 01:15: 01:15-02:15
}

func ExampleTumblingProcessingTime() {
	// The clock counts, which shows ten minutes more than the timestamps here.
	show(window.TumblingProcessingTime(time.Hour), 0, 59*minute)
	// Output:
	// 00:00: 00:00-01:00
	// 00:59: 01:00-02:00
}

func ExampleSliding() {
	show(window.Sliding(time.Hour, 20*time.Minute), 60*minute, 90*minute)
	// Without overlap, there may be no window for an element.
	show(window.Sliding(10*time.Minute, time.Hour), 65*minute, 90*minute)
	// Output:
	// 01:00: 01:00-02:00 00:40-01:40 00:20-01:20
	// 01:30: 01:20-02:20 01:00-02:00 00:40-01:40
	// 01:05: 01:00-01:10
	// 01:30:
}

func ExampleSlidingAssigner_Offset() {
	show(window.Sliding(time.Hour, 30*time.Minute).Offset(5*time.Minute), 60*minute, 65*minute)
	// Output:
	// 01:00: 00:35-01:35 00:05-01:05
	// 01:05: 01:05-02:05 00:35-01:35
}

func ExampleSlidingProcessingTime() {
	show(window.SlidingProcessingTime(time.Hour, 30*time.Minute), 60*minute, 85*minute)
	// Output:
	// 01:00: 01:00-02:00 00:30-01:30
	// 01:25: 01:30-02:30 01:00-02:00
}

func ExampleSession() {
	a := window.Session(30 * time.Minute)
	show(a, 0, 30*minute, 61*minute)
	// Windows of a key that overlap or touch become one.
	a.Merge([]window.Time{{0, 30 * minute}, {30 * minute, 60 * minute}, {61 * minute, 91 * minute}},
		func(result window.Time, sources []window.Time) {
			fmt.Println(len(sources), "windows:", clock(result.Start), "to", clock(result.End))
		})
	// Output:
	// 00:00: 00:00-00:30
	// 00:30: 00:30-01:00
	// 01:01: 01:01-01:31
	// 2 windows: 00:00 to 01:00
}

func ExampleSessionProcessingTime() {
	show(window.SessionProcessingTime(30*time.Minute), 0)
	// Output:
	// 00:00: 00:10-00:40
}

type Click struct {
	User string
	Paid bool
}

// patience is how long a user may pause before a visit is over.
func patience(c *Click) time.Duration {
	if c.Paid {
		return time.Hour
	}
	return 10 * time.Minute
}

func showClicks(a window.ElementAssigner[Click, window.Time]) {
	for _, c := range []Click{{"ann", true}, {"bob", false}} {
		ws, err := a.AssignElement(nil, &c, 60*minute, 70*minute)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%s: %s-%s\n", c.User, clock(ws[0].Start), clock(ws[0].End))
	}
}

func ExampleSessionBy() {
	showClicks(window.SessionBy(func(c Click) time.Duration { return patience(&c) }))
	// Output:
	// ann: 01:00-02:00
	// bob: 01:00-01:10
}

func ExampleSessionByPtr() {
	showClicks(window.SessionByPtr(patience))
	// Output:
	// ann: 01:00-02:00
	// bob: 01:00-01:10
}

func ExampleSessionProcessingTimeBy() {
	showClicks(window.SessionProcessingTimeBy(func(c Click) time.Duration { return patience(&c) }))
	// Output:
	// ann: 01:10-02:10
	// bob: 01:10-01:20
}

func ExampleSessionProcessingTimeByPtr() {
	showClicks(window.SessionProcessingTimeByPtr(patience))
	// Output:
	// ann: 01:10-02:10
	// bob: 01:10-01:20
}

func ExampleGlobalWindows() {
	ws, err := window.GlobalWindows().Assign(nil, 1000, 2000)
	fmt.Println(ws, err)
	// Output:
	// [global] <nil>
}

// showDates prints the windows of some timestamps by the clock of a place.
func showDates(loc *time.Location, a window.Assigner[window.Time], times ...time.Time) {
	const layout = "Jan 2 15:04 MST"
	for _, at := range times {
		ws, err := a.Assign(nil, at.UnixMilli(), at.UnixMilli())
		if err != nil {
			fmt.Println(err)
			return
		}
		start, end := time.UnixMilli(ws[0].Start).In(loc), time.UnixMilli(ws[0].End).In(loc)
		fmt.Printf("%s: %s to %s, %v\n", at.Format(layout), start.Format(layout), end.Format(layout), end.Sub(start))
	}
}

func ExampleDaily() {
	loc, err := time.LoadLocation("America/Los_Angeles")
	if err != nil {
		fmt.Println(err)
		return
	}
	// Clocks went forward on March 14.
	showDates(loc, window.Daily(loc), time.Date(2021, 3, 13, 23, 0, 0, 0, loc), time.Date(2021, 3, 14, 23, 0, 0, 0, loc))
	// Output:
	// Mar 13 23:00 PST: Mar 13 00:00 PST to Mar 14 00:00 PST, 24h0m0s
	// Mar 14 23:00 PDT: Mar 14 00:00 PST to Mar 15 00:00 PDT, 23h0m0s
}

func ExampleCalendarAssigner_Offset() {
	loc, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		fmt.Println(err)
		return
	}
	// The day of a night shift, from six to six.
	showDates(loc, window.Daily(loc).Offset(6*time.Hour), time.Date(2024, 7, 1, 5, 59, 0, 0, loc), time.Date(2024, 7, 1, 6, 0, 0, 0, loc))
	// Output:
	// Jul 1 05:59 CEST: Jun 30 06:00 CEST to Jul 1 06:00 CEST, 24h0m0s
	// Jul 1 06:00 CEST: Jul 1 06:00 CEST to Jul 2 06:00 CEST, 24h0m0s
}

func ExampleCalendarAssigner_ProcessingTime() {
	at := time.Date(2024, 2, 29, 12, 0, 0, 0, time.UTC)
	showDates(time.UTC, window.Monthly(time.UTC).ProcessingTime(), at)
	// Output:
	// Feb 29 12:00 UTC: Feb 1 00:00 UTC to Mar 1 00:00 UTC, 696h0m0s
}

func ExampleWeekly() {
	at := time.Date(2024, 7, 7, 12, 0, 0, 0, time.UTC) // a Sunday
	showDates(time.UTC, window.Weekly(time.UTC, time.Monday), at)
	showDates(time.UTC, window.Weekly(time.UTC, time.Sunday), at)
	// Output:
	// Jul 7 12:00 UTC: Jul 1 00:00 UTC to Jul 8 00:00 UTC, 168h0m0s
	// Jul 7 12:00 UTC: Jul 7 00:00 UTC to Jul 14 00:00 UTC, 168h0m0s
}

func ExampleMonthly() {
	showDates(time.UTC, window.Monthly(time.UTC), time.Date(2024, 2, 29, 12, 0, 0, 0, time.UTC))
	// Output:
	// Feb 29 12:00 UTC: Feb 1 00:00 UTC to Mar 1 00:00 UTC, 696h0m0s
}

func ExampleStartWithOffset() {
	fmt.Println(window.StartWithOffset(-1, 0, 10), window.StartWithOffset(12, 3, 10))
	// Output:
	// -10 3
}
