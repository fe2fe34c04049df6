package streaming_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/flott-dev/flott/conformance"
	"github.com/flott-dev/flott/flotttest"
	"github.com/flott-dev/flott/internal/exchange"
	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/graph"
	"github.com/flott-dev/flott/internal/plan"
	"github.com/flott-dev/flott/stream"
)

type partitionerCase struct {
	conformance.Head
	Op             string  `json:"op"`
	Partitioner    string  `json:"partitioner"`
	Channels       int     `json:"channels"`
	Sequence       []int   `json:"expect_sequence"`
	RoundRobin     int     `json:"expect_round_robin_from_arbitrary_start"`
	InRange        bool    `json:"expect_in_range"`
	Draws          int     `json:"draws"`
	ExpectError    any     `json:"expect_error"`
	MaxParallelism int     `json:"max_parallelism"`
	Key            string  `json:"key"`
	Elements       []pair2 `json:"elements"`
	Expect         *bool   `json:"expect"`
	Upstream       int     `json:"upstream_parallelism"`
	Downstream     int     `json:"downstream_parallelism"`
	Inputs         [][]int `json:"expect_inputs"`
}

// pair2 is a tuple of a text and a number.
type pair2 struct {
	A string
	B int64
}

func (p *pair2) UnmarshalJSON(b []byte) error { return tuple(b, &p.A, &p.B) }

func (p pair2) MarshalJSON() ([]byte, error) { return json.Marshal([]any{p.A, p.B}) }

func TestPartitionerVectors(t *testing.T) {
	s := conformance.Suite{
		Folder: "streaming", Family: "partitioners", Rewrite: *rewrite,
		Runners: map[string]conformance.Runner{
			"select_channel": conformance.EachWay(runSelectChannel), "same_channel": conformance.EachWay(runSameChannel),
			"is_broadcast": runIsBroadcast, "pointwise_inputs": runPointwise,
		},
	}
	s.Run(t)
}

// strategies are the words of the vectors.
func strategies() map[string]graph.Strategy {
	return map[string]graph.Strategy{
		"forward": graph.Forward, "rebalance": graph.Rebalance, "rescale": graph.Rescale, "shuffle": graph.Shuffle,
		"global": graph.Global, "broadcast": graph.Broadcast, "key_group": graph.Hash,
	}
}

// word looks a vector's word up and fails on one that it does not know.
func word[V any](t *testing.T, words map[string]V, w string) V {
	t.Helper()
	v, ok := words[w]
	if !ok {
		t.Fatalf("the word %q is unknown", w)
	}
	return v
}

// spread writes elements through a real writer and tells which channels each came out of.
func spread[T comparable](t *testing.T, p *graph.Partitioner, channels, groups int, w conformance.Way, xs []T) [][]int {
	t.Helper()
	bench := &taskBench{t: t}
	var chans []*exchange.Channel
	for range channels {
		chans = append(chans, &exchange.Channel{Producer: bench, Consumer: bench})
	}
	typ := typeOf[T](t)
	writer := exchange.NewWriter(p, chans, exchange.Options{
		Type: typ, Strategy: p.Strategy, Waiter: bench, Stopped: func() bool { return false }, MaxGroup: groups, Seed: 1,
	})
	col := frame.NewColumn(typ, max(1, len(xs)))
	for _, x := range xs {
		frame.Add(col, x, frame.NoTime)
	}
	all, from := col.Run(), 0
	for _, n := range w.Cut(len(xs)) {
		part := all.Slice(from, from+n)
		if err := writer.Push(&part); err != nil {
			t.Fatal(err)
		}
		from += n
	}
	if err := writer.Flush(); err != nil {
		t.Fatal(err)
	}
	at := map[T][]int{}
	for c, ch := range chans {
		for f := ch.Poll(); f != nil; f = ch.Poll() {
			r := f.Run()
			for _, x := range frame.Values[T](&r) {
				at[x] = append(at[x], c)
			}
		}
	}
	var out [][]int
	for _, x := range xs {
		out = append(out, at[x])
	}
	return out
}

func runSelectChannel(t *testing.T, c conformance.Case, w conformance.Way) {
	var v partitionerCase
	c.Decode(t, &v)
	p := &graph.Partitioner{Strategy: word(t, strategies(), v.Partitioner)}
	n := max(len(v.Sequence), v.RoundRobin, v.Draws, 1)
	var xs []int64
	for i := range n {
		xs = append(xs, int64(i))
	}
	var got []int
	for i, at := range spread(t, p, v.Channels, 0, w, xs) {
		if v.ExpectError != nil { // the error is of a call that selects one channel; there is no such call
			if v.Partitioner != "broadcast" || len(at) != v.Channels {
				t.Errorf("element %d goes to channels %v, want all %d", i, at, v.Channels)
			}
			continue
		}
		if len(at) != 1 || at[0] < 0 || at[0] >= v.Channels {
			t.Fatalf("element %d goes to channels %v", i, at)
		}
		got = append(got, at[0])
	}
	if v.Sequence != nil && !slices.Equal(got, v.Sequence) {
		t.Errorf("channels %v, want %v", got, v.Sequence)
	}
	for i := 1; i < v.RoundRobin; i++ {
		if got[i] != (got[i-1]+1)%v.Channels {
			t.Errorf("channels %v are not in turn", got)
		}
	}
}

func runSameChannel(t *testing.T, c conformance.Case, w conformance.Way) {
	var v partitionerCase
	c.Decode(t, &v)
	if v.Key != "first_field" {
		t.Fatalf("key %q is unknown", v.Key)
	}
	// The partitioner is the one of a stream that is keyed.
	var p *graph.Partitioner
	jg := planOf(t, func(env *stream.Env) {
		env.FromSlice(v.Elements).KeyBy(func(x pair2) string { return x.A }).Count().Discard()
	})
	for _, e := range jg.Edges {
		if e.Strategy == graph.Hash {
			p = e.Partitioner
		}
	}
	if want := word(t, strategies(), v.Partitioner); p == nil || p.Strategy != want {
		t.Fatalf("a keyed stream has no partitioner %v", want)
	}
	channels := spread(t, p, v.Channels, v.MaxParallelism, w, v.Elements)
	for _, at := range channels {
		if len(at) != 1 || at[0] != channels[0][0] {
			t.Errorf("elements of one key go to channels %v", channels)
		}
	}
}

// runIsBroadcast counts the subtasks of a job that see an element.
func runIsBroadcast(t *testing.T, c conformance.Case) {
	var v partitionerCase
	c.Decode(t, &v)
	env := stream.NewEnv().SetParallelism(3)
	in := env.FromParallelSlice([]int64{1, 2, 3})
	var spread *stream.Stream[int64]
	switch word(t, strategies(), v.Partitioner) {
	case graph.Broadcast:
		spread = in.Broadcast()
	case graph.Forward:
		spread = in.Forward()
	case graph.Global:
		spread = in.Global()
	case graph.Rebalance:
		spread = in.Rebalance()
	case graph.Rescale:
		spread = in.Rescale()
	case graph.Shuffle:
		spread = in.Shuffle()
	default:
		spread = in.KeyBy(func(x int64) int64 { return x }).Stream()
	}
	got := flotttest.Collect(t, env, spread.Map(func(x int64) int64 { return x }))
	want := 3
	if v.Expect == nil {
		t.Fatal("the case expects nothing")
	}
	if *v.Expect {
		want = 9
	}
	if len(got) != want {
		t.Errorf("three elements are seen %d times, want %d", len(got), want)
	}
}

func runPointwise(t *testing.T, c conformance.Case) {
	var v partitionerCase
	c.Decode(t, &v)
	w := plan.Channels(&plan.JobEdge{Pointwise: true}, v.Upstream, v.Downstream)
	if got, want := fmt.Sprint(w.Up), fmt.Sprint(v.Inputs); got != want {
		t.Errorf("inputs %s, want %s", got, want)
	}
	var up, down []string // both sides of the wiring say the same
	for d, us := range w.Up {
		for _, u := range us {
			up = append(up, fmt.Sprintf("%d-%d", u, d))
		}
	}
	for u, ds := range w.Down {
		for _, d := range ds {
			down = append(down, fmt.Sprintf("%d-%d", u, d))
		}
	}
	slices.Sort(up)
	slices.Sort(down)
	if strings.Join(up, " ") != strings.Join(down, " ") {
		t.Errorf("upstream sees %v, downstream %v", down, up)
	}
}
