package streaming_test

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/flott-dev/flott/checkpoint"
	"github.com/flott-dev/flott/conformance"
	"github.com/flott-dev/flott/internal/control"
	"github.com/flott-dev/flott/internal/keygroup"
	"github.com/flott-dev/flott/internal/vfs"
	"github.com/flott-dev/flott/serde"
	"github.com/flott-dev/flott/statebackend"
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

// snapshot writes the states as the lists of an operator.
func (r savedStates) snapshot(t *testing.T, disk vfs.FS) *checkpoint.Manifest {
	t.Helper()
	modes := map[string]checkpoint.Mode{"split": checkpoint.Split, "union": checkpoint.Union, "broadcast": checkpoint.Broadcast}
	var subtasks []checkpoint.State
	for _, states := range r {
		var of checkpoint.State
		for _, name := range slices.Sorted(maps.Keys(states)) {
			l := checkpoint.List{Name: name, Mode: word(t, modes, states[name].Mode)}
			for _, item := range states[name].Items {
				l.Items = append(l.Items, []byte(item))
			}
			of.Lists = append(of.Lists, l)
		}
		subtasks = append(subtasks, of)
	}
	return snapshotOf(t, disk, savedOperator{"op", 128, subtasks})
}

// redistribute gives the items of each new subtask by state, and how many pieces there are of each state: stretches of one
// old subtask's items, whose names tell whose they were.
func (r savedStates) redistribute(t *testing.T, parallelism int) (items []map[string][]string, pieces map[string]int) {
	t.Helper()
	disk := vfs.NewMem()
	m := r.snapshot(t, disk)
	pieces = map[string]int{}
	for n := range parallelism {
		_, lists, err := m.Restore(disk, rescaleID("op"), n, parallelism, 128)
		if err != nil {
			t.Fatal(err)
		}
		of := map[string][]string{}
		for _, l := range lists {
			sources := map[string]bool{}
			for _, item := range l.Items {
				of[l.Name] = append(of[l.Name], string(item))
				source, _, _ := strings.Cut(string(item), "#")
				sources[source] = true
			}
			pieces[l.Name] += len(sources)
		}
		items = append(items, of)
	}
	return items, pieces
}

// savedOperator is an operator of a snapshot, its state by old subtask.
type savedOperator struct {
	uid            string
	maxParallelism int
	subtasks       []checkpoint.State
}

func rescaleID(uid string) string { return fmt.Sprintf("%032x", uid) }

// snapshotOf writes operators.
func snapshotOf(t *testing.T, disk vfs.FS, operators ...savedOperator) *checkpoint.Manifest {
	t.Helper()
	m := &checkpoint.Manifest{Folder: "/s"}
	if err := checkpoint.BeginSnapshot(disk, m.Folder); err != nil {
		t.Fatal(err)
	}
	for _, o := range operators {
		saved := checkpoint.Operator{ID: rescaleID(o.uid), UID: o.uid, Name: o.uid, Parallelism: len(o.subtasks), MaxParallelism: o.maxParallelism}
		for i := range o.subtasks {
			first, last := keygroup.RangeOf(o.maxParallelism, len(o.subtasks), i)
			part, err := (&checkpoint.Writer{FS: disk, Folder: m.Folder}).Write(t.Context(), saved.ID, i, first, last, &o.subtasks[i])
			if err != nil {
				t.Fatal(err)
			}
			saved.Parts = append(saved.Parts, part)
		}
		m.Operators = append(m.Operators, saved)
	}
	return m
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
	var names [9][9][9]string // of items: they are made once
	for s := range names {
		for i := range names[s] {
			for k := range names[s][i] {
				names[s][i][k] = fmt.Sprintf("state%d@%d#%d", s, i, k)
			}
		}
	}
	rng := rand.New(rand.NewPCG(42, 0))
	for range 3000 {
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

// keyedOperator is the state of an operator with a row in each key group and a list of two items a subtask.
func keyedOperator(t *testing.T, uid string, maxParallelism, parallelism int) savedOperator {
	t.Helper()
	number, err := serde.Of[int64]()
	if err != nil {
		t.Fatal(err)
	}
	o := savedOperator{uid: uid, maxParallelism: maxParallelism}
	for i := range parallelism {
		first, last := keygroup.RangeOf(maxParallelism, parallelism, i)
		rows := func(yield func(*statebackend.Row, error) bool) {
			for g := first; g <= last; g++ {
				n := binary.LittleEndian.AppendUint64(nil, uint64(g))
				if !yield(&statebackend.Row{Group: g, Key: n, Value: n}, nil) {
					return
				}
			}
		}
		info := statebackend.TableInfo{Name: "table", Kind: "value", Key: number.Schema(), Value: number.Schema()}
		o.subtasks = append(o.subtasks, checkpoint.State{
			Tables: []statebackend.FrozenTable{{TableInfo: info, Rows: rows}},
			Lists:  []checkpoint.List{{Name: "list", Items: [][]byte{{1}, {2}}}},
		})
	}
	return o
}

// held counts what all subtasks of an operator get: key groups with rows, and items.
func held(t *testing.T, disk vfs.FS, m *checkpoint.Manifest, uid string, parallelism int) (groups, items int) {
	t.Helper()
	seen := map[int]bool{}
	for n := range parallelism {
		restored, lists, err := m.Restore(disk, rescaleID(uid), n, parallelism, 128)
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range lists {
			items += len(l.Items)
		}
		if restored == nil {
			continue
		}
		table, _ := restored.Table("table")
		for row, err := range table.Rows {
			if err != nil {
				t.Fatal(err)
			}
			if seen[row.Group] {
				t.Errorf("%s: key group %d is in two subtasks", uid, row.Group)
			}
			seen[row.Group] = true
		}
	}
	return len(seen), items
}

func ruleMaxParallelismChangeRejected(t *testing.T) {
	disk := vfs.NewMem()
	m := snapshotOf(t, disk, keyedOperator(t, "one", 42, 3), keyedOperator(t, "two", 13, 2))
	for _, c := range []struct {
		uid                             string
		saved, parallelism, programSays int
	}{{"one", 42, 3, 20}, {"two", 13, 2, 42}} {
		_, _, err := m.Restore(disk, rescaleID(c.uid), 0, c.parallelism, c.programSays)
		if err == nil {
			t.Fatal("a change of max parallelism is taken")
		}
		for _, want := range []string{fmt.Sprintf("max parallelism of %d, the program says %d", c.saved, c.programSays), fmt.Sprintf("set it to %d", c.saved)} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("the error does not say %q: %v", want, err)
			}
		}
		if _, _, err = m.Restore(disk, rescaleID(c.uid), 0, c.parallelism, c.saved); err != nil {
			t.Error(err)
		}
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
	disk := vfs.NewMem()
	m := snapshotOf(t, disk, keyedOperator(t, "old", 128, 2))
	for _, allow := range []bool{false, true} {
		if dropped, err := m.Match([]string{rescaleID("old"), rescaleID("new")}, allow); err != nil || len(dropped) != 0 {
			t.Fatalf("dropped %v, %v", dropped, err)
		}
	}
	if groups, items := held(t, disk, m, "old", 2); groups != 128 || items != 4 {
		t.Errorf("the old operator gets %d key groups and %d items", groups, items)
	}
	if groups, items := held(t, disk, m, "new", 3); groups+items != 0 {
		t.Errorf("the new operator gets %d key groups and %d items", groups, items)
	}
}

func ruleUnmatchedStateRejected(t *testing.T) {
	m := snapshotOf(t, vfs.NewMem(), keyedOperator(t, "gone", 128, 2), keyedOperator(t, "here", 128, 2))
	_, err := m.Match([]string{rescaleID("here")}, false)
	if err == nil || !strings.Contains(err.Error(), "gone") || strings.Contains(err.Error(), `"here"`) {
		t.Errorf("got %v", err)
	}
}

func ruleUnmatchedStateAllowed(t *testing.T) {
	m := snapshotOf(t, vfs.NewMem(), keyedOperator(t, "gone", 128, 2), keyedOperator(t, "here", 128, 2))
	dropped, err := m.Match([]string{rescaleID("here")}, true)
	if err != nil || len(dropped) != 1 || dropped[0].UID != "gone" {
		t.Errorf("dropped %v, %v", dropped, err)
	}
}

// ruleTopologyChange: chains are not the unit of state, so they don't appear.
func ruleTopologyChange(t *testing.T) {
	disk := vfs.NewMem()
	var operators []savedOperator
	for _, uid := range []string{"op1", "op2", "op3", "op4"} {
		operators = append(operators, keyedOperator(t, uid, 128, 10))
	}
	m := snapshotOf(t, disk, operators...)
	for _, parallelism := range []int{10, 20, 8} {
		var program []string
		for _, uid := range []string{"op5", "op1", "op2", "op3", "op6"} {
			program = append(program, rescaleID(uid))
			wantGroups, wantItems := 128, 20
			if uid == "op5" || uid == "op6" {
				wantGroups, wantItems = 0, 0
			}
			if groups, items := held(t, disk, m, uid, parallelism); groups != wantGroups || items != wantItems {
				t.Errorf("%s at parallelism %d gets %d key groups and %d items", uid, parallelism, groups, items)
			}
		}
		if dropped, err := m.Match(program, true); err != nil || len(dropped) != 1 || dropped[0].UID != "op4" {
			t.Errorf("dropped %v, %v", dropped, err)
		}
	}
}
