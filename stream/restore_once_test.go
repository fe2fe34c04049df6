package stream_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"path"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/flott-dev/flott/checkpoint"
	"github.com/flott-dev/flott/internal/env"
	"github.com/flott-dev/flott/internal/vfs"
	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/state"
	"github.com/flott-dev/flott/stream"
)

// holding is what a key of the test's job holds.
type holding struct {
	Count int64
	Notes [11]int64
}

func holdingOf(key int64) holding { return holding{key, [11]int64{10: -key}} }

// holder looks whether the state of each key is what the snapshot had, and changes it.
type holder struct {
	process.NoTimers[int64, string]
	value *state.Value[holding]
	list  *state.List[string]
	all   *state.Map[int64, string]
}

func newHolder(rt *process.Runtime) *holder {
	return &holder{value: state.NewValue[holding](rt, "value"), list: state.NewList[string](rt, "list"), all: state.NewMap[int64, string](rt, "map")}
}

func (h *holder) ProcessElement(ctx *process.KeyedContext[int64], key int64, out *process.Collector[string]) error {
	v := h.value.Get()
	text := fmt.Sprint(v.Count, " ", v.Notes[10])
	for s := range h.list.All() {
		text += " " + s
	}
	out.Collect(text + " " + h.all.Get(key))
	return nil
}

func heldText(key int64) string { return fmt.Sprintf("%d %d a%d b%d m%d", key, -key, key, key, key) }

// over gives something for each key.
func over[V any](n int64, of func(int64) V) iter.Seq2[int64, V] {
	return func(yield func(int64, V) bool) {
		for key := range n {
			if !yield(key, of(key)) {
				return
			}
		}
	}
}

// holdings writes a savepoint with the state of so many keys.
func holdings(t *testing.T, disk vfs.FS, n int64) (at string) {
	t.Helper()
	draft, at := checkpoint.NewDraft("holdings"), "/savepoints/first"
	o := draft.Operator("holder")
	err := errors.Join(
		o.SetValues("value", over(n, holdingOf)),
		o.SetLists("list", over(n, func(key int64) []string { return []string{fmt.Sprint("a", key), fmt.Sprint("b", key)} })),
		o.SetMaps("map", over(n, func(key int64) map[int64]string { return map[int64]string{key: fmt.Sprint("m", key)} })),
		disk.MkdirAll("/savepoints"),
	)
	if err == nil {
		err = draft.Write(t.Context(), disk, at)
	}
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// chunkReads counts the bytes that are read of chunks.
type chunkReads struct {
	vfs.FS
	n atomic.Int64
}

func (c *chunkReads) Open(name string) (vfs.File, error) {
	f, err := c.FS.Open(name)
	if err != nil || path.Ext(name) != ".chunk" {
		return f, err
	}
	return countedFile{f, c}, nil
}

type countedFile struct {
	vfs.File
	c *chunkReads
}

func (f countedFile) ReadAt(b []byte, at int64) (int, error) {
	n, err := f.File.ReadAt(b, at)
	f.c.n.Add(int64(n))
	return n, err
}

// A job that begins with a snapshot reads it once: what fills the state is what checks it.
func TestASnapshotIsReadOnceAtAStart(t *testing.T) {
	const n = 3000
	mem := vfs.NewMem()
	at := holdings(t, mem, n)
	m, err := checkpoint.Load(mem, at)
	if err != nil {
		t.Fatal(err)
	}
	size := int64(0)
	for _, name := range m.Files() {
		b, err := vfs.ReadFile(mem, name)
		if err != nil {
			t.Fatal(err)
		}
		size += int64(len(b))
	}
	for _, parallelism := range []int{1, 3, 2} {
		disk := &chunkReads{FS: mem}
		var first, failed atomic.Int64
		e := stream.NewEnv(stream.WithSavepoint(at), func(s *env.Settings) { s.Checkpoints.FS = disk }).
			SetParallelism(parallelism).SetRestartStrategy(stream.FixedDelayRestart(3, time.Millisecond))
		var got gather[string]
		e.FromGenerator(n, func(i int64) int64 { return i }, 1e9).UID("keys").
			TryMap(func(_ context.Context, x int64) (int64, error) {
				first.CompareAndSwap(0, disk.n.Load())
				if x == n/2 && failed.CompareAndSwap(0, 1) {
					return 0, errors.New("once")
				}
				return x, nil
			}).
			KeyBy(func(key int64) int64 { return key }).
			Process[*holder, string](newHolder).UID("holder").
			ForEach(got.add)
		job, err := e.ExecuteAsync(t.Context(), "again")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := job.Wait(); err != nil {
			t.Fatal(err)
		}
		if read := first.Load(); read < size-size/10 || read > size+size/4 {
			t.Errorf("parallelism %d: %d bytes were read before the first element, the files have %d", parallelism, read, size)
		}
		if failed.Load() == 0 || disk.n.Load() < first.Load()+size/2 {
			t.Errorf("parallelism %d: the second attempt read %d bytes", parallelism, disk.n.Load()-first.Load())
		}
		seen := map[string]bool{}
		for _, text := range got.xs {
			seen[text] = true
		}
		for key := range int64(n) {
			if !seen[heldText(key)] {
				t.Fatalf("parallelism %d: nothing says %q", parallelism, heldText(key))
			}
		}
		if len(seen) != n {
			t.Errorf("parallelism %d: %d texts", parallelism, len(seen))
		}
	}
}

// State that does not fit into memory is the failure of a task, as it is in any other attempt.
func TestStateThatDoesNotFitFailsATask(t *testing.T) {
	mem := vfs.NewMem()
	at := holdings(t, mem, 3000)
	e := stream.NewEnv(stream.WithMemory(150<<10), stream.WithSavepoint(at), func(s *env.Settings) { s.Checkpoints.FS = mem }).
		SetParallelism(2).SetRestartStrategy(stream.NoRestart())
	e.FromGenerator(10, func(i int64) int64 { return i }, 1e9).UID("keys").
		KeyBy(func(key int64) int64 { return key }).
		Process[*holder, string](newHolder).UID("holder").
		ForEach(func(string) {})
	job, err := e.ExecuteAsync(t.Context(), "again")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := job.Wait(); err == nil || !strings.Contains(err.Error(), `operator "Keyed Process"`) || !strings.Contains(err.Error(), "give the process more memory") {
		t.Errorf("got %v", err)
	}
}
