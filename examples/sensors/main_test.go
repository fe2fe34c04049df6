package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
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

func TestAveragesAndLateReadings(t *testing.T) {
	want := []string{
		"attic until 08:01:00: 19.75 from 3\n",
		"attic until 08:02:00: 20.75 from 2\n",
		"attic until 08:03:00: 21.38 from 2\n",
		"cellar until 08:01:00: 12.00 from 4\n",
		"cellar until 08:02:00: 12.00 from 4\n",
		"cellar until 08:03:00: 11.75 from 1\n",
		"cellar until 08:05:00: 11.00 from 1\n",
		"late: attic at 08:00:45\n",
		"late: cellar at 08:00:01\n",
	}
	for _, parallelism := range []int{1, 3} {
		for _, opts := range [][]stream.Option{nil, {stream.WithIsolation()}} {
			if got := lines(t, "readings.csv", parallelism, opts...); !slices.Equal(got, want) {
				t.Errorf("parallelism %d, %d options: got\n%swant\n%s", parallelism, len(opts),
					strings.Join(got, ""), strings.Join(want, ""))
			}
		}
	}
}

func TestEmptyFileHasNoAverages(t *testing.T) {
	path := filepath.Join(t.TempDir(), "empty.csv")
	if err := os.WriteFile(path, []byte("sensor,at,celsius\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := lines(t, path, 2); len(got) != 0 {
		t.Errorf("got %q", got)
	}
}

func TestBadRowNamesFileAndLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bad.csv")
	if err := os.WriteFile(path, []byte("sensor,at,celsius\nattic,2024-03-01T08:00:05Z,warm\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	err := run(context.Background(), path, 1, new(bytes.Buffer))
	if err == nil || !strings.Contains(err.Error(), path+", line 2, column 3 (celsius)") {
		t.Errorf("got %v", err)
	}
}
