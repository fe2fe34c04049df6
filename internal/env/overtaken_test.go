package env

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flott-dev/flott/internal/graph"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/internal/operator/element"
)

// While a task waits for a checkpoint to commit what it has, those beside it learn of checkpoints before the barriers come
// to them. Where barriers need longer than the interval, each checkpoint is so given up for the next: yet some are completed,
// and what waits for them is committed while the job runs.
func TestCheckpointsAreCompletedWhereBarriersNeedLongerThanTheInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := kept(1)
		e.Settings.Checkpoints.MaxConcurrent = 3
		v := &vault{committed: map[[2]int64][]int64{}}
		var given, committed int
		typ := typeOf[int64](t)
		end := func(name string, to committer, from *graph.Node) {
			add(e, graph.Sink, name, nil, func() operator.Operator {
				return &teller{drain: drain{b: &basin{ends: make([]int, 16)}, typ: typ}, to: to, fuse: &mine{}}
			}, graph.Edge{From: from})
		}
		quick := add(e, graph.Source, "quick", typ, func() operator.Operator { return &tap{out: operator.NewOutput(typ), limit: 5} })
		end("ends early", v, quick)
		long := add(e, graph.Source, "long", typ, func() operator.Operator { return &tap{out: operator.NewOutput(typ), limit: 400} })
		apart := func() *graph.Partitioner { return &graph.Partitioner{Strategy: graph.Rebalance} }
		slow := add(e, graph.Operator, "slow", typ, func() operator.Operator {
			return element.TryMap(typ, typ, func(_ context.Context, x int64) (int64, error) {
				time.Sleep(3 * time.Millisecond)
				if given++; given == 300 {
					committed = len(v.all())
				}
				return x, nil
			})
		}, graph.Edge{From: quick, Partitioner: apart()}, graph.Edge{From: long, Partitioner: apart()})
		end("ends late", &vault{committed: map[[2]int64][]int64{}}, slow)
		x := start(t, e)
		wait(t, x)
		overtaken := x.Checkpoints().Counts.Failed
		if committed != 5 || overtaken == 0 {
			t.Errorf("%d elements of 5 were committed while the job ran; %d checkpoints were overtaken", committed, overtaken)
		}
	})
}

// The history tells how long a barrier needed to come to a task: behind a slow one it waits in line.
func TestBarriersThatWaitInLineAreSeenInTheHistory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := kept(1)
		e.Settings.Checkpoints.History = 1000
		typ := typeOf[int64](t)
		long := add(e, graph.Source, "long", typ, func() operator.Operator { return &tap{out: operator.NewOutput(typ), limit: 100} })
		add(e, graph.Operator, "slow", typ, func() operator.Operator {
			return element.TryMap(typ, typ, func(_ context.Context, x int64) (int64, error) {
				time.Sleep(3 * time.Millisecond)
				return x, nil
			})
		}, graph.Edge{From: long, Partitioner: &graph.Partitioner{Strategy: graph.Rebalance}})
		x := start(t, e)
		wait(t, x)
		longest := map[string]time.Duration{}
		for _, c := range x.Checkpoints().History {
			for _, v := range c.Vertices {
				longest[v.Name] = max(longest[v.Name], v.Subtasks[0].StartDelay)
			}
		}
		if longest["long"] > time.Millisecond || longest["slow"] < 5*time.Millisecond {
			t.Errorf("the longest delays are %v", longest)
		}
	})
}
