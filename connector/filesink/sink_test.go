package filesink_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/flott-dev/flott/connector"
	"github.com/flott-dev/flott/connector/csv"
	"github.com/flott-dev/flott/connector/file"
	"github.com/flott-dev/flott/connector/file/filetest"
	"github.com/flott-dev/flott/connector/filesink"
	"github.com/flott-dev/flott/connector/jsonl"
	"github.com/flott-dev/flott/internal/clock"
	"github.com/flott-dev/flott/internal/vfs"
)

var _ connector.StatefulSink[string] = (*filesink.Sink[string])(nil)

// hand is one writer and committer, driven by hand.
type hand[T any] struct {
	t    *testing.T
	fs   vfs.FS
	sink *filesink.Sink[T]
	ctx  *writerContext
	w    connector.Writer[T]
}

func byHand[T any](t *testing.T, f vfs.FS, sink *filesink.Sink[T]) *hand[T] {
	t.Helper()
	h := &hand[T]{t: t, fs: f, sink: sink.On(f, ids()), ctx: &writerContext{clock: clock.NewManual(0)}}
	w, err := h.sink.Writer(h.ctx)
	h.ok(err)
	h.w = w
	return h
}

func (h *hand[T]) ok(err error) {
	h.t.Helper()
	if err != nil {
		h.t.Fatal(err)
	}
}

// write writes elements at a time of the clock.
func (h *hand[T]) write(at time.Duration, xs ...T) {
	h.t.Helper()
	h.ctx.clock.Set(at.Milliseconds())
	for _, x := range xs {
		h.ok(h.w.Write(x, connector.ElementContext{ProcessingTime: at.Milliseconds(), Timestamp: math.MinInt64}))
	}
}

// prepare takes a snapshot.
func (h *hand[T]) prepare(at time.Duration, end bool) (cs []filesink.Committable, state []byte) {
	h.t.Helper()
	h.ctx.clock.Set(at.Milliseconds())
	h.ok(h.w.Flush(end))
	cs, err := h.w.(connector.CommittingWriter[T, filesink.Committable]).Prepare()
	h.ok(err)
	state, err = h.w.(connector.StatefulWriter).Snapshot(1)
	h.ok(err)
	return cs, state
}

func (h *hand[T]) commit(cs []filesink.Committable) error {
	h.t.Helper()
	c, err := h.sink.Committer(h.ctx)
	h.ok(err)
	return errors.Join(c.Commit(context.Background(), cs), c.Close())
}

// checkpoint is one that is complete.
func (h *hand[T]) checkpoint(at time.Duration) []byte {
	h.t.Helper()
	cs, state := h.prepare(at, false)
	h.ok(h.commit(cs))
	return state
}

// restore is the writer of another attempt.
func (h *hand[T]) restore(subtask, parallelism int, states ...connector.WriterState) *hand[T] {
	h.t.Helper()
	again := *h
	again.ctx = &writerContext{filetest.WriterContext{Index: subtask, Number: parallelism}, h.ctx.clock}
	w, err := again.sink.RestoreWriter(again.ctx, 1, states)
	h.ok(err)
	again.w = w
	return &again
}

func own(state []byte) connector.WriterState { return connector.WriterState{Mine: true, State: state} }

// visible are the visible files with their contents, "name: lines".
func visible(t *testing.T, f vfs.FS) []string {
	t.Helper()
	_, files, _ := contents(t, f, "out")
	for i, name := range files {
		data, err := vfs.ReadFile(f, name)
		if err != nil {
			t.Fatal(err)
		}
		files[i] = strings.TrimPrefix(name, "out/") + ": " + strings.ReplaceAll(string(data), "\n", " ")
	}
	return files
}

func want(t *testing.T, got []string, files ...string) {
	t.Helper()
	for i := range got {
		got[i] = strings.TrimSpace(got[i])
	}
	if !slices.Equal(got, files) {
		t.Errorf("got  %q\nwant %q", got, files)
	}
}

// lines writes strings into one folder.
func lines() *filesink.Sink[string] {
	return filesink.New("out", file.TextEncoding[string]("\n")).NoBuckets()
}

func TestFilesAreVisibleWhenTheirCheckpointIsCommitted(t *testing.T) {
	m := vfs.NewMem()
	h := byHand(t, m, lines().RollOnCheckpoint().PartPrefix("log").PartSuffix(".txt"))
	h.write(0, "a", "b")
	cs, _ := h.prepare(0, false)
	want(t, visible(t, m))
	h.write(0, "c")
	h.ok(h.commit(cs))
	want(t, visible(t, m), "log-0-0.txt: a b")
	cs, _ = h.prepare(0, true)
	h.ok(h.commit(cs))
	h.ok(h.w.Close())
	want(t, visible(t, m), "log-0-0.txt: a b", "log-0-1.txt: c")
}

func TestFilesRollBySizeAgeAndInactivity(t *testing.T) {
	for _, c := range []struct {
		name  string
		sink  *filesink.Sink[string]
		files []string
	}{
		{"size", lines().MaxPartSize(3).RolloverInterval(0).InactivityInterval(0), []string{"part-0-0: a b", "part-0-1: c d", "part-0-2: e f"}},
		{"size that is just reached", lines().MaxPartSize(4).RolloverInterval(0).InactivityInterval(0), []string{"part-0-0: a b c", "part-0-1: d e f"}},
		{"age", lines().MaxPartSize(0).RolloverInterval(50 * time.Second), []string{"part-0-0: a b c", "part-0-1: d e f"}},
		{"inactivity", lines().RolloverInterval(0).InactivityInterval(20 * time.Second), []string{"part-0-0: a b", "part-0-1: c d", "part-0-2: e", "part-0-3: f"}},
		{"nothing", lines().MaxPartSize(0).RolloverInterval(0).InactivityInterval(0), []string{"part-0-0: a b c d e f"}},
		{"as it comes", lines(), []string{"part-0-0: a b c d", "part-0-1: e f"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := vfs.NewMem()
			h := byHand(t, m, c.sink)
			for i, at := range []time.Duration{1, 20, 40, 59, 79, 100} {
				h.write(at*time.Second, string(rune('a'+i)))
			}
			cs, _ := h.prepare(100*time.Second, true)
			h.ok(h.commit(cs))
			want(t, visible(t, m), c.files...)
		})
	}
}

func TestOldAndIdleFilesAreClosedByCheckpoints(t *testing.T) {
	m := vfs.NewMem()
	h := byHand(t, m, lines().RolloverInterval(time.Minute).InactivityInterval(10*time.Second))
	h.write(0, "a")
	h.checkpoint(9 * time.Second)
	want(t, visible(t, m))
	h.checkpoint(10 * time.Second)
	want(t, visible(t, m), "part-0-0: a")
	h.checkpoint(99 * time.Second)
	for at := 100 * time.Second; at < 160*time.Second; at += 5 * time.Second {
		h.write(at, "b")
	}
	h.checkpoint(159 * time.Second)
	want(t, visible(t, m), "part-0-0: a")
	h.checkpoint(160 * time.Second)
	want(t, visible(t, m), "part-0-0: a", "part-0-1: b b b b b b b b b b b b")
}

func TestBucketsAreFoundByTimesAndElements(t *testing.T) {
	base := lines().RolloverInterval(0).InactivityInterval(0)
	type at = connector.ElementContext
	for _, c := range []struct {
		name  string
		sink  *filesink.Sink[string]
		files []string
	}{
		{"processing time", base.BucketByTime("yyyy-MM-dd--HH", time.UTC), []string{"1970-01-01--01/part-0-0: a", "1970-01-01--02/part-0-1: b"}},
		{"zone", base.BucketByTime("dd'/'HH", time.FixedZone("", -7200)), []string{"01/00/part-0-1: b", "31/23/part-0-0: a"}},
		{"event time", base.BucketByEventTime("HH", time.UTC), []string{"05/part-0-0: a b"}},
		{"element", base.BucketBy(func(x string) string { return "of/" + x }), []string{"of/a/part-0-0: a", "of/b/part-0-1: b"}},
		{"pointer", base.BucketBy(func(x *string) string { return *x }), []string{"a/part-0-0: a", "b/part-0-1: b"}},
		{"context", base.BucketWith(func(x string, c at) string { return fmt.Sprint(x, c.Timestamp, "-", c.Watermark) }), []string{"a18000000-7/part-0-0: a", "b18000000-7/part-0-1: b"}},
		{"the last word counts", base.BucketBy(func(x string) string { return x }).NoBuckets(), []string{"part-0-0: a b"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := vfs.NewMem()
			h := byHand(t, m, c.sink)
			for i, x := range []string{"a", "b"} {
				now := int64(i+1) * time.Hour.Milliseconds()
				h.ctx.clock.Set(now)
				if runs, ok := h.w.(connector.RunWriter[string]); ok && i == 1 {
					h.ok(runs.WriteRun([]string{x}, []int64{18_000_000}))
					continue
				}
				h.ok(h.w.Write(x, at{Timestamp: 18_000_000, Watermark: 7, ProcessingTime: now}))
			}
			cs, _ := h.prepare(2*time.Hour, true)
			h.ok(h.commit(cs))
			want(t, visible(t, m), c.files...)
		})
	}
}

func TestElementsWithoutAFitBucketAreRefused(t *testing.T) {
	for bucket, text := range map[string]string{
		"..": "no name of a folder", "a/../../b": "no name of a folder", "./a": "no name of a folder", "/etc": "empty part", "a//b": "empty part", "a/": "empty part", "_tmp": "readers skip",
		"a\\b": "can't be the name", "a\x00": "can't be the name",
	} {
		m := vfs.NewMem()
		h := byHand(t, m, lines().BucketBy(func(string) string { return bucket }))
		err := h.w.Write("x", connector.ElementContext{})
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%q: %v, want %q", bucket, err, text)
		}
		if again := h.w.Flush(true); !errors.Is(again, err) {
			t.Errorf("after it: %v", again)
		}
	}
	h := byHand(t, vfs.NewMem(), lines().BucketByEventTime("HH", time.UTC))
	if err := h.w.Write("x", connector.ElementContext{Timestamp: math.MinInt64}); err == nil || !strings.Contains(err.Error(), "without a timestamp") {
		t.Errorf("no timestamp: %v", err)
	}
	h = byHand(t, vfs.NewMem(), lines().BucketByEventTime("HH", time.UTC))
	if err := h.w.(connector.RunWriter[string]).WriteRun([]string{"x"}, nil); err == nil || !strings.Contains(err.Error(), "without a timestamp") {
		t.Errorf("a run without timestamps: %v", err)
	}
}

func TestMistakesOfTheDescriptionAreTold(t *testing.T) {
	type sink = *filesink.Sink[string]
	ok := lines()
	for _, c := range []struct {
		sink sink
		want string
	}{
		{filesink.New("", file.TextEncoding[string]("\n")), "empty path"},
		{filesink.New("out", file.Encoding[string]{}), "no encoding"},
		{filesink.New("out", file.Encoding[string]{Err: errors.New("own mistake")}), "own mistake"},
		{ok.PartPrefix(""), "prefix \"\""},
		{ok.PartPrefix("a/b"), "without slashes"},
		{ok.PartPrefix(".a"), "readers skip"},
		{ok.PartSuffix("/x"), "no slashes"},
		{ok.PartSuffix("7"), "part of the count"},
		{ok.PartSuffix(".inprogress.x"), "not complete"},
		{ok.Compress(3), "compression 3"},
		{ok.MaxPartSize(-1), "negative"},
		{ok.RolloverInterval(-time.Second), "negative"},
		{ok.InactivityInterval(-time.Second), "negative"},
		{ok.InactivityInterval(time.Microsecond), "finer than a millisecond"},
		{ok.CheckInterval(-time.Second), "negative interval"},
		{ok.CheckInterval(time.Second + 1), "finer than a millisecond"},
		{ok.RollWhen(nil), "decides when files are closed is nil"},
		{ok.BucketBy((func(string) string)(nil)), "is nil"},
		{ok.BucketBy((func(*string) string)(nil)), "is nil"},
		{ok.BucketWith(nil), "is nil"},
		{ok.BucketByTime("HH", nil), "time zone"},
		{ok.BucketByEventTime("hh", time.UTC), "unknown letter"},
	} {
		err := c.sink.Check()
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
			continue
		}
		if _, e := c.sink.Writer(&writerContext{}); e == nil {
			t.Errorf("a writer is opened in spite of %v", err)
		}
		if e := c.sink.Prepare(1); e == nil {
			t.Errorf("prepared in spite of %v", err)
		}
	}
	if err := ok.BucketBy((func(string) string)(nil)).NoBuckets().Check(); err != nil {
		t.Errorf("what was taken back: %v", err)
	}
	m := vfs.NewMem()
	if err := errors.Join(ok.On(m, nil).Prepare(1), vfs.WriteFile(m, "out", nil)); err != nil {
		t.Fatal(err)
	}
	if err := ok.On(m, nil).Prepare(1); err == nil || !strings.Contains(err.Error(), "needs a folder") {
		t.Errorf("a file in place of the folder: %v", err)
	}
}

func TestCommitsMayBeRepeated(t *testing.T) {
	m := vfs.NewMem()
	h := byHand(t, m, lines())
	h.write(0, "a")
	cs, _ := h.prepare(0, true)
	for range 3 {
		h.ok(h.commit(cs))
	}
	want(t, visible(t, m), "part-0-0: a")
	// Others take it away. To a job that was restored this is no loss; one that just wrote the file has lost it.
	h.ok(m.Remove("out/part-0-0"))
	if err := h.commit(cs); err == nil || errors.Is(err, connector.ErrRetry) || !strings.Contains(err.Error(), "disappeared") {
		t.Errorf("a file that disappears: %v", err)
	}
	h.ok(h.commit(travelled(t, cs)))
	h.ok(vfs.WriteFile(m, "out/part-0-0", []byte("another"))) // or put something else in its place
	if err := h.commit(cs); err == nil || !strings.Contains(err.Error(), "disappeared") {
		t.Errorf("a file that became another: %v", err)
	}
	h.ok(h.commit(travelled(t, cs)))
	if h.ctx.Counts["partFilesMissing"] != 1 {
		t.Errorf("counts: %v", h.ctx.Counts)
	}
}

// travelled are committables as a snapshot keeps them.
func travelled(t *testing.T, cs []filesink.Committable) (out []filesink.Committable) {
	for _, c := range cs {
		b, err := c.MarshalBinary()
		var back filesink.Committable
		if err = errors.Join(err, back.UnmarshalBinary(b)); err != nil {
			t.Fatal(err)
		}
		out = append(out, back)
	}
	return out
}

func TestCommitsThatCanNotSucceedAreNotTriedAgain(t *testing.T) {
	for name, change := range map[string]func(m *vfs.Mem) error{
		"another file has its name": func(m *vfs.Mem) error { return vfs.WriteFile(m, "out/part-0-0", nil) },
		"has 1 bytes":               func(m *vfs.Mem) error { return m.Truncate("out/.part-0-0.inprogress.id1", 1) },
	} {
		m := vfs.NewMem()
		h := byHand(t, m, lines())
		h.write(0, "a")
		cs, _ := h.prepare(0, true)
		h.ok(change(m))
		if err := h.commit(cs); err == nil || errors.Is(err, connector.ErrRetry) || !strings.Contains(err.Error(), name) {
			t.Errorf("%v, want %q", err, name)
		}
	}
}

func TestCommitsThatMaySucceedLaterSaySo(t *testing.T) {
	for _, op := range []vfs.Op{vfs.OpStat, vfs.OpRename, vfs.OpSyncDir} {
		m := vfs.NewMem()
		disk := vfs.NewFaulty(m)
		h := byHand(t, disk, lines())
		h.write(0, "a")
		cs, _ := h.prepare(0, true)
		disk.Fail(op, 1, syscall.EIO)
		if err := h.commit(cs); !errors.Is(err, connector.ErrRetry) || !errors.Is(err, syscall.EIO) {
			t.Errorf("%s: %v", op, err)
		}
		h.ok(h.commit(cs))
		m.Crash()
		want(t, visible(t, m), "part-0-0: a")
	}
	h := byHand(t, vfs.NewMem(), lines())
	h.write(0, "a")
	cs, _ := h.prepare(0, true)
	c, err := h.sink.Committer(h.ctx)
	h.ok(err)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := c.Commit(ctx, cs); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled commit: %v", err)
	}
}

func TestEncodingsBeginEachFile(t *testing.T) {
	type row struct {
		Name string `csv:"name" json:"name"`
		N    int    `csv:"n" json:"n"`
	}
	for name, e := range map[string]file.Encoding[row]{
		"name,n a,1 ":         csv.Encoding[row](csv.Header()),
		`{"name":"a","n":1} `: jsonl.Encoding[row](),
		"begin {a 1}; ":       {Begin: "begin ", Delimiter: "; ", Open: file.TextEncoding[row]("").Open},
		"{a 1} ":              {Open: file.TextEncoding[row]("").Open},
	} {
		m := vfs.NewMem()
		h := byHand(t, m, filesink.New("out", e).NoBuckets().RollOnCheckpoint())
		for range 2 {
			h.write(0, row{"a", 1})
			h.checkpoint(0)
		}
		var got []string
		for _, n := range []string{"out/part-0-0", "out/part-0-1"} {
			data, err := vfs.ReadFile(m, n)
			h.ok(err)
			got = append(got, strings.ReplaceAll(string(data), "\n", " "))
		}
		if got[0] != name || got[1] != name {
			t.Errorf("%q, want %q twice", got, name)
		}
	}
}

func TestElementThatCanNotBeEncodedFailsTheTask(t *testing.T) {
	own := errors.New("own")
	m := vfs.NewMem()
	h := byHand(t, m, filesink.New("out", file.Encoding[string]{Open: func() func([]byte, string) ([]byte, error) {
		return func(dst []byte, x string) ([]byte, error) {
			if x == "bad" {
				return append(dst, "half"...), own
			}
			return append(dst, x...), nil
		}
	}}))
	h.write(0, "a")
	if err := h.w.Write("bad", connector.ElementContext{}); !errors.Is(err, own) || !strings.Contains(err.Error(), "out/") {
		t.Errorf("got %v", err)
	}
	if err := h.w.Flush(true); !errors.Is(err, own) {
		t.Errorf("and then %v", err)
	}
}

func TestOldBucketsAreForgotten(t *testing.T) {
	m := vfs.NewMem()
	h := byHand(t, m, lines().BucketBy(func(x string) string { return x }).RollOnCheckpoint())
	size := 0
	for i := range 100 {
		h.write(0, fmt.Sprintf("b%02d", i))
		if state := h.checkpoint(0); i == 1 {
			size = len(state)
		} else if i > 1 && len(state) != size {
			t.Fatalf("the state of bucket %d has %d bytes, not %d", i, len(state), size)
		}
	}
}

func TestBucketsThatOthersClearAwayAreMadeAgain(t *testing.T) {
	m := vfs.NewMem()
	h := byHand(t, m, lines().BucketBy(func(x string) string { return x }).RollOnCheckpoint())
	h.write(0, "a")
	for range 3 {
		h.checkpoint(0)
	}
	h.ok(vfs.RemoveAll(m, "out/a"))
	h.write(0, "a")
	h.checkpoint(0)
	want(t, visible(t, m), "a/part-0-1: a")
}

func TestFilesOfTheMachineAreWritten(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "out")
	s := filesink.New(dir, file.TextEncoding[int]("\n")).Compress(filesink.Zstd)
	ctx := &filetest.WriterContext{}
	w, err := s.Writer(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.(connector.RunWriter[int]).WriteRun([]int{1, 2, 3}, nil); err != nil {
		t.Fatal(err)
	}
	if err := w.Flush(true); err != nil {
		t.Fatal(err)
	}
	cs, err := w.(connector.CommittingWriter[int, filesink.Committable]).Prepare()
	c, cerr := s.Committer(ctx)
	if err = errors.Join(err, cerr); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(c.Commit(context.Background(), cs), c.Close(), w.Close()); err != nil {
		t.Fatal(err)
	}
	names, err := filepath.Glob(filepath.Join(dir, "*", "*"))
	if err != nil || len(names) != 1 || filepath.Base(names[0]) != "part-0-0.zst" {
		t.Fatalf("%q, %v", names, err)
	}
	if _, err := time.Parse("2006-01-02--15", filepath.Base(filepath.Dir(names[0]))); err != nil {
		t.Error(err)
	}
	data, err := os.ReadFile(names[0])
	if err != nil {
		t.Fatal(err)
	}
	if text, err := decompressed(names[0], data); err != nil || string(text) != "1\n2\n3\n" {
		t.Errorf("%q, %v", text, err)
	}
}

func TestLargeCompressedFilesAreWhole(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	var all []string
	for range 40 {
		b := make([]byte, 10_000)
		for i := range b {
			b[i] = byte(' ' + r.IntN(90))
		}
		all = append(all, string(b))
	}
	for c, n := range map[filesink.Compression]int{filesink.Gzip: 4, filesink.Zstd: 3} {
		m := vfs.NewMem()
		h := byHand(t, m, lines().Compress(c).MaxPartSize(100_000))
		h.write(0, all...)
		cs, _ := h.prepare(0, true)
		h.ok(h.commit(cs))
		got, files, _ := contents(t, m, "out")
		if !slices.Equal(got, all) || len(files) != n {
			t.Errorf("%v: %d lines of %d in %q", c, len(got), len(all), files)
		}
		for _, c := range cs {
			if c.Size < 10_000 || c.Size > 250_000 {
				t.Errorf("a file of %d bytes", c.Size)
			}
		}
	}
}

func TestRunsAreRefusedAfterAnError(t *testing.T) {
	disk := vfs.NewFaulty(vfs.NewMem())
	h := byHand(t, disk, lines().MaxPartSize(1))
	disk.FailFrom(vfs.OpCreate, 1, syscall.EROFS)
	runs := h.w.(connector.RunWriter[string])
	for range 2 {
		if err := runs.WriteRun([]string{"a", "b"}, nil); !errors.Is(err, syscall.EROFS) {
			t.Errorf("got %v", err)
		}
	}
	_, err := h.w.(connector.CommittingWriter[string, filesink.Committable]).Prepare()
	_, err2 := h.w.(connector.StatefulWriter).Snapshot(1)
	if !errors.Is(err, syscall.EROFS) || !errors.Is(err2, syscall.EROFS) {
		t.Errorf("prepare: %v, snapshot: %v", err, err2)
	}
}
