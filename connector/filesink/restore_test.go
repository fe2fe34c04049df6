package filesink_test

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flott-dev/flott/connector"
	"github.com/flott-dev/flott/connector/file/filetest"
	"github.com/flott-dev/flott/connector/filesink"
	"github.com/flott-dev/flott/internal/vfs"
)

func TestFrozenWriterThatWakesUpChangesNothing(t *testing.T) {
	m := vfs.NewMem()
	frozen := byHand(t, m, lines())
	frozen.write(0, "a")
	state := frozen.checkpoint(0)
	next := frozen.restore(0, 1, own(state))
	next.write(0, "b")
	frozen.write(0, "B") // it does not know
	cs, _ := frozen.prepare(0, false)
	frozen.write(0, "BB", strings.Repeat("B", 200_000))
	if len(cs) > 0 {
		t.Fatalf("prepared %v", cs)
	}
	next.write(0, "c")
	h := next
	cs, _ = h.prepare(0, true)
	h.ok(h.commit(cs))
	h.ok(h.w.Close())
	_ = frozen.w.Close()
	want(t, visible(t, m), "part-0-0: a b c")
	if _, _, hidden := contents(t, m, "out"); len(hidden) > 0 {
		t.Errorf("left over: %q", hidden)
	}
}

func TestSnapshotIsRestoredMoreThanOnce(t *testing.T) {
	m := vfs.NewMem()
	h := byHand(t, m, lines())
	h.write(0, "a")
	state := h.checkpoint(0)
	h.write(0, "x")
	for range 3 {
		h.w.Close()
		h = h.restore(0, 1, own(state))
		h.write(0, "b")
		h.ok(h.w.Flush(false))
	}
	cs, _ := h.prepare(0, true)
	h.ok(h.commit(cs))
	want(t, visible(t, m), "part-0-0: a b")
}

func TestSnapshotWhoseFileIsGoneIsRefused(t *testing.T) {
	m := vfs.NewMem()
	h := byHand(t, m, lines())
	h.write(0, "abc")
	state := h.checkpoint(0)
	restore := func() error {
		_, err := h.sink.RestoreWriter(h.ctx, 1, []connector.WriterState{own(state)})
		return err
	}
	h.ok(m.Truncate("out/.part-0-0.inprogress.id1", 3))
	if err := restore(); err == nil || !strings.Contains(err.Error(), "out/.part-0-0.inprogress.id1") || !strings.Contains(err.Error(), "3 bytes, not 4") {
		t.Errorf("cut: %v", err)
	}
	if _, _, hidden := contents(t, m, "out"); len(hidden) != 1 {
		t.Errorf("after it: %q", hidden)
	}
	h.ok(m.Remove("out/.part-0-0.inprogress.id1"))
	if err := restore(); err == nil || !strings.Contains(err.Error(), "neither it nor part-0-0") {
		t.Errorf("gone: %v", err)
	}
	h.ok(vfs.WriteFile(m, "out/part-0-0", []byte("abc")))
	if err := restore(); err == nil || !strings.Contains(err.Error(), "has 3 bytes, not 4") {
		t.Errorf("visible, but shorter: %v", err)
	}
	h.ok(vfs.WriteFile(m, "out/part-0-0", []byte("abc\nd\n"))) // a job went on and came to its end
	if err := restore(); err != nil || h.ctx.Counts["partFilesVisibleBefore"] != 1 {
		t.Errorf("visible: %v, %v", err, h.ctx.Counts)
	}
	if _, err := h.sink.RestoreWriter(h.ctx, 1, []connector.WriterState{own([]byte{9})}); err == nil || !strings.Contains(err.Error(), "subtask 0") {
		t.Errorf("no state: %v", err)
	}
}

func TestRescaledWritersShareOutTheFiles(t *testing.T) {
	m := vfs.NewMem()
	h := byHand(t, m, lines())
	var states []connector.WriterState
	for i := range 3 {
		one := *h
		one.ctx = &writerContext{filetest.WriterContext{Index: i, Number: 3}, h.ctx.clock}
		var err error
		one.w, err = h.sink.Writer(one.ctx)
		h.ok(err)
		one.write(0, fmt.Sprint("a", i))
		states = append(states, connector.WriterState{Subtask: i, State: one.checkpoint(0)})
	}
	// One goes on with the files of three, and can write one of them only.
	alone := h.restore(0, 1, mine(states, 0, 1)...)
	alone.write(0, "b")
	states = []connector.WriterState{{State: alone.checkpoint(0)}}
	want(t, visible(t, m), "part-1-0: a1", "part-2-0: a2")
	// Names of before are not used again, whoever had them.
	var writers []*hand[string]
	for i := range 3 {
		writers = append(writers, h.restore(i, 3, mine(states, i, 3)...))
	}
	for i, w := range writers {
		w.write(0, fmt.Sprint("c", i))
		cs, _ := w.prepare(0, true)
		h.ok(w.commit(cs))
	}
	want(t, visible(t, m), "part-0-0: a0 b c0", "part-1-0: a1", "part-1-1: c1", "part-2-0: a2", "part-2-1: c2")
	if _, _, hidden := contents(t, m, "out"); len(hidden) > 0 {
		t.Errorf("left over: %q", hidden)
	}
}

func mine(states []connector.WriterState, subtask, parallelism int) []connector.WriterState {
	states = slices.Clone(states)
	for i := range states {
		states[i].Mine = states[i].Subtask%parallelism == subtask
	}
	return states
}

func TestFreshJobLeavesAloneWhatItFinds(t *testing.T) {
	m := vfs.NewMem()
	h := byHand(t, m, lines())
	h.ok(m.MkdirAll("out"))
	for _, name := range []string{"part-0-4", "part-1-90", ".part-0-6.inprogress.x", ".part-0-99", "part-0-x"} {
		h.ok(vfs.WriteFile(m, "out/"+name, []byte("old\n")))
	}
	h.write(0, "a")
	cs, _ := h.prepare(0, true)
	h.ok(h.commit(cs))
	want(t, visible(t, m), "part-0-4: old", "part-0-7: a", "part-0-x: old", "part-1-90: old")
	if _, _, hidden := contents(t, m, "out"); len(hidden) != 2 {
		t.Errorf("hidden: %q", hidden)
	}
}

func TestRestoredJobRemovesOnlyWhatItsSnapshotDoesNotCover(t *testing.T) {
	for _, keep := range []bool{false, true} {
		m := vfs.NewMem()
		sink := lines()
		if keep {
			sink = sink.KeepLeftovers()
		}
		h := byHand(t, m, sink)
		h.write(0, "a")
		_, state := h.prepare(0, false)
		for _, name := range []string{
			".part-0-1.inprogress.x", ".part-0-0.inprogress.copy", // younger, and a copy that came to nothing
			".part-1-1.inprogress.x", ".part-1-0.inprogress.x", // of a subtask whose state was lost: the older one may be covered
			".part-0-1.txt.inprogress.x", ".other-0-1.inprogress.x", ".part-0-1-2.inprogress.x", // of others
		} {
			h.ok(vfs.WriteFile(m, "out/"+name, []byte("old\n")))
		}
		h.restore(0, 1, own(state))
		_, _, hidden := contents(t, m, "out")
		gone := 3
		if keep {
			gone = 0
		}
		if len(hidden) != 9-gone || slices.Contains(hidden, "out/.part-0-1.inprogress.x") == !keep {
			t.Errorf("keep %v: %q", keep, hidden)
		}
	}
}

func TestTaskThatFailsRemovesWhatNoSnapshotKnows(t *testing.T) {
	m := vfs.NewMem()
	h := byHand(t, m, lines().MaxPartSize(1))
	h.write(0, "a", "b")
	h.ok(h.w.Close())
	if _, _, hidden := contents(t, m, "out"); len(hidden) > 0 {
		t.Errorf("left over: %q", hidden)
	}
	if err := h.w.Write("c", connector.ElementContext{}); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
	h = byHand(t, m, lines().MaxPartSize(1))
	h.write(0, "a")
	h.prepare(0, false)
	h.write(0, "b", "c")
	h.ok(h.w.Close())
	if _, _, hidden := contents(t, m, "out"); len(hidden) != 1 {
		t.Errorf("what a snapshot knows: %q", hidden)
	}
}

func TestChangedSettingsGoOnWithOldFiles(t *testing.T) {
	m := vfs.NewMem()
	h := byHand(t, m, lines())
	h.write(0, "a")
	state := h.checkpoint(0)
	h.sink = lines().Compress(filesink.Gzip).PartPrefix("log").PartSuffix(".txt").On(m, func() string { return "later" })
	h = h.restore(0, 1, own(state))
	h.write(0, "b")
	cs, _ := h.prepare(0, true)
	h.ok(h.commit(cs))
	got, files, hidden := contents(t, m, "out")
	if slices.Sort(got); !slices.Equal(got, []string{"a", "b"}) || !slices.Equal(files, []string{"out/log-0-1.txt.gz", "out/part-0-0"}) || len(hidden) > 0 {
		t.Errorf("%q in %q, left over: %q", got, files, hidden)
	}
}

func TestFilesGrowOldAcrossRestores(t *testing.T) {
	for name, sink := range map[string]*filesink.Sink[string]{
		"age":        lines().InactivityInterval(0),
		"inactivity": lines().RolloverInterval(0),
	} {
		m := vfs.NewMem()
		h := byHand(t, m, sink)
		h.write(time.Hour, "a")
		h = h.restore(0, 1, own(h.checkpoint(time.Hour+30*time.Second)))
		h.checkpoint(time.Hour + 59*time.Second)
		want(t, visible(t, m))
		h.checkpoint(time.Hour + 60*time.Second)
		if got := visible(t, m); len(got) != 1 {
			t.Errorf("%s: %q", name, got)
		}
	}
}
