package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flott-dev/flott/stream"
)

// tops are the n highest counts of each minute, without the pages, since of equal counts any may come first.
func tops(minutes int, seed uint64, n int) []string {
	counts := map[time.Time]map[string]int{}
	for v := range visits(minutes, seed) {
		minute := v.At.Truncate(time.Minute)
		if counts[minute] == nil {
			counts[minute] = map[string]int{}
		}
		counts[minute][v.Page]++
	}
	var lines []string
	for minute, pages := range counts {
		var sorted []int
		for _, c := range pages {
			sorted = append(sorted, c)
		}
		slices.SortFunc(sorted, func(a, b int) int { return cmp.Compare(b, a) })
		lines = append(lines, fmt.Sprint(minute.Format("15:04"), sorted[:min(n, len(sorted))]))
	}
	slices.Sort(lines)
	return lines
}

func TestTopPagesOfEachMinute(t *testing.T) {
	for _, n := range []int{1, 3, 100} {
		want := tops(5, 1, n)
		for _, parallelism := range []int{1, 3} {
			for _, opts := range [][]stream.Option{nil, {stream.WithIsolation()}, {stream.WithGeneralWindows()}} {
				var out bytes.Buffer
				if err := run(context.Background(), visits(5, 1), n, parallelism, &out, opts...); err != nil {
					t.Fatal(err)
				}
				var got []string
				for line := range strings.Lines(out.String()) {
					minute, pages, _ := strings.Cut(strings.TrimSpace(line), " ")
					var counts []int
					for _, page := range strings.Fields(pages) {
						var c int
						if _, err := fmt.Sscanf(page[strings.IndexByte(page, '('):], "(%d)", &c); err != nil {
							t.Fatalf("%q: %v", line, err)
						}
						counts = append(counts, c)
					}
					got = append(got, fmt.Sprint(minute, counts))
				}
				if !slices.Equal(got, want) {
					t.Errorf("n %d, parallelism %d: got\n%s\nwant\n%s", n, parallelism, strings.Join(got, "\n"), strings.Join(want, "\n"))
				}
			}
		}
	}
}

func TestOtherPagesLeadInOtherMinutes(t *testing.T) {
	var out bytes.Buffer
	if err := run(context.Background(), visits(3, 1), 1, 1, &out); err != nil {
		t.Fatal(err)
	}
	leaders := map[string]bool{}
	for line := range strings.Lines(out.String()) {
		page, _, _ := strings.Cut(strings.Fields(line)[1], "(")
		leaders[page] = true
	}
	if len(leaders) != 3 {
		t.Errorf("got\n%s", out.String())
	}
}
