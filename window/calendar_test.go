package window_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/flott-dev/flott/window"
)

// wall is a clock reading as if it were one of UTC.
func wall(t time.Time) time.Time {
	_, ahead := t.Zone()
	return time.Unix(t.Unix()+int64(ahead), 0).UTC()
}

// TestCalendarWindowsFollowTheClock compares the windows around all clock changes of some years with the definition: the
// highest reading that the clock has shown says which period it is. (Places: midnight skipped or seen twice, whole days
// skipped, changes of half an hour, a change just after midnight that goes back to the day before.)
func TestCalendarWindowsFollowTheClock(t *testing.T) {
	type kind struct {
		assigner window.CalendarAssigner
		period   func(time.Time) string
	}
	for _, p := range []struct {
		place    string
		from, to int
	}{
		{"America/Los_Angeles", 2020, 2022},
		{"America/Sao_Paulo", 2008, 2011},
		{"Pacific/Apia", 2010, 2013},
		{"America/St_Johns", 2006, 2009},
		{"America/Havana", 2010, 2013},
		{"Atlantic/Azores", 2015, 2017},
		{"Australia/Lord_Howe", 2019, 2021},
		{"Pacific/Kwajalein", 1992, 1995},
		{"Asia/Beirut", 2020, 2022},
		{"Africa/Casablanca", 2019, 2021},
		{"Asia/Manila", 1844, 1846},
	} {
		loc := place(t, p.place)
		kinds := []kind{
			{window.Daily(loc), func(r time.Time) string { return r.Format(time.DateOnly) }},
			{window.Daily(loc).Offset(90 * time.Minute), func(r time.Time) string { return r.Add(-90 * time.Minute).Format(time.DateOnly) }},
			{window.Daily(loc).Offset(-2 * time.Hour), func(r time.Time) string { return r.Add(2 * time.Hour).Format(time.DateOnly) }},
			{window.Weekly(loc, time.Sunday), func(r time.Time) string {
				return r.AddDate(0, 0, -int(r.Weekday())).Format(time.DateOnly)
			}},
			{window.Monthly(loc).ProcessingTime(), func(r time.Time) string { return r.Format("2006-01") }},
		}
		end := time.Date(p.to, 1, 1, 0, 0, 0, 0, time.UTC)
		changes := 0
		for _, change := time.Date(p.from, 1, 1, 0, 0, 0, 0, time.UTC).In(loc).ZoneBounds(); !change.IsZero() && change.Before(end); _, change = change.ZoneBounds() {
			changes++
			for _, k := range kinds {
				followClock(t, k.assigner, k.period, change)
			}
		}
		if changes == 0 {
			t.Errorf("%s never changed its clocks", p.place)
		}
	}
}

func followClock(t *testing.T, a window.CalendarAssigner, period func(time.Time) string, change time.Time) {
	t.Helper()
	at := change.Add(-28 * time.Hour)
	highest := wall(at)
	var last window.Time
	var name string
	for ; at.Before(change.Add(28 * time.Hour)); at = at.Add(time.Minute) {
		if r := wall(at); r.After(highest) {
			highest = r
		}
		ms := at.UnixMilli()
		ws, err := a.Assign(nil, ms, ms)
		if err != nil || len(ws) != 1 || ms < ws[0].Start || ms >= ws[0].End {
			t.Fatalf("%v of %v: %v, %v", a, at, ws, err)
		}
		w := ws[0]
		switch now := period(highest); {
		case name == "": // the first
		case now == name && w != last:
			t.Fatalf("%v of %v: %v, but %v a minute before is the same period, %s", a, at, w, last, now)
		case now != name && (w.Start != ms || w.Start != last.End):
			t.Fatalf("%v of %v: %v after %v, but %s begins here", a, at, w, last, now)
		}
		name, last = period(highest), w
	}
}

func TestCalendarWindowsByName(t *testing.T) {
	la, apia, lagos := place(t, "America/Los_Angeles"), place(t, "Pacific/Apia"), time.FixedZone("WAT", 60*60)
	day := func(loc *time.Location, y int, m time.Month, d, hour int) int64 {
		return time.Date(y, m, d, hour, 0, 0, 0, loc).UnixMilli()
	}
	for _, c := range []struct {
		assigner   window.CalendarAssigner
		ts         int64
		start, end int64
	}{
		{window.Daily(lagos), day(lagos, 2024, 2, 29, 23), day(lagos, 2024, 2, 29, 0), day(lagos, 2024, 3, 1, 0)},
		{window.Daily(apia), day(apia, 2011, 12, 29, 5), day(apia, 2011, 12, 29, 0), day(apia, 2011, 12, 31, 0)},
		{window.Daily(apia), day(apia, 2011, 12, 31, 5), day(apia, 2011, 12, 31, 0), day(apia, 2012, 1, 1, 0)},
		{window.Daily(la).Offset(6 * time.Hour), day(la, 2021, 3, 14, 5), day(la, 2021, 3, 13, 6), day(la, 2021, 3, 14, 6)},
		{window.Daily(la).Offset(6 * time.Hour), day(la, 2021, 3, 14, 6), day(la, 2021, 3, 14, 6), day(la, 2021, 3, 15, 6)},
		{window.Weekly(la, time.Monday), day(la, 2021, 11, 7, 23), day(la, 2021, 11, 1, 0), day(la, 2021, 11, 8, 0)},
		{window.Weekly(la, time.Sunday), day(la, 2021, 11, 7, 23), day(la, 2021, 11, 7, 0), day(la, 2021, 11, 14, 0)},
		{window.Weekly(la, time.Saturday), day(la, 2021, 11, 7, 23), day(la, 2021, 11, 6, 0), day(la, 2021, 11, 13, 0)},
		{window.Weekly(time.UTC, time.Thursday), -1, -7 * 86_400_000, 0},
		{window.Monthly(la), day(la, 2021, 12, 31, 23), day(la, 2021, 12, 1, 0), day(la, 2022, 1, 1, 0)},
		{window.Monthly(la).Offset(6 * time.Hour), day(la, 2021, 3, 1, 5), day(la, 2021, 2, 1, 6), day(la, 2021, 3, 1, 6)},
		{window.Monthly(time.UTC), day(time.UTC, 1969, 2, 28, 23), day(time.UTC, 1969, 2, 1, 0), day(time.UTC, 1969, 3, 1, 0)},
	} {
		want := window.Time{Start: c.start, End: c.end}
		if got, err := c.assigner.ProcessingTime().Assign(nil, 0, c.ts); err != nil || !slices.Equal(got, []window.Time{want}) {
			t.Errorf("%v at %d: %v, %v, want %v", c.assigner, c.ts, got, err, want)
		}
		if got := assigned(t, c.assigner, c.ts); !slices.Equal(got, []window.Time{want}) {
			t.Errorf("%v of %d: %v, want %v", c.assigner, c.ts, got, want)
		}
		if got := c.assigner.Grid().Period(c.ts); got != want {
			t.Errorf("%v of %d: the grid says %v, want %v", c.assigner, c.ts, got, want)
		}
	}
}

func FuzzCalendar(f *testing.F) {
	f.Add(int64(0), uint8(0), int32(0))
	f.Add(int64(math.MaxInt64), uint8(4), int32(3600))
	f.Add(int64(math.MinInt64+1), uint8(8), int32(-3600))
	f.Add(int64(1616850000000), uint8(5), int32(0))
	f.Fuzz(func(t *testing.T, ts int64, pick uint8, offset int32) {
		if ts == math.MinInt64 {
			return
		}
		places := []string{"America/Los_Angeles", "America/Sao_Paulo", "Pacific/Apia", "UTC"}
		loc := place(t, places[int(pick>>4)%len(places)])
		units := []window.CalendarAssigner{window.Daily(loc), window.Weekly(loc, time.Weekday(pick%7)), window.Monthly(loc)}
		a := units[int(pick)%3].Offset(time.Duration(offset%86400) * time.Second)
		w := assigned(t, a, ts)[0]
		if w.Start > ts || ts >= w.End && ts != math.MaxInt64 {
			t.Fatalf("%v of %d: %v", a, ts, w)
		}
		if w.End != math.MaxInt64 {
			if got := assigned(t, a, w.End)[0]; got.Start != w.End {
				t.Fatalf("%v: %v is followed by %v", a, w, got)
			}
			if got := assigned(t, a, w.End-1)[0]; got != w {
				t.Fatalf("%v: the last ms of %v is in %v", a, w, got)
			}
		}
		if w.Start > math.MinInt64+1 {
			if got := assigned(t, a, w.Start)[0]; got != w {
				t.Fatalf("%v: the first ms of %v is in %v", a, w, got)
			}
			if got := assigned(t, a, w.Start-1)[0]; got.End != w.Start {
				t.Fatalf("%v: %v comes after %v", a, w, got)
			}
		}
	})
}
