package main

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/flott-dev/flott/stream"
)

func judged(t *testing.T, payments []Payment, control []Limit, parallelism int, opts ...stream.Option) []string {
	t.Helper()
	var out bytes.Buffer
	if err := run(context.Background(), payments, control, parallelism, &out, opts...); err != nil {
		t.Fatal(err)
	}
	return slices.Sorted(strings.Lines(out.String()))
}

func TestPaymentsAreJudgedByTheLimitOfTheirTime(t *testing.T) {
	payments := []Payment{
		{10, "ann", "card", 150},    // below 200
		{20, "bob", "card", 201},    // above
		{30, "ann", "card", 150},    // above: the limit has fallen to 100 at that very moment
		{30, "ann", "card", 99},     // several of one time
		{35, "bob", "cash", 1e9},    // no limit
		{40, "bob", "transfer", 50}, // the limit comes later
		{60, "ann", "card", 150},    // below 1000 again
	}
	control := []Limit{{5, "card", 200}, {30, "card", 100}, {50, "transfer", 1}, {60, "card", 1000}}
	want := []string{
		"ann card of 150 at 30 ms: limit 100\n",
		"bob card of 201 at 20 ms: limit 200\n",
	}
	for _, parallelism := range []int{1, 3} {
		for _, opts := range [][]stream.Option{nil, {stream.WithIsolation()}} {
			if got := judged(t, payments, control, parallelism, opts...); !slices.Equal(got, want) {
				t.Errorf("parallelism %d, %d options: got %q", parallelism, len(opts), got)
			}
		}
	}
}

func TestWithoutControlNothingIsReported(t *testing.T) {
	if got := judged(t, []Payment{{1, "ann", "card", 5}}, nil, 2); len(got) != 0 {
		t.Errorf("got %q", got)
	}
	if got := judged(t, nil, []Limit{{1, "card", 5}}, 2); len(got) != 0 {
		t.Errorf("got %q", got)
	}
}
