package main

import (
	"bytes"
	"context"
	"encoding/csv"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flott-dev/flott/stream"
)

func events(t *testing.T, path string) []Event {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var all []Event
	for _, row := range rows[1:] {
		at, err := time.Parse(time.RFC3339, row[2])
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, Event{row[0], row[1], at})
	}
	return all
}

// expected are the pairs and rates, found by comparing everything with everything.
func expected(impressions, clicks []Event) []string {
	var lines []string
	rates := map[Rate]Rate{}
	count := func(e Event, shown, clicked int) {
		key := Rate{Ad: e.Ad, Minute: e.At.Truncate(time.Minute)}
		r := rates[key]
		rates[key] = Rate{key.Ad, key.Minute, r.Shown + shown, r.Clicked + clicked}
	}
	for _, s := range impressions {
		count(s, 1, 0)
		for _, c := range clicks {
			if c.Ad == s.Ad && c.User == s.User && c.At.Truncate(time.Minute).Equal(s.At.Truncate(time.Minute)) && !c.At.Before(s.At) {
				lines = append(lines, fmt.Sprintf("%s clicked %s after %s\n", c.User, c.Ad, c.At.Sub(s.At)))
			}
		}
	}
	for _, c := range clicks {
		count(c, 0, 1)
	}
	for _, r := range rates {
		lines = append(lines, r.String()+"\n")
	}
	slices.Sort(lines)
	return lines
}

func TestPairsAndRatesOfEachMinute(t *testing.T) {
	want := expected(events(t, "impressions.csv"), events(t, "clicks.csv"))
	for _, line := range []string{"kim clicked shoes after", "bikes: 0 of"} { // the files have pairs, and ads without clicks
		if !slices.ContainsFunc(want, func(s string) bool { return strings.Contains(s, line) }) {
			t.Fatalf("no %q in\n%s", line, strings.Join(want, ""))
		}
	}
	for _, parallelism := range []int{1, 3} {
		for _, opts := range [][]stream.Option{nil, {stream.WithIsolation()}} {
			var out bytes.Buffer
			if err := run(context.Background(), "impressions.csv", "clicks.csv", parallelism, &out, opts...); err != nil {
				t.Fatal(err)
			}
			if got := slices.Sorted(strings.Lines(out.String())); !slices.Equal(got, want) {
				t.Errorf("parallelism %d, %d options: got\n%swant\n%s", parallelism, len(opts), strings.Join(got, ""), strings.Join(want, ""))
			}
		}
	}
}
