package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flott-dev/flott/stream"
)

func lines(t *testing.T, path string, gap time.Duration, parallelism int, opts ...stream.Option) []string {
	t.Helper()
	var out bytes.Buffer
	if err := run(context.Background(), path, gap, parallelism, &out, opts...); err != nil {
		t.Fatal(err)
	}
	return slices.Sorted(strings.Lines(out.String()))
}

func logFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "access.log")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestVisitsEndWithAPauseOfTheirClient(t *testing.T) {
	path := logFile(t, `a - - [01/Mar/2024:08:00:00 +0000] "GET / HTTP/1.1" 200 100
b - - [01/Mar/2024:09:05:00 +0100] "GET /shop HTTP/1.1" 404 -
a - - [01/Mar/2024:08:30:00 +0000] "GET /shop HTTP/1.1" 200 20
a - - [01/Mar/2024:08:20:00 +0000] "GET / HTTP/1.1" 304 -
a - - [01/Mar/2024:09:00:01 +0000] "GET /help HTTP/1.1" 500 3 "-" "some browser"
b - - nonsense
b - - [01/Mar/2024:08:35:00 +0000] "POST /pay HTTP/1.1" 200 7
`)
	want := []string{
		// A pause of exactly the gap does not end a visit: windows that touch merge.
		"a from 08:00:00 for 30m0s: 3 requests (0 unanswered), 120 bytes, / /shop\n",
		"a from 09:00:01 for 0s: 1 requests (1 unanswered), 3 bytes, /help\n",
		"b from 08:05:00 for 30m0s: 2 requests (1 unanswered), 7 bytes, /shop /pay\n",
		"unreadable: b - - nonsense\n",
	}
	for _, parallelism := range []int{1, 3} {
		for _, opts := range [][]stream.Option{nil, {stream.WithIsolation()}, {stream.WithGeneralWindows()}} {
			if got := lines(t, path, 30*time.Minute, parallelism, opts...); !slices.Equal(got, want) {
				t.Errorf("parallelism %d, %d options: got\n%swant\n%s", parallelism, len(opts), strings.Join(got, ""), strings.Join(want, ""))
			}
		}
	}
}

// The visits of a log hold all of its requests, whatever the gap, and a long gap makes one visit per client.
func TestEveryRequestOfTheLogIsInOneVisit(t *testing.T) {
	text, err := os.ReadFile("access.log")
	if err != nil {
		t.Fatal(err)
	}
	requests, bad := map[string]int{}, 0
	for line := range strings.Lines(string(text)) {
		r, err := parseRequest(strings.TrimSpace(line))
		if err != nil {
			bad++
			continue
		}
		requests[r.Client]++
	}
	if bad != 1 || len(requests) != 5 {
		t.Fatalf("the log has %d bad lines and %d clients", bad, len(requests))
	}
	all := lines(t, "access.log", 24*time.Hour, 2)
	if len(all) != len(requests)+bad {
		t.Errorf("got %d lines:\n%s", len(all), strings.Join(all, ""))
	}
	for client, n := range requests {
		if !slices.ContainsFunc(all, func(line string) bool {
			return strings.HasPrefix(line, client+" from ") && strings.Contains(line, fmt.Sprintf(" %d requests ", n))
		}) {
			t.Errorf("no visit of %s with %d requests", client, n)
		}
	}
	if visits := len(lines(t, "access.log", 30*time.Minute, 2)) - bad; visits <= len(requests) {
		t.Errorf("%d visits of %d clients", visits, len(requests))
	}
}

func TestRequestsAreParsed(t *testing.T) {
	r, err := parseRequest(`2001:db8::1 - frank [10/Oct/2000:13:55:36 -0700] "GET /a.gif?x=1 HTTP/1.0" 200 2326`)
	want := Request{"2001:db8::1", time.Date(2000, 10, 10, 20, 55, 36, 0, time.UTC), "GET", "/a.gif?x=1", 200, 2326}
	if err != nil || r != want {
		t.Errorf("got %+v, %v", r, err)
	}
	for _, line := range []string{
		``, `a`, `a - - [10/Oct/2000:13:55:36 -0700]`, `a - - [yesterday] "GET / HTTP/1.1" 200 1`,
		`a - - [10/Oct/2000:13:55:36 -0700] "GET / HTTP/1.1" ok 1`, `a - - [10/Oct/2000:13:55:36 -0700] "GET / HTTP/1.1" 200 many`,
		`a - - [10/Oct/2000:13:55:36 -0700] "GET" 200 1`, `a - - [10/Oct/2000:13:55:36 -0700] "GET / HTTP/1.1" 200`,
	} {
		if r, err := parseRequest(line); err == nil {
			t.Errorf("%q gave %+v", line, r)
		}
	}
}
