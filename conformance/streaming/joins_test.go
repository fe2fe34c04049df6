package streaming_test

import (
	"encoding/binary"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/flott-dev/flott/conformance"
	"github.com/flott-dev/flott/flotttest"
	"github.com/flott-dev/flott/statebackend"
	"github.com/flott-dev/flott/statebackend/heap"
	"github.com/flott-dev/flott/stream"
)

// joinPair is a pair of a vector: times, and the key in jobs.
type joinPair struct {
	Key   string             `json:"key"`
	Left  int64              `json:"left"`
	Right int64              `json:"right"`
	TS    conformance.Millis `json:"ts"`
}

func (p joinPair) String() string { return fmt.Sprintf("%s(%d, %d)@%d", p.Key, p.Left, p.Right, p.TS) }

// joinBounds are the bounds of a case.
type joinBounds struct {
	Lower          int64 `json:"lower_bound_ms"`
	LowerInclusive bool  `json:"lower_inclusive"`
	Upper          int64 `json:"upper_bound_ms"`
	UpperInclusive bool  `json:"upper_inclusive"`
}

type joinStep struct {
	Element         *conformance.Millis             `json:"element"`
	Watermark       *conformance.Millis             `json:"watermark"`
	Input           int                             `json:"input"`
	ExpectError     string                          `json:"expect_error"`
	ExpectPairs     *[]joinPair                     `json:"expect_pairs"`
	ExpectBuffer    map[string][]conformance.Millis `json:"expect_buffer"`
	SnapshotRestore bool                            `json:"snapshot_restore"`
}

type joinOperatorCase struct {
	conformance.Head
	joinBounds
	Kind  string     `json:"kind"`
	Steps []joinStep `json:"steps"`
}

// joinInput is a line of an input of a job: an element, or a watermark.
type joinInput struct {
	Key       string              `json:"key"`
	TS        int64               `json:"ts"`
	Watermark *conformance.Millis `json:"watermark"`
}

// joinEvent is an element of a job.
type joinEvent struct {
	Key string
	TS  int64
}

func (e joinEvent) key() string { return e.Key }

type joinJobCase struct {
	conformance.Head
	joinBounds
	Kind        string      `json:"kind"`
	Left        []joinInput `json:"left"`
	Right       []joinInput `json:"right"`
	ExpectPairs []joinPair  `json:"expect_pairs"`
	Order       string      `json:"order"`
}

func TestJoinVectors(t *testing.T) {
	s := conformance.Suite{
		Folder: "streaming", Family: "joins", Rewrite: *rewrite, Rules: joinRules(),
		Runners: map[string]conformance.Runner{
			"interval_join_operator": conformance.EachWay(runIntervalJoin), "interval_join_job": runIntervalJoinJob,
			"window_join": runWindowJoin, "window_cogroup": runWindowCoGroup,
		},
	}
	s.Run(t)
}

// joinLayout makes elements of type X of times. The types differ in their layout in tables.
type joinLayout[X any] struct {
	of func(ms int64) X
	ms func(X) int64
}

func joinNumbers() joinLayout[int64] {
	same := func(x int64) int64 { return x }
	return joinLayout[int64]{of: same, ms: same}
}

func joinTexts() joinLayout[string] { return joinLayout[string]{of: decimal, ms: number} }

func joinSlices() joinLayout[[]int64] {
	return joinLayout[[]int64]{
		of: func(ms int64) []int64 { return []int64{ms} },
		ms: func(x []int64) int64 { return x[0] },
	}
}

func runIntervalJoin(t *testing.T, c conformance.Case, w conformance.Way) {
	var v joinOperatorCase
	c.Decode(t, &v)
	t.Run("fixed", func(t *testing.T) { runJoinLayout(t, &v, w, joinNumbers()) })
	t.Run("text", func(t *testing.T) { runJoinLayout(t, &v, w, joinTexts()) })
	t.Run("encoded", func(t *testing.T) { runJoinLayout(t, &v, w, joinSlices()) })
}

func runJoinLayout[X any](t *testing.T, v *joinOperatorCase, w conformance.Way, l joinLayout[X]) {
	spy := &tableSpy{maps: map[string]statebackend.MapTable{}}
	opts := append(wayOptions(w), flotttest.WithEnv(stream.WithBackends(spy)))
	key := func(X) string { return "key" }
	open := func(more ...flotttest.Option) *flotttest.TwoInputHarness[X, X, joinPair] {
		return flotttest.NewTwoInputHarness(t, func(a, b *stream.Stream[X]) *stream.Stream[joinPair] {
			return intervalJoin(v.joinBounds, a.KeyBy(key), b.KeyBy(key), func(a, b X) joinPair {
				return joinPair{Left: l.ms(a), Right: l.ms(b)}
			})
		}, slices.Concat(opts, more)...)
	}
	b := joinBench[X]{TwoInputHarness: open(), open: open, layout: l, spy: spy, way: w}
	for i, s := range v.Steps {
		b.step(t, i, s)
	}
	b.flush(t)
}

// intervalJoin builds the join of a case. Bounds are inclusive by default.
func intervalJoin[A, B any](v joinBounds, a *stream.KeyedStream[A, string], b *stream.KeyedStream[B, string], f func(A, B) joinPair) *stream.Stream[joinPair] {
	j := a.IntervalJoin(b).Between(time.Duration(v.Lower)*time.Millisecond, time.Duration(v.Upper)*time.Millisecond)
	if !v.LowerInclusive {
		j = j.LowerBoundExclusive()
	}
	if !v.UpperInclusive {
		j = j.UpperBoundExclusive()
	}
	return j.Join(f)
}

// joinBench runs the steps of an operator case.
type joinBench[X any] struct {
	*flotttest.TwoInputHarness[X, X, joinPair]
	open   func(more ...flotttest.Option) *flotttest.TwoInputHarness[X, X, joinPair]
	layout joinLayout[X]
	spy    *tableSpy
	way    conformance.Way
	input  int
	held   []flotttest.Element[X]
}

func (b *joinBench[X]) at(input int) *flotttest.Input[X] {
	return []*flotttest.Input[X]{b.First, b.Second}[input-1]
}

// flush hands over the elements that were held back.
func (b *joinBench[X]) flush(t *testing.T) {
	t.Helper()
	held := b.held
	b.held = nil
	for _, n := range b.way.Cut(len(held)) {
		b.at(b.input).ProcessElements(held[:n]...)
		held = held[n:]
	}
}

func (b *joinBench[X]) step(t *testing.T, i int, s joinStep) {
	t.Helper()
	if s.Element == nil || s.Input != b.input || s.ExpectError != "" {
		b.flush(t)
	}
	switch {
	case s.Element != nil:
		b.input = s.Input
		e := flotttest.At(b.layout.of(int64(*s.Element)), int64(*s.Element))
		if s.ExpectError == "" {
			b.held = append(b.held, e)
		} else if err := b.at(s.Input).TryProcessElements(e); err == nil {
			t.Fatalf("step %d: no error, want %s", i, s.ExpectError)
		}
	case s.Watermark != nil:
		b.at(s.Input).ProcessWatermark(int64(*s.Watermark))
	case s.SnapshotRestore:
		taken := b.Snapshot()
		b.Close()
		b.TwoInputHarness = b.open(flotttest.Restore(taken))
	case s.ExpectPairs != nil:
		compare(t, i, "pairs", pairTexts(b.Elements()), texts(*s.ExpectPairs), true)
		b.Clear()
	case s.ExpectBuffer != nil:
		for side, want := range s.ExpectBuffer {
			compare(t, i, side+" buffer", texts(b.spy.times(t, side+" buffer")), texts(want), true)
		}
	default:
		t.Fatalf("step %d is unknown", i)
	}
}

func texts[X any](xs []X) []string {
	out := []string{}
	for _, x := range xs {
		out = append(out, fmt.Sprint(x))
	}
	return out
}

// pairTexts are the texts of pairs with the timestamps that they were emitted with.
func pairTexts(es []flotttest.Element[joinPair]) []string {
	out := []string{}
	for _, e := range es {
		e.Value.TS = conformance.Millis(e.Time)
		out = append(out, e.Value.String())
	}
	return out
}

// tableSpy is the heap backend that shows what is in maps.
type tableSpy struct {
	maps map[string]statebackend.MapTable
}

func (*tableSpy) Name() string { return "spy" }

// Open implements statebackend.Backend.
func (s *tableSpy) Open(o statebackend.Options) (statebackend.Store, error) {
	st, err := heap.Backend{}.Open(o)
	return &spiedStore{st, s}, err
}

type spiedStore struct {
	statebackend.Store
	spy *tableSpy
}

func (s *spiedStore) Map(spec statebackend.TableSpec) (statebackend.MapTable, error) {
	t, err := s.Store.Map(spec)
	s.spy.maps[spec.Name] = t
	return t, err
}

// times are the distinct times that begin the map keys of a table.
func (s *tableSpy) times(t *testing.T, name string) []conformance.Millis {
	t.Helper()
	table := s.maps[name]
	if table == nil {
		t.Fatalf("no table %q was opened", name)
	}
	out := []conformance.Millis{}
	err := table.Range(func(e *statebackend.Entry) bool {
		out = append(out, conformance.Millis(binary.LittleEndian.Uint64(e.MapKey)))
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func runIntervalJoinJob(t *testing.T, c conformance.Case) {
	var v joinJobCase
	c.Decode(t, &v)
	if v.Order != "any" {
		t.Fatalf("order %q is unknown", v.Order)
	}
	want := texts(v.ExpectPairs)
	flotttest.Variants(t, func(t *testing.T, env *stream.Env) {
		left, right := joinSource(env, v.Left).KeyBy(joinEvent.key), joinSource(env, v.Right).KeyBy(joinEvent.key)
		pairs := intervalJoin(v.joinBounds, left, right, func(a, b joinEvent) joinPair {
			return joinPair{Key: a.Key, Left: a.TS, Right: b.TS}
		})
		got := []string{}
		for _, e := range flotttest.Collect(t, env, pairs) {
			if e.Time != max(e.Value.Left, e.Value.Right) {
				t.Errorf("pair %v has the timestamp %d", e.Value, e.Time)
			}
			got = append(got, e.Value.String())
		}
		compare(t, 0, "pairs", got, want, true)
	})
}

// joinSource plays an input with its timestamps and watermarks.
func joinSource(env *stream.Env, lines []joinInput) *stream.Stream[joinEvent] {
	s := flotttest.NewScript[joinEvent]()
	for _, l := range lines {
		if l.Watermark != nil {
			s.Watermark(int64(*l.Watermark))
			continue
		}
		s.EmitAt(joinEvent{l.Key, l.TS}, l.TS)
	}
	return flotttest.FromScripts(env, s)
}
