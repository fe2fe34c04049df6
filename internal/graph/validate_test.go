package graph

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// wantMistake checks that the graph is refused with all of these words.
func wantMistake(t *testing.T, g *Graph, words ...string) {
	t.Helper()
	err := g.Validate()
	if err == nil {
		t.Fatalf("the graph is accepted, want a mistake with %q", words)
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("the mistake does not say %q:\n%v", w, err)
		}
	}
}

// loop is src -> head -> step -> tail with feedback into head, and a sink behind the step.
func loop(t *testing.T) *sketch {
	s := newSketch(t)
	head := s.add(IterationHead, "head", s.source("src"))
	step := s.op("step", head)
	tail := s.add(IterationTail, "tail", step)
	head.Inputs = append(head.Inputs, Edge{From: tail, Feedback: true})
	s.sink("sink", step)
	return s
}

func TestSoundGraphsAreAccepted(t *testing.T) {
	keyedTwice := newSketch(t)
	first := keyed[string](keyedTwice, "first", keyedTwice.source("src"))
	second := keyed[string](keyedTwice, "second", first)
	second.Inputs[0].Partitioner = &Partitioner{Strategy: Forward}
	connected := newSketch(t)
	op := keyed[string](connected, "op", connected.source("data"))
	op.Inputs = append(op.Inputs, Edge{From: connected.source("rules"), Input: 1, Partitioner: &Partitioner{Strategy: Broadcast}})
	selfUnion := newSketch(t)
	src := selfUnion.source("src")
	selfUnion.op("union", src, src)
	for name, s := range map[string]*sketch{
		"diamond": diamond(t), "loop": loop(t), "keys taken over": keyedTwice, "broadcast beside keys": connected, "self union": selfUnion,
	} {
		if err := s.g.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// One subtask has all keys, wherever its elements come from.
func TestKeyedNodeThatIsNotParallelNeedsNoPartitioning(t *testing.T) {
	for _, p := range []*Partitioner{nil, {Strategy: Rebalance}, {Strategy: Broadcast}} {
		s := newSketch(t)
		b := keyed[string](s, "b", s.source("a"))
		b.Inputs[0].Partitioner, b.NonParallel = p, true
		if err := s.g.Validate(); err != nil {
			t.Error(err)
		}
	}
}

func TestEnvironmentBounds(t *testing.T) {
	for _, c := range []struct {
		parallelism, most int
		ok                bool
	}{
		{1, 1, true}, {32768, 32768, true}, {32769, Unset, false}, {1, 32769, false}, {-1, Unset, false}, {1, -2, false},
	} {
		g := &Graph{Parallelism: c.parallelism, MaxParallelism: c.most}
		if err := g.Validate(); (err == nil) != c.ok {
			t.Errorf("parallelism %d, max parallelism %d: %v", c.parallelism, c.most, err)
		}
	}
}

func TestUnsetPartitioningFollowsParallelism(t *testing.T) {
	s := newSketch(t)
	n := s.op("b", s.source("a"))
	if got := s.g.StrategyOf(&n.Inputs[0], n); got != Forward {
		t.Errorf("equal parallelism gives %s", got)
	}
	n.Parallelism = 3
	if got := s.g.StrategyOf(&n.Inputs[0], n); got != Rebalance {
		t.Errorf("unequal parallelism gives %s", got)
	}
	n.Inputs[0].Partitioner = &Partitioner{Strategy: Global}
	if got := s.g.StrategyOf(&n.Inputs[0], n); got != Global {
		t.Errorf("what the user set becomes %s", got)
	}
}

func TestSlotGroupsAreInheritedWhereInputsAgree(t *testing.T) {
	s := newSketch(t)
	a, b, c := s.source("a"), s.source("b"), s.source("c")
	a.SlotGroup, b.SlotGroup = "g", "g"
	agree, differ := s.op("agree", a, b), s.op("differ", a, c, b)
	groups, err := s.g.SlotGroups()
	if err != nil {
		t.Fatal(err)
	}
	if groups[agree] != "g" || groups[differ] != DefaultSlotGroup || groups[c] != DefaultSlotGroup {
		t.Errorf("groups %q, %q, %q", groups[agree], groups[differ], groups[c])
	}
}

func TestMistakesAreNamedWithTheirPlaces(t *testing.T) {
	forward := &Partitioner{Strategy: Forward}
	for name, c := range map[string]struct {
		build func(*sketch)
		want  []string
	}{
		"parallelism 0": {func(s *sketch) { s.source("a").Parallelism = 0 }, []string{"main.go:10", "parallelism 0"}},
		"parallelism above all": {
			func(s *sketch) { s.source("a").Parallelism = 32769 },
			[]string{"parallelism 32769 is outside 1 ... 32768"},
		},
		"max parallelism 0": {
			func(s *sketch) { s.source("a").MaxParallelism = 0 },
			[]string{"main.go:10", "max parallelism 0 is outside"},
		},
		"above max": {
			func(s *sketch) { n := s.source("a"); n.Parallelism, n.MaxParallelism = 9, 8 },
			[]string{"parallelism 9 is above max parallelism 8"},
		},
		"above the environment's max": {
			func(s *sketch) { s.g.MaxParallelism = 8; s.source("a").Parallelism = 9 },
			[]string{"main.go:10", "parallelism 9 is above max parallelism 8"},
		},
		"environment": {
			func(s *sketch) { s.g.Parallelism, s.g.MaxParallelism = 0, 0 },
			[]string{"environment: parallelism 0", "environment: max parallelism 0"},
		},
		"not parallel": {
			func(s *sketch) { n := s.source("a"); n.NonParallel, n.Parallelism = true, 2 },
			[]string{"parallelism 2: it can't be parallel"},
		},
		"forward unequal": {
			func(s *sketch) {
				n := s.op("b", s.source("a"))
				n.Parallelism, n.Inputs[0].Partitioner = 3, forward
			},
			[]string{`operator "b"`, `source "a" (main.go:10)`, "2 feeds 3"},
		},
		"hash without key": {
			func(s *sketch) { s.op("b", s.source("a")).Inputs[0].Partitioner = &Partitioner{Strategy: Hash} },
			[]string{"without a key"},
		},
		"custom without function": {
			func(s *sketch) { s.op("b", s.source("a")).Inputs[0].Partitioner = &Partitioner{Strategy: Custom} },
			[]string{"without a function"},
		},
		"unknown strategy": {
			func(s *sketch) { s.op("b", s.source("a")).Inputs[0].Partitioner = &Partitioner{Strategy: 99} },
			[]string{"partitioning 99"},
		},
		"blocking and pipelined": {
			func(s *sketch) {
				e := &s.op("b", s.source("a")).Inputs[0]
				e.Exchange, e.Partitioner = Pipelined, &Partitioner{Strategy: Rebalance, Batch: true}
			},
			[]string{"both blocking and pipelined"},
		},
		"unknown tag": {
			func(s *sketch) { s.sink("b", s.source("a")).Inputs[0].Tag = "late" },
			[]string{`source "a" (main.go:10) has no side output "late"`},
		},
		"sink as input":  {func(s *sketch) { s.op("c", s.sink("b", s.source("a"))) }, []string{`sink "b" (main.go:20) has no output`}},
		"operator alone": {func(s *sketch) { s.op("b") }, []string{"has no input"}},
		"source fed":     {func(s *sketch) { s.add(Source, "b", s.source("a")) }, []string{"a source has no inputs"}},
		"negative input": {func(s *sketch) { s.op("b", s.source("a")).Inputs[0].Input = -1 }, []string{"input -1 does not exist"}},
		"gap in inputs": {func(s *sketch) {
			n := s.op("b", s.source("a"), s.source("c"))
			n.Inputs[0].Input, n.Inputs[1].Input = 1, 1
		}, []string{"input 0 is not connected"}},
		"far input":    {func(s *sketch) { s.op("b", s.source("a")).Inputs[0].Input = 1 << 40 }, []string{"only 1 edges"}},
		"foreign node": {func(s *sketch) { s.op("b", &Node{Name: "elsewhere"}) }, []string{"not in the graph"}},
		"nil node":     {func(s *sketch) { s.op("b", nil) }, []string{"not in the graph"}},
		"twice":        {func(s *sketch) { s.g.Nodes = append(s.g.Nodes, s.source("a")) }, []string{"in the graph twice"}},
		"union of types": {
			func(s *sketch) { b := s.source("b"); b.Out = typeOf[string](s.t); s.op("c", s.source("a"), b) },
			[]string{"unites int", "with string", `source "b" (main.go:10)`},
		},
		"keyed without partitioning": {
			func(s *sketch) { keyed[string](s, "b", s.source("a")).Inputs[0].Partitioner = nil },
			[]string{"is keyed, but what comes from", "not partitioned by key"},
		},
		"keyed behind rebalance": {
			func(s *sketch) {
				keyed[string](s, "b", s.source("a")).Inputs[0].Partitioner = &Partitioner{Strategy: Rebalance}
			},
			[]string{"partitioned by REBALANCE"},
		},
		"keyed by another": {
			func(s *sketch) {
				keyed[string](s, "b", s.source("a")).Inputs[0].Partitioner = &Partitioner{Strategy: Hash, Key: keyOf[int64](s.t)}
			},
			[]string{"keyed by string", "partitioned by int64"},
		},
		"two key types": {
			func(s *sketch) {
				n := keyed[string](s, "b", s.source("a"))
				k := keyOf[int64](s.t)
				n.Key = append(n.Key, k)
				n.Inputs = append(n.Inputs, Edge{From: s.g.Nodes[0], Input: 1, Partitioner: &Partitioner{Strategy: Hash, Key: k}})
			},
			[]string{"different types: string and int64"},
		},
		"keys taken over with other groups": {
			func(s *sketch) {
				a := keyed[string](s, "b", s.source("a"))
				n := keyed[string](s, "c", a)
				n.MaxParallelism, n.Inputs[0].Partitioner = 256, forward
			},
			[]string{"max parallelism 256", `operator "b" (main.go:20)`, "has 128"},
		},
		"cycle": {
			func(s *sketch) {
				a := s.op("a", s.source("src"))
				c := s.op("c", s.op("b", a))
				a.Inputs = append(a.Inputs, Edge{From: c})
			},
			[]string{"without a feedback edge", `operator "a" (main.go:20) -> operator "b" (main.go:30) -> operator "c" (main.go:40) -> operator "a"`},
		},
		"co-location in two groups": {
			func(s *sketch) {
				a, b := s.source("a"), s.source("b")
				a.CoLocation, b.CoLocation, b.SlotGroup = "x", "x", "g"
			},
			[]string{"main.go:20", `co-located ("x")`, `source "a" (main.go:10)`, `"g"`, `"default"`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSketch(t)
			c.build(s)
			wantMistake(t, s.g, c.want...)
		})
	}
}

func TestRuleCoLocationNeedsSameSlotGroup(t *testing.T) { // rule/co_location_needs_same_slot_group
	s := newSketch(t)
	a := keyed[string](s, "a", s.source("src"))
	b := keyed[string](s, "b", a)
	a.CoLocation, b.CoLocation = "one", "one"
	if err := s.g.Validate(); err != nil {
		t.Fatal(err)
	}
	b.SlotGroup = "apart"
	wantMistake(t, s.g, `slot-sharing group "apart"`)
}

func TestMistakesInIterations(t *testing.T) {
	node := func(s *sketch, name string) *Node {
		for _, n := range s.g.Nodes {
			if n.Name == name {
				return n
			}
		}
		s.t.Fatalf("no node %s", name)
		return nil
	}
	for name, c := range map[string]struct {
		change func(*sketch)
		want   string
	}{
		"open":          {func(s *sketch) { h := node(s, "head"); h.Inputs = h.Inputs[:1] }, "an iteration without feedback"},
		"tail alone":    {func(s *sketch) { h := node(s, "head"); h.Inputs = h.Inputs[:1] }, "feedback that leads to no iteration"},
		"unequal":       {func(s *sketch) { node(s, "tail").Parallelism = 1 }, "they must be equal"},
		"repartitioned": {func(s *sketch) { node(s, "head").Inputs[1].Partitioner = &Partitioner{Strategy: Shuffle} }, "can't be repartitioned"},
		"forward unequal": {func(s *sketch) {
			node(s, "tail").Parallelism = 1
			node(s, "head").Inputs[1].Partitioner = &Partitioner{}
		}, "needs equal parallelism"},
		"blocking":   {func(s *sketch) { node(s, "head").Inputs[1].Exchange = Batch }, "can't be a blocking edge"},
		"not marked": {func(s *sketch) { node(s, "head").Inputs[1].Feedback = false }, "feedback leads from an iteration's tail"},
		"no tail":    {func(s *sketch) { node(s, "head").Inputs[1].From = node(s, "step") }, "feedback leads from an iteration's tail"},
		"not into a head": {func(s *sketch) {
			n := s.op("x", node(s, "src"))
			n.Inputs = append(n.Inputs, Edge{From: node(s, "tail"), Feedback: true})
		}, "feedback leads from an iteration's tail"},
		"two heads": {func(s *sketch) {
			h := s.add(IterationHead, "other", node(s, "src"))
			h.Inputs = append(h.Inputs, Edge{From: node(s, "tail"), Feedback: true})
		}, "feeds both"},
		"tail outside":    {func(s *sketch) { node(s, "tail").Inputs[0].From = node(s, "src") }, "fed by nothing that comes from its iteration"},
		"blocking inside": {func(s *sketch) { node(s, "step").Inputs[0].Exchange = Batch }, "inside an iteration"},
		"other group":     {func(s *sketch) { node(s, "tail").SlotGroup = "apart" }, `its iteration iteration head "head" (main.go:20) is in "default"`},
		"other place":     {func(s *sketch) { node(s, "tail").CoLocation = "a"; node(s, "head").CoLocation = "b" }, `co-located by "a"`},
	} {
		t.Run(name, func(t *testing.T) {
			s := loop(t)
			c.change(s)
			wantMistake(t, s.g, c.want)
		})
	}
}

func TestBlockingBesideAnIterationIsAllowed(t *testing.T) {
	s := loop(t)
	s.g.BlockingConnections = true
	s.g.Nodes[4].Inputs[0].Exchange = Batch // the sink's
	s.g.Nodes[1].Inputs[0].Exchange = Batch // the head's
	if err := s.g.Validate(); err != nil {
		t.Error(err)
	}
}

func TestAllMistakesAreReportedTogether(t *testing.T) {
	s := newSketch(t)
	a := s.source("a")
	a.Parallelism = 0
	s.op("b", a).Inputs[0].Tag = "nope"
	s.op("c", a).UIDHash = "short"
	err := s.g.Validate()
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok || len(joined.Unwrap()) != 3 {
		t.Fatalf("want 3 mistakes, have %v", err)
	}
	for i, place := range []string{"main.go:10: ", "main.go:20: ", "main.go:30: "} {
		if got := joined.Unwrap()[i].Error(); !strings.HasPrefix(got, place) {
			t.Errorf("mistake %d is %q, want one at %s", i, got, place)
		}
	}
}

func TestSettingsResolve(t *testing.T) {
	s := newSketch(t)
	s.g.BufferTimeout = 100 * time.Millisecond
	n := s.source("a")
	one := s.source("one")
	one.NonParallel = true
	if p, q := s.g.ParallelismOf(n), s.g.ParallelismOf(one); p != 2 || q != 1 {
		t.Errorf("parallelism %d and %d", p, q)
	}
	if m, k := s.g.MaxParallelismOf(n), s.g.KeyGroupsOf(n); m != Unset || k != 128 {
		t.Errorf("max parallelism %d, key groups %d", m, k)
	}
	if n.Parallelism = 100; s.g.KeyGroupsOf(n) != 256 {
		t.Errorf("key groups %d for parallelism 100", s.g.KeyGroupsOf(n))
	}
	for _, c := range []struct{ own, env, want time.Duration }{{-1, 77, 77}, {0, 77, 0}, {5, 77, 5}, {-1, -1, -1}} {
		s.g.BufferTimeout, n.BufferTimeout = c.env, &c.own
		if got := s.g.BufferTimeoutOf(n); got != c.want {
			t.Errorf("timeouts %d of the node, %d of the environment give %d, want %d", c.own, c.env, got, c.want)
		}
	}
}

// Whatever is wired together, Validate answers and never panics, and what it accepts has ids and an order.
func TestRandomWiringIsJudgedWithoutPanic(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	accepted := 0
	for range 3000 {
		s := newSketch(t)
		for i := range 1 + r.IntN(6) {
			n := s.add(Kind(r.IntN(5)), string(rune('a'+i)))
			n.Parallelism = []int{Unset, Unset, 1, 2}[r.IntN(4)]
			n.Chaining = Chaining(r.IntN(3))
		}
		for _, n := range s.g.Nodes {
			for range r.IntN(3) {
				e := Edge{From: s.g.Nodes[r.IntN(len(s.g.Nodes))], Feedback: r.IntN(4) == 0, Exchange: Exchange(r.IntN(3))}
				if r.IntN(3) == 0 {
					e.Partitioner = &Partitioner{Strategy: Strategy(r.IntN(7))}
				}
				n.Inputs = append(n.Inputs, e)
			}
		}
		if s.g.Validate() != nil {
			continue
		}
		accepted++
		order, err := s.g.Order()
		if err != nil || len(order) != len(s.g.Nodes) {
			t.Fatalf("an accepted graph has no order: %v", err)
		}
		distinct(t, s.ids(), len(s.g.Nodes))
	}
	if accepted < 20 {
		t.Errorf("only %d graphs were accepted: the test looks at nothing", accepted)
	}
}

func TestOrderFollowsDataThenCreation(t *testing.T) {
	s := newSketch(t)
	late := s.op("late")
	s.source("a")
	late.Inputs = []Edge{{From: s.source("b")}}
	s.op("c", s.g.Nodes[1])
	order, err := s.g.Order()
	if err != nil {
		t.Fatal(err)
	}
	names := ""
	for _, n := range order {
		names += n.Name + " "
	}
	if names != "b late a c " {
		t.Errorf("order %s", names)
	}
}
