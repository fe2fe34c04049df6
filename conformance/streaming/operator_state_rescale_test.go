package streaming_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/flott-dev/flott/conformance"
	"github.com/flott-dev/flott/internal/control"
	"github.com/flott-dev/flott/internal/keygroup"
)

type rescaleCase struct {
	conformance.Head
	Op                string          `json:"op"`
	Mode              string          `json:"mode"`
	OldParallelism    int             `json:"old_parallelism"`
	NewParallelism    int             `json:"new_parallelism"`
	Previous          json.RawMessage `json:"previous"`
	Handles           map[string]int  `json:"expect_handle_count_per_state"`
	ItemsPerReceiving map[string]int  `json:"expect_items_per_receiving_subtask"`
	Expect            [][]string      `json:"expect"`
	SortedCounts      []int           `json:"expect_sorted_item_counts"`
}

// savedStates is operator state with its items' names: by old subtask, then state.
type savedStates []map[string]spreadItems

type spreadItems struct {
	Mode  string   `json:"mode"`
	Items []string `json:"items"`
}

func TestOperatorStateRescaleVectors(t *testing.T) {
	s := conformance.Suite{
		Folder: "streaming", Family: "operator_state_rescale", Rewrite: *rewrite, Rules: rescaleRules(),
		Runners: map[string]conformance.Runner{},
	}
	for op, run := range map[string]func(*testing.T, *rescaleCase){
		"repartition": runRepartition, "repartition_exact": runRepartitionExact, "repartition_counts": runRepartitionCounts,
	} {
		s.Runners[op] = func(t *testing.T, c conformance.Case) {
			var v rescaleCase
			c.Decode(t, &v)
			run(t, &v)
		}
	}
	s.Run(t)
}

// redistribute gives the items of each new subtask by state, and how many pieces there are of each state.
func (r savedStates) redistribute(t *testing.T, parallelism int) (items []map[string][]string, pieces map[string]int) {
	t.Helper()
	spreads := map[string]control.Spread{"split": control.Split, "union": control.Union, "broadcast": control.Broadcast}
	old := make([][]control.ItemState, len(r))
	for i, states := range r {
		for name, s := range states {
			old[i] = append(old[i], control.ItemState{Name: name, Spread: word(t, spreads, s.Mode), Items: len(s.Items)})
		}
	}
	dealt, err := control.Redistribute(old, parallelism)
	if err != nil {
		t.Fatal(err)
	}
	if len(dealt) != parallelism {
		t.Fatalf("state for %d subtasks, want %d", len(dealt), parallelism)
	}
	pieces = map[string]int{}
	for _, of := range dealt {
		m := map[string][]string{}
		for _, p := range of {
			m[p.State] = append(m[p.State], r[p.Source][p.State].Items[p.From:p.To]...)
			pieces[p.State]++
		}
		items = append(items, m)
	}
	return items, pieces
}

func runRepartition(t *testing.T, c *rescaleCase) {
	var previous savedStates
	conformance.Strict(t, c.Previous, &previous)
	if len(previous) != c.OldParallelism {
		t.Fatalf("%d old subtasks, want %d", len(previous), c.OldParallelism)
	}
	items, pieces := previous.redistribute(t, c.NewParallelism)
	equal(t, "pieces by state", conformance.Text(pieces), conformance.Text(c.Handles))
	for state, want := range c.ItemsPerReceiving {
		receivers := 0
		for n, of := range items {
			if got := len(of[state]); got != 0 {
				receivers++
				equal(t, fmt.Sprintf("items of %s in subtask %d", state, n), got, want)
			}
		}
		if receivers == 0 {
			t.Errorf("nobody gets state %s", state)
		}
	}
}

func runRepartitionExact(t *testing.T, c *rescaleCase) {
	var previous [][]string
	conformance.Strict(t, c.Previous, &previous)
	old := make(savedStates, c.OldParallelism)
	for i, items := range previous {
		old[i] = map[string]spreadItems{"s": {c.Mode, items}}
	}
	items, _ := old.redistribute(t, c.NewParallelism)
	for n, want := range c.Expect {
		if !slices.Equal(items[n]["s"], want) {
			t.Errorf("subtask %d gets %q, want %q", n, items[n]["s"], want)
		}
	}
}

func runRepartitionCounts(t *testing.T, c *rescaleCase) {
	var previous []map[string][]string
	conformance.Strict(t, c.Previous, &previous)
	old := make(savedStates, c.OldParallelism)
	for i, states := range previous {
		old[i] = map[string]spreadItems{}
		for name, items := range states {
			old[i][name] = spreadItems{c.Mode, items}
		}
	}
	items, _ := old.redistribute(t, c.NewParallelism)
	got := totals(items)
	slices.Sort(got)
	equal(t, "items by subtask, sorted", fmt.Sprint(got), fmt.Sprint(c.SortedCounts))
}

// totals are the items that each subtask has of all states.
func totals(items []map[string][]string) []int {
	out := make([]int, len(items))
	for n, of := range items {
		for _, s := range of {
			out[n] += len(s)
		}
	}
	return out
}

func rescaleRules() map[string]func(*testing.T) {
	return map[string]func(*testing.T){
		"rule/repartition_invariants":          ruleRepartitionInvariants,
		"rule/max_parallelism_change_rejected": ruleMaxParallelismChangeRejected,
		"rule/restore_needs_checkpoint":        ruleRestoreNeedsCheckpoint,
		"rule/missing_state_is_ok":             ruleMissingStateIsOK,
		"rule/unmatched_state_rejected":        ruleUnmatchedStateRejected,
		"rule/unmatched_state_allowed":         ruleUnmatchedStateAllowed,
		"rule/topology_change":                 ruleTopologyChange,
	}
}

func ruleRepartitionInvariants(t *testing.T) {
	var names [9][9][9]string // of items: they are made once, as there are millions
	for s := range names {
		for i := range names[s] {
			for k := range names[s][i] {
				names[s][i][k] = fmt.Sprintf("state%d@%d#%d", s, i, k)
			}
		}
	}
	rng := rand.New(rand.NewPCG(42, 0))
	for range 10000 {
		oldParallelism, parallelism, states := 1+rng.IntN(9), 1+rng.IntN(9), 1+rng.IntN(9)
		old := make(savedStates, oldParallelism)
		modes := map[string]string{}
		for s := range states {
			name := fmt.Sprintf("state%d", s)
			modes[name] = "split"
			if s == states-1 && states%2 == 0 {
				modes[name] = "broadcast"
			} else if rng.IntN(10) == 0 {
				modes[name] = "union"
			}
			for i := range old {
				if old[i] == nil {
					old[i] = map[string]spreadItems{}
				}
				n := 1 + rng.IntN(9)
				if modes[name] == "broadcast" {
					n = 4
				}
				old[i][name] = spreadItems{modes[name], names[s][i][:n]}
			}
		}
		items, _ := old.redistribute(t, parallelism)
		seen := map[string]int{}
		for _, of := range items {
			for _, list := range of {
				for _, item := range list {
					seen[item]++
				}
			}
		}
		for i := range old {
			for name, s := range old[i] {
				want := map[string]int{"split": 1, "union": parallelism}[s.Mode]
				if s.Mode == "broadcast" {
					want = parallelism / oldParallelism
					if i < parallelism%oldParallelism {
						want++
					}
				}
				for _, item := range s.Items {
					if seen[item] != want {
						t.Fatalf("%d -> %d: item %s of %s state %s is there %d times, want %d", oldParallelism, parallelism, item, s.Mode, name, seen[item], want)
					}
				}
			}
		}
		if n := totals(items); parallelism != oldParallelism && slices.Max(n)-slices.Min(n) > 1 {
			t.Fatalf("%d -> %d: the totals are %v", oldParallelism, parallelism, n)
		}
	}
}

// keyedOperator is the state of an operator with all key groups, in so many subtasks.
func keyedOperator(uid string, maxParallelism, parallelism int) control.OperatorState {
	s := control.OperatorState{UID: uid, Name: uid, MaxParallelism: maxParallelism, Subtasks: make([][]control.ItemState, parallelism)}
	for i := range parallelism {
		first, last := keygroup.RangeOf(maxParallelism, parallelism, i)
		s.Keyed = append(s.Keyed, control.KeyedState{Source: i, Groups: keygroup.Range{First: first, Last: last}})
		s.Subtasks[i] = []control.ItemState{{Name: "list", Items: 2}}
	}
	return s
}

func target(uid string, parallelism int) control.OperatorTarget {
	return control.OperatorTarget{UID: uid, Name: uid, Parallelism: parallelism, MaxParallelism: 128}
}

func ruleMaxParallelismChangeRejected(t *testing.T) {
	snapshot := []control.OperatorState{keyedOperator("one", 42, 3), keyedOperator("two", 13, 2)}
	program := []control.OperatorTarget{
		{UID: "one", Name: "one", Parallelism: 3, MaxParallelism: 20, MaxParallelismSet: true},
		{UID: "two", Name: "two", Parallelism: 2, MaxParallelism: 42, MaxParallelismSet: true},
	}
	_, err := control.Assign(snapshot, program, false)
	if err == nil {
		t.Fatal("a change of max parallelism is taken")
	}
	for _, want := range []string{"max parallelism 42, the program sets 20", "set it to 42", "max parallelism 13, the program sets 42", "set it to 13"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not say %q: %v", want, err)
		}
	}
	for i := range program {
		program[i].MaxParallelismSet = false
	}
	out, err := control.Assign(snapshot, program, false)
	if err != nil || out[0].MaxParallelism != 42 || out[1].MaxParallelism != 13 {
		t.Errorf("a program that sets none gets %+v, %v", out, err)
	}
}

func ruleRestoreNeedsCheckpoint(t *testing.T) {
	for _, required := range []bool{false, true} {
		b := newCheckpointBench(t, control.DefaultCheckpointConfig(), "a")
		restores := actionsOf[control.Restore](b.step(control.Restarting{Attempt: 1, Required: required}))
		if len(restores) != 1 || restores[0].Checkpoint != nil || (restores[0].Err != nil) != required {
			t.Errorf("required %v: %+v", required, restores)
		}
	}
}

func ruleMissingStateIsOK(t *testing.T) {
	snapshot := []control.OperatorState{keyedOperator("old", 128, 2)}
	for _, allow := range []bool{false, true} {
		out, err := control.Assign(snapshot, []control.OperatorTarget{target("old", 2), target("new", 3)}, allow)
		if err != nil {
			t.Fatal(err)
		}
		if !out[0].Restored || len(out[0].Keyed[1]) == 0 || len(out[0].Items[1]) == 0 {
			t.Errorf("the old operator gets %+v", out[0])
		}
		if out[1].Restored || len(out[1].Items) != 3 || len(out[1].Keyed) != 3 || len(out[1].Keyed[0])+len(out[1].Items[0]) != 0 {
			t.Errorf("the new operator gets %+v", out[1])
		}
	}
}

func ruleUnmatchedStateRejected(t *testing.T) {
	snapshot := []control.OperatorState{keyedOperator("gone", 128, 2), keyedOperator("here", 128, 2)}
	_, err := control.Assign(snapshot, []control.OperatorTarget{target("here", 2)}, false)
	if err == nil || !strings.Contains(err.Error(), "gone") || strings.Contains(err.Error(), "here (") {
		t.Errorf("got %v", err)
	}
}

func ruleUnmatchedStateAllowed(t *testing.T) {
	snapshot := []control.OperatorState{keyedOperator("gone", 128, 2), keyedOperator("here", 128, 2)}
	out, err := control.Assign(snapshot, []control.OperatorTarget{target("here", 2)}, true)
	if err != nil || len(out) != 1 || !out[0].Restored {
		t.Errorf("got %+v, %v", out, err)
	}
}

// ruleTopologyChange: chains are not the unit of state, so they don't appear.
func ruleTopologyChange(t *testing.T) {
	var snapshot []control.OperatorState
	for _, uid := range []string{"op1", "op2", "op3", "op4"} {
		snapshot = append(snapshot, keyedOperator(uid, 128, 10))
	}
	for _, parallelism := range []int{10, 20, 8} {
		var program []control.OperatorTarget
		for _, uid := range []string{"op5", "op1", "op2", "op3", "op6"} {
			program = append(program, target(uid, parallelism))
		}
		out, err := control.Assign(snapshot, program, true) // op4 is gone
		if err != nil {
			t.Fatal(err)
		}
		restored := map[string]bool{}
		for _, a := range out {
			restored[a.UID] = a.Restored
			if !a.Restored {
				continue
			}
			groups, items := 0, 0
			for n := range parallelism {
				for _, p := range a.Keyed[n] {
					groups += p.Groups.Size()
				}
				for _, p := range a.Items[n] {
					items += p.To - p.From
				}
			}
			if groups != 128 || items != 20 {
				t.Errorf("parallelism %d: %s gets %d key groups and %d items back, want 128 and 20", parallelism, a.UID, groups, items)
			}
		}
		want := map[string]bool{"op1": true, "op2": true, "op3": true, "op5": false, "op6": false}
		if !maps.Equal(restored, want) {
			t.Errorf("parallelism %d: restored %v, want %v", parallelism, restored, want)
		}
	}
}
