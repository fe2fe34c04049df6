package graph

import (
	"strings"
	"testing"

	"github.com/flott-dev/flott/internal/frame"
)

// The hashes are published ones of MurmurHash3 x64 128 (seed 0) and pin UIDs to the operator ids that Flink gives them.
func TestUIDHashIsMurmur128(t *testing.T) {
	for _, c := range []struct{ uid, want string }{
		{"", "00000000000000000000000000000000"},
		{"hell", "67f8103e694299624753ebba820bdb92"},
		{"hello", "029bbd41b3a7d8cb191dae486a901e5b"},
		{"hello, world", "8ebc5e3a62ac2f344d41429607bcdc4c"},
		{"The quick brown fox jumps over the lazy dog", "6c1b07bc7bbc4be347939ac4a93c437a"},
	} {
		if got := UIDHash(c.uid).String(); got != c.want {
			t.Errorf("UIDHash(%q) = %s, want %s", c.uid, got, c.want)
		}
	}
}

func TestParseIDReadsWhatStringWrites(t *testing.T) {
	id := UIDHash("hello")
	for _, s := range []string{id.String(), strings.ToUpper(id.String())} {
		if got, err := ParseID(s); err != nil || got != id {
			t.Errorf("ParseID(%q) = %v, %v", s, got, err)
		}
	}
	for _, s := range []string{"", "12", strings.Repeat("g", 32), strings.Repeat("a", 33), strings.Repeat("é", 16)} {
		if _, err := ParseID(s); err == nil {
			t.Errorf("ParseID(%q) gave no error", s)
		}
	}
}

// diamond is a program with two equal branches.
func diamond(t *testing.T) *sketch {
	s := newSketch(t)
	src := s.source("src")
	s.sink("sink1", s.op("map1", src))
	s.sink("sink2", s.op("map2", src))
	return s
}

func TestIDsComeFromStructure(t *testing.T) {
	base := diamond(t).ids()
	same := func(t *testing.T, changed map[string]string, names ...string) {
		t.Helper()
		for _, n := range names {
			if changed[n] != base[n] {
				t.Errorf("the id of %s changed", n)
			}
		}
	}
	all := []string{"src", "map1", "sink1", "map2", "sink2"}

	t.Run("rule/hash_deterministic", func(t *testing.T) { same(t, diamond(t).ids(), all...) })
	t.Run("rule/hash_identical_nodes_differ", func(t *testing.T) { distinct(t, base, 5) })
	t.Run("rule/hash_identical_sources_differ", func(t *testing.T) {
		s := newSketch(t)
		s.g.ChainingEnabled = false
		s.sink("sink", s.source("a"), s.source("b"))
		distinct(t, s.ids(), 3)
	})
	t.Run("rule/hash_ignores_name", func(t *testing.T) {
		s := diamond(t)
		s.g.Nodes[1].Name = "other"
		ids := s.ids()
		if ids["other"] != base["map1"] {
			t.Error("the id of a renamed operator changed")
		}
		same(t, ids, "src", "sink1", "map2", "sink2")
	})
	t.Run("rule/hash_depends_on_chaining_source", func(t *testing.T) {
		chained, apart := newSketch(t), newSketch(t)
		chained.op("map", chained.source("src"))
		apart.op("map", apart.source("src")).Chaining = Head
		if chained.ids()["src"] == apart.ids()["src"] {
			t.Error("the source has the same id whether its consumer chains or not")
		}
	})
	t.Run("rescaling and moving keep ids", func(t *testing.T) {
		s := diamond(t)
		s.g.Parallelism, s.g.MaxParallelism, s.g.ChainingEnabled = 7, 512, false
		s.g.Nodes[1].Parallelism, s.g.Nodes[2].SlotGroup = 3, "other"
		same(t, s.ids(), all...)
	})
	t.Run("nodes beside keep ids", func(t *testing.T) {
		s := newSketch(t)
		s.op("op", s.source("x"), s.source("y"))
		src := s.source("src")
		s.sink("sink1", s.op("map1", src))
		s.sink("sink2", s.op("map2", src))
		s.op("third", src).Chaining = Head
		same(t, s.ids(), all...)
	})
	t.Run("side outputs and inputs are told apart", func(t *testing.T) {
		s := newSketch(t)
		src := s.source("src")
		s.sink("main", src)
		s.sink("side", src).Inputs[0].Tag = "late"
		s.sink("second", src).Inputs[0].Input = 1
		distinct(t, s.ids(), 4)
	})
}

// Snapshots find their nodes by these ids: a change here loses the state of every node without a UID.
func TestRuleOfStructuralIDsIsPinned(t *testing.T) {
	s := newSketch(t)
	src := s.source("src")
	src.Side = map[string]*frame.Type{"late": src.Out}
	n := keyed[string](s, "count", src)
	n.Inputs = append(n.Inputs, Edge{From: src, Tag: "late", Input: 1})
	s.sink("sink", n)
	ids := s.ids()
	for name, want := range map[string]string{
		"src":   "d6314ea2b47a8474fe521fec00dec685",
		"count": "6ce0e980a0e2d76791d1d34d5b19836e",
		"sink":  "84d63d0df582651047a56756a9ccd0c5",
	} {
		if ids[name] != want {
			t.Errorf("the id of %s is %s, want %s", name, ids[name], want)
		}
	}
}

func distinct(t *testing.T, ids map[string]string, want int) {
	t.Helper()
	seen := make(map[string]bool)
	for _, id := range ids {
		seen[id] = true
	}
	if len(ids) != want || len(seen) != want {
		t.Errorf("%d nodes have %d ids, want %d of each: %v", len(ids), len(seen), want, ids)
	}
}

func TestUIDsDecideIDs(t *testing.T) {
	t.Run("rule/uid_stable_across_topology_change", func(t *testing.T) {
		uid := func(n *Node, uid string) *Node {
			n.UID = uid
			return n
		}
		before, after := newSketch(t), newSketch(t)
		src := uid(before.source("src"), "source")
		uid(before.sink("s0", before.op("map", src)), "sink0")
		uid(before.sink("s1", before.op("filter", src)), "sink1")
		// The UID moves to another operator, and operators come in between.
		src = after.source("src")
		moved := uid(after.op("first", src), "source")
		uid(after.sink("s0", after.op("more", after.op("map", moved))), "sink0")
		uid(after.sink("s1", moved), "sink1")
		b, a := before.ids(), after.ids()
		if b["src"] != a["first"] || b["s0"] != a["s0"] || b["s1"] != a["s1"] {
			t.Errorf("ids of UIDs moved:\n%v\n%v", b, a)
		}
	})
	t.Run("rule/uid_collision", func(t *testing.T) {
		s := diamond(t)
		s.g.Nodes[1].UID, s.g.Nodes[3].UID = "total", "total"
		wantMistake(t, s.g, `main.go:40: operator "map2": UID "total" is taken by operator "map1" (main.go:20)`)
	})
	t.Run("rule/uid_inside_chain", func(t *testing.T) {
		s := diamond(t)
		s.g.Nodes[0].UID, s.g.Nodes[1].UID = "start", "middle"
		if err := s.g.Validate(); err != nil {
			t.Error(err)
		}
	})
	t.Run("rule/user_hash_in_chain", func(t *testing.T) {
		s := diamond(t)
		for i, n := range s.g.Nodes {
			n.UIDHash = strings.Repeat("abcde"[i:i+1], 32)
		}
		if got := s.ids()["sink1"]; got != strings.Repeat("c", 32) {
			t.Errorf("the forced id is %s", got)
		}
	})
	t.Run("a forced hash wins over a UID and must be free", func(t *testing.T) {
		s := diamond(t)
		s.g.Nodes[1].UID = "total"
		s.g.Nodes[3].UIDHash = UIDHash("total").String()
		wantMistake(t, s.g, "main.go:40", `operator "map1" (main.go:20)`)
		s.g.Nodes[1].UIDHash = strings.Repeat("0", 32)
		if err := s.g.Validate(); err != nil {
			t.Error(err)
		}
	})
	t.Run("a malformed hash", func(t *testing.T) {
		s := diamond(t)
		s.g.Nodes[1].UIDHash = "xyz"
		wantMistake(t, s.g, "main.go:20", `"xyz"`, "32 hex digits")
	})
}

func TestRequiredUIDs(t *testing.T) {
	t.Run("rule/auto_uid_disabled_rejects", func(t *testing.T) {
		s := diamond(t)
		s.g.RequireUIDs = true
		s.g.Nodes[0].UID = "given"
		wantMistake(t, s.g, "main.go:20", "main.go:30", "main.go:40", "main.go:50", "neither UID nor UIDHash")
	})
	t.Run("rule/auto_uid_disabled_accepts_uid", func(t *testing.T) {
		s := diamond(t)
		s.g.RequireUIDs = true
		for i, n := range s.g.Nodes {
			if i%2 == 0 {
				n.UID = n.Name
			} else {
				n.UIDHash = UIDHash("x" + n.Name).String()
			}
		}
		if err := s.g.Validate(); err != nil {
			t.Error(err)
		}
	})
	t.Run("rule/auto_uid_disabled_key_by", func(t *testing.T) {
		s := newSketch(t)
		s.g.RequireUIDs = true
		src := s.source("src")
		src.UID = "a"
		keyed[string](s, "count", src).UID = "b"
		if err := s.g.Validate(); err != nil {
			t.Error(err)
		}
	})
	t.Run("ends of iterations need none", func(t *testing.T) {
		s := loop(t)
		s.g.RequireUIDs = true
		for _, n := range s.g.Nodes {
			if n.Kind != IterationHead && n.Kind != IterationTail {
				n.UID = n.Name
			}
		}
		if err := s.g.Validate(); err != nil {
			t.Error(err)
		}
	})
}

func TestStateWithoutUIDIsWarnedAbout(t *testing.T) {
	s := diamond(t)
	s.g.Nodes[1].Stateful, s.g.Nodes[3].Stateful = true, true
	s.g.Nodes[3].UID = "known"
	if w := s.g.Warnings(); len(w) != 1 || !strings.HasPrefix(w[0], `main.go:20: operator "map1"`) {
		t.Errorf("warnings %q", w)
	}
}
