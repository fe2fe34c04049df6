package streaming_test

import (
	"slices"
	"testing"

	"github.com/flott-dev/flott/conformance"
	"github.com/flott-dev/flott/flotttest"
	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/state"
	"github.com/flott-dev/flott/stream"
)

type restoreChainCase struct {
	conformance.Head
	Kind         string         `json:"kind"`
	Checkpointed []chainedState `json:"checkpointed"`
	Restarted    []string       `json:"restarted"`
	IsRestored   []string       `json:"expect_is_restored"`
}

// chainedState is what an operator of the chain has.
type chainedState struct {
	ID    string `json:"id"`
	State string `json:"state"`
}

// restoring notes whether it is restored, and has as many items of operator state as it is told.
type restoring struct{}

func newRestoring(id string, items int, declares bool, restored *[]string) func(*process.Runtime) restoring {
	return func(rt *process.Runtime) restoring {
		if rt.IsRestored() {
			*restored = append(*restored, id)
		}
		if declares {
			l := rt.OperatorList(state.NewOperatorList[int64]("counter", state.Split))
			for i := l.Len(); i < items; i++ {
				l.Add(int64(i))
			}
		}
		return restoring{}
	}
}

func (restoring) ProcessElement(_ *process.Context, x int64, out *process.Collector[int64]) error {
	out.Collect(x)
	return nil
}

// runRestoreChain restores a chain of which each operator had a share for every subtask, or, with an empty share, too few.
func runRestoreChain(t *testing.T, c conformance.Case) {
	var v restoreChainCase
	c.Decode(t, &v)
	scaleUp := slices.ContainsFunc(v.Checkpointed, func(s chainedState) bool { return s.State == "empty_share" })
	var restored []string
	chain := func(ids []string, of func(id string) chainedState) func(in *stream.Stream[int64]) *stream.Stream[int64] {
		return func(in *stream.Stream[int64]) *stream.Stream[int64] {
			for _, id := range ids {
				items := map[string]int{"counter": 2, "empty_share": 1, "none": 0}[of(id).State]
				in = in.Process(newRestoring(id, items, of(id).State != "none", &restored)).UID(id)
			}
			return in
		}
	}
	var ids []string
	for _, s := range v.Checkpointed {
		ids = append(ids, s.ID)
	}
	old := flotttest.NewHarness(t, chain(ids, func(id string) chainedState {
		return v.Checkpointed[slices.Index(ids, id)]
	}))
	opts := []flotttest.Option{flotttest.Restore(old.Snapshot())}
	if scaleUp {
		opts = append(opts, flotttest.WithSubtask(1, 2)) // the one item has gone to subtask 0
	}
	old.Close()
	if len(restored) != 0 {
		t.Fatalf("%q are restored before there was a snapshot", restored)
	}
	h := flotttest.NewHarness(t, chain(v.Restarted, func(id string) chainedState {
		if i := slices.Index(ids, id); i >= 0 {
			return v.Checkpointed[i]
		}
		return chainedState{ID: id, State: "counter"}
	}), opts...)
	h.ProcessElement(7, 1)
	h.Expect(t, "7@1")
	if slices.Sort(restored); !slices.Equal(restored, v.IsRestored) {
		t.Errorf("%q are told that they are restored, want %q", restored, v.IsRestored)
	}
}
