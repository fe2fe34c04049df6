package flotttest_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/flott-dev/flott/flotttest"
	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/state"
	"github.com/flott-dev/flott/stream"
)

// counting counts per key, hears of checkpoints, and keeps the numbers of those that are complete.
type counting struct {
	n         *state.Value[int64]
	completed *state.OperatorList[int64]
	taken     []int64
}

func newCounting(rt *process.Runtime) *counting {
	return &counting{
		n:         state.NewValue[int64](rt, "n"),
		completed: rt.OperatorList(state.NewOperatorList[int64]("completed", state.Union)),
	}
}

func (c *counting) ProcessElement(ctx *process.KeyedContext[string], x string, out *process.Collector[string]) error {
	c.n.Update(func(n *int64) { *n++ })
	out.Collect(fmt.Sprint(x, c.n.Get(), slices.Collect(c.completed.All()), c.taken))
	ctx.RegisterTimer(process.EventTime, 100)
	return nil
}

func (c *counting) OnTimer(ctx *process.KeyedContext[string], _ process.Timer, out *process.Collector[string]) error {
	out.Collect("timer of " + ctx.Key())
	return nil
}

func (c *counting) SnapshotState(ctx process.SnapshotContext) error {
	c.taken = append(c.taken, ctx.CheckpointID)
	return nil
}

func (c *counting) CheckpointCompleted(id int64) error {
	c.completed.Add(id)
	return nil
}

func countingHarness(t *testing.T, opts ...flotttest.Option) *flotttest.Harness[string, string] {
	t.Helper()
	return flotttest.NewHarness(t, func(in *stream.Stream[string]) *stream.Stream[string] {
		return in.KeyBy(func(x string) string { return x }).Process(newCounting)
	}, opts...)
}

func TestSnapshotIsThatOfItsMoment(t *testing.T) {
	h := countingHarness(t)
	h.ProcessElements(flotttest.At("a", 1), flotttest.At("b", 2))
	first := h.Snapshot()
	h.CompleteCheckpoint(first)
	h.ProcessElement("a", 3)
	h.ProcessWatermark(100)
	second := h.Snapshot()
	h.ProcessElement("a", 4)
	h.Expect(t, "a1 [] []@1", "b1 [] []@2", "a2 [1] [1]@3", "timer of a@100", "timer of b@100", "watermark 100", "a3 [1] [1 2]@4")
	h.Close()

	again := countingHarness(t, flotttest.Restore(first))
	again.ProcessElement("a", 5)
	again.ProcessWatermark(100)
	got := again.Values()
	slices.Sort(got)
	if want := []string{"a2 [] []", "timer of a", "timer of b"}; !slices.Equal(got, want) {
		t.Errorf("the first snapshot gave %q, want %q", got, want)
	}
	if id := again.Snapshot().ID(); id != 2 {
		t.Errorf("the next snapshot has the number %d", id)
	}

	later := countingHarness(t, flotttest.Restore(second))
	later.ProcessElement("a", 6)
	later.ProcessWatermark(100)
	later.Expect(t, "a3 [1] []@6", "timer of a@100", "watermark 100")
}

func TestSubtasksTakeTheirShareOfSnapshots(t *testing.T) {
	var taken []*flotttest.Snapshot
	for i := range 2 {
		h := countingHarness(t, flotttest.WithSubtask(i, 2), flotttest.WithMaxParallelism(8))
		if i == 0 {
			h.ProcessElement("k", 1) // "k" is a key of subtask 0 here, wherever it would be in a job
		}
		h.CompleteCheckpoint(h.Snapshot())
		taken = append(taken, h.Snapshot())
	}
	h := countingHarness(t, flotttest.Restore(taken...), flotttest.WithMaxParallelism(8))
	h.ProcessElement("z", 1)
	if got := h.Values(); len(got) != 1 || got[0] != "z1 [1 1] []" {
		t.Errorf("got %q", got)
	}
}

// failing refuses whatever its name says.
type failing struct {
	what string
	process.NoTimers[string, string]
}

func (f *failing) ProcessElement(*process.KeyedContext[string], string, *process.Collector[string]) error {
	return nil
}

func (f *failing) SnapshotState(process.SnapshotContext) error { return fmt.Errorf("no %s", f.what) }

func TestFailedSnapshotsNameTheOperator(t *testing.T) {
	h := flotttest.NewHarness(t, func(in *stream.Stream[string]) *stream.Stream[string] {
		return in.KeyBy(func(x string) string { return x }).Process(func(*process.Runtime) *failing { return &failing{what: "disk"} }).Name("picky")
	})
	if _, err := h.TrySnapshot(); err == nil || !strings.Contains(err.Error(), `"picky"`) || !strings.Contains(err.Error(), "no disk") {
		t.Errorf("error %v", err)
	}
}

// declaring declares operator state of some names.
func declaring(t *testing.T, names ...string) string {
	t.Helper()
	e := stream.NewEnv()
	e.FromElements("x").Process(func(rt *process.Runtime) *plainEcho {
		for _, name := range names {
			rt.OperatorList(state.NewOperatorList[int64](name, state.Split))
		}
		return &plainEcho{}
	}).Discard()
	_, err := e.Execute(t.Context(), "job")
	return fmt.Sprint(err)
}

type plainEcho struct{}

func (plainEcho) ProcessElement(*process.Context, string, *process.Collector[string]) error {
	return nil
}

func TestNamesOfOperatorStateAreChecked(t *testing.T) {
	for want, names := range map[string][]string{
		"the name is not free":   {"channels"},
		`"a/b": the name is`:     {"a/b"},
		`"n": it is declared tw`: {"n", "n"},
		"<nil>":                  {"n", "m"},
	} {
		if got := declaring(t, names...); !strings.Contains(got, want) {
			t.Errorf("%q: %s", names, got)
		}
	}
}

func ExampleControl_Snapshot() {
	t := &testing.T{}
	count := func(in *stream.Stream[string]) *stream.Stream[string] {
		return in.KeyBy(func(x string) string { return x }).Process(newCounting)
	}
	h := flotttest.NewHarness(t, count)
	h.ProcessElement("a", 1)
	taken := h.Snapshot()

	again := flotttest.NewHarness(t, count, flotttest.Restore(taken))
	again.ProcessElement("a", 2)
	fmt.Println(again.Values())
	// Output: [a2 [] []]
}
