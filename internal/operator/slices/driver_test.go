package slices

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/flott-dev/flott/agg"
	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/host"
	"github.com/flott-dev/flott/internal/operator"
	kit "github.com/flott-dev/flott/internal/operator/operatortest"
	"github.com/flott-dev/flott/internal/operator/windows"
	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/serde"
	"github.com/flott-dev/flott/statebackend"
	"github.com/flott-dev/flott/window"
)

func count() function { return functionOf("count", agg.Count[event]()) }

func eventTime(size, slide int64) layout {
	a := window.Sliding(ms(size), ms(slide))
	return layout{a.Grid(), process.EventTime, a}
}

func processingTime(size, slide int64) layout {
	a := window.SlidingProcessingTime(ms(size), ms(slide))
	return layout{a.Grid(), process.ProcessingTime, a}
}

// spec is that of events whose results are texts.
func spec(t testing.TB) windows.Spec {
	return windows.Spec{
		In: kit.TypeOf[event](t), Out: kit.TypeOf[string](t), Key: kit.KeyOf(t, func(e event) int64 { return e.Key }), Place: "here.go:1",
	}
}

// at makes elements of key 0 with the value 0 at the times.
func (p *pair) at(times ...int64) { p.push(make([]event, len(times)), times, false) }

func TestWindowsAtTheEndsOfTimeDoNotWrap(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 2))
		size := 1 + r.Int64N(20)
		slide := 1 + r.Int64N(size+5)
		if r.IntN(4) == 0 {
			slide = 1<<40 + r.Int64N(1<<40) // durations end after some 292 years
			size = slide + r.Int64N(1<<42)
		}
		a := window.Sliding(ms(size), ms(slide)).Offset(ms(r.Int64N(min(slide, 100))))
		lateness := []int64{0, 7, math.MaxInt64}[r.IntN(3)]
		fs := functions()
		f := fs[r.IntN(len(fs))]
		if !f.regroups {
			f = count()
		}
		t.Run(fmt.Sprintf("seed %d: %s of %v, lateness %d", seed, f.name, a, lateness), func(t *testing.T) {
			p := newPair(t, layout{a.Grid(), process.EventTime, a}, f, lateness, r.IntN(2) == 0)
			for _, base := range []int64{math.MinInt64 + 1, -10, math.MaxInt64 - 40} {
				for i := range int64(20) {
					if now := base + 2*i; r.IntN(3) == 0 && now > p.watermark {
						p.mark(now)
					}
					times := make([]int64, 3)
					for j := range times {
						times[j] = base + r.Int64N(41)
					}
					es := make([]event, len(times))
					for j := range es {
						es[j] = event{r.Int64N(3), r.Int64N(100), string(rune('a' + i))}
					}
					p.push(es, times, false)
				}
			}
			p.mark(math.MaxInt64 - 1)
			p.at(math.MaxInt64-1, math.MaxInt64)
			p.mark(math.MaxInt64)
			p.at(1, math.MaxInt64-1, math.MaxInt64)
		})
	}
}

// TestTrapsOfWindows are reports about other systems, retold.
func TestTrapsOfWindows(t *testing.T) {
	t.Run("events before 1970", func(t *testing.T) {
		p := newPair(t, eventTime(10, 10), count(), 0, false)
		p.at(-1, -10, -11, -15, 0)
		kit.Must(t, p.op.Inputs()[0].Mark(kit.Watermark(100)))
		slices.Sort(p.out.Got)
		p.out.Want(t, "0 [-10,0) 2@-1", "0 [-20,-10) 2@-11", "0 [0,10) 1@9", "watermark 100")
	})
	t.Run("gaps between windows", func(t *testing.T) {
		p := newPair(t, eventTime(3, 10), count(), 0, false)
		p.at(1, 5, 12)
		p.mark(20)
		p.at(5, 25)
		if p.dropped != 1 { // 5 is late now, 25 is not
			t.Errorf("%d late elements", p.dropped)
		}
	})
	t.Run("late but allowed", func(t *testing.T) {
		p := newPair(t, eventTime(60_000, 60_000), count(), 30_000, true)
		p.at(0, 30_000)
		p.mark(61_000)
		p.at(40_000)
		p.mark(90_000)
		p.at(50_000)
	})
	t.Run("an absurd future", func(t *testing.T) {
		p := newPair(t, eventTime(60, 10), count(), 0, false)
		p.at(1, math.MaxInt64-5, 2)
		p.mark(math.MaxInt64 - 10)
		p.at(3)
		p.mark(math.MaxInt64)
	})
	t.Run("processing time one ms early", func(t *testing.T) {
		p := newPair(t, processingTime(1000, 1000), count(), 0, false)
		p.clock(999)
		p.at(7)
		p.clock(999)
		p.at(7)
		p.clock(1000)
		p.at(7)
		p.clock(2000)
	})
}

func TestElementsWithoutTimestampFailWithThePlace(t *testing.T) {
	for _, times := range [][]int64{nil, {5, frame.NoTime}} {
		op := New(spec(t), window.Grid{Size: 10, Slide: 10}, process.EventTime, count().kernels(t))
		kit.Open(t, op)
		err := op.Inputs()[0].Push(kit.Run(t, times, event{}, event{}))
		if !errors.Is(err, window.ErrNoTimestamp) || !strings.Contains(err.Error(), "here.go:1") {
			t.Errorf("times %v: %v", times, err)
		}
	}
	p := newPair(t, processingTime(10, 5), count(), 0, false)
	kit.Must(t, p.op.Inputs()[0].Push(kit.Run(t, nil, event{}))) // it needs none
}

func TestMarksPassInOrder(t *testing.T) {
	s := spec(t)
	s.Late, s.Sides = lateTag, map[string]*frame.Type{lateTag: s.In}
	op := New(s, window.Grid{Size: 10, Slide: 10}, process.EventTime, count().kernels(t))
	rt := kit.Runtime()
	side := kit.Record(t, op.Output(lateTag), rt)
	out := kit.OpenAt(t, op, rt)
	in := op.Inputs()[0]
	if op.Output("other") != nil || !in.Type().Same(s.In) {
		t.Error("wrong input or output")
	}
	kit.Must(t, in.Push(kit.Run(t, []int64{5}, event{Key: 1})))
	for _, m := range []frame.Mark{{Kind: frame.Barrier, Value: 3}, {Kind: frame.Idle}, {Kind: frame.Active}, kit.Watermark(9)} {
		kit.Must(t, in.Mark(m))
	}
	kit.Must(t, in.Push(kit.Run(t, []int64{4}, event{Key: 2})))
	kit.Must(t, in.Mark(kit.End()))
	out.Want(t, "barrier 3", "idle", "active", "1 [0,10) 1@9", "watermark 9", "end")
	side.Want(t, "barrier 3", "idle", "active", "watermark 9", "{2 0 }@4", "end")
}

func TestLateElementsThatNobodyReadsAreNotCounted(t *testing.T) {
	s := spec(t)
	s.Late = lateTag
	op := New(s, window.Grid{Size: 10, Slide: 10}, process.EventTime, count().kernels(t))
	_, rt := kit.Open(t, op)
	in := op.Inputs()[0]
	kit.Must(t, in.Mark(kit.Watermark(100)))
	kit.Must(t, in.Push(kit.Run(t, []int64{5}, event{})))
	if n := rt.Host.(*kit.Host).Metrics[windows.LateDropped].Read(); n != int64(0) {
		t.Errorf("%v were counted", n)
	}
	s.Sides = map[string]*frame.Type{lateTag: kit.TypeOf[int64](t)}
	op = New(s, window.Grid{Size: 10, Slide: 10}, process.EventTime, count().kernels(t))
	if err := op.Open(kit.Runtime()); err == nil || !strings.Contains(err.Error(), "read as int64") {
		t.Errorf("another type is read: %v", err)
	}
	kit.Must(t, op.Close())
}

func TestManyLateElementsAllGoToTheSideOutput(t *testing.T) {
	p := newPair(t, eventTime(10, 5), count(), 0, true)
	p.most = 3000
	p.mark(1000)
	p.push(make([]event, 3000), make([]int64, 3000), true)
}

func TestFailuresBehindTheWindowsComeBack(t *testing.T) {
	cause := errors.New("cause")
	es := make([]event, 3000)
	for i := range es {
		es[i].Key = int64(i)
	}
	all := kit.Run(t, make([]int64, len(es)), es...)
	one := kit.Run(t, []int64{3}, event{})
	for _, f := range []function{count(), functionOf("min", agg.Min(value)), functionOf("words", agg.Aggregate[event, string, string](words{}))} {
		for _, l := range []layout{eventTime(10, 10), eventTime(10, 5), processingTime(10, 10)} {
			for _, c := range []struct {
				name      string
				watermark int64 // that goes well
				run       *frame.Run
			}{
				{"a firing", math.MinInt64, nil}, {"a late firing", 20, one}, {"late firings", 20, all}, {"late elements", 1000, all},
			} {
				p := newPair(t, l, f, 100, true)
				in := p.op.Inputs()[0]
				kit.Must(t, in.Push(all))
				kit.Must(t, in.Mark(kit.Watermark(c.watermark)))
				p.out.Fail, p.lateOut.Fail, p.rt.Now = cause, cause, 20
				var err error
				switch {
				case l.domain == process.ProcessingTime:
					err = p.rt.Timers.Run(19)
				case c.run == nil:
					err = in.Mark(kit.Watermark(20))
				default:
					err = in.Push(c.run)
				}
				if err != cause {
					t.Errorf("%s of %v: %s gave %v", f.name, l.assigner, c.name, err)
				}
			}
		}
	}
}

func TestResultsComeInFrames(t *testing.T) {
	for _, l := range []layout{eventTime(10, 10), eventTime(10, 5)} {
		p := newPair(t, l, count(), 0, false)
		es := make([]event, 5000)
		for i := range es {
			es[i].Key = int64(i)
		}
		kit.Must(t, p.op.Inputs()[0].Push(kit.Run(t, make([]int64, len(es)), es...)))
		kit.Must(t, p.op.Inputs()[0].Mark(kit.Watermark(1000)))
		most := p.op.Output("").Type.FrameLen(frame.Bytes)
		n := 0
		for _, run := range p.out.Runs {
			if n += run; run > most {
				t.Errorf("a run of %d, frames have %d", run, most)
			}
		}
		if want := 5000 * int(l.grid.Size/l.grid.Slide); n != want || len(p.out.Runs) > want/most*5/4+2 {
			t.Errorf("%d results in %d runs, want %d", n, len(p.out.Runs), want)
		}
	}
}

// churn pushes a window of new keys, and some that stay.
func (p *pair) churn(at, fresh, stay, size int64) {
	es, times := make([]event, 0, fresh+stay), make([]int64, 0, fresh+stay)
	for i := range fresh + stay {
		key := i
		if i >= stay {
			key += at * 1_000_000
		}
		es, times = append(es, event{key, i % 100, "t"}), append(times, at*size+i%size)
	}
	slices.Sort(times)
	p.push(es, times, true)
}

func TestKeysThatNeverReturnAreForgotten(t *testing.T) {
	least, texts := functionOf("min", agg.Min(value)), functionOf("words", agg.Aggregate[event, string, string](words{}))
	for _, c := range []struct {
		f        function
		l        layout
		lateness int64
	}{
		{count(), eventTime(10, 10), 0},
		{count(), eventTime(10, 10), 15},
		{count(), eventTime(20, 10), 0},
		{count(), processingTime(10, 10), 0},
		{least, eventTime(20, 10), 15},
		{least, processingTime(20, 10), 0},
		{texts, eventTime(20, 10), 0},
	} {
		p := newPair(t, c.l, c.f, c.lateness, false)
		p.most = 3000
		keys := &p.driver().keys
		most, held := 0, int64(0)
		for at := range int64(20) {
			p.clock(at * 10)
			p.churn(at, 1900, 100, 10)
			p.mark(at * 10)
			most = max(most, keys.used())
			if at == 10 {
				held = p.driver().columns.held
			}
		}
		slices := (c.l.grid.Size+c.lateness)/10 + 4 // of event time; the last one that was dropped is among them
		if bound := 2*(int(slices)*1900+100) + manyKeys + 2000; most > bound || keys.limit > bound || keys.table.Len() != keys.used() {
			t.Errorf("%s of %v: %d keys of 2000 a window were kept, the table has %d, ids reach %d", c.f.name, c.l.assigner, most, keys.table.Len(), keys.limit)
		}
		if now := p.driver().columns.held; now > 2*held {
			t.Errorf("%s of %v: %d bytes became %d", c.f.name, c.l.assigner, held, now)
		}
		p.clock(1_000_000)
		p.mark(math.MaxInt64)
	}
}

// A crowd that goes is forgotten even if no new key comes; keys that come in every window are not forgotten between them.
func TestKeysOfACrowdAreForgottenLater(t *testing.T) {
	for _, l := range []layout{eventTime(10, 10), eventTime(20, 10)} {
		p := newPair(t, l, count(), 0, false)
		p.most = 3000
		keys := &p.driver().keys
		for at := range int64(5) {
			p.churn(at, 0, 6000, 10)
			p.mark(at*10 + 9)
			if keys.used() != 6000 {
				t.Fatalf("%v: %d of 6000 keys are known", l.assigner, keys.used())
			}
		}
		for at := range int64(10) {
			p.churn(5+at, 0, 10, 10)
			p.mark(50 + at*10)
		}
		if keys.used() != 10 || keys.limit != 10 {
			t.Errorf("%v: %d of 10 keys are known, ids reach %d", l.assigner, keys.used(), keys.limit)
		}
		p.churn(15, 3000, 10, 10)
		p.mark(math.MaxInt64)
	}
}

// named is an element with a text as its key.
type named struct{ Name string }

// Keys outlive the memory that they came in: texts are copied.
func TestTextKeysAreKept(t *testing.T) {
	acc, err := serde.Of[int64]()
	kit.Must(t, err)
	k := windows.Program[named, string, window.Time, int64, int64, string]{
		Aggregate: agg.Count[named](), Emit: func(x *string, i *window.Info[string, window.Time], r int64) { resultOf(x, i, r) },
	}.Incremental(acc)
	s := windows.Spec{In: kit.TypeOf[named](t), Out: kit.TypeOf[string](t), Key: kit.KeyOf(t, func(n named) string { return n.Name })}
	op := New(s, window.Grid{Size: 10, Slide: 10}, process.EventTime, k)
	rt := kit.Runtime()
	rt.Memory = host.NewMemory(0)
	out := kit.OpenAt(t, op, rt)
	in := op.Inputs()[0]
	for at := range int64(3) {
		buf := []byte("ann bob eve")
		var names []named
		for i := range 3 {
			names = append(names, named{unsafe.String(&buf[4*i], 3)})
		}
		kit.Must(t, in.Push(kit.Run(t, []int64{at * 10, at * 10, at * 10}, names...)))
		copy(buf, "xxxxxxxxxxx")
		kit.Must(t, in.Mark(kit.Watermark(at*10+9)))
		w := window.Time{Start: at * 10, End: at*10 + 10}
		slices.Sort(out.Got[:3])
		out.Want(t, fmt.Sprintf("ann %v 1@%d", w, w.End-1), fmt.Sprintf("bob %v 1@%d", w, w.End-1), fmt.Sprintf("eve %v 1@%d", w, w.End-1), fmt.Sprintf("watermark %d", w.End-1))
	}
}

// The memory behind texts is counted for as long as they are known.
func TestMemoryBehindKeysIsCounted(t *testing.T) {
	acc, err := serde.Of[int64]()
	kit.Must(t, err)
	k := windows.Program[named, string, window.Time, int64, int64, string]{
		Aggregate: agg.Count[named](), Emit: func(x *string, i *window.Info[string, window.Time], r int64) { resultOf(x, i, r) },
	}.Incremental(acc)
	s := windows.Spec{In: kit.TypeOf[named](t), Out: kit.TypeOf[string](t), Key: kit.KeyOf(t, func(n named) string { return n.Name })}
	op := New(s, window.Grid{Size: 10, Slide: 10}, process.EventTime, k)
	kit.Open(t, op)
	in := op.Inputs()[0]
	o := op.(*driver)
	for at := range int64(12) {
		names, times := make([]named, 1000), make([]int64, 1000)
		for i := range names {
			names[i], times[i] = named{fmt.Sprintf("name %08d", at*1000+int64(i))}, at*10
		}
		kit.Must(t, in.Push(kit.Run(t, times, names...)))
		kit.Must(t, in.Mark(kit.Watermark(at*10+9)))
		if behind := o.columns.held - o.weight(); behind != int64(o.keys.used())*int64(len("name 00000000")) {
			t.Fatalf("%d bytes behind %d keys", behind, o.keys.used())
		}
	}
	if o.keys.used() > 6000 {
		t.Errorf("%d keys are known", o.keys.used())
	}
}

// Windows over all elements have one key, which is no state.
func TestWindowsOverAllElementsNeedNoKeys(t *testing.T) {
	acc, err := serde.Of[int64]()
	kit.Must(t, err)
	k := windows.Program[event, window.All, window.Time, int64, int64, string]{
		Aggregate: agg.Sum(value), Emit: func(x *string, i *window.Info[window.All, window.Time], r int64) { resultOf(x, i, r) },
	}.Incremental(acc)
	for _, slide := range []int64{10, 5} {
		s := spec(t)
		s.Key = kit.KeyOf(t, func(event) window.All { return window.All{} })
		op := New(s, window.Grid{Size: 10, Slide: slide}, process.EventTime, k)
		rt := kit.Runtime()
		rt.OpenState = nil
		out := kit.OpenAt(t, op, rt)
		for at := range int64(3) {
			kit.Must(t, op.Inputs()[0].Push(kit.Run(t, []int64{at * 10, at*10 + 1}, event{1, 5, ""}, event{2, 6, ""})))
		}
		kit.Must(t, op.Inputs()[0].Mark(kit.Watermark(19)))
		slices.Sort(out.Got)
		want := []string{"watermark 19", "{} [-5,5) 11@4", "{} [0,10) 11@9", "{} [10,20) 11@19", "{} [5,15) 11@14"}
		if slide == 10 {
			want = []string{"watermark 19", "{} [0,10) 11@9", "{} [10,20) 11@19"}
		}
		out.Want(t, want...)
	}
}

func TestPeriodThatDoesNotHaveItsTimeFails(t *testing.T) {
	op := New(spec(t), window.Grid{Period: func(ts int64) window.Time { return window.Time{Start: ts + 1, End: ts + 2} }}, process.EventTime, count().kernels(t))
	kit.Open(t, op)
	if err := op.Inputs()[0].Push(kit.Run(t, []int64{5}, event{})); err == nil || !strings.Contains(err.Error(), "[6,7)") {
		t.Error(err)
	}
}

func TestClosedDriverLeavesNoTimerBehind(t *testing.T) {
	op := New(spec(t), window.Grid{Size: 10, Slide: 5}, process.ProcessingTime, count().kernels(t))
	rt := kit.Runtime()
	kit.Record(t, op.Output(""), rt)
	kit.Must(t, op.Open(rt))
	for now := range int64(30) {
		rt.Now = now
		kit.Must(t, op.Inputs()[0].Push(kit.Run(t, nil, event{})))
	}
	at, ok := rt.Timers.Next()
	if !ok || at != 4 {
		t.Errorf("the next timer is at %d, %v", at, ok)
	}
	kit.Must(t, op.Close())
	if at, ok := rt.Timers.Next(); ok {
		t.Errorf("a timer is left at %d", at)
	}
}

// A budget is held to wherever it ends, and all of it is given back.
func TestMemoryIsTakenFromTheBudget(t *testing.T) {
	for _, f := range []function{count(), functionOf("min", agg.Min(value)), functionOf("words", agg.Aggregate[event, string, string](words{}))} {
		enough := int64(0)
		for limit := int64(100); enough == 0; limit += limit / 20 {
			m := host.NewMemory(limit)
			err := spend(t, f, m)
			switch {
			case err == nil:
				enough = limit
			case !errors.Is(err, statebackend.ErrOutOfMemory) || !strings.Contains(err.Error(), `operator "op"`):
				t.Fatalf("%s with %d bytes: %v", f.name, limit, err)
			}
			if m.Used() != 0 {
				t.Fatalf("%s with %d bytes: %d are in use after the end", f.name, limit, m.Used())
			}
		}
		if enough < 10_000 {
			t.Errorf("%s: %d bytes were enough", f.name, enough)
		}
	}
}

// spend gives a driver something of everything.
func spend(t *testing.T, f function, m *host.Memory) error {
	s := spec(t)
	s.Lateness = 30
	op := New(s, window.Grid{Size: 10, Slide: 3}, process.EventTime, f.kernels(t))
	rt := kit.Runtime()
	rt.Memory = m
	kit.Record(t, op.Output(""), rt)
	defer func() { kit.Must(t, op.Close()) }()
	if err := op.Open(rt); err != nil {
		return err
	}
	in := op.Inputs()[0]
	r := rand.New(rand.NewPCG(1, 2))
	for at := range int64(30) {
		es, times := make([]event, 200), make([]int64, 200)
		for i := range es {
			es[i] = event{r.Int64N(20 + 20*at), r.Int64N(100), "x"}
			times[i] = at*3 + r.Int64N(10) - 5
		}
		if err := in.Push(kit.Run(t, times, es...)); err != nil {
			return err
		}
		if err := in.Mark(kit.Watermark(at * 3)); err != nil {
			return err
		}
	}
	return in.Mark(kit.Watermark(math.MaxInt64))
}

var _ operator.Operator = (*driver)(nil)
