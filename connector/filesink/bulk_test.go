package filesink_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
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

// leaves is a format of whole files: a head, leaves of up to four lines, and a foot with the number of lines.
var leaves = file.BulkEncoding[string]{
	Open: func(w io.Writer) (file.BulkWriter[string], error) {
		_, err := io.WriteString(w, "head\n")
		return &leafWriter{w: w}, err
	},
	Extension: ".leaves",
}

type leafWriter struct {
	w    io.Writer
	leaf []byte
	n    int
	runs []int // lengths of what Write was called with
}

func (l *leafWriter) Write(xs []string) error {
	l.runs = append(l.runs, len(xs))
	for _, x := range xs {
		l.leaf = append(append(l.leaf, x...), '\n')
		if l.n++; l.n%4 == 0 {
			if err := l.turn(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (l *leafWriter) turn() error {
	_, err := l.w.Write(l.leaf)
	l.leaf = l.leaf[:0]
	return err
}

func (l *leafWriter) Held() int64 { return int64(len(l.leaf)) }

func (l *leafWriter) Close() error {
	l.leaf = fmt.Appendf(l.leaf, "foot %d\n", l.n)
	return l.turn()
}

// unleaved are the lines of a file of leaves.
func unleaved(data []byte) ([]byte, error) {
	body, ok := bytes.CutPrefix(data, []byte("head\n"))
	i := bytes.LastIndex(body, []byte("foot "))
	if !ok || i < 0 {
		return nil, errors.New("no whole file of leaves")
	}
	if foot := fmt.Sprintf("foot %d\n", bytes.Count(body[:i], []byte("\n"))); string(body[i:]) != foot {
		return nil, fmt.Errorf("%q, want %q", body[i:], foot)
	}
	return body[:i], nil
}

// leafFormat reads leaves, three lines at once.
type leafFormat struct{ err error }

func (f leafFormat) Check() error   { return f.err }
func (leafFormat) Splittable() bool { return false }

func (leafFormat) Decoder(in *file.Input) (file.Decoder[string], error) {
	r, size, err := in.ReaderAt()
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.NewSectionReader(r, 0, size))
	if err == nil {
		data, err = unleaved(data)
	}
	return &leafReader{strings.SplitAfter(string(data), "\n")}, err
}

type leafReader struct{ lines []string }

func (r *leafReader) Decode(out *connector.Output[string]) error {
	for range 3 {
		if r.lines[0] == "" {
			return io.EOF
		}
		out.Emit(strings.TrimSuffix(r.lines[0], "\n"))
		r.lines = r.lines[1:]
	}
	return nil
}

func (r *leafReader) Position() int64 { return 0 }

func bulk() *filesink.Sink[string] { return filesink.NewBulk("out", leaves).NoBuckets() }

func TestWholeFilesAreClosedAtCheckpoints(t *testing.T) {
	m := vfs.NewMem()
	h := byHand(t, m, bulk())
	h.write(0, "a", "b", "c", "d", "e")
	h.checkpoint(0)
	h.checkpoint(0)
	h.write(0, "f")
	cs, _ := h.prepare(0, true)
	h.ok(h.commit(cs))
	want(t, visible(t, m), "part-0-0.leaves: head a b c d e foot 5", "part-0-1.leaves: head f foot 1")
}

func TestWholeFilesCountWhatTheFormatHolds(t *testing.T) {
	m := vfs.NewMem()
	h := byHand(t, m, bulk().MaxPartSize(int64(len("head\naa\nbb\n"))))
	h.write(0, "aa", "bb", "cc", "dd", "ee") // the third makes it larger
	cs, _ := h.prepare(0, true)
	h.ok(h.commit(cs))
	want(t, visible(t, m), "part-0-0.leaves: head aa bb cc foot 3", "part-0-1.leaves: head dd ee foot 2")
}

func TestWholeFilesGrowOld(t *testing.T) {
	m := vfs.NewMem()
	h := byHand(t, m, bulk().RolloverInterval(time.Minute).InactivityInterval(0))
	h.write(0, "a")
	h.write(59*time.Second, "b")
	h.write(time.Minute, "c")
	cs, _ := h.prepare(time.Minute, true)
	h.ok(h.commit(cs))
	want(t, visible(t, m), "part-0-0.leaves: head a b foot 2", "part-0-1.leaves: head c foot 1")
}

func TestSuffixReplacesTheExtension(t *testing.T) {
	for suffix, name := range map[string]string{".x.leaves": "part-0-0.x.leaves", "": "part-0-0"} {
		m := vfs.NewMem()
		h := byHand(t, m, bulk().PartSuffix(suffix))
		h.write(0, "a")
		cs, _ := h.prepare(0, true)
		h.ok(h.commit(cs))
		if _, err := m.Stat("out/" + name); err != nil {
			t.Error(err)
		}
	}
}

func TestFormatsGetTheRunsOfABucket(t *testing.T) {
	var files []*leafWriter
	e := leaves
	e.Open = func(w io.Writer) (file.BulkWriter[string], error) {
		f := &leafWriter{w: w}
		files = append(files, f)
		return f, nil
	}
	run, times := []string{"a1", "a2", "b1", "a3"}, []int64{0, 1, 86_400_000, 2}
	long := make([]string, 600)
	type sink = *filesink.Sink[string]
	for name, c := range map[string]struct {
		change func(s sink) sink
		xs     []string
		times  []int64
		want   string
	}{
		"none":            {func(s sink) sink { return s.NoBuckets() }, run, nil, "[[4]]"},
		"processing time": {func(s sink) sink { return s }, run, times, "[[4]]"},
		"event time":      {func(s sink) sink { return s.BucketByEventTime("dd", time.UTC) }, run, times, "[[2 1] [1]]"},
		"element":         {func(s sink) sink { return s.BucketBy(func(x string) string { return x[:1] }) }, run, nil, "[[2 1] [1]]"},
		"long":            {func(s sink) sink { return s }, long, nil, "[[256 256 88]]"},
		"empty":           {func(s sink) sink { return s }, nil, nil, "[]"},
	} {
		files = nil
		h := byHand(t, vfs.NewMem(), c.change(filesink.NewBulk("out", e)))
		h.ok(h.w.(connector.RunWriter[string]).WriteRun(c.xs, c.times))
		runs := [][]int{}
		for _, f := range files {
			runs = append(runs, f.runs)
		}
		if got := fmt.Sprint(runs); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
	h := byHand(t, vfs.NewMem(), filesink.NewBulk("out", e).BucketWith(func(x string, at connector.ElementContext) string {
		return fmt.Sprint(at.Watermark)
	}))
	if _, ok := h.w.(connector.RunWriter[string]); ok {
		t.Error("runs know no watermark")
	}
}

func TestMistakesOfFormatsAreReported(t *testing.T) {
	own := errors.New("own")
	digit := leaves
	digit.Extension = "7z"
	for want, s := range map[string]*filesink.Sink[string]{
		"no encoding":                        filesink.NewBulk("out", file.BulkEncoding[string]{}),
		"own":                                filesink.NewBulk("out", file.BulkEncoding[string]{Err: own}),
		"tell the format to compress inside": bulk().Compress(filesink.Gzip),
		"digit":                              filesink.NewBulk("out", digit),
	} {
		if err := s.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// failing is a format whose calls fail.
type failing struct {
	file.BulkWriter[string]
	write, close error
}

func (f failing) Write(xs []string) error { return errors.Join(f.write, f.BulkWriter.Write(xs)) }
func (f failing) Close() error            { return errors.Join(f.close, f.BulkWriter.Close()) }

func TestErrorsOfFormatsFailTheTask(t *testing.T) {
	own := errors.New("own")
	for _, c := range []struct {
		what               string
		open, write, close error
	}{{"begin", own, nil, nil}, {"write elements to", nil, own, nil}, {"write the end of", nil, nil, own}} {
		m := vfs.NewMem()
		h := byHand(t, m, filesink.NewBulk("out", file.BulkEncoding[string]{
			Open: func(w io.Writer) (file.BulkWriter[string], error) {
				f, err := leaves.Open(w)
				return failing{f, c.write, c.close}, errors.Join(err, c.open)
			},
		}).NoBuckets())
		err := h.w.Write("a", connector.ElementContext{})
		if err == nil {
			err = h.w.Flush(false)
		}
		if !errors.Is(err, own) || !strings.Contains(err.Error(), c.what+" out/.part-0-0.inprogress.id1") {
			t.Errorf("%s: %v", c.what, err)
		}
		h.ok(h.w.Close())
		if _, _, hidden := contents(t, m, "out"); len(hidden) > 0 {
			t.Errorf("%s: left over: %q", c.what, hidden)
		}
	}
}

func TestFullDiskFailsWholeFiles(t *testing.T) {
	for nth := 1; nth <= 3; nth++ { // what was gathered, a leaf that is larger than a block, the end
		disk := vfs.NewFaulty(vfs.NewMem())
		h := byHand(t, disk, bulk())
		disk.Fail(vfs.OpWrite, nth, syscall.ENOSPC)
		x := strings.Repeat("x", 50_000)
		err := h.w.(connector.RunWriter[string]).WriteRun([]string{x, x, x, x, x, x, x, x, "a", "b", "c", "d"}, nil)
		if err == nil {
			err = h.w.Flush(true)
		}
		if disk.Calls(vfs.OpWrite) < nth {
			t.Fatalf("%d writes", disk.Calls(vfs.OpWrite))
		}
		if !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("write %d: %v", nth, err)
		}
	}
}

// A job that wrote records goes on with whole files: what was open becomes visible as it is.
func TestRecordsBecomeWholeFiles(t *testing.T) {
	m := vfs.NewMem()
	h := byHand(t, m, lines())
	h.write(0, "a")
	state := h.checkpoint(0)
	h.sink = bulk().On(m, func() string { return "later" })
	h = h.restore(0, 1, own(state))
	h.write(0, "b")
	cs, _ := h.prepare(0, true)
	h.ok(h.commit(cs))
	want(t, visible(t, m), "part-0-0: a", "part-0-1.leaves: head b foot 1")
}

func TestLargeWholeFilesAreWhole(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	var all []string
	for range 300 {
		all = append(all, strings.Repeat(string(rune('a'+r.IntN(26))), r.IntN(40_000)))
	}
	m := vfs.NewMem()
	h := byHand(t, m, bulk())
	h.ok(h.w.(connector.RunWriter[string]).WriteRun(all, nil))
	cs, _ := h.prepare(0, true)
	h.ok(h.commit(cs))
	got, _, _ := contents(t, m, "out")
	info, err := m.Stat("out/part-0-0.leaves")
	if !slices.Equal(got, all) || err != nil || cs[0].Size != info.Size() {
		t.Errorf("%d lines of %d, %v, %v", len(got), len(all), cs, err)
	}
}

func TestElementsOfWholeFilesCostNoMemory(t *testing.T) {
	h := byHand(t, nowhere{vfs.NewMem()}, filesink.NewBulk("out", file.BulkEncoding[string]{
		Open: func(w io.Writer) (file.BulkWriter[string], error) { return &counter{}, nil },
	}).BucketBy(func(x *string) string { return (*x)[:1] }))
	run := slices.Repeat([]string{"a", "a", "b"}, 100)
	runs := h.w.(connector.RunWriter[string])
	if n := testing.AllocsPerRun(500, func() {
		h.ok(runs.WriteRun(run, nil))
		h.ok(h.w.Write("a", connector.ElementContext{}))
	}); n >= 1 {
		t.Errorf("%v allocations for a run of 300", n)
	}
}

// counter is a format that only counts.
type counter struct{ n int }

func (c *counter) Write(xs []string) error { c.n += len(xs); return nil }
func (c *counter) Held() int64             { return int64(c.n) }
func (c *counter) Close() error            { return nil }

func BenchmarkWriteBulk(b *testing.B) {
	run := make([]string, 512)
	for i := range run {
		run[i] = strings.Repeat("x", 40)
	}
	s := filesink.NewBulk("out", leaves)
	for name, s := range map[string]*filesink.Sink[string]{
		"processing time": s,
		"element":         s.BucketBy(func(x *string) string { return (*x)[:1] }),
	} {
		b.Run(name, func(b *testing.B) {
			w, err := s.On(nowhere{vfs.NewMem()}, ids()).Writer(&filetest.WriterContext{})
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				if err := w.(connector.RunWriter[string]).WriteRun(run, nil); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/512, "ns/element")
		})
	}
}
