package filesink_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flott-dev/flott/connector"
	"github.com/flott-dev/flott/connector/file"
	"github.com/flott-dev/flott/connector/filesink"
	"github.com/flott-dev/flott/internal/vfs"
	"github.com/flott-dev/flott/stream"
)

// onTime lets the writer do what is due.
func (h *hand[T]) onTime(at time.Duration) (next time.Duration) {
	h.t.Helper()
	h.ctx.clock.Set(at.Milliseconds())
	ms, err := h.w.(connector.TimedWriter).OnTime(at.Milliseconds())
	h.ok(err)
	return time.Duration(ms) * time.Millisecond
}

func TestFilesAreClosedByTheClock(t *testing.T) {
	byElement := lines().BucketBy(func(x string) string { return x })
	for name, c := range map[string]struct {
		sink *filesink.Sink[string]
		at   time.Duration // of the look
		want int           // files that are closed by it
	}{
		"old":               {byElement.InactivityInterval(0).RolloverInterval(30 * time.Second), 40 * time.Second, 2},
		"idle":              {byElement.RolloverInterval(0).InactivityInterval(30 * time.Second), 40 * time.Second, 1},
		"neither":           {byElement, 40 * time.Second, 0},
		"no limit":          {byElement.RolloverInterval(0).InactivityInterval(0), time.Hour, 0},
		"policy":            {byElement.RollWhen(func(p filesink.Part) bool { return p.When == filesink.AtTime && p.Bucket == "b" }), time.Minute, 1},
		"not yet to look":   {byElement.RolloverInterval(time.Second), 9 * time.Second, 0},
		"never to look":     {byElement.CheckInterval(0), time.Hour, 0},
		"files of a format": {filesink.NewBulk("out", leaves).BucketBy(func(x string) string { return x }), 2 * time.Minute, 2},
	} {
		disk := vfs.NewFaulty(vfs.NewMem())
		sink := c.sink
		if name != "never to look" {
			sink = sink.CheckInterval(10 * time.Second)
		}
		h := byHand(t, disk, sink)
		if next := h.onTime(0); next != 10*time.Second && name != "never to look" {
			t.Errorf("%s: the first look is at %v", name, next)
		}
		h.write(0, "a", "b")
		h.write(20*time.Second, "a")
		before := disk.Calls(vfs.OpClose)
		h.onTime(c.at)
		if got := disk.Calls(vfs.OpClose) - before; got != c.want {
			t.Errorf("%s: %d files are closed, want %d", name, got, c.want)
		}
	}
}

func TestLooksAtTheClockKeepTheirDistance(t *testing.T) {
	h := byHand(t, vfs.NewMem(), lines())
	for _, c := range []struct{ at, next time.Duration }{
		{time.Second, 61 * time.Second}, {2 * time.Second, 61 * time.Second}, {61 * time.Second, 121 * time.Second}, {200 * time.Second, 260 * time.Second},
	} {
		if next := h.onTime(c.at); next != c.next {
			t.Errorf("after %v: %v, want %v", c.at, next, c.next)
		}
	}
	h = byHand(t, vfs.NewMem(), lines().CheckInterval(0))
	if next := h.onTime(time.Second); next != 0 {
		t.Errorf("it wants to look at %v", next)
	}
}

func TestFailureAtALookFailsTheTask(t *testing.T) {
	disk := vfs.NewFaulty(vfs.NewMem())
	h := byHand(t, disk, lines())
	h.onTime(0)
	h.write(0, "a")
	disk.Fail(vfs.OpSync, 1, syscall.EIO)
	for range 2 { // nothing is well after it
		if _, err := h.w.(connector.TimedWriter).OnTime(3_600_000); err == nil || !strings.Contains(err.Error(), "sync") {
			t.Errorf("got %v", err)
		}
	}
}

func TestPoliciesSeeTheFile(t *testing.T) {
	var asked []filesink.Part
	h := byHand(t, vfs.NewMem(), lines().BucketBy(func(string) string { return "x" }).MaxPartSize(1).RollWhen(func(p filesink.Part) bool {
		asked = append(asked, p)
		return p.Elements == 3
	}))
	h.onTime(0)
	h.write(1*time.Second, "ab")
	h.write(2*time.Second, "cde")
	state := h.checkpoint(3 * time.Second)
	h = h.restore(0, 1, own(state))
	h.onTime(0)
	h.onTime(60 * time.Second)
	h.write(61*time.Second, "f", "g")
	part := func(when filesink.Moment, now, elements, size, changed int64) filesink.Part {
		return filesink.Part{When: when, Now: now, Bucket: "x", Elements: elements, Size: size, Created: 1000, Changed: changed}
	}
	if want := []filesink.Part{
		part(filesink.AtElement, 2000, 1, 3, 1000),
		part(filesink.AtCheckpoint, 3000, 2, 7, 2000),
		part(filesink.AtTime, 60_000, 2, 7, 2000),
		part(filesink.AtElement, 61_000, 2, 7, 2000),
		part(filesink.AtElement, 61_000, 3, 9, 61_000),
	}; !slices.Equal(asked, want) {
		t.Errorf("got  %v\nwant %v", asked, want)
	}
	if got := fmt.Sprint(filesink.AtElement, filesink.AtTime, filesink.AtCheckpoint); got != "element time checkpoint" {
		t.Error(got)
	}
}

func TestPoliciesDecide(t *testing.T) {
	for _, c := range map[string]struct {
		sink   *filesink.Sink[string]
		policy func(p filesink.Part) bool
		want   []string
	}{
		"by number":      {lines(), func(p filesink.Part) bool { return p.Elements >= 2 }, []string{"part-0-0: a b", "part-0-1: c d", "part-0-2: e"}},
		"at checkpoints": {lines(), func(p filesink.Part) bool { return p.When == filesink.AtCheckpoint }, []string{"part-0-0: a b c d", "part-0-1: e"}},
		"never":          {lines().MaxPartSize(1).RolloverInterval(1), func(filesink.Part) bool { return false }, []string{"part-0-0: a b c d e"}},
		"forced":         {lines().RollOnCheckpoint(), func(filesink.Part) bool { return false }, []string{"part-0-0: a b c d", "part-0-1: e"}},
		"of a format": {
			bulk().PartSuffix(""), func(p filesink.Part) bool { return p.Elements >= 3 },
			[]string{"part-0-0: head a b c foot 3", "part-0-1: head d foot 1", "part-0-2: head e foot 1"},
		},
	} {
		m := vfs.NewMem()
		h := byHand(t, m, c.sink.RolloverInterval(0).InactivityInterval(0).RollWhen(c.policy))
		h.ok(h.w.(connector.RunWriter[string]).WriteRun([]string{"a", "b", "c", "d"}, nil))
		h.checkpoint(0)
		h.write(0, "e")
		cs, _ := h.prepare(0, true)
		h.ok(h.commit(cs))
		want(t, visible(t, m), c.want...)
	}
}

// closing counts the files that are closed.
type closing struct {
	vfs.FS
	closed *atomic.Int64
}

func (c closing) Create(name string, how vfs.Mode) (vfs.Writer, error) {
	w, err := c.FS.Create(name, how)
	return closingWriter{w, c.closed}, err
}

type closingWriter struct {
	vfs.Writer
	closed *atomic.Int64
}

func (w closingWriter) Close() error {
	w.closed.Add(1)
	return w.Writer.Close()
}

// In a job, idle files are closed although neither an element nor a checkpoint comes.
func TestJobClosesIdleFilesByTheClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := vfs.NewMem()
		var closed atomic.Int64
		env := stream.NewEnv().SetParallelism(1).EnableCheckpointing(time.Hour)
		env.FromFunc("one by one", func(_ context.Context, out *stream.SourceContext[string]) error {
			out.Collect("a")
			for i, n := range []int64{0, 1} {
				time.Sleep(45 * time.Second)
				if got := closed.Load(); got != n {
					t.Errorf("after %d times 45 s %d files are closed, want %d", i+1, got, n)
				}
			}
			out.Collect("b")
			return nil
		}).CommitTo(filesink.New("out", file.TextEncoding[string]("\n")).NoBuckets().CheckInterval(20*time.Second).On(closing{m, &closed}, nil))
		if _, err := env.Execute(context.Background(), "idle"); err != nil {
			t.Fatal(err)
		}
		want(t, visible(t, m), "part-0-0: a", "part-0-1: b")
	})
}
