package main

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/flott-dev/flott/bench/nexmark"
	"github.com/flott-dev/flott/stream"
)

// TestQueriesAnswerAsTheOraclesDo runs every query over events that come out of order and cross midnight. An auction stays
// open for seconds, and there are several windows of ten seconds.
func TestQueriesAnswerAsTheOraclesDo(t *testing.T) {
	d, err := nexmark.Generate(nexmark.Config{Events: 80_000, Rate: 1000, Start: nexmark.Midnight - 30_000, Group: 500})
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range queries() {
		t.Run(q.name, func(t *testing.T) {
			want := q.oracle(d)
			if want == 0 {
				t.Fatal("the oracle has no rows")
			}
			for _, c := range []struct {
				name        string
				parallelism int
				opts        []stream.Option
			}{{"1", 1, nil}, {"2", 2, nil}, {"isolated", 2, []stream.Option{stream.WithIsolation()}}} {
				_, got, err := q.run(t.Context(), d, c.parallelism, c.opts...)
				if err != nil {
					t.Fatalf("%s: %v", c.name, err)
				}
				if got != want {
					t.Errorf("%s: checksum %d, the oracle's is %d", c.name, got, want)
				}
			}
		})
	}
}

func TestNexmarkSuiteHasALineForEachQueryAndParallelism(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), []string{"-suite", "nexmark", "-shrink", "1000", "-n", "1", "-json"}, &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	dec := json.NewDecoder(&out)
	var all []line
	for dec.More() {
		var l line
		if err := dec.Decode(&l); err != nil {
			t.Fatal(err)
		}
		all = append(all, l)
	}
	if want := 1 + 2*len(queries()) + 1; len(all) != want {
		t.Fatalf("%d lines, want %d", len(all), want)
	}
	mean := all[len(all)-1]
	least, most := mean.FlinkRatio, mean.FlinkRatio
	for _, l := range all[:len(all)-1] {
		few := l.Name == "q23-seller-bids" // the first bidders are persons who are yet to come
		if l.Elements == 0 || l.Checksum == 0 && !few || l.ElementsPerS <= 0 || l.NsPerElement <= 0 {
			t.Errorf("%s lacks a figure: %+v", l.Name, l)
		}
		if (l.FlinkRatio == 0) != (l.FlinkPerCoreS == 0) || l.FlinkRatio < l.FlinkRatioGenerated {
			t.Errorf("%s lacks the comparison: %+v", l.Name, l)
		}
		if l.FlinkRatio != 0 {
			least, most = min(least, l.FlinkRatio), max(most, l.FlinkRatio)
		}
	}
	if mean.FlinkRatio <= least || mean.FlinkRatio >= most {
		t.Errorf("the mean of the comparisons is %v, they are between %v and %v", mean.FlinkRatio, least, most)
	}
}

func TestWrongRowsEndTheMeasurement(t *testing.T) {
	d, err := nexmark.Generate(nexmark.Config{Events: 1000})
	if err != nil {
		t.Fatal(err)
	}
	q := query{name: "bids that are not the wanted ones", build: query0}
	if _, err := q.measure(t.Context(), d, 1, 1, nexmark.Q1(d)); err == nil || !strings.Contains(err.Error(), "oracle") {
		t.Errorf("error %v", err)
	}
}

func TestChannelIDsAreThoseOfTheOracle(t *testing.T) {
	for url, want := range map[string]string{
		"https://a/b?query=1&channel_id=12":     "12",
		"https://a/b?query=1&channel_id=12&x=3": "12",
		"https://a/b?query=1&channel_id=":       "",
	} {
		if got, ok := channelID(&nexmark.Bid{Channel: "channel-1", URL: url}); !ok || got != want {
			t.Errorf("%s: %q, %v, want %q", url, got, ok, want)
		}
	}
	if id, ok := channelID(&nexmark.Bid{Channel: "channel-1", URL: "https://a/b?query=1"}); ok {
		t.Errorf("without an id: %q", id)
	}
	if id, ok := channelID(&nexmark.Bid{Channel: "FACEBOOK"}); !ok || id != "2" {
		t.Errorf("FACEBOOK: %q, %v", id, ok)
	}
}
