package task

import (
	"slices"
	"testing"

	"github.com/flott-dev/flott/checkpoint"
	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/graph"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/internal/operator/valve"
	"github.com/flott-dev/flott/internal/plan"
)

// oldChannel is a channel of a snapshot: its event time and what was in flight on it.
type oldChannel struct {
	state    valve.Channel
	inFlight []any // of one frame; none: nothing was in flight
	peer     int   // 1: the second channel of the subtask before
}

// After a change of parallelism the channels of an edge begin at the least event time of the old ones, idle or not. It stands
// still until the data in flight is through, and then goes to the least of what the old channels had come to behind their own.
func TestEventTimeAfterARescaleFromAnUnalignedCheckpoint(t *testing.T) {
	at := func(ms int64) valve.Channel { return valve.Channel{Watermark: ms} }
	idle := func(ms int64) valve.Channel { return valve.Channel{Watermark: ms, Idle: true} }
	active := mark(frame.Active)
	for _, c := range []struct {
		name string
		old  []oldChannel
		want []string
	}{
		{"all advance", []oldChannel{
			{at(10), []any{1, watermark(30), 2}, 0},
			{at(20), []any{3, watermark(25), watermark(40)}, 0},
		}, []string{"a watermark 10", "a [1 2]", "a [3]", "a watermark 30"}},
		{"one has nothing in flight", []oldChannel{
			{at(10), []any{1, watermark(30)}, 0},
			{at(20), nil, 0},
		}, []string{"a watermark 10", "a [1]", "a watermark 20"}},
		{"the last one has no new watermark", []oldChannel{
			{at(10), []any{1}, 0},
			{at(20), []any{2, watermark(50)}, 0},
		}, []string{"a watermark 10", "a [1]", "a [2]"}},
		{"a watermark comes again, and falls", []oldChannel{
			{at(10), []any{watermark(30), watermark(5), 1}, 0},
			{at(40), nil, 0},
		}, []string{"a watermark 10", "a [1]", "a watermark 30"}},
		{"two channels of a subtask", []oldChannel{
			{at(10), []any{1, watermark(30)}, 0},
			{at(20), nil, 1},
		}, []string{"a watermark 10", "a [1]", "a watermark 20"}},
		{"all were idle, one comes back where it was", []oldChannel{
			{idle(10), []any{active, 1}, 0},
			{idle(20), nil, 0},
		}, []string{"a watermark 10", "a idle", "a [1]", "a active"}},
		{"the last one becomes idle", []oldChannel{
			{at(10), []any{1, mark(frame.Idle)}, 0},
			{at(20), []any{2, watermark(35)}, 0},
		}, []string{"a watermark 10", "a [1]", "a [2]"}},
		{"one ends", []oldChannel{
			{at(10), []any{1, watermark(frame.MaxWatermark)}, 0},
			{at(20), []any{2, watermark(25)}, 0},
		}, []string{"a watermark 10", "a [1]", "a [2]", "a watermark 25"}},
		{"all become idle", []oldChannel{
			{at(10), []any{1, mark(frame.Idle)}, 0},
			{at(10), []any{2, mark(frame.Idle)}, 0},
		}, []string{"a watermark 10", "a [1]", "a [2]", "a idle"}},
		{"an idle one comes back", []oldChannel{
			{at(10), []any{1, watermark(30)}, 0},
			{idle(20), []any{active, 2, watermark(25)}, 0},
		}, []string{"a watermark 10", "a [1]", "a [2]", "a watermark 25"}},
		{"all were idle, one comes back", []oldChannel{
			{idle(10), []any{active, 1, watermark(30)}, 0},
			{idle(20), nil, 0},
		}, []string{"a watermark 10", "a idle", "a [1]", "a active", "a watermark 20"}},
		{"all were idle and stay so, but get on", []oldChannel{
			{idle(10), []any{active, 1, watermark(30), mark(frame.Idle)}, 0},
			{idle(20), nil, 0},
		}, []string{"a watermark 10", "a idle", "a [1]", "a active", "a watermark 20", "a idle"}},
	} {
		b, _ := overtakers(t, 0, 1)
		b.dep.Subtask = 0
		b.vertex.Inputs[0].Strategy = graph.Rebalance
		restored := &operator.Restored{Lists: snapshotOf(t, b, c.old)}
		runtime := b.dep.Runtime
		b.dep.Runtime = func(n *plan.ChainNode, scope *operator.Scope) *operator.Runtime {
			rt := runtime(n, scope)
			rt.Restored = restored
			return rt
		}
		b.send(0, 9, watermark(1000), mark(frame.End))
		if err := b.run(); err != nil {
			t.Fatal(c.name, err)
		}
		if len(b.log) <= len(c.want) || !slices.Equal(b.log[:len(c.want)], c.want) || b.log[len(c.want)] != "a [9]" && b.log[len(c.want)] != "a active" {
			t.Errorf("%s: got %q, want %q and then the new data", c.name, b.log, c.want)
		}
	}
}

// snapshotOf is the task's own lists in a snapshot of so many old subtasks with one channel each.
func snapshotOf(t *testing.T, b *bench, old []oldChannel) []checkpoint.List {
	t.Helper()
	channels, inFlightItems := checkpoint.List{Name: channelList}, checkpoint.List{Name: inFlightList}
	for i, o := range old {
		key := channelState{subtask: i - o.peer, parallelism: len(old), peer: o.peer, peers: 2, state: o.state}
		channels.Items = append(channels.Items, key.encode())
		if o.inFlight == nil {
			continue
		}
		x := inFlight{channel: key, frame: b.frame(o.inFlight...)}
		item, err := x.encode()
		if err != nil {
			t.Fatal(err)
		}
		inFlightItems.Items = append(inFlightItems.Items, item)
	}
	return []checkpoint.List{channels, inFlightItems}
}
