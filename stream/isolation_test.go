package stream_test

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/flott-dev/flott/stream"
)

type basket struct {
	Owner string
	Items []string
	Price map[string]float64
}

// Elements come out of an isolated chain equal, and share nothing with what went in.
func TestIsolatedEdgesCopyElements(t *testing.T) {
	for _, isolated := range []bool{false, true} {
		var opts []stream.Option
		if isolated {
			opts = append(opts, stream.WithIsolation())
		}
		env := stream.NewEnv(opts...).SetParallelism(2)
		in := []basket{{"a", []string{"x", "y"}, map[string]float64{"x": 1}}, {"b", nil, nil}, {"c", []string{}, map[string]float64{}}}
		var mu sync.Mutex
		var out []basket
		env.FromSlice(in).
			Map(func(b basket) basket { return b }).
			KeyBy(func(b basket) string { return b.Owner }).Stream().
			Filter(func(b *basket) bool { return b.Owner != "" }).
			ForEach(func(b basket) {
				mu.Lock()
				defer mu.Unlock()
				out = append(out, b)
			})
		if _, err := env.Execute(context.Background(), "baskets"); err != nil {
			t.Fatal(err)
		}
		slices.SortFunc(out, func(a, b basket) int { return int(a.Owner[0]) - int(b.Owner[0]) })
		if len(out) != 3 || out[0].Price["x"] != 1 || out[1].Items != nil || out[2].Items == nil {
			t.Fatalf("isolated %v: got %+v", isolated, out)
		}
		if shares := &out[0].Items[0] == &in[0].Items[0]; shares == isolated {
			t.Errorf("isolated %v: elements share memory with the source: %v", isolated, shares)
		}
	}
}
