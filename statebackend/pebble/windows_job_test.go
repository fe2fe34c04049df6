package pebble_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/flott-dev/flott/statebackend"
	"github.com/flott-dev/flott/statebackend/pebble"
	"github.com/flott-dev/flott/stream"
	"github.com/flott-dev/flott/watermark"
	"github.com/flott-dev/flott/window"
)

// visit is an element of the windowed jobs.
type visit struct {
	Who int64
	At  int64 // ms
	N   int64
}

func (v visit) who() int64 { return v.Who }
func (v visit) n() int64   { return v.N }

type perVisitor = window.Result[int64, window.Time, int64]

// results are what a job's windows give.
type results struct {
	mu  sync.Mutex
	all []string
}

func (r *results) sorted() []string {
	slices.Sort(r.all)
	return r.all
}

// visits is a stream of visits with timestamps up to half a second out of order.
func visits(env *stream.Env, all []visit) *stream.KeyedStream[visit, int64] {
	return env.FromSlice(all).UID("visits").
		AssignTimestampsAndWatermarks(watermark.BoundedOutOfOrderness(300*time.Millisecond, func(v visit) time.Time { return time.UnixMilli(v.At) })).
		KeyBy(visit.who)
}

// windows builds windows of three kinds; change does something with each.
func windows(env *stream.Env, all []visit, change func(*stream.WindowedStream[visit, int64, window.Time]) *stream.WindowedStream[visit, int64, window.Time]) *results {
	r := &results{}
	keyed := visits(env, all)
	for name, w := range map[string]window.Assigner[window.Time]{
		"tumbling": window.Tumbling(time.Second), "sliding": window.Sliding(3*time.Second, time.Second), "sessions": window.Session(700 * time.Millisecond),
	} {
		change(keyed.Window(w).AllowedLateness(100 * time.Millisecond)).Sum(visit.n).UID(name).Name(name).ForEach(func(x perVisitor) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.all = append(r.all, fmt.Sprint(name, " ", x.Key, x.Window, x.Value))
		})
	}
	return r
}

type windowed = stream.WindowedStream[visit, int64, window.Time]

func asTheyAre(w *windowed) *windowed { return w }

func randomVisits(seed uint64, n int) (all []visit) {
	r := rand.New(rand.NewPCG(seed, 1))
	for i := range n {
		all = append(all, visit{Who: r.Int64N(40), At: int64(i)*3 + r.Int64N(500), N: r.Int64N(100)})
	}
	return all
}

// TestWindowsGiveTheSameOnDisk compares windows in memory, on disk, and in memory beside a store on disk.
func TestWindowsGiveTheSameOnDisk(t *testing.T) {
	for seed := range uint64(3) {
		all := randomVisits(seed, 4000)
		env := stream.NewEnv().SetParallelism(1)
		want := windows(env, all, asTheyAre)
		if _, err := env.Execute(t.Context(), "in memory"); err != nil {
			t.Fatal(err)
		}
		if len(want.all) < 1000 {
			t.Fatalf("%d results", len(want.all))
		}
		for name, change := range map[string]func(*windowed) *windowed{"on disk": asTheyAre, "kept in memory": (*windowed).KeepInMemory} {
			env := stream.NewEnv(stream.WithBackends(pebble.Backend{Folder: t.TempDir(), CacheBytes: 1})).SetParallelism(1)
			got := windows(env, all, change)
			if _, err := env.Execute(t.Context(), name); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got.sorted(), want.sorted()) {
				t.Errorf("seed %d, %s: %d results, want %d, or others", seed, name, len(got.all), len(want.all))
			}
		}
	}
}

// TestPlansTellWhereWindowsAre reads the window paths of a job on disk.
func TestPlansTellWhereWindowsAre(t *testing.T) {
	env := stream.NewEnv(stream.WithBackends(pebble.Backend{}))
	keyed := visits(env, randomVisits(1, 10))
	keyed.Window(window.Tumbling(time.Second)).Sum(visit.n).Name("on disk").Discard()
	keyed.Window(window.Tumbling(time.Second)).KeepInMemory().Sum(visit.n).Name("kept").Discard()
	keyed.Window(window.Session(time.Second)).Sum(visit.n).Name("sessions").Discard()
	text, err := env.Explain()
	if err != nil {
		t.Fatal(err)
	}
	paths := map[string]string{}
	for line := range strings.Lines(text) {
		name, attributes, _ := strings.Cut(strings.TrimLeft(line, " -"), "  ")
		if _, path, ok := strings.Cut(attributes, "window path: "); ok {
			paths[name], _, _ = strings.Cut(path, ", w")
		}
	}
	want := map[string]string{
		"on disk": "general (windows on disk, not slices)", "kept": "slices", "sessions": "general (windows on disk, not sessions)",
	}
	if fmt.Sprint(paths) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v, in\n%s", paths, want, text)
	}
}

// heavy is an element of 256 bytes.
type heavy struct {
	Who, At, N int64
	Load       [29]int64
}

// TestWindowsNeedNotFitIntoMemory runs a job with more open windows than its memory holds. Kept in memory it fails.
func TestWindowsNeedNotFitIntoMemory(t *testing.T) {
	const n, memory = 50_000, 10 << 20
	run := func(change func(*stream.WindowedStream[heavy, int64, window.Time]) *stream.WindowedStream[heavy, int64, window.Time]) (sum int64, err error) {
		env := stream.NewEnv(stream.WithMemory(memory), stream.WithBackends(pebble.Backend{Folder: t.TempDir(), CacheBytes: 2 << 20})).SetParallelism(1)
		var total atomic.Int64
		keyed := env.FromGenerator(n, func(i int64) heavy { return heavy{Who: i, At: i % 1000 * 60_000, N: i} }, 0).
			AssignTimestampsAndWatermarks(watermark.BoundedOutOfOrderness(24*time.Hour, func(v heavy) time.Time { return time.UnixMilli(v.At) })).
			KeyBy(func(v heavy) int64 { return v.Who })
		change(keyed.Window(window.Tumbling(time.Minute))).Reduce(func(a, b heavy) heavy { a.N += b.N; return a }).
			ForEach(func(x heavy) { total.Add(x.N) })
		_, err = env.Execute(t.Context(), "windows")
		return total.Load(), err
	}
	if _, err := run((*stream.WindowedStream[heavy, int64, window.Time]).KeepInMemory); !errors.Is(err, statebackend.ErrOutOfMemory) {
		t.Errorf("kept in memory: %v", err)
	}
	sum, err := run(func(w *stream.WindowedStream[heavy, int64, window.Time]) *stream.WindowedStream[heavy, int64, window.Time] {
		return w
	})
	if err != nil || sum != n*(n-1)/2 {
		t.Errorf("the windows sum up to %d, %v", sum, err)
	}
}
