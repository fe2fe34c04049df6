package filesink_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/flott-dev/flott/connector"
	"github.com/flott-dev/flott/connector/file"
	"github.com/flott-dev/flott/connector/file/filetest"
	"github.com/flott-dev/flott/connector/filesink"
	"github.com/flott-dev/flott/internal/clock"
	"github.com/flott-dev/flott/internal/vfs"
)

// context of a writer that knows the time.
type writerContext struct {
	filetest.WriterContext
	clock *clock.Manual
}

func (c *writerContext) Now() int64 { return c.clock.Millis() }

// saved is a snapshot of a job.
type saved struct {
	at           int // elements read
	parallelism  int
	states       [][]byte
	committables [][]byte
}

// job is a job that numbers lines, writes them, takes checkpoints, and goes on after failures from the last complete one.
type job struct {
	t           *testing.T
	sink        func(fs vfs.FS) *filesink.Sink[string]
	lines       []string
	every       int // elements between checkpoints
	parallelism func(attempt, at int) int
	stops       map[int]bool // elements at which the job stops with a snapshot and goes on
	clock       *clock.Manual
	last        *saved
	id          int // of checkpoints
	attempt     int
	writers     []connector.Writer[string]
	committers  []connector.Committer[filesink.Committable]
	prepared    [][]byte // not committed yet, by a complete checkpoint
}

func numbered(n int) []string {
	lines := make([]string, n)
	for i := range lines {
		lines[i] = fmt.Sprintf("%c-line-%03d", 'a'+i/7%3, i)
	}
	lines[n/2] += strings.Repeat(".", 70_000)
	return lines
}

// run runs one attempt to the end of the input or to an error.
func (j *job) run(f vfs.FS) error {
	at, err := j.open(f)
	if err != nil {
		return err
	}
	for ; at < len(j.lines); at++ {
		j.clock.Set(int64(at) * 100)
		w := j.writers[at%len(j.writers)]
		if err := w.Write(j.lines[at], connector.ElementContext{Timestamp: int64(at), ProcessingTime: j.clock.Millis()}); err != nil {
			return err
		}
		if _, err := w.(connector.TimedWriter).OnTime(j.clock.Millis()); err != nil {
			return err
		}
		if (at+1)%j.every != 0 {
			continue
		}
		if err := j.checkpoint(at+1, false); err != nil {
			return err
		}
		if j.stops[at+1] {
			delete(j.stops, at+1)
			if err := j.close(); err != nil {
				return err
			}
			return errStopped
		}
	}
	return errors.Join(j.checkpoint(at, true), j.close())
}

var errStopped = errors.New("stopped")

func (j *job) open(f vfs.FS) (at int, err error) {
	n := 1
	if j.last != nil {
		at = j.last.at
	}
	if j.parallelism != nil {
		n = j.parallelism(j.attempt, at)
	}
	j.attempt++
	j.writers, j.committers, j.prepared = nil, nil, nil
	s := j.sink(f)
	for i := range n {
		ctx := &writerContext{filetest.WriterContext{Index: i, Number: n, AttemptNow: j.attempt}, j.clock}
		c, err := s.Committer(ctx)
		if err != nil {
			return 0, err
		}
		w, err := j.writer(s, ctx)
		if err != nil {
			return 0, err
		}
		j.writers, j.committers = append(j.writers, w), append(j.committers, c)
	}
	if j.last != nil {
		j.prepared = j.last.committables
		return at, j.commit()
	}
	return at, nil
}

func (j *job) writer(s *filesink.Sink[string], ctx *writerContext) (connector.Writer[string], error) {
	if j.last == nil {
		return s.Writer(ctx)
	}
	var states []connector.WriterState
	for i, b := range j.last.states {
		states = append(states, connector.WriterState{Subtask: i, Mine: i%ctx.Parallelism() == ctx.Subtask(), State: b})
	}
	return s.RestoreWriter(ctx, int64(j.id), states)
}

// checkpoint takes one; every third is never complete.
func (j *job) checkpoint(at int, end bool) error {
	now := &saved{at: at, parallelism: len(j.writers)}
	j.id++
	for _, w := range j.writers {
		if err := w.Flush(end); err != nil {
			return err
		}
		cs, err := w.(connector.CommittingWriter[string, filesink.Committable]).Prepare()
		if err != nil {
			return err
		}
		for _, c := range cs {
			b, _ := c.MarshalBinary()
			j.prepared = append(j.prepared, b)
		}
		state, err := w.(connector.StatefulWriter).Snapshot(int64(j.id))
		if err != nil {
			return err
		}
		now.states = append(now.states, state)
	}
	now.committables = append(now.committables, j.prepared...)
	if !end && !j.stops[at] && j.id%3 == 0 {
		return nil
	}
	j.last = now
	return j.commit()
}

// commit commits what a complete checkpoint covers, dealt out to the committers.
func (j *job) commit() error {
	for i, c := range j.committers {
		var mine []filesink.Committable
		for k, b := range j.prepared {
			if k%len(j.committers) != i {
				continue
			}
			var x filesink.Committable
			if err := x.UnmarshalBinary(b); err != nil {
				return err
			}
			mine = append(mine, x)
		}
		err := connector.ErrRetry
		for try := 0; try < 3 && errors.Is(err, connector.ErrRetry); try++ {
			err = c.Commit(context.Background(), mine)
		}
		if err != nil {
			return err
		}
	}
	j.prepared = nil
	return nil
}

// close is what a task does at its end, good or bad.
func (j *job) close() error {
	var err error
	for _, w := range j.writers {
		err = errors.Join(err, w.Close())
	}
	for _, c := range j.committers {
		err = errors.Join(err, c.Close())
	}
	return err
}

// contents are the lines of all visible files, and the names of all hidden ones.
func contents(t *testing.T, f vfs.FS, dir string) (lines, files, hidden []string) {
	t.Helper()
	entries, err := f.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		name := path.Join(dir, e.Name())
		switch {
		case e.Name()[0] == '.':
			hidden = append(hidden, name)
		case e.IsDir():
			l, n, h := contents(t, f, name)
			lines, files, hidden = append(lines, l...), append(files, n...), append(hidden, h...)
		default:
			data, err := vfs.ReadFile(f, name)
			if err == nil {
				data, err = decompressed(name, data)
			}
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			text, whole := strings.CutSuffix(string(data), "\n")
			if strings.Contains(name, ".headed") {
				rest, ok := strings.CutPrefix(text, "head\n")
				text, whole = rest, whole && ok
			}
			if !whole {
				t.Fatalf("%s has no head or ends within a line: %.100q", name, data)
			}
			files, lines = append(files, name), append(lines, strings.Split(text, "\n")...)
		}
	}
	return lines, files, hidden
}

func decompressed(name string, data []byte) ([]byte, error) {
	switch path.Ext(name) {
	case ".leaves":
		return unleaved(data)
	case ".gz":
		z, err := gzip.NewReader(bytes.NewReader(data))
		if err != nil {
			return nil, err
		}
		return io.ReadAll(z)
	case ".zst":
		z, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
		if err != nil {
			return nil, err
		}
		defer z.Close()
		return z.DecodeAll(data, nil)
	}
	return data, nil
}

// check compares the visible lines with what was written: each at most once, and once if the job has come to at.
func (j *job) check(f vfs.FS, all bool) (hidden []string) {
	j.t.Helper()
	lines, _, hidden := contents(j.t, f, "out")
	seen := map[string]int{}
	for _, l := range lines {
		seen[l]++
	}
	for _, l := range j.lines {
		if n := seen[l]; n > 1 || all && n != 1 {
			j.t.Fatalf("line %.30q is visible %d times", l, n)
		}
		delete(seen, l)
	}
	for l := range seen {
		j.t.Fatalf("line %.30q was never written", l)
	}
	return hidden
}

// ids are ids that no two writers share.
func ids() func() string {
	var n atomic.Int64
	return func() string { return fmt.Sprint("id", n.Add(1)) }
}

// number is a setting of the environment.
func number(t *testing.T, name string, otherwise uint64) uint64 {
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// sinks are the ways to write that the tests of crashes try.
func sinks() map[string]func(fs vfs.FS) *filesink.Sink[string] {
	id := ids()
	on := func(change func(s *filesink.Sink[string]) *filesink.Sink[string]) func(vfs.FS) *filesink.Sink[string] {
		s := change(filesink.New("out", file.TextEncoding[string]("\n")).BucketBy(func(x string) string { return x[:1] }))
		return func(fs vfs.FS) *filesink.Sink[string] { return s.On(fs, id) }
	}
	type sink = *filesink.Sink[string]
	whole := filesink.NewBulk("out", leaves).BucketBy(func(x string) string { return x[:1] })
	bulk := func(s *filesink.Sink[string]) func(vfs.FS) *filesink.Sink[string] {
		return func(fs vfs.FS) *filesink.Sink[string] { return s.On(fs, id) }
	}
	headed := filesink.New("out", file.Encoding[string]{Begin: "head\n", Open: file.TextEncoding[string]("").Open}).PartSuffix(".headed")
	return map[string]func(fs vfs.FS) *filesink.Sink[string]{
		"whole files":      bulk(whole),
		"one file":         on(func(s sink) sink { return s.NoBuckets().RolloverInterval(0) }),
		"buckets":          on(func(s sink) sink { return s }),
		"small files":      on(func(s sink) sink { return s.MaxPartSize(25) }),
		"idle files":       on(func(s sink) sink { return s.InactivityInterval(900 * time.Millisecond) }),
		"old files":        on(func(s sink) sink { return s.RolloverInterval(500 * time.Millisecond).NoBuckets() }),
		"every checkpoint": on(func(s sink) sink { return s.RollOnCheckpoint() }),
		"gzip":             on(func(s sink) sink { return s.Compress(filesink.Gzip).PartSuffix(".txt") }),
		"zstd":             on(func(s sink) sink { return s.Compress(filesink.Zstd).PartSuffix(".txt") }),

		"compacted":         on(func(s sink) sink { return s.NoBuckets().RollOnCheckpoint().CompactAfter(2) }),
		"compacted slowly":  on(func(s sink) sink { return s.RollOnCheckpoint().CompactAfter(1).MaxPartSize(25).Portions(1, 1) }),
		"compacted by size": bulk(headed.NoBuckets().MaxPartSize(25).RolloverInterval(0).CompactSize(60)),
		"compacted gzip":    bulk(headed.Compress(filesink.Gzip).NoBuckets().CompactAfter(2).Portions(1, 1)),
		"compacted zstd":    bulk(headed.Compress(filesink.Zstd).NoBuckets().CompactAfter(3)),
		"stored":            stored(filesink.New("store://out", file.TextEncoding[string]("\n")).BucketBy(func(x string) string { return x[:1] }), id),
		"compacted stored":  stored(filesink.New("store://out", file.TextEncoding[string]("\n")).NoBuckets().CompactAfter(2).Portions(1, 1), id),
		"compacted whole":   bulk(whole.MaxPartSize(25).CompactSize(60).CompactReading(leafFormat{}).Portions(1, 1)),
	}
}

// rescaled runs with 1, 3 and 1 subtasks, changing at stops and at crashes.
func rescaled(attempt, _ int) int { return []int{1, 3, 1, 2}[attempt%4] }

// play runs a job on a disk with failures until it comes to its end. disk gives the file system of each attempt.
func (j *job) play(m *vfs.Mem, disk func(attempt int) vfs.FS, afterCrash func()) {
	j.t.Helper()
	for range 20 {
		err := j.run(disk(j.attempt))
		switch {
		case err == nil:
			return
		case errors.Is(err, errStopped):
		case errors.Is(err, errCrash):
			afterCrash()
			j.check(m, false)
		default:
			j.t.Fatal(err)
		}
	}
	j.t.Fatal("the job does not come to its end")
}

func newJob(t *testing.T, sink func(fs vfs.FS) *filesink.Sink[string], rescale bool) *job {
	j := &job{t: t, sink: sink, lines: numbered(18), every: 3, clock: clock.NewManual(0), stops: map[int]bool{}}
	if rescale {
		j.parallelism = rescaled
		j.stops = map[int]bool{6: true, 12: true}
	}
	return j
}

func TestCrashAtEveryOperationLosesAndDoublesNothing(t *testing.T) {
	for name, sink := range sinks() {
		if strings.HasSuffix(name, "zstd") {
			continue // it does to the disk what gzip does
		}
		for _, rescale := range []bool{false, true} {
			if !rescale && strings.HasPrefix(name, "compacted") {
				continue // the other one has all that happens here
			}
			for _, power := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/rescale %v/power %v", name, rescale, power), func(t *testing.T) {
					for at := 1; ; at += stride {
						m := vfs.NewMem()
						disk := &crashing{FS: m, at: at}
						j := newJob(t, sink, rescale)
						covered := false
						j.play(m, func(int) vfs.FS { return disk }, func() {
							covered = j.last != nil
							disk.at = 0
							if power {
								m.Crash()
							}
						})
						hidden := j.check(m, true)
						if len(hidden) > 0 && (covered || disk.at > 0) {
							t.Errorf("crash at %d: left over: %q", at, hidden)
						}
						if disk.at > 0 {
							if at < 25 {
								t.Errorf("only %d operations", at)
							}
							return
						}
					}
				})
			}
		}
	}
}

func TestManyCrashesLoseAndDoubleNothing(t *testing.T) {
	for name, sink := range sinks() {
		t.Run(name, func(t *testing.T) {
			for seed := range 1 + 20*number(t, "FLOTT_SOAK", 1)/stride {
				r := rand.New(rand.NewPCG(seed, 1))
				m := vfs.NewMem()
				j := newJob(t, sink, true)
				disk := &crashing{FS: m, at: 1 + r.IntN(80)}
				crashes := 0
				j.play(m, func(int) vfs.FS { return disk }, func() {
					if disk.ops, disk.at = 0, 1+r.IntN(120); crashes > 8 {
						disk.at = 0
					}
					crashes++
					if r.IntN(2) == 0 {
						m.Crash()
					}
				})
				j.check(m, true)
				if t.Failed() {
					t.Fatalf("seed %d", seed)
				}
			}
		})
	}
}

func TestEveryFaultOfTheDiskLosesAndDoublesNothing(t *testing.T) {
	ops := []vfs.Op{
		vfs.OpOpen, vfs.OpCreate, vfs.OpReadDir, vfs.OpStat, vfs.OpRename, vfs.OpRemove,
		vfs.OpMkdir, vfs.OpSyncDir, vfs.OpRead, vfs.OpWrite, vfs.OpSync, vfs.OpClose,
	}
	for name, sink := range sinks() {
		if strings.HasSuffix(name, "zstd") {
			continue // it does to the disk what gzip does
		}
		for _, op := range ops {
			t.Run(fmt.Sprintf("%s/%s", name, op), func(t *testing.T) {
				for nth := 1; ; nth += stride {
					m := vfs.NewMem()
					disk := vfs.NewFaulty(m)
					disk.Fail(op, nth, syscall.EIO)
					j := newJob(t, sink, true)
					failed := j.withFaults(m, disk)
					j.check(m, true)
					if disk.Calls(op) < nth {
						return
					}
					if strings.HasSuffix(name, "stored") {
						continue // all that happens in a commit, which is tried again
					}
					if !failed && op != vfs.OpRename && op != vfs.OpStat && op != vfs.OpSyncDir && op != vfs.OpRemove {
						t.Errorf("nobody has noticed that %s %d failed", op, nth)
					}
				}
			})
		}
	}
}

// withFaults runs a job until it comes to its end, with tasks that are closed after failures.
func (j *job) withFaults(m *vfs.Mem, disk vfs.FS) (failed bool) {
	j.t.Helper()
	for range 10 {
		err := j.run(disk)
		if err == nil {
			return failed
		}
		if !errors.Is(err, errStopped) {
			failed = true
			_ = j.close()
		}
		j.check(m, false)
	}
	j.t.Fatal("the job does not come to its end")
	return failed
}

func TestFullDiskLosesAndDoublesNothing(t *testing.T) {
	for name, sink := range sinks() {
		t.Run(name, func(t *testing.T) {
			for space := int64(0); space < 72_000; space = space*(4+stride)/4 + 7 {
				m := vfs.NewMem()
				disk := vfs.NewFaulty(m)
				disk.Space(space)
				j := newJob(t, sink, true)
				for range 3 {
					if err := j.run(disk); err != nil && !errors.Is(err, errStopped) {
						if !errors.Is(err, vfs.ErrNoSpace) {
							t.Fatal(err)
						}
						_ = j.close()
					}
					j.check(m, false)
				}
				disk.Space(-1)
				j.withFaults(m, disk)
				j.check(m, true)
			}
		})
	}
}
