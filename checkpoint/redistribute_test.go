package checkpoint

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/flott-dev/flott/internal/keygroup"
	"github.com/flott-dev/flott/internal/vfs"
)

// lists takes a snapshot of an operator with these lists by old subtask; nil is a subtask that had finished.
func lists(t testing.TB, fs vfs.FS, inline int, old [][]List) *Manifest {
	t.Helper()
	dir := fmt.Sprintf("/s%d", rand.Uint64())
	if err := BeginSnapshot(fs, dir); err != nil {
		t.Fatal(err)
	}
	o := Operator{ID: op(1), Parallelism: len(old), MaxParallelism: 128}
	for subtask, ls := range old {
		first, last := keygroup.RangeOf(128, len(old), subtask)
		p := &Part{Subtask: subtask, Finished: true}
		if ls != nil {
			var err error
			if p, err = (&Writer{FS: fs, Folder: dir, InlineBytes: inline}).Write(t.Context(), op(1), subtask, first, last, &State{Lists: ls}); err != nil {
				t.Fatal(err)
			}
		}
		o.Parts = append(o.Parts, p)
	}
	return &Manifest{Folder: dir, Operators: []Operator{o}}
}

// dealtTo gives the items that each new subtask gets, by name of the list.
func dealtTo(t testing.TB, fs vfs.FS, m *Manifest, parallelism int) []map[string][]string {
	t.Helper()
	all := make([]map[string][]string, parallelism)
	for subtask := range all {
		_, lists, err := m.Restore(fs, op(1), subtask, parallelism, 128)
		if err != nil {
			t.Fatal(err)
		}
		all[subtask] = map[string][]string{}
		for _, l := range lists {
			texts := []string{}
			for _, i := range l.Items {
				texts = append(texts, string(i))
			}
			all[subtask][l.Name] = texts
		}
	}
	return all
}

func modeOf(t testing.TB, word string) Mode {
	t.Helper()
	for m := Split; m <= Broadcast; m++ {
		if m.String() == word {
			return m
		}
	}
	t.Fatalf("unknown mode %q", word)
	return 0
}

func asItems(texts []string) [][]byte {
	var out [][]byte
	for _, s := range texts {
		out = append(out, []byte(s))
	}
	return out
}

// TestListsAreDealtOutAsFlinkDoes runs the vectors of lists that are dealt out.
func TestListsAreDealtOutAsFlinkDoes(t *testing.T) {
	b, err := os.ReadFile("../conformance/testdata/streaming/operator_state_rescale.json")
	if err != nil {
		t.Fatal(err)
	}
	type named struct {
		Mode  string
		Items []string
	}
	var family struct {
		Cases []struct {
			ID, Op, Mode string
			New          int `json:"new_parallelism"`
			Previous     []json.RawMessage
			Expect       [][]string
			Counts       []int          `json:"expect_sorted_item_counts"`
			PerSubtask   map[string]int `json:"expect_items_per_receiving_subtask"`
			Handles      map[string]int `json:"expect_handle_count_per_state"`
		}
	}
	if err := json.Unmarshal(b, &family); err != nil {
		t.Fatal(err)
	}
	ran := 0
	for _, c := range family.Cases {
		if c.Op == "rule" {
			continue
		}
		ran++
		t.Run(c.ID, func(t *testing.T) {
			fs := vfs.NewMem()
			old := make([][]List, len(c.Previous))
			for i, raw := range c.Previous {
				old[i] = []List{}
				parse := func(v any) {
					if err := json.Unmarshal(raw, v); err != nil {
						t.Fatal(err)
					}
				}
				switch c.Op {
				case "repartition":
					var states map[string]named
					parse(&states)
					for name, s := range states {
						old[i] = append(old[i], List{Name: name, Mode: modeOf(t, s.Mode), Items: asItems(s.Items)})
					}
				case "repartition_exact":
					var texts []string
					parse(&texts)
					old[i] = append(old[i], List{Name: "l", Mode: modeOf(t, c.Mode), Items: asItems(texts)})
				case "repartition_counts":
					var states map[string][]string
					parse(&states)
					for name, texts := range states {
						old[i] = append(old[i], List{Name: name, Mode: modeOf(t, c.Mode), Items: asItems(texts)})
					}
				default:
					t.Fatalf("unknown op %q", c.Op)
				}
			}
			m := lists(t, fs, -1, old)
			got := dealtTo(t, fs, m, c.New)
			var counts []int
			for i := range got {
				n := 0
				for name, texts := range got[i] {
					n += len(texts)
					if want := c.PerSubtask[name]; c.PerSubtask != nil && len(texts) > 0 && len(texts) != want {
						t.Errorf("subtask %d has %d items of %s, want %d", i, len(texts), name, want)
					}
				}
				counts = append(counts, n)
				if c.Expect != nil && !slices.Equal(got[i]["l"], c.Expect[i]) {
					t.Errorf("subtask %d has %q, want %q", i, got[i]["l"], c.Expect[i])
				}
			}
			slices.Sort(counts)
			if c.Counts != nil && !slices.Equal(counts, c.Counts) {
				t.Errorf("counts %v, want %v", counts, c.Counts)
			}
			for name, want := range c.Handles {
				if n := handles(t, m, c.New, name); n != want {
					t.Errorf("%s is given in %d pieces, want %d", name, n, want)
				}
			}
		})
	}
	if ran != 35 {
		t.Errorf("%d vectors ran", ran)
	}
}

// handles counts from how many old subtasks the new ones read a list.
func handles(t *testing.T, m *Manifest, parallelism int, name string) int {
	t.Helper()
	o := &m.Operators[0]
	all, err := deal(o.Parts, o.Parallelism, parallelism)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, lists := range all {
		for _, d := range lists {
			if d.info.Name == name {
				n += len(d.ranges)
			}
		}
	}
	return n
}

// TestRepartitionInvariants is the vectors' rule/repartition_invariants.
func TestRepartitionInvariants(t *testing.T) {
	rnd := rand.New(rand.NewPCG(4, 2))
	fs := vfs.NewMem()
	for round := range 300 {
		old, now := 1+rnd.IntN(9), 1+rnd.IntN(9)
		modes := make([]Mode, 1+rnd.IntN(9))
		for i := range modes {
			if rnd.IntN(10) == 0 {
				modes[i] = Union
			}
		}
		if len(modes)%2 == 0 {
			modes[0] = Broadcast
		}
		all := make([][]List, old)
		seen := map[string]int{} // by item
		for subtask := range all {
			for i, mode := range modes {
				n := 1 + rnd.IntN(9)
				from := subtask
				if mode == Broadcast {
					n, from = 3, 0
				}
				l := List{Name: fmt.Sprint("list ", i), Mode: mode}
				for k := range n {
					item := fmt.Sprintf("%d/%d/%d", i, from, k)
					l.Items = append(l.Items, []byte(item))
					seen[item] = 0
				}
				all[subtask] = append(all[subtask], l)
			}
		}
		got := dealtTo(t, fs, lists(t, fs, []int{-1, 10 << 20}[round%2], all), now)
		least, most := 1<<30, 0
		for _, lists := range got {
			n := 0
			for _, texts := range lists {
				n += len(texts)
				for _, item := range texts {
					seen[item]++
				}
			}
			least, most = min(least, n), max(most, n)
		}
		for item, n := range seen {
			var list int
			if _, err := fmt.Sscanf(item, "%d/", &list); err != nil {
				t.Fatal(err)
			}
			want := map[Mode]int{Split: 1, Union: now, Broadcast: now}[modes[list]]
			if n != want {
				t.Fatalf("round %d: %v item %s is there %d times, want %d", round, modes[list], item, n, want)
			}
		}
		if old != now && most-least > 1 {
			t.Fatalf("round %d: %d to %d: between %d and %d items", round, old, now, least, most)
		}
	}
}

// Subtasks that had finished leave no new one without what is broadcast (trap B037).
func TestBroadcastItemsOutliveFinishedSubtasks(t *testing.T) {
	fs := vfs.NewMem()
	rules := []List{{Name: "rules", Mode: Broadcast, Items: items("r", 3)}}
	got := dealtTo(t, fs, lists(t, fs, 0, [][]List{nil, {}, rules}), 4)
	for i := range got {
		if !slices.Equal(got[i]["rules"], []string{"r0", "r1", "r2"}) {
			t.Errorf("subtask %d has %q", i, got[i])
		}
	}
}

func TestListsWithoutItemsForASubtaskAreThere(t *testing.T) {
	fs := vfs.NewMem()
	m := lists(t, fs, 0, [][]List{{{Name: "l", Items: items("i", 1), Schema: schema(t, "string")}, {Name: "none", Mode: Union}}})
	_, all, err := m.Restore(fs, op(1), 1, 2, 128)
	if err != nil || len(all) != 2 || all[0].Name != "l" || all[0].Schema.String() != "string" || len(all[0].Items) != 0 || all[1].Mode != Union {
		t.Errorf("got %+v, %v", all, err)
	}
}

func TestLongListsAreReadInPieces(t *testing.T) {
	fs := vfs.NewMem()
	var long List
	long.Name = "long"
	for i := range 1000 {
		item := make([]byte, 1000+i%7)
		copy(item, fmt.Sprint(i, "."))
		long.Items = append(long.Items, item)
	}
	m := lists(t, fs, 0, [][]List{{long, {Name: "other", Items: items("o", 2)}}, {long}})
	want := append(slices.Clone(long.Items), long.Items...)
	for _, parallelism := range []int{1, 3, 7} {
		var got [][]byte
		for subtask := range parallelism {
			_, all, err := m.Restore(fs, op(1), subtask, parallelism, 128)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, all[0].Items...)
		}
		if !slices.EqualFunc(got, want, slices.Equal[[]byte]) {
			t.Errorf("at parallelism %d: %d items", parallelism, len(got))
		}
	}
}

func TestSubtasksMustAgreeOnTheirLists(t *testing.T) {
	fs := vfs.NewMem()
	for _, other := range []List{{Name: "l", Mode: Union}, {Name: "l", Schema: schema(t, "bool")}} {
		m := lists(t, fs, 0, [][]List{{{Name: "l"}}, {other}})
		if _, _, err := m.Restore(fs, op(1), 0, 2, 128); err == nil {
			t.Errorf("%+v was accepted", other)
		}
	}
}
