package main

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/flott-dev/flott/stream"
)

func reached(t *testing.T, roads []Road, from string, parallelism int, opts ...stream.Option) []string {
	t.Helper()
	var out bytes.Buffer
	if err := run(context.Background(), roads, from, parallelism, &out, opts...); err != nil {
		t.Fatal(err)
	}
	return slices.Collect(strings.Lines(out.String()))
}

func TestShortestWayIsFound(t *testing.T) {
	roads := []Road{{"a", "b", 10}, {"b", "c", 10}, {"a", "c", 25}, {"c", "d", 1}, {"b", "d", 11}, {"x", "y", 1}}
	want := []string{"  10 km to b, by a\n", "  20 km to c, by b\n", "  21 km to d, by b\n"}
	for _, parallelism := range []int{1, 3} {
		for _, opts := range [][]stream.Option{nil, {stream.WithIsolation()}} {
			if got := reached(t, roads, "a", parallelism, opts...); !slices.Equal(got, want) {
				t.Errorf("parallelism %d, %d options: got %q", parallelism, len(opts), got)
			}
		}
	}
	if got := reached(t, roads, "nowhere", 2); len(got) != 0 {
		t.Errorf("from nowhere: %q", got)
	}
}

// The lengths of the ways are those of Floyd and Warshall.
func TestShortestWaysOfARandomMap(t *testing.T) {
	const towns, far = 40, 1 << 30
	random := rand.New(rand.NewPCG(1, 2))
	var km [towns][towns]int
	for i := range km {
		for j := range km[i] {
			km[i][j] = far
		}
		km[i][i] = 0
	}
	name := func(i int) string { return fmt.Sprintf("t%02d", i) }
	var roads []Road
	for range 80 {
		i, j, d := random.IntN(towns), random.IntN(towns), 1+random.IntN(100)
		roads = append(roads, Road{name(i), name(j), d})
		if i != j {
			km[i][j], km[j][i] = min(km[i][j], d), min(km[j][i], d)
		}
	}
	for k := range towns {
		for i := range towns {
			for j := range towns {
				km[i][j] = min(km[i][j], km[i][k]+km[k][j])
			}
		}
	}
	var want []string
	for j := 1; j < towns; j++ {
		if km[0][j] < far {
			want = append(want, fmt.Sprintf("%4d km to %s", km[0][j], name(j)))
		}
	}
	var got []string
	for _, line := range reached(t, roads, name(0), 4) {
		way, _, _ := strings.Cut(line, ",")
		got = append(got, way)
	}
	slices.Sort(want)
	if slices.Sort(got); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
