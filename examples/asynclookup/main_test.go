package main

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flott-dev/flott/stream"
)

var names = []string{"Ann", "Bob", "Cy", "Di"}

// orders are n orders of which the first is from a customer whom nobody knows.
func orders(n int) (all []Order, want []string) {
	for i := range n {
		o, name := Order{ID: i, Customer: i % len(names)}, names[i%len(names)]
		if i == 0 {
			o.Customer, name = len(names), "somebody"
		}
		all = append(all, o)
		want = append(want, fmt.Sprintf("order %d is from %s\n", i, name))
	}
	return all, want
}

func TestEveryOrderGetsItsName(t *testing.T) {
	in, want := orders(100)
	for _, unordered := range []bool{false, true} {
		for _, opts := range [][]stream.Option{nil, {stream.WithIsolation()}} {
			synctest.Test(t, func(t *testing.T) {
				var out bytes.Buffer
				dir := &directory{latency: 50 * time.Millisecond, names: names}
				start := time.Now()
				if err := run(context.Background(), in, dir, unordered, &out, opts...); err != nil {
					t.Fatal(err)
				}
				got := slices.Collect(strings.Lines(out.String()))
				if unordered {
					if got[0] == want[0] {
						t.Error("the order that nobody could answer comes first")
					}
					slices.Sort(got)
					slices.Sort(want)
				}
				if !slices.Equal(got, want) {
					t.Errorf("unordered %v: got %q", unordered, got)
				}
				if one := 100 * dir.latency; time.Since(start) > one/2 {
					t.Errorf("took %v, hardly less than the %v of one request after the other", time.Since(start), one)
				}
			})
		}
	}
}

func TestCancelEndsRequests(t *testing.T) {
	in, _ := orders(1)
	ctx, cancel := context.WithCancel(context.Background())
	dir := &directory{names: names}
	cancel()
	if err := run(ctx, in, dir, false, new(bytes.Buffer)); err == nil {
		t.Error("a cancelled job ended well")
	}
}
