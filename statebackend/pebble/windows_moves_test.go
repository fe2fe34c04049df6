package pebble_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/flott-dev/flott/agg"
	"github.com/flott-dev/flott/statebackend/pebble"
	"github.com/flott-dev/flott/stream"
	"github.com/flott-dev/flott/watermark"
	"github.com/flott-dev/flott/window"
)

// moving is a job with windows of all kinds that is stopped with a savepoint and goes on in another way, and its results from
// the first to the last.
type moving struct {
	t  *testing.T
	n  int64
	mu sync.Mutex
	results
}

// way is how a job keeps its windows.
type way struct {
	name        string
	options     func(t *testing.T) []stream.Option
	change      func(*windowed) *windowed
	parallelism int
}

func inMemory(*testing.T) []stream.Option { return nil }

func generally(*testing.T) []stream.Option { return []stream.Option{stream.WithGeneralWindows()} }

func onDisk(t *testing.T) []stream.Option {
	return []stream.Option{stream.WithBackends(pebble.Backend{Folder: t.TempDir(), CacheBytes: 256 << 10})}
}

// build builds the job, whose source has so many elements, of which the first m.n are visits. reached is closed when it has come
// to one.
func (m *moving) build(env *stream.Env, w way, n int64, rate float64, until int64, reached chan struct{}) {
	var once sync.Once
	keyed := env.FromGenerator(n, func(i int64) visit {
		if i >= until {
			once.Do(func() { close(reached) })
		}
		if i >= m.n { // the job is to be stopped, not to end
			return visit{Who: -1}
		}
		return visit{Who: i * i % 23, At: i - i*7%200, N: i * 13 % 101}
	}, rate).UID("visits").Parallelism(1).Filter(func(v visit) bool { return v.Who >= 0 }).Parallelism(1).
		AssignTimestampsAndWatermarks(watermark.BoundedOutOfOrderness(200*time.Millisecond, func(v visit) time.Time { return time.UnixMilli(v.At) })).UID("times").Parallelism(1).
		KeyBy(visit.who)
	for name, a := range map[string]window.Assigner[window.Time]{
		"tumbling": window.Tumbling(700 * time.Millisecond), "sliding": window.Sliding(3*time.Second, 700*time.Millisecond),
		"sessions": window.Session(250 * time.Millisecond), "calendar": window.Daily(time.UTC),
	} {
		ws := w.change(keyed.Window(a).AllowedLateness(300 * time.Millisecond))
		ws.Aggregate(agg.Sum(visit.n)).UID(name + " sum").ForEach(func(x window.Result[int64, window.Time, int64]) { m.note(name, "sum", x.Key, x.Window, x.Value) })
		ws.Aggregate(agg.Min(visit.n)).UID(name + " min").ForEach(func(x window.Result[int64, window.Time, int64]) { m.note(name, "min", x.Key, x.Window, x.Value) })
		ws.Aggregate(agg.CountDistinct(visit.n)).UID(name + " distinct").ForEach(func(x window.Result[int64, window.Time, int64]) { m.note(name, "distinct", x.Key, x.Window, x.Value) })
	}
}

func (m *moving) note(name, what string, key int64, w window.Time, value int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.all = append(m.all, fmt.Sprint(name, " ", what, " ", key, w, value))
}

func (m *moving) env(w way, at string) *stream.Env {
	options := w.options(m.t)
	if at != "" {
		options = append(options, stream.WithSavepoint(at))
	}
	return stream.NewEnv(options...).SetParallelism(w.parallelism).SetMaxParallelism(16)
}

// part runs until the source has come to an element and gives the savepoint.
func (m *moving) part(w way, at string, until int64) string {
	m.t.Helper()
	reached := make(chan struct{})
	env := m.env(w, at)
	m.build(env, w, 1<<40, 20_000, until, reached)
	job, err := env.ExecuteAsync(m.t.Context(), w.name)
	if err != nil {
		m.t.Fatal(err)
	}
	select {
	case <-reached:
	case <-job.Done():
		_, err := job.Wait()
		m.t.Fatalf("%s: %v", w.name, err)
	}
	next, err := job.StopWithSavepoint(m.t.Context(), m.t.TempDir(), false)
	if err != nil {
		m.t.Fatalf("%s: %v", w.name, err)
	}
	return next
}

// last runs to the end.
func (m *moving) last(w way, at string) {
	m.t.Helper()
	env := m.env(w, at)
	m.build(env, w, m.n, 0, m.n, make(chan struct{}))
	if _, err := env.Execute(m.t.Context(), w.name); err != nil {
		m.t.Fatalf("%s: %v", w.name, err)
	}
}

// TestWindowsMoveBetweenBackends goes from one state backend to another by savepoints, and compares with a job that never stopped.
func TestWindowsMoveBetweenBackends(t *testing.T) {
	const n = 16_000
	heap := way{"heap", inMemory, asTheyAre, 1}
	want := &moving{t: t, n: n}
	want.last(heap, "")
	if len(want.all) < 1500 {
		t.Fatalf("%d results", len(want.all))
	}
	kept := func(w *windowed) *windowed { return w.KeepInMemory() }
	for name, ways := range map[string][]way{
		"memory, disk, memory": {
			heap, {"pebble", onDisk, asTheyAre, 2}, {"heap again", inMemory, asTheyAre, 1}, {"pebble again", onDisk, asTheyAre, 1},
		},
		"disk, memory, disk": {
			{"pebble", onDisk, asTheyAre, 1}, {"heap", inMemory, asTheyAre, 2}, {"pebble again", onDisk, asTheyAre, 1},
		},
		"general, memory, kept in memory, disk, general": {
			{"general", generally, asTheyAre, 2}, heap, {"kept", onDisk, kept, 2}, {"pebble", onDisk, asTheyAre, 1}, {"general again", generally, asTheyAre, 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, at := &moving{t: t, n: n}, ""
			for i, w := range ways[:len(ways)-1] {
				at = got.part(w, at, int64(i+1)*2500)
			}
			got.last(ways[len(ways)-1], at)
			if a, b := got.sorted(), want.sorted(); !slices.Equal(a, b) {
				t.Errorf("%d results, want %d, or others: %s", len(a), len(b), firstDifference(a, b))
			}
		})
	}
}

func firstDifference(got, want []string) string {
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			return fmt.Sprintf("%q, want %q", got[i], want[i])
		}
	}
	return "at the end"
}

// TestWindowsThatCannotMoveAreRefused: what a trigger knows, and elements, are not made of accumulators.
func TestWindowsThatCannotMoveAreRefused(t *testing.T) {
	var looked atomic.Bool
	build := func(env *stream.Env, n int64, rate float64, end func(*windowed) *stream.Stream[perVisitor], read chan struct{}) {
		end(env.FromGenerator(n, func(i int64) visit {
			if !looked.Swap(true) {
				close(read)
			}
			return visit{Who: i % 10, At: i, N: 1}
		}, rate).UID("visits").
			AssignTimestampsAndWatermarks(watermark.BoundedOutOfOrderness(0, func(v visit) time.Time { return time.UnixMilli(v.At) })).UID("times").
			KeyBy(visit.who).Window(window.Tumbling(time.Hour))).UID("sums").Discard()
	}
	sums := func(w *windowed) *stream.Stream[perVisitor] { return w.Sum(visit.n) }
	counted := func(w *windowed) *stream.Stream[perVisitor] {
		return w.Trigger(window.CountTrigger(1 << 30)).Sum(visit.n)
	}
	evicted := func(w *windowed) *stream.Stream[perVisitor] { return w.Evictor(window.CountEvictor(5)).Sum(visit.n) }
	for name, c := range map[string]struct {
		was, is func(*windowed) *stream.Stream[perVisitor]
		want    string
	}{
		"a trigger comes":  {sums, counted, "keep the default trigger"},
		"an evictor comes": {sums, evicted, "the program's windows keep their elements"},
		"a trigger goes":   {counted, sums, "of a trigger"},
		"an evictor goes":  {evicted, sums, "keep the windows' function, trigger and evictor"},
	} {
		t.Run(name, func(t *testing.T) {
			looked.Store(false)
			read := make(chan struct{})
			env := stream.NewEnv().SetParallelism(1)
			build(env, 1<<40, 20_000, c.was, read)
			job, err := env.ExecuteAsync(t.Context(), "windows")
			if err != nil {
				t.Fatal(err)
			}
			<-read
			at, err := job.StopWithSavepoint(t.Context(), t.TempDir(), false)
			if err != nil {
				t.Fatal(err)
			}
			env = stream.NewEnv(stream.WithSavepoint(at)).SetParallelism(1)
			build(env, 100_000, 0, c.is, nil)
			if _, err := env.Execute(t.Context(), "windows"); err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "another UID") {
				t.Errorf("got %v", err)
			}
		})
	}
}
