package main

import (
	"context"
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/state"
	"github.com/flott-dev/flott/stream"
	"github.com/flott-dev/flott/watermark"
)

// tally counts by key and keeps a timer.
type tally struct {
	count *state.Value[int64]
	tags  *state.Map[string, bool]
}

func newTally(rt *process.Runtime) *tally {
	return &tally{count: state.NewValue[int64](rt, "count"), tags: state.NewMap[string, bool](rt, "tags")}
}

func (f *tally) ProcessElement(ctx *process.KeyedContext[int64], x int64, out *process.Collector[int64]) error {
	f.count.Update(func(n *int64) { *n++ })
	f.tags.Put("seen", true)
	ctx.RegisterEventTimeTimer(time.UnixMilli(math.MaxInt64 / 2))
	out.Collect(x)
	return nil
}

func (f *tally) OnTimer(*process.KeyedContext[int64], process.Timer, *process.Collector[int64]) error {
	return nil
}

// savepointOfJob runs a job up to its thousandth element and stops it with a savepoint.
func savepointOfJob(t *testing.T, dir string) (path, id string) {
	t.Helper()
	env := stream.NewEnv().SetParallelism(2).SetAutoWatermarkInterval(time.Millisecond)
	enough := make(chan struct{})
	seen := 0
	env.FromSequence(0, math.MaxInt64/4).Parallelism(1).UID("numbers").
		AssignTimestampsAndWatermarks(watermark.BoundedOutOfOrderness(0, func(x int64) time.Time { return time.UnixMilli(x) })).Parallelism(1).
		KeyBy(func(x int64) int64 { return x % 10 }).
		Process(newTally).Name("Tally").UID("tally").
		ForEach(func(int64) {
			if seen++; seen == 1000 {
				close(enough)
			}
		}).Parallelism(1)
	job, err := env.ExecuteAsync(t.Context(), "tallying")
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-enough:
	case <-job.Done():
	}
	path, err = job.StopWithSavepoint(context.Background(), dir, false)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := job.Wait(); err != nil {
		t.Fatal(err)
	}
	return path, job.ID()
}

// must runs a command that works.
func must(t *testing.T, args ...string) string {
	t.Helper()
	stdout, stderr, code := call(args...)
	if code != exitOK || stderr != "" {
		t.Fatalf("flott %q: exit %d, %s", args, code, stderr)
	}
	return stdout
}

func decode(t *testing.T, text string, to any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), to); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
}

// What the commands show of a job's savepoint belongs together: what the source has not to emit any more is what was counted.
func TestSavepointOfAJobIsShown(t *testing.T) {
	dir := t.TempDir()
	path, id := savepointOfJob(t, dir)

	var r report
	decode(t, must(t, "savepoint", "inspect", "-json", path), &r)
	if r.JobName != "tallying" || r.JobID != id || r.Kind != "savepoint" || r.FormatVersion != 2 {
		t.Errorf("%+v", r)
	}
	operator := func(uid string) operatorReport {
		i := slices.IndexFunc(r.Operators, func(o operatorReport) bool { return o.UID == uid })
		if i < 0 {
			t.Fatalf("no operator %q: %+v", uid, r.Operators)
		}
		return r.Operators[i]
	}
	numbers, counts := operator("numbers"), operator("tally")
	if len(numbers.Positions) != 1 || len(numbers.Positions[0].Stretches) != 1 {
		t.Fatalf("positions %+v", numbers.Positions)
	}
	emitted := numbers.Positions[0].Stretches[0][0]
	if emitted < 1000 || numbers.Positions[0].Stretches[0][1] != math.MaxInt64/4 {
		t.Errorf("still to emit: %+v", numbers.Positions)
	}
	if counts.Name != "Tally" || counts.Parallelism != 2 || counts.MaxParallelism != 128 {
		t.Errorf("%+v", counts)
	}
	checkTally(t, path, counts, emitted)

	if out := must(t, "savepoint", "verify", path); !strings.Contains(out, "all as written") {
		t.Error(out)
	}
	var found []entry
	decode(t, must(t, "savepoint", "list", "-json", dir), &found)
	if len(found) != 1 || found[0].Folder != path || found[0].Status != "complete" || found[0].JobID != id || found[0].Kind != "savepoint" {
		t.Errorf("%+v", found)
	}
}

func checkTally(t *testing.T, path string, counts operatorReport, emitted int64) {
	t.Helper()
	kinds := map[string]string{}
	for _, s := range counts.States {
		kinds[s.Name] = s.Kind + " " + s.Key + " " + s.MapKey + " " + s.Value
		if s.Entries != 10 {
			t.Errorf("state %q has %d entries, not one for each key", s.Name, s.Entries)
		}
	}
	for name, kind := range map[string]string{"count": "value int64  int64", "tags": "map int64 string bool", "timers/event": "timers int64 int64 "} {
		if kinds[name] != kind {
			t.Errorf("state %q is %q, not %q", name, kinds[name], kind)
		}
	}
	if len(counts.Channels) != 2 {
		t.Errorf("channels %+v", counts.Channels)
	}
	for i, c := range counts.Channels {
		if c.Subtask != i || c.Parallelism != 2 || c.Peer != 0 || c.Peers != 1 || c.Millis >= emitted || c.Idle || c.Behind {
			t.Errorf("channel %+v after %d elements", c, emitted)
		}
	}
	sum, keys := int64(0), map[int64]bool{}
	for line := range strings.Lines(must(t, "savepoint", "dump", path, "-operator", "tally", "-state", "count")) {
		var row struct {
			State      string
			Key, Value int64
		}
		decode(t, line, &row)
		if row.State != "count" || keys[row.Key] {
			t.Errorf("row %s", line)
		}
		keys[row.Key] = true
		sum += row.Value
	}
	if sum != emitted || len(keys) != 10 {
		t.Errorf("%d elements of %d keys were counted and %d emitted", sum, len(keys), emitted)
	}
}
