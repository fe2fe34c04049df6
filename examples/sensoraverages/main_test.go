package main

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/flott-dev/flott/stream"
)

func lines(t *testing.T, path string, parallelism int, opts ...stream.Option) []string {
	t.Helper()
	var out bytes.Buffer
	if err := run(context.Background(), path, parallelism, &out, opts...); err != nil {
		t.Fatal(err)
	}
	return slices.Sorted(strings.Lines(out.String()))
}

func TestAveragesCorrectionsAndLateReadings(t *testing.T) {
	want := []string{
		"attic from 08:00:00: 19.75\n",
		"attic from 08:00:00: 19.80 (correction 1)\n", // with 19.95 of 08:00:45, which came when event time was 08:01:12
		"attic from 08:01:00: 20.75\n",
		"attic from 08:02:00: 21.38\n",
		"cellar from 08:00:00: 11.75\n",
		"cellar from 08:00:00: 12.00 (correction 1)\n",
		"cellar from 08:01:00: 12.00 (correction 1)\n",
		"cellar from 08:01:00: 12.25\n",
		"cellar from 08:02:00: 11.75\n",
		"cellar from 08:04:00: 11.00\n",
		"too late: cellar at 08:00:01\n",
	}
	for _, parallelism := range []int{1, 3} {
		for _, opts := range [][]stream.Option{nil, {stream.WithIsolation()}} {
			if got := lines(t, "readings.csv", parallelism, opts...); !slices.Equal(got, want) {
				t.Errorf("parallelism %d, %d options: got\n%swant\n%s", parallelism, len(opts), strings.Join(got, ""), strings.Join(want, ""))
			}
		}
	}
}
