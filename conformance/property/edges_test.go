package property

import (
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flott-dev/flott/connector"
	"github.com/flott-dev/flott/connector/file"
	"github.com/flott-dev/flott/connector/filesink"
	"github.com/flott-dev/flott/connector/twophase"
	"github.com/flott-dev/flott/flotttest"
	"github.com/flott-dev/flott/internal/vfs"
	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/state"
	"github.com/flott-dev/flott/stream"
	"github.com/flott-dev/flott/watermark"
)

// beginning is a source that is taken down and restored.
type beginning struct {
	name  string
	build func(env *stream.Env, disk vfs.FS) *stream.Stream[string]
	files bool // it reads the files
	watch bool // it finds one that comes later
}

const shown = 24 // elements of each source

func text0(i int64) string { return fmt.Sprintf("element %02d", i) }

// beginnings are the sources of the product.
func beginnings() []beginning {
	all := make([]string, shown)
	for i := range all {
		all[i] = text0(int64(i))
	}
	timed := watermark.BoundedOutOfOrderness(time.Millisecond, func(s string) time.Time { return time.UnixMilli(int64(len(s))) })
	return []beginning{
		{name: "sequence", build: func(env *stream.Env, _ vfs.FS) *stream.Stream[string] { return env.FromSequence(0, shown-1).Map(text0) }},
		{name: "slice", build: func(env *stream.Env, _ vfs.FS) *stream.Stream[string] { return env.FromSlice(all) }},
		{name: "iterator", build: func(env *stream.Env, _ vfs.FS) *stream.Stream[string] {
			return env.FromSeq(iter.Seq[string](slices.Values(all)))
		}},
		{name: "generator", build: func(env *stream.Env, _ vfs.FS) *stream.Stream[string] { return env.FromGenerator(shown, text0, 0) }},
		{name: "source processor", build: func(env *stream.Env, _ vfs.FS) *stream.Stream[string] {
			return env.FromSourceProcessor[string]("counter", newCounter)
		}},
		{name: "script", build: func(env *stream.Env, _ vfs.FS) *stream.Stream[string] {
			return flotttest.FromScripts(env, flotttest.NewScript[string]().Emit(all...))
		}},
		{name: "files", files: true, build: func(env *stream.Env, disk vfs.FS) *stream.Stream[string] {
			return env.FromSource(file.Lines("/in/*.txt").SplitSize(60).On(disk), "files")
		}},
		{name: "files with watermarks", files: true, build: func(env *stream.Env, disk vfs.FS) *stream.Stream[string] {
			return env.FromSourceWithWatermarks(file.Lines("/in/*.txt").On(disk), timed, "files")
		}},
		{name: "watched folder", files: true, watch: true, build: func(env *stream.Env, disk vfs.FS) *stream.Stream[string] {
			return env.FromSource(file.Lines("/in/*.txt").Watch(10*time.Millisecond).On(disk), "folder")
		}},
	}
}

// counter is a source with state.
type counter struct {
	at   int64
	kept *state.OperatorList[int64]
}

func newCounter(rt *process.Runtime) *counter {
	c := &counter{kept: rt.OperatorList(state.NewOperatorList[int64]("at", state.Split))}
	for at := range c.kept.All() {
		c.at = at
	}
	return c
}

func (c *counter) Run(ctx context.Context, out *process.SourceContext[string]) error {
	for c.at < shown && ctx.Err() == nil {
		out.Locked(func() {
			out.Collect(text0(c.at))
			c.at++
		})
	}
	return nil
}

func (c *counter) SnapshotState(process.SnapshotContext) error {
	c.kept.Set([]int64{c.at})
	return nil
}

// infiles makes the files of a folder; those from first to last.
func infiles(t *testing.T, disk vfs.FS, first, last int) {
	t.Helper()
	if err := disk.MkdirAll("/in"); err != nil {
		t.Fatal(err)
	}
	for f := first; f < last; f++ {
		var lines strings.Builder
		for i := f * 8; i < f*8+8; i++ {
			fmt.Fprintln(&lines, text0(int64(i)))
		}
		if err := vfs.WriteFile(disk, fmt.Sprintf("/in/%d.txt", f), []byte(lines.String())); err != nil {
			t.Fatal(err)
		}
	}
}

// TestSourcesSurviveSnapshots: every source that is taken down between two elements and restored from a snapshot emits each element
// once.
func TestSourcesSurviveSnapshots(t *testing.T) {
	first := number("FLOTT_SEED", 1)
	for _, b := range beginnings() {
		for seed := first; seed < first+4*number("FLOTT_SOAK", 1); seed++ {
			t.Run(fmt.Sprint(b.name, "/seed ", seed), func(t *testing.T) { b.survive(t, rand.New(rand.NewPCG(seed, 31))) })
		}
	}
}

func (b *beginning) survive(t *testing.T, rng *rand.Rand) {
	disk, now := vfs.NewMem(), int64(0)
	infiles(t, disk, 0, 2)
	if !b.watch {
		infiles(t, disk, 2, 3)
	}
	open := func(opts ...flotttest.Option) *flotttest.SourceHarness[string] {
		opts = append(opts, flotttest.WithProcessingTime(now))
		return flotttest.NewSourceHarness(t, func(env *stream.Env) *stream.Stream[string] { return b.build(env, disk) }, opts...)
	}
	h := open()
	var got []string
	for len(got) < shown {
		n := min(1+rng.IntN(5), shown-len(got))
		if b.watch && len(got) < 16 {
			n = min(n, 16-len(got))
		}
		if !h.Next(n) {
			t.Fatalf("the source ends after %q and %q", got, h.Values())
		}
		taken := h.Snapshot()
		got = append(got, h.Values()...)
		if h.Clear(); rng.IntN(3) > 0 {
			if len(got)+4 < 16 {
				h.Next(rng.IntN(3)) // what comes after the snapshot is not in it
			}
			h.Close()
			h = open(flotttest.Restore(taken))
		}
		if b.watch && len(got) == 16 {
			infiles(t, disk, 2, 3)
			now += 20
			h.SetProcessingTime(now)
		}
	}
	if !b.watch && h.Next(1) {
		t.Errorf("more comes: %q", h.Values())
	}
	slices.Sort(got)
	for i, x := range got {
		if x != text0(int64(i)) {
			t.Fatalf("emitted %q", got)
		}
	}
}

// ending is a sink that is taken down and restored.
type ending struct {
	name  string
	build func(in *stream.Stream[string], disk vfs.FS)
	twice bool            // what it has got since the last snapshot may come again
	read  func() []string // what it has written; nil: the files
}

// bank is a system with transactions.
type bank struct {
	begun     int64
	pages     map[int64][]string
	committed []string
}

func (b *bank) connect(connector.WriterContext) (twophase.Transactions[string, int64], error) {
	return b, nil
}

func (b *bank) Begin() (int64, error) {
	b.begun++
	b.pages[b.begun] = nil
	return b.begun, nil
}

func (b *bank) Write(id int64, x string, _ connector.ElementContext) error {
	b.pages[id] = append(b.pages[id], x)
	return nil
}

func (b *bank) Prepare(int64) error { return nil }

func (b *bank) Commit(_ context.Context, id int64) error {
	b.committed = append(b.committed, b.pages[id]...)
	delete(b.pages, id)
	return nil
}

func (b *bank) Abort(id int64) error {
	delete(b.pages, id)
	return nil
}

func (b *bank) Close() error { return nil }

// transactions is a sink into a bank.
func transactions() ending {
	b := &bank{pages: map[int64][]string{}}
	return ending{
		name: "transactions", read: func() []string { return b.committed },
		build: func(in *stream.Stream[string], _ vfs.FS) {
			s, err := twophase.New(b.connect)
			if err != nil {
				panic(err)
			}
			in.CommitTo(s)
		},
	}
}

// atLeastOnce is a sink that keeps nothing.
func atLeastOnce() ending {
	s := flotttest.NewSink[string]()
	return ending{
		name: "at least once", twice: true, read: s.Values,
		build: func(in *stream.Stream[string], _ vfs.FS) { in.SinkTo(s) },
	}
}

// endings are the sinks of the product.
func endings() []ending {
	ids := 0
	id := func() string {
		ids++
		return fmt.Sprintf("%016x", ids)
	}
	lines := func() *filesink.Sink[string] {
		return filesink.New("/out", file.TextEncoding[string]("\n")).NoBuckets()
	}
	return []ending{
		{"open files", func(in *stream.Stream[string], disk vfs.FS) { in.CommitTo(lines().On(disk, id)) }, false, nil},
		{"small files", func(in *stream.Stream[string], disk vfs.FS) { in.CommitTo(lines().MaxPartSize(40).On(disk, id)) }, false, nil},
		{"files by checkpoint", func(in *stream.Stream[string], disk vfs.FS) {
			in.CommitTo(lines().RollOnCheckpoint().BucketBy(func(s string) string { return s[len(s)-1:] }).On(disk, id))
		}, false, nil},
		transactions(), atLeastOnce(),
	}
}

// TestSinksSurviveSnapshots: every sink that is taken down between two elements and restored from a snapshot has each element in
// the end, once if it promises that, whether the checkpoint was said to be complete before or not.
func TestSinksSurviveSnapshots(t *testing.T) {
	first := number("FLOTT_SEED", 1)
	for seed := first; seed < first+10*number("FLOTT_SOAK", 1); seed++ {
		for _, e := range endings() {
			t.Run(fmt.Sprint(e.name, "/seed ", seed), func(t *testing.T) { e.survive(t, rand.New(rand.NewPCG(seed, 32))) })
		}
	}
}

func (e *ending) survive(t *testing.T, rng *rand.Rand) {
	disk := vfs.NewMem()
	open := func(opts ...flotttest.Option) *flotttest.SinkHarness[string] {
		return flotttest.NewSinkHarness(t, func(in *stream.Stream[string]) { e.build(in, disk) }, opts...)
	}
	h := open()
	write := func(from, n int64) int64 {
		for i := range n {
			h.ProcessElement(text0(from+i), flotttest.NoTime)
		}
		return from + n
	}
	for at := int64(0); at < 60; {
		at = write(at, rng.Int64N(6))
		taken := h.Snapshot()
		if rng.IntN(2) == 0 {
			h.CompleteCheckpoint(taken)
		}
		if rng.IntN(2) == 0 {
			write(at, rng.Int64N(3)) // what comes after the snapshot is not in it
			h.Cancel()
			h.Close()
			h = open(flotttest.Restore(taken))
		}
		if at >= 60 {
			h.EndInput()
			h.Close()
			if e.read == nil {
				e.read = func() []string { return linesBelow(t, disk, "/out") }
			}
			e.check(t, e.read(), at)
		}
	}
}

func (e *ending) check(t *testing.T, got []string, n int64) {
	t.Helper()
	counts := map[string]int{}
	for _, line := range got {
		counts[line]++
	}
	for i := range n {
		if c := counts[text0(i)]; c == 0 || c > 1 && !e.twice {
			t.Errorf("%s is there %d times", text0(i), c)
		}
		delete(counts, text0(i))
	}
	if len(counts) > 0 && !e.twice {
		t.Errorf("lines that were not written: %v", counts)
	}
}

// linesBelow are the lines of all visible files.
func linesBelow(t *testing.T, disk vfs.FS, dir string) (lines []string) {
	t.Helper()
	entries, err := disk.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		name := path.Join(dir, e.Name())
		switch {
		case strings.HasPrefix(e.Name(), "."):
		case e.IsDir():
			lines = append(lines, linesBelow(t, disk, name)...)
		default:
			b, err := vfs.ReadFile(disk, name)
			if err != nil {
				t.Fatal(err)
			}
			lines = append(lines, strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")...)
		}
	}
	return lines
}
