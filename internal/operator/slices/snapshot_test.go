package slices

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flott-dev/flott/agg"
	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/host"
	"github.com/flott-dev/flott/internal/operator"
	kit "github.com/flott-dev/flott/internal/operator/operatortest"
	"github.com/flott-dev/flott/serde"
	"github.com/flott-dev/flott/statebackend"
)

// opened is a driver with its output.
type opened struct {
	*driver
	out *kit.Recorder
	rt  *operator.Runtime
}

func begin(t testing.TB, l layout, f function, lateness int64, from *opened) *opened {
	t.Helper()
	s := spec(t)
	s.Lateness = lateness
	op := New(s, l.grid, l.domain, f.kernels(t))
	rt := kit.Runtime()
	if from != nil {
		rt.Restored = kit.Take(t, from.driver).Restored()
	}
	return &opened{op.(*driver), kit.OpenAt(t, op, rt), rt}
}

func (o *opened) give(t testing.TB, times []int64, es ...event) {
	t.Helper()
	kit.Must(t, o.Push(kit.Run(t, times, es...)))
}

func (o *opened) want(t testing.TB, texts ...string) {
	t.Helper()
	slices.Sort(o.out.Got)
	slices.Sort(texts)
	o.out.Want(t, texts...)
}

// TestFiredWindowsDoNotFireAgain, but for late elements; those that have not fired get what comes.
func TestFiredWindowsDoNotFireAgain(t *testing.T) {
	for _, l := range []layout{eventTime(10, 10), eventTime(20, 10)} {
		o := begin(t, l, count(), 100, nil)
		o.give(t, []int64{1, 12, 25}, event{Key: 1}, event{Key: 2}, event{Key: 1})
		kit.Must(t, o.Mark(kit.Watermark(15)))
		o.out.Got = nil
		o = begin(t, l, count(), 100, o)
		kit.Must(t, o.Mark(kit.Watermark(15)))
		o.want(t, "watermark 15")
		o.give(t, []int64{2}, event{Key: 1})
		if l.grid.Size == 10 {
			o.want(t, "1 [0,10) 2@9")
		} else {
			o.want(t, "1 [-10,10) 2@9")
		}
		o = begin(t, l, count(), 100, begin(t, l, count(), 100, o))
		kit.Must(t, o.Mark(kit.Watermark(19)))
		if l.grid.Size == 10 {
			o.want(t, "2 [10,20) 1@19", "watermark 19")
		} else {
			o.want(t, "1 [0,20) 2@19", "2 [0,20) 1@19", "watermark 19")
		}
	}
}

func TestSnapshotsDrawOnTheBudget(t *testing.T) {
	o := begin(t, eventTime(20, 10), count(), 0, nil)
	m := host.NewMemory(1 << 30)
	o.rt.Memory = m
	give := func() {
		for i := range int64(1000) {
			o.give(t, []int64{i % 40}, event{Key: i})
		}
	}
	give()
	before := m.Used()
	taken := kit.Take(t, o.driver)
	if m.Used() != before {
		t.Errorf("%d bytes for a snapshot that shares all", m.Used()-before)
	}
	give()
	if m.Used() < before+8*1000 {
		t.Errorf("%d bytes for copies of 1000 keys", m.Used()-before)
	}
	taken.Restored()
	if m.Used() != before {
		t.Errorf("%d bytes are held by a snapshot that was written", m.Used()-before)
	}
}

// tables are a snapshot's.
type tables []statebackend.FrozenTable

func (r tables) Table(name string) (statebackend.FrozenTable, bool) {
	for _, t := range r {
		if t.Name == name {
			return t, true
		}
	}
	return statebackend.FrozenTable{}, false
}

func (r tables) Tables() []string { return nil }

func TestSlicesThatCannotBeReadAreRefused(t *testing.T) {
	o := begin(t, eventTime(20, 10), count(), 0, nil)
	plain, tangled, _, err := o.tables()
	kit.Must(t, err)
	span := func(start, end int64) []byte {
		return binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, uint64(start)), uint64(end))
	}
	good := statebackend.Row{Key: make([]byte, 8), Namespace: span(0, 10), MapKey: make([]byte, 8), Value: make([]byte, 8)}
	with := func(change func(i *statebackend.TableInfo, r *statebackend.Row)) tables {
		i, r := plain, good
		change(&i, &r)
		return tables{{TableInfo: i, Rows: func(yield func(*statebackend.Row, error) bool) {
			for range 2 {
				if !yield(&r, nil) {
					return
				}
			}
		}}}
	}
	for want, store := range map[string]tables{
		"key type":           with(func(i *statebackend.TableInfo, _ *statebackend.Row) { i.Key = &serde.Schema{Kind: serde.String} }),
		"keep the function":  with(func(i *statebackend.TableInfo, _ *statebackend.Row) { i.Value = &serde.Schema{Kind: serde.String} }),
		"from 0 to 15":       with(func(_ *statebackend.TableInfo, r *statebackend.Row) { r.Namespace = span(0, 15) }),
		"from 3 to 10":       with(func(_ *statebackend.TableInfo, r *statebackend.Row) { r.Namespace = span(3, 10) }),
		"malformed":          with(func(_ *statebackend.TableInfo, r *statebackend.Row) { r.Namespace = r.Namespace[:15] }),
		"is malformed":       with(func(_ *statebackend.TableInfo, r *statebackend.Row) { r.MapKey = r.MapKey[:7] }),
		"a key of 7 bytes":   with(func(_ *statebackend.TableInfo, r *statebackend.Row) { r.Key = r.Key[:7] }),
		"too many":           with(func(_ *statebackend.TableInfo, r *statebackend.Row) { r.Value = append(r.Value, 0) }),
		"a row is malformed": with(func(*statebackend.TableInfo, *statebackend.Row) {}), // twice
		"don't ask for the order": {{TableInfo: tangled, Rows: func(yield func(*statebackend.Row, error) bool) {
			r := good
			r.MapKey = make([]byte, 16)
			yield(&r, nil)
		}}},
		"holds list":           {{TableInfo: statebackend.TableInfo{Name: "window contents", Kind: "list"}}},
		`the table "sessions"`: {{TableInfo: statebackend.TableInfo{Name: "sessions"}}},
	} {
		l := eventTime(20, 10)
		op, rt := New(spec(t), l.grid, l.domain, count().kernels(t)), kit.Runtime()
		rt.Restored = &operator.Restored{Store: store}
		kit.Record(t, op.Output(""), rt)
		if err := op.Open(rt); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "here.go:1") {
			t.Errorf("%s: error %v", want, err)
		}
		kit.Must(t, op.Close())
	}
}

// filled is a driver that holds so many keys in each of 6 slices.
func filled(b *testing.B, keys int64) *opened {
	o := begin(b, eventTime(60, 10), functionOf("sum", agg.Sum(value)), 0, nil)
	es, times := make([]event, 500), make([]int64, 500)
	for from := int64(0); from < 6*keys; from += 500 {
		for i := range es {
			es[i].Key, times[i] = (from+int64(i))%keys, (from+int64(i))/keys*10
		}
		o.give(b, times, es...)
	}
	return o
}

// BenchmarkSnapshot is how long the subtask stands still.
func BenchmarkSnapshot(b *testing.B) {
	for _, keys := range []int64{100_000, 500_000, 1_000_000} {
		b.Run(fmt.Sprint(keys, " keys in 6 slices"), func(b *testing.B) {
			o := filled(b, keys)
			for b.Loop() {
				s := operator.Snapshot{Groups: 128}
				kit.Must(b, o.Snapshot(&s))
				b.StopTimer()
				s.Release()
				runtime.GC() // as often as not there is one between two checkpoints
				b.StartTimer()
			}
		})
	}
}

// BenchmarkSnapshotRows is what the writer needs for all rows.
func BenchmarkSnapshotRows(b *testing.B) {
	const keys = 500_000
	o := filled(b, keys)
	n := 0
	for b.Loop() {
		s := operator.Snapshot{Groups: 128}
		kit.Must(b, o.Snapshot(&s))
		for _, f := range s.Stores {
			for _, t := range f.Tables() {
				for _, err := range t.Rows {
					if err != nil {
						b.Fatal(err)
					}
					n++
				}
			}
		}
		s.Release()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/row")
}

// BenchmarkRunsAfterSnapshot is what runs of random keys cost when a snapshot is open: the first, which copies most, the one that
// took longest, and all until each key has come about once; and when there is none.
func BenchmarkRunsAfterSnapshot(b *testing.B) {
	const keys = 500_000
	o := filled(b, keys)
	r := rand.New(rand.NewPCG(1, 2))
	es, times := make([]event, frame.MaxLen), make([]int64, frame.MaxLen)
	for i := range times {
		times[i] = 55
	}
	round := func() (first, most, all time.Duration) {
		for n := range keys / frame.MaxLen {
			for i := range es {
				es[i].Key = r.Int64N(keys)
			}
			run := kit.Run(b, times, es...)
			start := time.Now()
			kit.Must(b, o.Push(run))
			took := time.Since(start)
			if all += took; n == 0 {
				first = took
			}
			most = max(most, took)
		}
		return first, most, all
	}
	for _, open := range []bool{false, true} {
		b.Run(fmt.Sprintf("a snapshot is open, %v", open), func(b *testing.B) {
			var first, most, all time.Duration
			for b.Loop() {
				s := operator.Snapshot{Groups: 128}
				if open {
					kit.Must(b, o.Snapshot(&s))
				}
				f, m, a := round()
				first, most, all = first+f, most+m, all+a
				s.Release()
			}
			n := float64(b.N)
			b.ReportMetric(float64(first.Microseconds())/n, "µs/first")
			b.ReportMetric(float64(most.Microseconds())/n, "µs/longest")
			b.ReportMetric(float64(all.Nanoseconds())/n/keys, "ns/element")
			b.ReportMetric(0, "ns/op")
		})
	}
}
