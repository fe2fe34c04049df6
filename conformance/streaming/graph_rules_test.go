package streaming_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/flott-dev/flott/flotttest"
	"github.com/flott-dev/flott/internal/graph"
	"github.com/flott-dev/flott/internal/plan"
	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/stream"
)

// graphRules are tests of the family's prose rules, by the public API where it can say what the rule is about.
func graphRules() map[string]func(*testing.T) {
	rules := map[string]func(*testing.T){
		"rule/iteration_co_location":                          ruleIterationCoLocation,
		"rule/split_restrictions":                             ruleSplitRestrictions,
		"rule/split_inside_a_chain":                           ruleSplitInsideAChain,
		"rule/default_schedule_eager":                         ruleDefaultScheduleEager,
		"rule/slot_group_default_disabled":                    ruleSlotGroupDefaultDisabled,
		"rule/last_partitioner_wins":                          ruleLastPartitionerWins,
		"rule/partitioner_kept_through_union":                 rulePartitionerKeptThroughUnion,
		"rule/partitioner_after_union_applies_to_all":         rulePartitionerAfterUnion,
		"rule/co_location_constraint":                         ruleCoLocationConstraint,
		"rule/co_location_needs_same_slot_group":              ruleCoLocationNeedsSameSlotGroup,
		"rule/keyed_vs_custom_partition":                      ruleKeyedVersusCustom,
		"rule/array_keys_rejected":                            ruleUnusableKeys,
		"rule/side_output_name_clash":                         ruleSideOutputNameClash,
		"rule/side_output_wrong_tag":                          ruleSideOutputWrongTag,
		"rule/stream_graph_generation_clears_transformations": ruleGenerationClears,
		"rule/branches_of_a_chain_get_every_record":           ruleBranchesGetEveryRecord,
	}
	for id, rule := range idRules() {
		rules[id] = rule
	}
	return rules
}

func same[T any](x T) T { return x }

// inputsOf are the strategies and sources of what feeds a node.
func inputsOf(t *testing.T, job *plan.JobGraph, name string) (strategies []graph.Strategy, from []string) {
	t.Helper()
	for _, e := range homeOf(t, job, name).Inputs {
		strategies = append(strategies, e.Strategy)
		from = append(from, e.From.Nodes[e.Producer].Node.Name)
	}
	return strategies, from
}

func mustBuild(t *testing.T, g *graph.Graph) *plan.JobGraph {
	t.Helper()
	job, err := plan.Build(g)
	if err != nil {
		t.Fatal(err)
	}
	return job
}

func ruleIterationCoLocation(t *testing.T) {
	job := planOf(t, func(env *stream.Env) {
		loop := stream.Iterate(env.SetParallelism(3).FromSequence(1, 9).Name("source"))
		body := loop.Map(same[int64]).Name("body")
		loop.CloseWith(body.Filter(func(x int64) bool { return x < 0 }).Name("again"))
		body.Discard().Name("sink")
	})
	ends := map[graph.Kind]*plan.Vertex{}
	for _, v := range job.Vertices {
		equal(t, "slot group of "+v.Name, v.SlotGroup, graph.DefaultSlotGroup)
		loop := false
		for _, n := range v.Nodes {
			if n.Node.Kind == graph.IterationHead || n.Node.Kind == graph.IterationTail {
				ends[n.Node.Kind], loop = v, true
			}
		}
		if !loop && v.CoLocation != "" {
			t.Errorf("%s is co-located in %q", v.Name, v.CoLocation)
		}
	}
	head, tail := ends[graph.IterationHead], ends[graph.IterationTail]
	if head == nil || tail == nil || head.CoLocation == "" || head.CoLocation != tail.CoLocation {
		t.Errorf("the ends of the loop: %+v, %+v", head, tail)
	}
}

// ruleSplitRestrictions: a stream that was split, or is a side output, can't be split.
func ruleSplitRestrictions(t *testing.T) {
	names := func(x int) []string { return []string{decimal(int64(x))} }
	tag := process.NewOutputTag[int]("side")
	for what, build := range map[string]func(in *stream.Stream[int]){
		"after select": func(in *stream.Stream[int]) { in.Split(names).Select("1").Split(names).Select("1").Discard() },
		"through union": func(in *stream.Stream[int]) {
			s := in.Split(names)
			s.Select("1").Union(s.Select("2")).Split(names).Select("1").Discard()
		},
		"through key by": func(in *stream.Stream[int]) {
			in.Split(names).Select("1").KeyBy(same[int]).Stream().Split(names).Select("1").Discard()
		},
		"after a side output": func(in *stream.Stream[int]) {
			s := in.Process(func(*process.Runtime) plain[int, int] { return nil })
			s.SideOutput(tag).Split(names).Select("1").Discard()
			s.Discard()
		},
	} {
		if _, err := tryPlan(t, func(env *stream.Env) { build(env.FromElements(1, 2)) }); err == nil {
			t.Errorf("split %s is taken", what)
		}
	}
}

func ruleSplitInsideAChain(t *testing.T) {
	build := func(env *stream.Env) []*flotttest.Sink[int] {
		sinks := []*flotttest.Sink[int]{flotttest.NewSink[int](), flotttest.NewSink[int](), flotttest.NewSink[int]()}
		split := env.SetParallelism(1).FromElements(1, 2, 3).Map(same[int]).Name("map").Split(func(x int) []string {
			if x == 1 {
				return []string{"one"}
			}
			return []string{"other"}
		})
		split.Select("one").Map(same[int]).SinkTo(sinks[0])
		split.Select("one").Map(same[int]).SinkTo(sinks[1])
		split.Select("other").Map(same[int]).SinkTo(sinks[2])
		return sinks
	}
	equal(t, "tasks", len(planOf(t, func(env *stream.Env) { build(env) }).Vertices), 1)
	for _, opts := range [][]stream.Option{nil, {flotttest.Isolated()}} {
		env := stream.NewEnv(opts...)
		sinks := build(env)
		flotttest.Execute(t, env)
		for i, want := range [][]int{{1}, {1}, {2, 3}} {
			flotttest.Equal(t, sinks[i].Values(), want)
		}
	}
}

func ruleDefaultScheduleEager(t *testing.T) {
	job := planOf(t, func(env *stream.Env) {
		env.SetParallelism(2).FromSequence(1, 9).KeyBy(same[int64]).Count().Shuffle().Discard()
	})
	for _, e := range job.Edges {
		if e.Blocking {
			t.Errorf("edge %d makes its consumer wait for the end of its producer", e.ID)
		}
	}
}

func ruleSlotGroupDefaultDisabled(t *testing.T) {
	g := newGraph()
	g.SlotGroupPerRegion = true
	for i, exchange := range []graph.Exchange{graph.Pipelined, graph.Batch} {
		digit := string(rune('1' + i))
		m := addNode(t, g, graph.Operator, "map"+digit, addNode(t, g, graph.Source, "source"+digit))
		m.Inputs[0].Partitioner, m.Inputs[0].Exchange = &graph.Partitioner{Strategy: graph.Rebalance}, exchange
	}
	job := mustBuild(t, g)
	group := func(name string) string { return homeOf(t, job, name).SlotGroup }
	equal(t, "group of map1", group("map1"), group("source1"))
	if a, b, c := group("source1"), group("source2"), group("map2"); a == b || b == c || a == c {
		t.Errorf("three regions are in groups %q, %q, %q", a, b, c)
	}
}

func ruleLastPartitionerWins(t *testing.T) {
	job := planOf(t, func(env *stream.Env) {
		env.FromElements(1).Name("source").Forward().Global().Broadcast().Map(same[int]).Name("map").Discard()
	})
	strategies, from := inputsOf(t, job, "map")
	equal(t, "strategies", strategies, []graph.Strategy{graph.Broadcast})
	equal(t, "sources", from, []string{"source"})
}

func threeSources(env *stream.Env) (a, b, c *stream.Stream[int]) {
	return env.FromElements(1).Name("a"), env.FromElements(2).Name("b"), env.FromElements(3).Name("c")
}

func rulePartitionerKeptThroughUnion(t *testing.T) {
	job := planOf(t, func(env *stream.Env) {
		a, b, c := threeSources(env)
		a.Broadcast().Union(b.Global(), c.Shuffle()).Map(same[int]).Name("map").Discard()
	})
	strategies, from := inputsOf(t, job, "map")
	equal(t, "strategies", strategies, []graph.Strategy{graph.Broadcast, graph.Global, graph.Shuffle})
	equal(t, "sources", from, []string{"a", "b", "c"})
}

func rulePartitionerAfterUnion(t *testing.T) {
	job := planOf(t, func(env *stream.Env) {
		a, b, c := threeSources(env)
		a.Union(b, c).Broadcast().Map(same[int]).Name("map").Discard()
	})
	strategies, _ := inputsOf(t, job, "map")
	equal(t, "strategies", strategies, []graph.Strategy{graph.Broadcast, graph.Broadcast, graph.Broadcast})
}

// keyedGraph is a chain of keyed operators behind a source, in co-location groups and slot groups.
func keyedGraph(t *testing.T, coLocations, slotGroups []string) (*plan.JobGraph, error) {
	t.Helper()
	g := newGraph()
	at := addNode(t, g, graph.Source, "source")
	for i, key := range coLocations {
		n := addNode(t, g, graph.Operator, string(rune('a'+i)), at)
		n.Key = []*graph.Key{textKey(t)}
		n.Inputs[0].Partitioner = &graph.Partitioner{Strategy: graph.Hash, Key: n.Key[0]}
		n.CoLocation = key
		if slotGroups != nil {
			n.SlotGroup = slotGroups[i]
		}
		at = n
	}
	return plan.Build(g)
}

func ruleCoLocationConstraint(t *testing.T) {
	job, err := keyedGraph(t, []string{"group1", "group2", "group1", "group2"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "vertices beside the source", len(job.Vertices)-1, 4)
	for name, want := range map[string]string{"a": "group1", "b": "group2", "c": "group1", "d": "group2"} {
		equal(t, "co-location of "+name, homeOf(t, job, name).CoLocation, want)
	}
}

func ruleCoLocationNeedsSameSlotGroup(t *testing.T) {
	if _, err := keyedGraph(t, []string{"group", "group"}, []string{"one", "two"}); err == nil {
		t.Error("co-located vertices are in two slot groups")
	}
	if _, err := keyedGraph(t, []string{"group", "group"}, []string{"one", "one"}); err != nil {
		t.Error(err)
	}
}

type place struct {
	Name string
	At   struct{ X, Y int64 }
}

func ruleKeyedVersusCustom(t *testing.T) {
	job := planOf(t, func(env *stream.Env) {
		in := env.FromElements(place{}).Name("source")
		in.KeyBy(func(p place) int64 { return p.At.X }).Count().Name("selector").Discard()
		in.KeyByFields[int64]("At.X").Count().Name("field").Discard()
		in.KeyByPositions[string](0).Count().Name("position").Discard()
		in.PartitionCustom(func(int64, int) int { return 0 }, func(p place) int64 { return p.At.Y }).Map(same[place]).Name("custom").Discard()
	})
	for _, name := range []string{"selector", "field", "position"} {
		strategies, _ := inputsOf(t, job, name)
		equal(t, name, strategies, []graph.Strategy{graph.Hash})
		if !nodeOf(t, job, name).Node.Keyed() {
			t.Errorf("%s is not keyed", name)
		}
	}
	strategies, _ := inputsOf(t, job, "custom")
	equal(t, "custom", strategies, []graph.Strategy{graph.Custom})
	if nodeOf(t, job, "custom").Node.Keyed() {
		t.Error("a custom partitioned stream is keyed")
	}
}

// ruleUnusableKeys: slices and maps are refused by the compiler; what it lets pass and has no identity is refused when the
// job is built. Arrays are values in Go, with an identity of their own, and can be keys.
func ruleUnusableKeys(t *testing.T) {
	type nested struct{ P *int64 }
	for name, build := range map[string]func(in *stream.Stream[int64]){
		"pointer":   func(in *stream.Stream[int64]) { in.KeyBy(func(x int64) *int64 { return &x }).Count().Discard() },
		"interface": func(in *stream.Stream[int64]) { in.KeyBy(func(x int64) any { return x }).Count().Discard() },
		"channel":   func(in *stream.Stream[int64]) { in.KeyBy(func(int64) chan int { return nil }).Count().Discard() },
		"nested":    func(in *stream.Stream[int64]) { in.KeyBy(func(x int64) nested { return nested{&x} }).Count().Discard() },
	} {
		if _, err := tryPlan(t, func(env *stream.Env) { build(env.FromSequence(1, 2)) }); err == nil {
			t.Errorf("a key that is or has a %s is taken", name)
		}
	}
}

func ruleSideOutputNameClash(t *testing.T) {
	_, err := tryPlan(t, func(env *stream.Env) {
		s := env.FromElements[int64](1).Process(func(*process.Runtime) plain[int64, string] { return nil })
		s.SideOutput(process.NewOutputTag[string]("side")).Discard()
		s.SideOutput(process.NewOutputTag[int64]("side")).Discard()
		s.Discard()
	})
	if err == nil || !strings.Contains(err.Error(), `"side"`) {
		t.Errorf("error %v", err)
	}
}

func ruleSideOutputWrongTag(t *testing.T) {
	env := stream.NewEnv().SetParallelism(1)
	s := env.FromElements[int64](1, 2).Process(func(*process.Runtime) plain[int64, string] {
		return func(ctx *process.Context, x int64, out *process.Collector[string]) error {
			ctx.Emit(process.NewOutputTag[int64]("other-side"), x)
			out.Collect(decimal(x))
			return nil
		}
	})
	main := flotttest.NewSink[string]()
	s.SinkTo(main)
	side := flotttest.Collect(t, env, s.SideOutput(process.NewOutputTag[int64]("side")))
	flotttest.Equal(t, side, nil)
	flotttest.Equal(t, main.Values(), []string{"1", "2"})
}

func ruleGenerationClears(t *testing.T) {
	env := stream.NewEnv().SetParallelism(1)
	add := func() { env.FromElements(1).Discard() }
	nodes := func() int {
		p, err := env.ExecutionPlan()
		if err != nil {
			t.Fatal(err)
		}
		return strings.Count(p, `"pact"`)
	}
	add()
	equal(t, "nodes at first", nodes(), 2)
	add()
	equal(t, "nodes after another plan", nodes(), 4)
	flotttest.Execute(t, env)
	add()
	equal(t, "nodes after the job", nodes(), 2)
}

func ruleBranchesGetEveryRecord(t *testing.T) {
	for _, opts := range [][]stream.Option{nil, {flotttest.Isolated()}} {
		env := stream.NewEnv(opts...).SetParallelism(1)
		in := env.FromElements(1, 2, 3).Map(same[int])
		first, second := flotttest.NewSink[string](), flotttest.NewSink[string]()
		in.Map(func(x int) string { return "First: " + decimal(int64(x)) }).SinkTo(first)
		in.Map(func(x int) string { return "Second: " + decimal(int64(x)) }).SinkTo(second)
		flotttest.Execute(t, env)
		flotttest.Equal(t, first.Values(), []string{"First: 1", "First: 2", "First: 3"})
		flotttest.Equal(t, second.Values(), []string{"Second: 1", "Second: 2", "Second: 3"})
	}
}

// ids are the ids of a program's nodes by name.
func ids(t *testing.T, build func(env *stream.Env)) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, v := range planOf(t, build).Vertices {
		for _, n := range v.Nodes {
			if out[n.Node.Name] != "" {
				t.Fatalf("two nodes are called %q", n.Node.Name)
			}
			out[n.Node.Name] = n.ID.String()
		}
	}
	return out
}

func distinct(t *testing.T, ids map[string]string, n int) {
	t.Helper()
	seen := map[string]bool{}
	for _, id := range ids {
		seen[id] = true
	}
	equal(t, "distinct ids", len(seen), n)
}

// branches has two equal branches behind a source.
func branches(env *stream.Env) {
	in := env.SetParallelism(1).FromElements(1).Name("source")
	for _, name := range []string{"a", "b"} {
		in.Map(same[int]).Name("map " + name).Filter(func(int) bool { return true }).Name("filter " + name).Discard().Name("sink " + name)
	}
}

// idRules are the rules of node ids.
func idRules() map[string]func(*testing.T) {
	return map[string]func(*testing.T){
		"rule/hash_deterministic": func(t *testing.T) {
			equal(t, "ids", ids(t, branches), ids(t, branches))
		},
		"rule/hash_identical_sources_differ": func(t *testing.T) {
			distinct(t, ids(t, func(env *stream.Env) {
				env.DisableOperatorChaining()
				a, b, c := threeSources(env)
				a.Union(b, c).Discard().Name("sink")
			}), 4)
		},
		"rule/hash_identical_nodes_differ": func(t *testing.T) { distinct(t, ids(t, branches), 7) },
		"rule/hash_depends_on_chaining_source": func(t *testing.T) {
			build := func(env *stream.Env) *stream.Stream[int] {
				return env.SetParallelism(1).FromElements(1).Name("source").Map(same[int]).Name("map")
			}
			chained := ids(t, func(env *stream.Env) { build(env).Discard() })
			apart := ids(t, func(env *stream.Env) { build(env).StartNewChain().Discard() })
			if chained["source"] == apart["source"] {
				t.Error("the source's id does not depend on chaining")
			}
		},
		"rule/hash_ignores_name": func(t *testing.T) {
			build := func(name string) map[string]string {
				return ids(t, func(env *stream.Env) { env.FromElements(1).Map(same[int]).Name(name).Discard() })
			}
			equal(t, "id of the map", build("one")["one"], build("two")["two"])
		},
		"rule/uid_stable_across_topology_change": ruleUIDStable,
		"rule/uid_collision": func(t *testing.T) {
			_, err := tryPlan(t, func(env *stream.Env) {
				env.FromElements(1).UID("x").Map(same[int]).UID("x").Discard()
			})
			if err == nil || strings.Count(err.Error(), "graph_rules_test.go:") < 2 {
				t.Errorf("error %v", err)
			}
		},
		"rule/uid_inside_chain": func(t *testing.T) {
			planOf(t, func(env *stream.Env) {
				env.SetParallelism(1).FromElements(1).UID("first").Map(same[int]).UID("inside").Map(same[int]).Discard()
			})
		},
		"rule/user_hash_is_last_alternative": func(t *testing.T) {
			a, b := strings.Repeat("a", 32), strings.Repeat("b", 32)
			job := planOf(t, func(env *stream.Env) {
				env.SetParallelism(1).FromElements(1).UIDHash(a).Map(same[int]).Rebalance().Map(same[int]).StartNewChain().UIDHash(b).Discard()
			})
			var got []string
			for _, v := range job.Vertices {
				got = append(got, v.ID.String())
			}
			equal(t, "ids of the vertices", got, []string{a, b})
		},
		"rule/user_hash_in_chain": func(t *testing.T) {
			got := ids(t, func(env *stream.Env) {
				env.SetParallelism(1).FromElements(1).Name("source").UIDHash(strings.Repeat("a", 32)).
					Map(same[int]).Name("map").UIDHash(strings.Repeat("b", 32)).
					Discard().Name("sink").UIDHash(strings.Repeat("c", 32))
			})
			equal(t, "id of the map", got["map"], strings.Repeat("b", 32))
		},
		"rule/auto_uid_disabled_rejects": func(t *testing.T) {
			if _, err := withoutAutoUIDs(t, "", ""); err == nil {
				t.Error("nodes without UIDs are taken")
			}
		},
		"rule/auto_uid_disabled_accepts_uid": func(t *testing.T) {
			if _, err := withoutAutoUIDs(t, "uid", strings.Repeat("a", 32)); err != nil {
				t.Error(err)
			}
		},
		"rule/auto_uid_disabled_key_by": func(t *testing.T) {
			job, err := withoutAutoUIDs(t, "uid", strings.Repeat("a", 32))
			if err != nil {
				t.Fatal(err)
			}
			equal(t, "strategy", job.Edges[0].Strategy, graph.Hash)
		},
	}
}

func ruleUIDStable(t *testing.T) {
	before := ids(t, func(env *stream.Env) {
		in := env.FromElements(1).Name("source").UID("source").Map(same[int]).Name("map")
		in.Discard().Name("sink0").UID("sink0")
		in.Discard().Name("sink1").UID("sink1")
	})
	after := ids(t, func(env *stream.Env) {
		in := env.FromElements(1).Name("another source").Map(same[int]).Name("source").UID("source").Filter(func(int) bool { return true }).Name("filter")
		in.Map(same[int]).Name("map").Discard().Name("sink0").UID("sink0")
		in.Discard().Name("sink1").UID("sink1")
	})
	for _, name := range []string{"source", "sink0", "sink1"} {
		equal(t, "id of "+name, after[name], before[name])
	}
}

// withoutAutoUIDs plans a source and a keyed operator with a UID and a UID hash, where ids must be given.
func withoutAutoUIDs(t *testing.T, uid, hash string) (*plan.JobGraph, error) {
	t.Helper()
	g := newGraph()
	g.RequireUIDs = true
	source := addNode(t, g, graph.Source, "source")
	keyed := addNode(t, g, graph.Operator, "keyed", source)
	keyed.Key = slices.Repeat([]*graph.Key{textKey(t)}, 1)
	keyed.Inputs[0].Partitioner = &graph.Partitioner{Strategy: graph.Hash, Key: keyed.Key[0]}
	source.UID, keyed.UIDHash = uid, hash
	return plan.Build(g)
}
