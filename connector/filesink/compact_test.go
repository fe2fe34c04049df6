package filesink_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/flott-dev/flott/connector"
	"github.com/flott-dev/flott/connector/file"
	"github.com/flott-dev/flott/connector/file/filetest"
	"github.com/flott-dev/flott/connector/filesink"
	"github.com/flott-dev/flott/internal/vfs"
)

// rolled closes all files at checkpoints.
func rolled() *filesink.Sink[string] { return lines().RollOnCheckpoint() }

// feed writes elements, each followed by a checkpoint, and returns the last state.
func (h *hand[T]) feed(xs ...T) (state []byte) {
	h.t.Helper()
	for _, x := range xs {
		h.write(0, x)
		state = h.checkpoint(0)
	}
	return state
}

// end ends the input.
func (h *hand[T]) end() {
	h.t.Helper()
	cs, _ := h.prepare(0, true)
	h.ok(h.commit(cs))
	h.ok(h.w.Close())
}

// nothingHidden reports hidden files.
func nothingHidden(t *testing.T, f vfs.FS) {
	t.Helper()
	if _, _, hidden := contents(t, f, "out"); len(hidden) > 0 {
		t.Errorf("left over: %q", hidden)
	}
}

func TestSmallFilesBecomeOneAfterSomeCheckpoints(t *testing.T) {
	m := vfs.NewMem()
	h := byHand(t, m, rolled().CompactAfter(3))
	h.feed("a", "b")
	want(t, visible(t, m))
	h.feed("c")
	want(t, visible(t, m), "part-0-0: a b c")
	nothingHidden(t, m)
	h.feed("d")
	h.checkpoint(0) // without anything new the time passes all the same
	want(t, visible(t, m), "part-0-0: a b c")
	h.checkpoint(0)
	want(t, visible(t, m), "part-0-0: a b c", "part-0-4: d")
	h.feed("e", "f")
	h.end()
	want(t, visible(t, m), "part-0-0: a b c", "part-0-4: d", "part-0-5: e f")
	nothingHidden(t, m)
	if n := h.ctx.Counts["partFilesMerged"]; n != 5 {
		t.Errorf("%d files were merged", n)
	}
}

func TestFilesOfOneCheckpointBecomeOne(t *testing.T) {
	m := vfs.NewMem()
	h := byHand(t, m, rolled().BucketBy(func(x string) string { return x[:1] }).MaxPartSize(1).CompactAfter(1))
	h.write(0, "a1", "b1", "a2", "c1", "b2", "a3")
	h.checkpoint(0)
	want(t, visible(t, m), "a/part-0-0: a1 a2 a3", "b/part-0-1: b1 b2", "c/part-0-3: c1")
	nothingHidden(t, m)
}

func TestSmallFilesBecomeOneOfASize(t *testing.T) {
	m := vfs.NewMem()
	h := byHand(t, m, rolled().CompactSize(11))
	h.feed("abc", "def", "0123456789", "x")
	want(t, visible(t, m), "part-0-2: 0123456789")
	h.feed("y")
	want(t, visible(t, m), "part-0-0: abc def x y", "part-0-2: 0123456789")
	h.feed("z")
	h.end()
	want(t, visible(t, m), "part-0-0: abc def x y", "part-0-2: 0123456789", "part-0-6: z")
	nothingHidden(t, m)
}

func TestMergedFilesBeginOnce(t *testing.T) {
	e := file.Encoding[string]{Begin: "head\n", Open: file.TextEncoding[string]("").Open}
	for c, ext := range map[filesink.Compression]string{filesink.Uncompressed: "", filesink.Gzip: ".gz", filesink.Zstd: ".zst"} {
		m := vfs.NewMem()
		h := byHand(t, m, filesink.New("out", e).NoBuckets().RollOnCheckpoint().Compress(c).CompactAfter(3))
		h.feed("a", "b", "c")
		data, err := vfs.ReadFile(m, "out/part-0-0"+ext)
		h.ok(err)
		text, err := decompressed("x"+ext, data)
		h.ok(err)
		if string(text) != "head\na\nb\nc\n" {
			t.Errorf("%v: %q", c, text)
		}
		nothingHidden(t, m)
	}
}

func TestWholeFilesBecomeOne(t *testing.T) {
	m := vfs.NewMem()
	h := byHand(t, m, bulk().CompactAfter(2).CompactReading(leafFormat{}))
	h.write(0, "a", "b", "c", "d", "e")
	h.checkpoint(0)
	h.feed("f", "g")
	want(t, visible(t, m), "part-0-0.leaves: head a b c d e f foot 6")
	h.end()
	want(t, visible(t, m), "part-0-0.leaves: head a b c d e f foot 6", "part-0-3.leaves: head g foot 1")
	nothingHidden(t, m)
}

func TestMergingIsDoneInPortions(t *testing.T) {
	m := vfs.NewMem()
	h := byHand(t, m, rolled().CompactAfter(2).Portions(1, 1))
	h.onTime(0)
	h.feed("a", "b") // the merged file is begun
	want(t, visible(t, m))
	h.write(time.Second, "c") // each does a little
	h.ok(h.w.(connector.RunWriter[string]).WriteRun([]string{"d", "e"}, nil))
	if next := h.onTime(2 * time.Second); next != 2*time.Second+time.Millisecond {
		t.Errorf("it wants to go on at %v", next)
	}
	for at := 3 * time.Second; ; at += time.Second {
		if next := h.onTime(at); next > at+time.Second { // nothing is left to do
			break
		} else if at > 20*time.Second {
			t.Fatal("it has never done with two files")
		}
	}
	want(t, visible(t, m))
	h.checkpoint(30 * time.Second)
	want(t, visible(t, m), "part-0-0: a b")
	h.end()
	want(t, visible(t, m), "part-0-0: a b", "part-0-3: c d e")
	nothingHidden(t, m)
}

func TestLargeMergesAreSyncedInBetween(t *testing.T) {
	disk := vfs.NewFaulty(vfs.NewMem())
	h := byHand(t, disk, rolled().CompactAfter(4))
	x := strings.Repeat("x", 10<<20)
	h.feed(x, x, x)
	before := disk.Calls(vfs.OpSync)
	h.feed(x)
	h.end()
	if got := disk.Calls(vfs.OpSync) - before; got != 7 { // the fourth file, the merged one at every 8 MiB and at its end
		t.Errorf("%d times synced", got)
	}
	if info, err := disk.Stat("out/part-0-0"); err != nil || info.Size() != 4*(10<<20+1) {
		t.Errorf("%v, %v", info, err)
	}
}

func TestHeldBackFilesAreMergedAfterARestore(t *testing.T) {
	m := vfs.NewMem()
	h := byHand(t, m, rolled().CompactAfter(3))
	state := h.feed("a", "b")
	h.write(0, "x")
	h = h.restore(0, 1, own(state))
	h.feed("c")
	want(t, visible(t, m), "part-0-0: a b") // not with what comes later
	h.feed("d", "e")
	want(t, visible(t, m), "part-0-0: a b", "part-0-2: c d e")
	nothingHidden(t, m)
}

func TestHeldBackFilesAreSharedOut(t *testing.T) {
	m := vfs.NewMem()
	h := byHand(t, m, rolled().CompactAfter(3).Portions(1, 1))
	var states []connector.WriterState
	for i := range 3 {
		one := *h
		one.ctx = &writerContext{filetest.WriterContext{Index: i, Number: 3}, h.ctx.clock}
		var err error
		one.w, err = h.sink.Writer(one.ctx)
		h.ok(err)
		states = append(states, connector.WriterState{Subtask: i, State: one.feed(fmt.Sprint("a", i), fmt.Sprint("b", i))})
	}
	var after []connector.WriterState
	for i := range 2 {
		w := h.restore(i, 2, mine(states, i, 2)...)
		w.write(0, fmt.Sprint("c", i))
		after = append(after, connector.WriterState{Subtask: i, State: w.checkpoint(0)}) // merging is under way
		h.ok(w.w.Close())
	}
	h.restore(0, 1, mine(after, 0, 1)...).end()
	want(t, visible(t, m), "part-0-0: a0 b0", "part-0-2: c0", "part-1-0: a1 b1", "part-1-2: c1", "part-2-0: a2 b2")
	nothingHidden(t, m)
}

// A savepoint is restored when later checkpoints have made what it holds back visible.
func TestOldSnapshotFindsItsFilesInMergedOnes(t *testing.T) {
	m := vfs.NewMem()
	h := byHand(t, m, lines().RollWhen(func(p filesink.Part) bool { return p.Elements >= 2 }).CompactAfter(3))
	h.write(0, "a", "b", "c", "d", "e")
	old := h.checkpoint(0) // holds back two, and one is open
	for range 2 {
		h.write(0, "f", "g")
		h.checkpoint(0)
	}
	want(t, visible(t, m), "part-0-0: a b c d e f g f")
	again := h.restore(0, 1, own(old))
	if n := again.ctx.Counts["partFilesVisibleBefore"]; n != 3 {
		t.Errorf("%d files were found", n)
	}
	again.write(0, "f")
	again.end()
	want(t, visible(t, m), "part-0-0: a b c d e f g f", "part-0-3: f")
	// One that is merged and whose files were not taken away is not merged again.
	h = byHand(t, vfs.NewMem(), rolled().CompactAfter(3))
	old = h.feed("a", "b")
	h.ok(vfs.WriteFile(h.fs, "out/part-0-0", []byte("a\nb\nc\n")))
	h.restore(0, 1, own(old)).end()
	want(t, visible(t, h.fs), "part-0-0: a b c")
	nothingHidden(t, h.fs)
	// One that was let go before it was merged keeps its files apart.
	h = byHand(t, vfs.NewMem(), rolled().CompactAfter(3))
	old = h.feed("a", "b")
	h.ok(h.fs.Rename("out/.part-0-0.inprogress.id1", "out/part-0-0"))
	h.restore(0, 1, own(old)).end()
	want(t, visible(t, h.fs), "part-0-0: a", "part-0-1: b")
	nothingHidden(t, h.fs)
}

func TestHeldBackFileThatIsGoneIsAnError(t *testing.T) {
	for what, harm := range map[string]func(m *vfs.Mem) error{
		"there are -1": func(m *vfs.Mem) error { return m.Remove("out/.part-0-1.inprogress.id1") },
		"there are 1":  func(m *vfs.Mem) error { return m.Truncate("out/.part-0-1.inprogress.id1", 1) },
	} {
		m := vfs.NewMem()
		h := byHand(t, m, rolled().CompactAfter(3))
		state := h.feed("a", "b")
		h.ok(harm(m))
		_, err := h.sink.RestoreWriter(h.ctx, 1, []connector.WriterState{own(state)})
		if err == nil || !strings.Contains(err.Error(), what) || !strings.Contains(err.Error(), "out/.part-0-1.inprogress.id1") {
			t.Errorf("%v, want %q", err, what)
		}
		h.write(0, "c") // the writer finds out when it reads the file
		if err := h.w.Flush(false); err == nil || !strings.Contains(err.Error(), "merge out/.part-0-1.inprogress.id1 into") {
			t.Errorf("got %v", err)
		}
	}
}

func TestChangedSettingsLetHeldBackFilesGo(t *testing.T) {
	type sink = *filesink.Sink[string]
	for name, c := range map[string]struct {
		before, after sink
		want          []string
	}{
		"no compaction":     {rolled().CompactAfter(9), rolled(), []string{"part-0-0: a b", "part-0-2: c"}},
		"compressed":        {rolled().CompactAfter(9), rolled().Compress(filesink.Gzip).PartSuffix(".x").CompactAfter(2), []string{"part-0-0: a b"}},
		"whole files":       {bulk().CompactAfter(9).CompactReading(leafFormat{}), bulk(), []string{"part-0-0.leaves: head a foot 1", "part-0-1.leaves: head b foot 1", "part-0-2.leaves: head c foot 1"}},
		"whole, compacted":  {bulk().CompactAfter(9).CompactReading(leafFormat{}), bulk().CompactAfter(3).CompactReading(leafFormat{}), []string{"part-0-0.leaves: head a foot 1", "part-0-1.leaves: head b foot 1"}},
		"whole become rows": {bulk().CompactAfter(9).CompactReading(leafFormat{}), rolled(), []string{"part-0-0.leaves: head a foot 1", "part-0-1.leaves: head b foot 1", "part-0-2: c"}},
	} {
		t.Run(name, func(t *testing.T) {
			m := vfs.NewMem()
			h := byHand(t, m, c.before)
			state := h.feed("a", "b")
			h.sink = c.after.On(m, func() string { return "later" })
			h = h.restore(0, 1, own(state))
			h.feed("c")
			want(t, visible(t, m), c.want...)
			h.end()
			got, _, hidden := contents(t, m, "out")
			if slices.Sort(got); !slices.Equal(got, []string{"a", "b", "c"}) || len(hidden) > 0 {
				t.Errorf("%q, hidden %q", got, hidden)
			}
		})
	}
}

func TestTaskThatFailsRemovesHeldBackFilesThatNoSnapshotKnows(t *testing.T) {
	m := vfs.NewMem()
	h := byHand(t, m, rolled().MaxPartSize(1).CompactAfter(1).Portions(1, 1))
	h.write(0, "a", "b", "c")
	h.ok(h.w.Flush(false)) // a merge is begun
	h.ok(h.w.Close())
	nothingHidden(t, m)
	h = byHand(t, m, rolled().MaxPartSize(1).CompactAfter(1).Portions(1, 1))
	h.write(0, "a", "b")
	_, state := h.prepare(0, false)
	h.write(0, "c")
	_, _, before := contents(t, m, "out")
	h.ok(h.w.Close())
	if _, _, hidden := contents(t, m, "out"); len(before) != 4 || len(hidden) != 2 {
		t.Errorf("what a snapshot knows: %q, before: %q", hidden, before)
	}
	// A merged file that is left over goes when the snapshot is restored.
	var scratch string
	for _, name := range before {
		if bytes.Contains(state, []byte(strings.TrimPrefix(name, "out/"))) {
			if _, err := m.Stat(name); err != nil {
				scratch = name
			}
		}
	}
	h.ok(vfs.WriteFile(m, scratch, []byte("half")))
	h.restore(0, 1, own(state)).end()
	want(t, visible(t, m), "part-0-0: a b")
	nothingHidden(t, m)
}

func TestErrorsOfMergingFailTheTask(t *testing.T) {
	own := errors.New("own")
	for what, c := range map[string]struct {
		open, write, end error
		op               vfs.Op
	}{
		"begin out/":    {open: own},
		"merge out/":    {write: own},
		"write the end": {end: own},
		"own":           {op: vfs.OpOpen},
	} {
		disk := vfs.NewFaulty(vfs.NewMem())
		files := 0
		e := leaves
		e.Open = func(w io.Writer) (file.BulkWriter[string], error) {
			f, err := leaves.Open(w)
			if files++; files == 3 {
				return failing{f, c.write, c.end}, errors.Join(err, c.open)
			}
			return f, err
		}
		h := byHand(t, disk, filesink.NewBulk("out", e).NoBuckets().CompactAfter(2).CompactReading(leafFormat{}))
		h.feed("a")
		if c.op != "" {
			disk.Fail(c.op, 1, own)
		}
		h.write(0, "b")
		if err := h.w.Flush(false); !errors.Is(err, own) || !strings.Contains(err.Error(), what) {
			t.Errorf("%q: %v", what, err)
		}
		h.ok(h.w.Close())
	}
	disk := vfs.NewFaulty(vfs.NewMem())
	h := byHand(t, disk, rolled().CompactAfter(2))
	h.feed("a")
	h.write(0, "b")
	disk.FailFrom(vfs.OpRead, 1, syscall.EIO)
	if err := h.w.Flush(false); !errors.Is(err, syscall.EIO) {
		t.Errorf("got %v", err)
	}
}

func TestMistakesOfCompactionAreReported(t *testing.T) {
	for want, s := range map[string]*filesink.Sink[string]{
		"-1 checkpoints":          lines().CompactAfter(-1),
		"-2 bytes":                lines().CompactSize(-2),
		"CompactReading says how": bulk().CompactAfter(1),
		"CompactReading is for":   lines().CompactAfter(1).CompactReading(leafFormat{}),
		"with CompactAfter or":    bulk().CompactReading(leafFormat{}),
		"to merge them: not so":   bulk().CompactSize(1).CompactReading(leafFormat{errors.New("not so")}),
	} {
		if err := s.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
