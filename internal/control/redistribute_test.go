package control

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/flott-dev/flott/internal/keygroup"
)

// dealt are the items of each new subtask of one state, as "source#index".
func dealt(t *testing.T, old [][]ItemState, parallelism int, state string) [][]string {
	t.Helper()
	out, err := Redistribute(old, parallelism)
	if err != nil {
		t.Fatal(err)
	}
	items := make([][]string, parallelism)
	for n, pieces := range out {
		for _, p := range pieces {
			for i := p.From; p.State == state && i < p.To; i++ {
				items[n] = append(items[n], fmt.Sprintf("%d#%d", p.Source, i))
			}
		}
	}
	return items
}

// Trap B037: every item of a split list has one owner, and the multiset of all is the same.
func TestSplitItemsHaveOneOwner(t *testing.T) {
	for _, c := range []struct{ from, to int }{{4, 4}, {4, 2}, {2, 4}, {4, 3}, {1, 7}, {3, 1}} {
		old := make([][]ItemState, c.from)
		var all []string
		for i := range 10 { // items 1 ... 10, in turn
			source := i % c.from
			if old[source] == nil {
				old[source] = []ItemState{{Name: "list"}}
			}
			all = append(all, fmt.Sprintf("%d#%d", source, old[source][0].Items))
			old[source][0].Items++
		}
		got := slices.Concat(dealt(t, old, c.to, "list")...)
		slices.Sort(got)
		slices.Sort(all)
		if !slices.Equal(got, all) {
			t.Errorf("%d -> %d: %v", c.from, c.to, got)
		}
	}
}

// Trap B037: old subtasks that had finished have no state, and nobody goes without broadcast state for that.
func TestBroadcastStateReachesEverybodyAfterSomeHaveFinished(t *testing.T) {
	old := [][]ItemState{nil, {{Name: "rules", Spread: Broadcast, Items: 3}}, nil, {{Name: "rules", Spread: Broadcast, Items: 3}}}
	for _, parallelism := range []int{1, 3, 4, 9} {
		for n, items := range dealt(t, old, parallelism, "rules") {
			if len(items) != 3 {
				t.Errorf("parallelism %d: subtask %d gets %v", parallelism, n, items)
			}
		}
	}
}

func TestUnionStateGoesToEverybodyAtTheSameParallelism(t *testing.T) {
	old := [][]ItemState{{{Name: "u", Spread: Union, Items: 1}}, nil, {{Name: "u", Spread: Union, Items: 2}}}
	for _, parallelism := range []int{1, 3, 5} {
		for n, items := range dealt(t, old, parallelism, "u") {
			if !slices.Equal(items, []string{"0#0", "2#0", "2#1"}) {
				t.Errorf("parallelism %d: subtask %d gets %v", parallelism, n, items)
			}
		}
	}
}

func TestEmptyStatesAreDealtOut(t *testing.T) {
	old := [][]ItemState{{{Name: "s", Items: 0}, {Name: "b", Spread: Broadcast}}, {{Name: "s", Items: 2}, {Name: "b", Spread: Broadcast}}}
	out, err := Redistribute(old, 3)
	if err != nil {
		t.Fatal(err)
	}
	for n, pieces := range out {
		i := slices.IndexFunc(pieces, func(p Piece) bool { return p.State == "b" })
		if i < 0 {
			t.Errorf("subtask %d does not know that there is broadcast state: %v", n, pieces)
		}
	}
}

func TestDamagedOperatorStateIsRefused(t *testing.T) {
	_, err := Redistribute([][]ItemState{{{Name: "x", Items: 1}}, {{Name: "x", Spread: Union, Items: 1}}}, 2)
	if err == nil || !strings.Contains(err.Error(), `"x"`) || !strings.Contains(err.Error(), "split in subtask 0 and union in subtask 1") {
		t.Errorf("got %v", err)
	}
	if _, err := Redistribute(nil, 0); err == nil {
		t.Error("parallelism 0 is taken")
	}
}

// TestKeyGroupsHaveOneReader deals key groups out from any parallelism to any other, and on to a third one without a
// rewrite in between, so that handles overlap subtasks in every way.
func TestKeyGroupsHaveOneReader(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	for range 3000 {
		groups := 1 + rng.IntN(200)
		from, to := 1+rng.IntN(groups), 1+rng.IntN(groups)
		var old []KeyedState
		for s := range from {
			var r keygroup.Range
			r.First, r.Last = keygroup.RangeOf(groups, from, s)
			cut := r.First + rng.IntN(r.Size())
			old = append(old, KeyedState{Source: s, Handle: 0, Groups: keygroup.Range{First: r.First, Last: cut}})
			if cut < r.Last {
				old = append(old, KeyedState{Source: s, Handle: 1, Groups: keygroup.Range{First: cut + 1, Last: r.Last}})
			}
		}
		out, err := RedistributeKeys(old, groups, to)
		if err != nil {
			t.Fatal(err)
		}
		read := make([]int, groups)
		for n, pieces := range out {
			for _, p := range pieces {
				of := old[slices.IndexFunc(old, func(s KeyedState) bool { return s.Source == p.Source && s.Handle == p.Handle })]
				if both, ok := of.Groups.Intersect(p.Groups); !ok || both != p.Groups {
					t.Fatalf("%d -> %d of %d: %+v is read from %+v", from, to, groups, p, of)
				}
				for g := p.Groups.First; g <= p.Groups.Last; g++ {
					read[g]++
					if keygroup.SubtaskOf(groups, to, g) != n {
						t.Fatalf("%d -> %d of %d: subtask %d reads key group %d", from, to, groups, n, g)
					}
				}
			}
		}
		if slices.ContainsFunc(read, func(n int) bool { return n != 1 }) {
			t.Fatalf("%d -> %d of %d: readers by key group: %v", from, to, groups, read)
		}
	}
}

func TestKeyGroupsBeyondTheMaximumAreRefused(t *testing.T) {
	for _, r := range []keygroup.Range{{First: 0, Last: 128}, {First: -1, Last: 3}, {First: 5, Last: 4}} {
		if _, err := RedistributeKeys([]KeyedState{{Groups: r}}, 128, 2); err == nil {
			t.Errorf("key groups %v of 128 are taken", r)
		}
	}
	if _, err := RedistributeKeys(nil, 2, 3); err == nil {
		t.Error("parallelism 3 is taken for 2 key groups")
	}
}

// Trap B035: operators of one chain have a max parallelism each; what does not fit is named with both numbers.
func TestMaxParallelismOfKeyedStateIsFixed(t *testing.T) {
	keyed := OperatorState{UID: "a", Name: "count", MaxParallelism: 128, Subtasks: make([][]ItemState, 1), Keyed: []KeyedState{{Groups: keygroup.Range{First: 0, Last: 127}}}}
	plain := OperatorState{UID: "b", Name: "source", MaxParallelism: 128, Subtasks: [][]ItemState{{{Name: "offsets", Items: 4}}}}
	target := func(uid string, parallelism, maxParallelism int, set bool) OperatorTarget {
		return OperatorTarget{UID: uid, Name: uid, Parallelism: parallelism, MaxParallelism: maxParallelism, MaxParallelismSet: set}
	}
	for _, c := range []struct {
		a, b OperatorTarget
		err  string
		max  int
	}{
		{target("a", 1, 128, true), target("b", 1, 256, true), "", 128},
		{target("a", 3, 256, false), target("b", 3, 256, false), "", 128},
		{target("a", 128, 256, false), target("b", 200, 256, false), "", 128},
		{target("a", 3, 256, true), target("b", 3, 256, true), "max parallelism 128, the program sets 256", 0},
		{target("a", 129, 256, false), target("b", 1, 128, false), "parallelism is 129: set a parallelism of 128 at most", 0},
	} {
		out, err := Assign([]OperatorState{keyed, plain}, []OperatorTarget{c.a, c.b}, false)
		switch {
		case c.err != "":
			if err == nil || !strings.Contains(err.Error(), c.err) || !strings.Contains(err.Error(), "uid a") {
				t.Errorf("%+v: got %v", c.a, err)
			}
		case err != nil:
			t.Errorf("%+v: %v", c.a, err)
		case out[0].MaxParallelism != c.max || out[1].MaxParallelism != c.b.MaxParallelism:
			t.Errorf("%+v: %+v", c.a, out)
		}
	}
}

func TestNonRestoredStateIsListed(t *testing.T) {
	snapshot := []OperatorState{
		{UID: "a", Name: "one", Coordinated: true},
		{UID: "b", Name: "two", Subtasks: [][]ItemState{{{Name: "list"}}}},
		{UID: "c", Name: "stateless", Subtasks: make([][]ItemState, 4)},
	}
	_, err := Assign(snapshot, nil, false)
	if err == nil || !strings.Contains(err.Error(), "uid a") || !strings.Contains(err.Error(), "uid b") || strings.Contains(err.Error(), "uid c") {
		t.Errorf("got %v", err)
	}
	if _, err := Assign(snapshot, nil, true); err != nil {
		t.Error(err)
	}
}
