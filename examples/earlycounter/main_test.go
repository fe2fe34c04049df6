package main

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/flott-dev/flott/flotttest"
	"github.com/flott-dev/flott/stream"
)

func TestNumbersAreEarlyThenCompleteThenCorrected(t *testing.T) {
	h := flotttest.NewHarness(t, func(in *stream.Stream[Order]) *stream.Stream[Number] { return dashboard(in, time.Second) })
	nine := time.Date(2024, 3, 1, 9, 0, 0, 0, time.UTC)
	order := func(region string, cents int64, minute int) {
		at := nine.Add(time.Duration(minute) * time.Minute)
		h.ProcessElement(Order{region, cents, at}, at.UnixMilli())
	}
	last := nine.Add(time.Hour).UnixMilli() - 1
	number := func(region string, cents int64, s Stage) string {
		return fmt.Sprintf("%v@%d", Number{region, nine, cents, s}, last)
	}

	order("east", 100, 1)
	order("east", 20, 2)
	h.Expect(t)
	h.Advance(time.Second)
	h.Expect(t, number("east", 120, Early))
	order("east", 3, 3)
	h.Advance(300 * time.Millisecond)
	h.Expect(t)
	h.Advance(700 * time.Millisecond)
	h.Expect(t, number("east", 123, Early))

	h.ProcessWatermark(last)
	h.Expect(t, number("east", 123, OnTime), fmt.Sprintf("watermark %d", last))
	h.Advance(10 * time.Second)
	h.Expect(t) // a number that is complete is shown once
	order("east", 4000, 59)
	h.Expect(t, number("east", 4123, Corrected))

	gone := last + (10 * time.Minute).Milliseconds()
	h.ProcessWatermark(gone)
	order("east", 50_000, 59)
	h.Expect(t, fmt.Sprintf("watermark %d", gone))
	if n := h.StateEntries("complete"); n != 0 {
		t.Errorf("%d windows that are gone are remembered", n)
	}
}

// The last numbers that the dashboard shows are the totals of the orders, whatever it showed before.
func TestLastNumbersAreTheTotals(t *testing.T) {
	const n = 12_000
	totals := map[string]int64{}
	for i := range int64(n) {
		o := order(i)
		totals[o.At.Truncate(time.Hour).Format("15:04")+" "+o.Region] += o.Cents
	}
	for _, opts := range [][]stream.Option{nil, {stream.WithIsolation()}} {
		var out bytes.Buffer
		if err := run(context.Background(), n, 0, time.Millisecond, 2, &out, opts...); err != nil {
			t.Fatal(err)
		}
		shown := map[string]int64{}
		for line := range strings.Lines(out.String()) {
			var hour, region, stage string
			var whole, cents int64
			if _, err := fmt.Sscanf(line, "%s %s %d.%d %s", &hour, &region, &whole, &cents, &stage); err != nil {
				t.Fatalf("%q: %v", line, err)
			}
			shown[hour+" "+region] = 100*whole + cents
		}
		if fmt.Sprint(shown) != fmt.Sprint(totals) {
			t.Errorf("got  %v\nwant %v", shown, totals)
		}
	}
}
