package stream_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/flott-dev/flott/stream"
)

type place struct {
	City string
	Zip  int32
}

type measure struct {
	Sensor int64
	Place  place
	Val    float64
	Tags   []string // makes the layout "encoded"
}

type named struct { // layout "text"
	K    int64
	Name string
	Val  int64
}

type triple struct{ F0, F1, F2 int64 } // layout "fixed"

// inOrder runs one subtask and returns what came out.
func inOrder[T, R any](t testing.TB, xs []T, build func(*stream.Stream[T]) *stream.Stream[R]) []R {
	t.Helper()
	env := stream.NewEnv().SetParallelism(1)
	var g gather[R]
	build(env.FromSlice(xs)).ForEach(g.add)
	execute(t, env)
	return g.xs
}

func TestKeyByFieldsTakesOneFieldOrAStructOfSeveral(t *testing.T) {
	ms := []measure{
		{Sensor: 1, Place: place{"A", 1}, Val: 1},
		{Sensor: 2, Place: place{"A", 2}, Val: 2},
		{Sensor: 1, Place: place{"A", 1}, Val: 3},
		{Sensor: 1, Place: place{"B", 1}, Val: 4},
	}
	type cityAndSensor struct {
		City   string
		Sensor int64
	}
	for name, build := range map[string]func(s *stream.Stream[measure]) *stream.Stream[string]{
		"[(A,1) (A,2) (A,3) (B,1)]": func(s *stream.Stream[measure]) *stream.Stream[string] {
			return s.KeyByFields[string]("Place.City").Count().Map(stream.KeyValue[string, int64].String)
		},
		"[(1,1) (2,1) (1,2) (1,3)]": func(s *stream.Stream[measure]) *stream.Stream[string] {
			return s.KeyByPositions[int64](0).Count().Map(stream.KeyValue[int64, int64].String)
		},
		"[({A 1},1) ({A 2},1) ({A 1},2) ({B 1},1)]": func(s *stream.Stream[measure]) *stream.Stream[string] {
			return s.KeyByFields[cityAndSensor]("place.city", "sensor").Count().Map(stream.KeyValue[cityAndSensor, int64].String)
		},
		"[({A 1},1) ({A 2},1) ({A 1},2) ({B 1},1)] ": func(s *stream.Stream[measure]) *stream.Stream[string] {
			return s.KeyByFields[place]("Place.*").Count().Map(stream.KeyValue[place, int64].String)
		},
	} {
		if got := fmt.Sprint(inOrder(t, ms, build)); got != strings.TrimSpace(name) {
			t.Errorf("got %s, want %s", got, name)
		}
	}
	got := inOrder(t, []int64{5, 6, 5}, func(s *stream.Stream[int64]) *stream.Stream[string] {
		return s.KeyByFields[int64]("*").Count().Map(stream.KeyValue[int64, int64].String)
	})
	if fmt.Sprint(got) != "[(5,1) (6,1) (5,2)]" {
		t.Errorf("whole elements as keys: %v", got)
	}
}

func TestKeyByFieldsAcrossSubtasks(t *testing.T) {
	env := stream.NewEnv().SetParallelism(3)
	xs := make([]triple, 10_000)
	for i := range xs {
		xs[i] = triple{int64(i % 7), int64(i % 5), 1}
	}
	type key struct{ A, B int64 }
	var g gather[stream.KeyValue[key, int64]]
	env.FromParallelSlice(xs).KeyByPositions[key](0, 1).Count().ForEach(g.add)
	execute(t, env)
	last := map[key]int64{}
	for _, c := range g.xs {
		last[c.Key] = max(last[c.Key], c.Value)
	}
	total := int64(0)
	for _, n := range last {
		total += n
	}
	if len(last) != 35 || total != 10_000 {
		t.Errorf("%d keys, %d elements", len(last), total)
	}
}

func TestFieldMistakesNameTheCall(t *testing.T) {
	for want, build := range map[string]func(s *stream.Stream[measure]){
		`field "Plce"`:              func(s *stream.Stream[measure]) { s.KeyByFields[string]("Plce").Count().Discard() },
		"is of type float64":        func(s *stream.Stream[measure]) { s.KeyByFields[string]("Val").Count().Discard() },
		"no field is named":         func(s *stream.Stream[measure]) { s.KeyByFields[string]().Count().Discard() },
		"no position is given":      func(s *stream.Stream[measure]) { s.KeyByPositions[string]().Count().Discard() },
		"position 9":                func(s *stream.Stream[measure]) { s.KeyByPositions[string](9).Count().Discard() },
		"2 fields don't go":         func(s *stream.Stream[measure]) { s.KeyByPositions[int64](0, 0).Count().Discard() },
		"can't be added up":         func(s *stream.Stream[measure]) { keyed(s).SumField("Place.City").Discard() },
		"has no order":              func(s *stream.Stream[measure]) { keyed(s).MinField("Place").Discard() },
		`field "Max"`:               func(s *stream.Stream[measure]) { keyed(s).MaxByField("Max").Discard() },
		"KeepFirst or KeepLast":     func(s *stream.Stream[measure]) { keyed(s).MaxByField("Val", 7).Discard() },
		"project to":                func(s *stream.Stream[measure]) { s.Project[int64](2).Discard() },
		"3 fields don't go into":    func(s *stream.Stream[measure]) { s.Project[place](0, 1, 2).Discard() },
		`field "Sensr"`:             func(s *stream.Stream[measure]) { s.ProjectFields[int64]("Sensr").Discard() },
		"give KeepFirst or KeepLas": func(s *stream.Stream[measure]) { keyed(s).MinBy(func(m measure) float64 { return m.Val }, 9).Discard() },
	} {
		env := stream.NewEnv()
		build(env.FromElements(measure{}))
		executeFailing(t, env, "fields_test.go:", want)
	}
}

func keyed(s *stream.Stream[measure]) *stream.KeyedStream[measure, int64] {
	return s.KeyBy(func(m measure) int64 { return m.Sensor })
}

func TestProjectTakesFieldsInTheOrderAsked(t *testing.T) {
	type pair struct {
		Val  float64
		Tags []string
		City string
	}
	ms := []measure{{Sensor: 1, Place: place{"A", 7}, Val: 1.5, Tags: []string{"x"}}, {Place: place{"B", 8}, Val: 2.5}}
	got := inOrder(t, ms, func(s *stream.Stream[measure]) *stream.Stream[pair] {
		return s.ProjectFields[pair]("Val", "Tags", "Place.City")
	})
	if want := []pair{{1.5, []string{"x"}, "A"}, {2.5, nil, "B"}}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %v", got)
	}
	values := inOrder(t, ms, func(s *stream.Stream[measure]) *stream.Stream[float64] { return s.Project[float64](2) })
	if !slices.Equal(values, []float64{1.5, 2.5}) {
		t.Errorf("values %v", values)
	}
}

// TestProjectOfASharedStreamLeavesTheOthersAlone has two readers of one stream.
func TestProjectOfASharedStreamLeavesTheOthersAlone(t *testing.T) {
	env := stream.NewEnv().SetParallelism(1)
	var a, b gather[triple]
	type swapped = triple
	s := env.FromElements(triple{1, 2, 3}, triple{4, 5, 6})
	s.Project[swapped](2, 1, 0).ForEach(a.add)
	s.ForEach(b.add)
	execute(t, env)
	if !slices.Equal(a.xs, []triple{{3, 2, 1}, {6, 5, 4}}) || !slices.Equal(b.xs, []triple{{1, 2, 3}, {4, 5, 6}}) {
		t.Errorf("projected %v, read %v", a.xs, b.xs)
	}
}

// rollingVector is a vector of kind rolling_aggregate.
type rollingVector struct {
	ID        string
	Kind      string
	Aggregate string
	KeyField  int `json:"key_field"`
	Field     int
	First     *bool
	Input     [][]int64
	Expect    [][]int64
}

func rollingVectors(t *testing.T) (out []rollingVector) {
	t.Helper()
	b, err := os.ReadFile("../conformance/testdata/streaming/task.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Cases []json.RawMessage }
	if err := json.Unmarshal(b, &file); err != nil {
		t.Fatal(err)
	}
	for _, raw := range file.Cases {
		var v rollingVector
		var kind struct{ Kind string }
		if err := json.Unmarshal(raw, &kind); err != nil || kind.Kind != "rolling_aggregate" {
			continue
		}
		if err := json.Unmarshal(raw, &v); err != nil {
			t.Fatal(err)
		}
		out = append(out, v)
	}
	if len(out) != 5 {
		t.Fatalf("%d vectors", len(out))
	}
	return out
}

func triples(rows [][]int64) []triple {
	out := make([]triple, len(rows))
	for i, r := range rows {
		out[i] = triple{F0: r[0], F1: r[1]}
		if len(r) > 2 {
			out[i].F2 = r[2]
		}
	}
	return out
}

func aggregate[T, K any](s *stream.KeyedStream[T, K], v rollingVector, path string) *stream.Stream[T] {
	var tie []stream.Tie
	if v.First != nil && !*v.First {
		tie = append(tie, stream.KeepLast)
	}
	switch v.Aggregate {
	case "sum":
		return s.SumField(path)
	case "min":
		return s.MinField(path)
	case "max":
		return s.MaxField(path)
	case "min_by":
		return s.MinByField(path, tie...)
	}
	return s.MaxByField(path, tie...)
}

func TestRollingAggregateVectors(t *testing.T) {
	for _, v := range rollingVectors(t) {
		t.Run(v.ID, func(t *testing.T) {
			path := fmt.Sprint("f", v.Field)
			want := triples(v.Expect)
			got := inOrder(t, triples(v.Input), func(s *stream.Stream[triple]) *stream.Stream[triple] {
				return aggregate(s.KeyByPositions[int64](v.KeyField), v, path)
			})
			if !slices.Equal(got, want) {
				t.Errorf("fixed layout: got %v, want %v", got, want)
			}
			// The same with elements that tables pack (a string) and encode (a slice).
			type packed struct {
				triple
				S string
			}
			type encoded struct {
				triple
				S []string
			}
			text := inOrder(t, triples(v.Input), func(s *stream.Stream[triple]) *stream.Stream[triple] {
				return aggregate(s.Map(func(x triple) packed { return packed{x, fmt.Sprint(x)} }).
					KeyByFields[int64]("F0"), v, "F1").Map(func(x packed) triple {
					if !strings.HasSuffix(x.S, "}") {
						t.Errorf("string %q", x.S)
					}
					return x.triple
				})
			})
			if !slices.Equal(text, want) {
				t.Errorf("text layout: got %v, want %v", text, want)
			}
			list := inOrder(t, triples(v.Input), func(s *stream.Stream[triple]) *stream.Stream[triple] {
				return aggregate(s.Map(func(x triple) encoded { return encoded{x, []string{fmt.Sprint(x)}} }).
					KeyByFields[int64]("F0"), v, "F1").Map(func(x encoded) triple {
					if len(x.S) != 1 {
						t.Errorf("slice %q", x.S)
					}
					return x.triple
				})
			})
			if !slices.Equal(list, want) {
				t.Errorf("encoded layout: got %v, want %v", list, want)
			}
			if v.First != nil {
				got := inOrder(t, triples(v.Input), func(s *stream.Stream[triple]) *stream.Stream[triple] {
					tie := stream.KeepFirst
					if !*v.First {
						tie = stream.KeepLast
					}
					if k := s.KeyByPositions[int64](v.KeyField); v.Aggregate == "min_by" {
						return k.MinBy(func(x triple) int64 { return x.F1 }, tie)
					} else {
						return k.MaxBy(func(x triple) int64 { return x.F1 }, tie)
					}
				})
				if !slices.Equal(got, want) {
					t.Errorf("by selector: got %v, want %v", got, want)
				}
			}
		})
	}
}

func TestFieldAggregatesKeepTheElementBehindTheValue(t *testing.T) {
	xs := []named{{1, "a", 5}, {1, "b", 3}, {1, "c", 9}, {1, "d", 3}}
	by := func(build func(k *stream.KeyedStream[named, int64]) *stream.Stream[named]) string {
		got := inOrder(t, xs, func(s *stream.Stream[named]) *stream.Stream[named] {
			return build(s.KeyBy(func(n named) int64 { return n.K }))
		})
		var b strings.Builder
		for _, n := range got {
			fmt.Fprintf(&b, "%s%d ", n.Name, n.Val)
		}
		return strings.TrimSpace(b.String())
	}
	type keyedNamed = *stream.KeyedStream[named, int64]
	for want, build := range map[string]func(k keyedNamed) *stream.Stream[named]{
		"a5 a3 a3 a3":   func(k keyedNamed) *stream.Stream[named] { return k.MinField("Val") },
		"a5 b3 b3 b3":   func(k keyedNamed) *stream.Stream[named] { return k.MinByField("Val") },
		"a5 b3 b3 d3":   func(k keyedNamed) *stream.Stream[named] { return k.MinByField("Val", stream.KeepLast) },
		"a5 a8 a17 a20": func(k keyedNamed) *stream.Stream[named] { return k.SumField("Val") },
		"a5 b5 c5 d5":   func(k keyedNamed) *stream.Stream[named] { return k.MaxField("Name") },
	} {
		if got := by(build); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestNaNIsTheLargestValue(t *testing.T) {
	xs := []float64{2, math.NaN(), 1}
	got := inOrder(t, xs, func(s *stream.Stream[float64]) *stream.Stream[float64] {
		return s.KeyBy(func(float64) int { return 0 }).MinBy(func(x float64) float64 { return x })
	})
	if !slices.Equal(got, []float64{2, 2, 1}) {
		t.Errorf("minima %v", got)
	}
	got = inOrder(t, xs, func(s *stream.Stream[float64]) *stream.Stream[float64] {
		return s.KeyBy(func(float64) int { return 0 }).MaxField("*")
	})
	if got[0] != 2 || !math.IsNaN(got[1]) || !math.IsNaN(got[2]) {
		t.Errorf("maxima %v", got)
	}
}

func BenchmarkSumField(b *testing.B) {
	es := events(4<<20, 10_000)
	run(b, len(es), func(env *stream.Env) {
		env.SetParallelism(1)
		env.FromSlice(es).KeyByFields[uint64]("K").SumField("V").ForEach(func(*event) {})
	})
}

func BenchmarkProject(b *testing.B) {
	es := events(4<<20, 10_000)
	type vk struct {
		V int64
		K uint64
	}
	run(b, len(es), func(env *stream.Env) {
		env.SetParallelism(1)
		env.FromSlice(es).Project[vk](2, 0).ForEach(func(*vk) {})
	})
}

func ExampleStream_KeyByFields() {
	env := stream.NewEnv().SetParallelism(1)
	env.FromElements(
		measure{Sensor: 1, Place: place{City: "Rome"}, Val: 20},
		measure{Sensor: 2, Place: place{City: "Rome"}, Val: 22},
		measure{Sensor: 3, Place: place{City: "Oslo"}, Val: 5},
	).KeyByFields[string]("Place.City").Count().Print()
	if _, err := env.Execute(context.Background(), "measures"); err != nil {
		fmt.Println(err)
	}
	// Output:
	// (Rome,1)
	// (Rome,2)
	// (Oslo,1)
}

func ExampleStream_KeyByPositions() {
	env := stream.NewEnv().SetParallelism(1)
	type key struct{ A, B int64 }
	env.FromElements(triple{1, 2, 3}, triple{1, 2, 4}).KeyByPositions[key](0, 1).Count().Print()
	if _, err := env.Execute(context.Background(), "triples"); err != nil {
		fmt.Println(err)
	}
	// Output:
	// ({1 2},1)
	// ({1 2},2)
}

func ExampleKeyedStream_SumField() {
	env := stream.NewEnv().SetParallelism(1)
	env.FromElements(triple{1, 10, 100}, triple{1, 20, 200}).KeyByFields[int64]("F0").SumField("F1").Print()
	if _, err := env.Execute(context.Background(), "sums"); err != nil {
		fmt.Println(err)
	}
	// Output:
	// {1 10 100}
	// {1 30 100}
}

func ExampleKeyedStream_MinField() {
	env := stream.NewEnv().SetParallelism(1)
	env.FromElements(triple{1, 20, 100}, triple{1, 10, 200}).KeyByFields[int64]("F0").MinField("F1").Print()
	if _, err := env.Execute(context.Background(), "minima"); err != nil {
		fmt.Println(err)
	}
	// Output:
	// {1 20 100}
	// {1 10 100}
}

func ExampleKeyedStream_MaxField() {
	env := stream.NewEnv().SetParallelism(1)
	env.FromElements(triple{1, 10, 100}, triple{1, 20, 200}).KeyByFields[int64]("F0").MaxField("F1").Print()
	if _, err := env.Execute(context.Background(), "maxima"); err != nil {
		fmt.Println(err)
	}
	// Output:
	// {1 10 100}
	// {1 20 100}
}

func ExampleKeyedStream_MinByField() {
	env := stream.NewEnv().SetParallelism(1)
	env.FromElements(triple{1, 20, 100}, triple{1, 10, 200}).KeyByFields[int64]("F0").MinByField("F1").Print()
	if _, err := env.Execute(context.Background(), "least elements"); err != nil {
		fmt.Println(err)
	}
	// Output:
	// {1 20 100}
	// {1 10 200}
}

func ExampleKeyedStream_MaxByField() {
	env := stream.NewEnv().SetParallelism(1)
	env.FromElements(triple{1, 10, 100}, triple{1, 10, 200}).KeyByFields[int64]("F0").MaxByField("F1", stream.KeepLast).Print()
	if _, err := env.Execute(context.Background(), "greatest elements"); err != nil {
		fmt.Println(err)
	}
	// Output:
	// {1 10 100}
	// {1 10 200}
}

func ExampleStream_Project() {
	env := stream.NewEnv().SetParallelism(1)
	type pair struct{ B, A int64 }
	env.FromElements(triple{1, 2, 3}, triple{4, 5, 6}).Project[pair](1, 0).Print()
	if _, err := env.Execute(context.Background(), "pairs"); err != nil {
		fmt.Println(err)
	}
	// Output:
	// {2 1}
	// {5 4}
}

func ExampleStream_ProjectFields() {
	env := stream.NewEnv().SetParallelism(1)
	env.FromElements(measure{Place: place{City: "Rome"}}).ProjectFields[string]("Place.City").Print()
	if _, err := env.Execute(context.Background(), "cities"); err != nil {
		fmt.Println(err)
	}
	// Output: Rome
}
