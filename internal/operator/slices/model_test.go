package slices

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/flott-dev/flott/agg"
	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/operator"
	kit "github.com/flott-dev/flott/internal/operator/operatortest"
	"github.com/flott-dev/flott/internal/operator/windows"
	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/serde"
	"github.com/flott-dev/flott/window"
)

// event is what the tests put into windows.
type event struct {
	Key  int64
	V    int64
	Text string
}

func value(e event) int64 { return e.V }

// function is a window function, as the driver and as the model need it.
type function struct {
	name string
	// regroups says that overlapping windows can have it.
	regroups bool
	kernels  func(tb testing.TB) *windows.Incremental
	result   func(es []event) string
}

// results are texts that name key and window.
func resultOf[K any](x *string, i *window.Info[K, window.Time], r any) {
	*x = fmt.Sprintf("%v %v %v", i.Key, i.Window, r)
}

func functionOf[A, R any](name string, a agg.Aggregate[event, A, R]) function {
	return function{
		name, agg.IsRegroupable(a), func(tb testing.TB) *windows.Incremental {
			acc, err := serde.Of[A]()
			kit.Must(tb, err)
			return windows.Program[event, int64, window.Time, A, R, string]{
				Aggregate: a, Emit: func(x *string, i *window.Info[int64, window.Time], r R) { resultOf(x, i, r) },
			}.Incremental(acc)
		}, func(es []event) string {
			acc := a.Create()
			for _, e := range es {
				a.Add(&acc, e)
			}
			return fmt.Sprint(a.Result(&acc))
		},
	}
}

// words is an aggregate for which the order matters; it is exact under regrouping.
type words struct{}

func (words) Create() string            { return "" }
func (words) Add(acc *string, e event)  { *acc += e.Text + "," }
func (words) Merge(acc, other *string)  { *acc += *other; *other = "spoiled" }
func (words) Result(acc *string) string { return *acc }
func (words) Regroupable() bool         { return true }

// backwards is words that can be taken back from.
type backwards struct{ words }

func (backwards) Subtract(acc, other *string) { *acc = strings.TrimPrefix(*acc, *other) }

// spoiling is a sum that does to other what Merge may do.
type spoiling struct{}

func (spoiling) Create() [3]int64           { return [3]int64{1, 0, 0} }
func (spoiling) Add(acc *[3]int64, e event) { acc[1] += e.V }
func (spoiling) Merge(acc, other *[3]int64) {
	acc[1] += other[1]
	*other = [3]int64{-1, -1, -1}
}
func (spoiling) Result(acc *[3]int64) int64 { return acc[0]*1000 + acc[1] }
func (spoiling) Regroupable() bool          { return true }
func (spoiling) Commutative() bool          { return true }

func functions() []function {
	return []function{
		functionOf("count", agg.Count[event]()),
		functionOf("sum", agg.Sum(value)),
		functionOf("float sum", agg.Sum(func(e event) float64 { return float64(e.V) * 0.1 })),
		functionOf("average", agg.Avg(value)),
		functionOf("min", agg.Min(value)),
		functionOf("max text", agg.Max(func(e event) string { return e.Text })),
		functionOf("min zeros", agg.Min(func(e event) float64 { return math.Copysign(0, float64(e.V-50)) })),
		functionOf("first", agg.First(value)),
		functionOf("last", agg.Last(func(e event) string { return e.Text })),
		functionOf("distinct", agg.CountDistinct(func(e event) int64 { return e.V % 7 })),
		functionOf("top", agg.TopN(3, value)),
		functionOf("collect", agg.Collect[event]()),
		functionOf("words", agg.Aggregate[event, string, string](words{})),
		functionOf("backwards", agg.Aggregate[event, string, string](backwards{})),
		functionOf("spoiling", agg.Aggregate[event, [3]int64, int64](spoiling{})),
		reduction(), folding(),
	}
}

// reduction is a reduce: its accumulator is an element, and its first element becomes it.
func reduction() function {
	f := func(acc, x *event) { acc.V, acc.Text = acc.V*31+x.V, acc.Text+x.Text }
	return function{
		"reduce", false, func(tb testing.TB) *windows.Incremental {
			acc, err := serde.Of[event]()
			kit.Must(tb, err)
			return windows.Program[event, int64, window.Time, event, event, string]{
				Aggregate: reducer(f), First: func(acc, x *event) { *acc = *x }, Fold: f,
				Emit: func(x *string, i *window.Info[int64, window.Time], r event) { resultOf(x, i, r) },
			}.Incremental(acc)
		}, func(es []event) string {
			acc := es[0]
			for i := range es[1:] {
				f(&acc, &es[1+i])
			}
			return fmt.Sprint(acc)
		},
	}
}

type reducer func(acc, x *event)

func (f reducer) Create() event           { panic("create") }
func (f reducer) Add(acc *event, x event) { panic("add") }
func (f reducer) Merge(acc, other *event) { f(acc, other) }
func (f reducer) Result(acc *event) event { return *acc }

func folding() function {
	f := functionOf("fold", agg.Aggregate[event, string, string](words{}))
	f.regroups = false
	kernels := f.kernels
	f.kernels = func(tb testing.TB) *windows.Incremental {
		k := kernels(tb)
		k.Merge, k.MergeColumn, k.Regroupable = nil, nil, false
		return k
	}
	return f
}

// layout is a grid, and the assigner of package window that is the model's.
type layout struct {
	grid     window.Grid
	domain   process.Domain
	assigner window.Assigner[window.Time]
}

// fewer is a grid of windows of unequal length: size, 2 size, size ...
type fewer struct {
	window.Assigner[window.Time]
	size   int64
	domain process.Domain
}

func (f fewer) period(ts int64) window.Time {
	start := window.StartWithOffset(ts, 0, 3*f.size)
	if ts < start+f.size {
		return window.Time{Start: start, End: start + f.size}
	}
	return window.Time{Start: start + f.size, End: start + 3*f.size}
}

func (f fewer) Assign(dst []window.Time, ts, now int64) ([]window.Time, error) {
	if f.domain == process.ProcessingTime {
		ts = now
	}
	return append(dst, f.period(ts)), nil
}

func (f fewer) Grid() window.Grid { return window.Grid{Period: f.period} }

func ms(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

func randomLayout(r *rand.Rand, single bool) (l layout, name string) {
	size := 1 + r.Int64N(40)
	slide := 1 + r.Int64N(size)
	if single {
		slide = size + max(0, r.Int64N(30)-15)
	}
	offset := r.Int64N(2*slide-1) - slide + 1
	l.domain = process.EventTime
	if r.IntN(4) == 0 {
		l.domain = process.ProcessingTime
	}
	name = fmt.Sprintf("windows of %d every %d from %d, %v", size, slide, offset, l.domain)
	if single && r.IntN(4) == 0 {
		f := fewer{nil, size, l.domain}
		l.assigner, l.grid = f, f.Grid()
		return l, fmt.Sprintf("windows of %d and twice that, %v", size, l.domain)
	}
	a := window.Sliding(ms(size), ms(slide)).Offset(ms(offset))
	if l.domain == process.ProcessingTime {
		a = window.SlidingProcessingTime(ms(size), ms(slide)).Offset(ms(offset))
	}
	l.assigner, l.grid = a, a.Grid()
	if r.IntN(2) == 0 {
		l.grid.Offset = offset // any representative will do
	}
	return l, name
}

// contents are the elements of one key in one window.
type contents struct {
	key    int64
	window window.Time
}

// model does what the rules say, element by element.
type model struct {
	layout
	f         function
	lateness  int64
	watermark int64
	now       int64
	held      map[contents][]event
	out       []string
	late      []string
	dropped   int
	buf       []window.Time
}

func plusSaturated(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

func (m *model) cleanup(w window.Time) int64 { return plusSaturated(w.MaxTimestamp(), m.lateness) }

func (m *model) element(e event, ts int64) {
	m.buf, _ = m.assigner.Assign(m.buf[:0], ts, m.now)
	in := false
	for _, w := range m.buf {
		if m.domain == process.EventTime && m.cleanup(w) <= m.watermark {
			continue
		}
		in = true
		c := contents{e.Key, w}
		m.held[c] = append(m.held[c], e)
		if m.domain == process.EventTime && w.MaxTimestamp() <= m.watermark {
			m.fire(c)
		}
	}
	if !in && m.domain == process.EventTime && plusSaturated(ts, m.lateness) <= m.watermark {
		m.late = append(m.late, fmt.Sprintf("%v@%d", e, ts))
		m.dropped++
	}
}

func (m *model) fire(c contents) {
	m.out = append(m.out, fmt.Sprintf("%d %v %s@%d", c.key, c.window, m.f.result(m.held[c]), c.window.MaxTimestamp()))
}

// reach is a new watermark, or a time that the clock is past.
func (m *model) reach(from, to int64) {
	for c := range m.held {
		if last := c.window.MaxTimestamp(); last <= to && (m.domain == process.ProcessingTime || last > from) {
			m.fire(c)
		}
		if m.domain == process.ProcessingTime && c.window.MaxTimestamp() <= to || m.domain == process.EventTime && m.cleanup(c.window) <= to {
			delete(m.held, c)
		}
	}
}

// pair is a driver beside the model.
type pair struct {
	*model
	t       *testing.T
	op      operator.Operator
	rt      *operator.Runtime
	out     *kit.Recorder
	lateOut *kit.Recorder
	story   []string
	most    int // elements of a run
}

const lateTag = "late"

func newPair(t *testing.T, l layout, f function, lateness int64, side bool) *pair {
	m := &model{layout: l, f: f, lateness: lateness, watermark: math.MinInt64, held: map[contents][]event{}}
	spec := windows.Spec{
		In: kit.TypeOf[event](t), Out: kit.TypeOf[string](t), Key: kit.KeyOf(t, func(e event) int64 { return e.Key }), Lateness: lateness,
		Place: "here.go:1",
	}
	if side {
		spec.Late, spec.Sides = lateTag, map[string]*frame.Type{lateTag: spec.In}
	}
	p := &pair{model: m, t: t, op: New(spec, l.grid, l.domain, f.kernels(t)), rt: kit.Runtime(), most: 12}
	if side {
		p.lateOut = kit.Record(t, p.op.Output(lateTag), p.rt)
	}
	p.out = kit.OpenAt(t, p.op, p.rt)
	return p
}

func (p *pair) driver() *driver { return p.op.(*driver) }

func (p *pair) push(es []event, times []int64, shared bool) {
	if p.most < 100 {
		p.story = append(p.story, fmt.Sprint("elements ", es, " at ", times))
	}
	for i, e := range es {
		p.element(e, times[i])
	}
	r := kit.Run(p.t, times, es...)
	untouched := func() {}
	if shared {
		untouched = kit.Share(p.t, r)
	}
	kit.Must(p.t, p.op.Inputs()[0].Push(r))
	untouched()
	p.compare()
}

func (p *pair) mark(watermark int64) {
	p.story = append(p.story, fmt.Sprint("watermark ", watermark))
	if p.domain == process.EventTime {
		p.reach(p.watermark, watermark)
		p.watermark = watermark
	}
	p.model.out = append(p.model.out, fmt.Sprint("watermark ", watermark))
	kit.Must(p.t, p.op.Inputs()[0].Mark(kit.Watermark(watermark)))
	if got := p.out.Got[len(p.out.Got)-1]; got != p.model.out[len(p.model.out)-1] {
		p.t.Fatalf("the last that came out is %s", got)
	}
	p.compare()
}

func (p *pair) clock(now int64) {
	p.story = append(p.story, fmt.Sprint("clock ", now))
	p.now, p.rt.Now = now, now
	if p.domain == process.ProcessingTime {
		p.reach(0, now-1)
	}
	kit.Must(p.t, p.rt.Timers.Run(now-1))
	p.compare()
}

func (p *pair) compare() {
	p.t.Helper()
	if o, ok := p.op.(*driver); ok && o.columns.held != o.weight() {
		p.t.Fatalf("%s\n%d bytes are reserved, %d are held", strings.Join(p.story, "\n"), o.columns.held, o.weight())
	}
	got, want := p.out.Got, p.model.out
	p.out.Got, p.model.out = nil, nil
	sort.Strings(got)
	sort.Strings(want)
	if !slices.Equal(got, want) {
		p.t.Fatalf("lateness %d\n%s\ngot\n\t%s\nwant\n\t%s", p.lateness, strings.Join(p.story, "\n"), strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	}
	if p.lateOut != nil {
		var late []string
		for _, text := range p.lateOut.Got {
			if !strings.HasPrefix(text, "watermark") {
				late = append(late, text)
			}
		}
		if p.lateOut.Got = nil; !slices.Equal(late, p.late) {
			p.t.Fatalf("%s\nlate %v, want %v", strings.Join(p.story, "\n"), late, p.late)
		}
		p.late = nil
		return
	}
	if n := p.rt.Host.(*kit.Host).Metrics[windows.LateDropped].Read(); n != int64(p.dropped) {
		p.t.Fatalf("%s\n%v late elements, want %d", strings.Join(p.story, "\n"), n, p.dropped)
	}
}

// weight is the memory that the driver holds, counted anew.
func (o *driver) weight() int64 {
	n := int64(0)
	shelves := []*shelf{&o.shelf}
	tangled := []*tangles{o.tangles}
	for i := range o.hidden {
		shelves, tangled = append(shelves, &o.hidden[i].shelf), append(tangled, o.hidden[i].tangles)
	}
	for _, h := range shelves {
		for _, s := range h.list {
			n += o.columns.bytes(&s.column) + o.columns.bytes(&s.rest)
		}
		for _, x := range h.wholes {
			n += o.columns.bytes(&x.column)
		}
	}
	for _, t := range tangled {
		if t != nil {
			n += 8 * int64(len(t.newest))
			for _, x := range t.list {
				n += t.bytes(x.room)
			}
		}
	}
	for i := range o.columns.spare {
		n += o.columns.bytes(&o.columns.spare[i])
	}
	switch c := o.cover.(type) {
	case *totals:
		n += o.columns.bytes(&c.sum) + 4*int64(len(c.held))
	case *stacks:
		n += o.columns.bytes(&c.old) + o.columns.bytes(&c.young)
	}
	for _, a := range o.arms {
		n += int64(a.room) * int64(o.k.Accs.Size)
	}
	return n + int64(o.keys.room)*int64(o.k.Keys.Size)
}

// step lets one thing happen.
func (p *pair) step(r *rand.Rand, size, disorder, keys int64) {
	switch n := r.IntN(10); {
	case n == 0 && p.watermark > -1000:
		p.mark(p.watermark + r.Int64N(1+size))
	case n == 0:
		p.mark(-50 + r.Int64N(100))
	case n == 1 || n == 2 && p.domain == process.ProcessingTime:
		now := p.now + r.Int64N(1+size)
		if r.IntN(8) == 0 {
			now = p.now - r.Int64N(3*size)
		}
		p.clock(now)
	default:
		es, times := make([]event, 1+r.IntN(p.most)), []int64{}
		base := max(p.watermark, -60)
		for i := range es {
			v := r.Int64N(100)
			es[i] = event{r.Int64N(keys), v, string(rune('a' + v%26))}
			ts := base + r.Int64N(2*size+1) - r.Int64N(disorder+1)
			if i > 0 && r.IntN(4) == 0 {
				ts = times[i-1]
			}
			times = append(times, ts)
		}
		p.push(es, times, r.IntN(2) == 0)
	}
}

// attempt compares a driver with the model in a random case.
func attempt(t *testing.T, seed uint64, steps, most int, crowd int64) {
	r := rand.New(rand.NewPCG(seed, 1))
	fs := functions()
	f := fs[r.IntN(len(fs))]
	l, name := randomLayout(r, !f.regroups || r.IntN(3) == 0)
	lateness := int64(0)
	if r.IntN(2) == 0 {
		lateness = r.Int64N(100)
	}
	disorder := []int64{0, 5, 40, 200}[r.IntN(4)]
	keys := 1 + r.Int64N([]int64{3, 20, crowd}[r.IntN(3)])
	t.Run(fmt.Sprintf("seed %d: %s, %s, disorder %d, lateness %d, %d keys", seed, f.name, name, disorder, lateness, keys), func(t *testing.T) {
		p := newPair(t, l, f, lateness, r.IntN(2) == 0)
		p.most = most
		for range steps {
			p.step(r, 30, disorder, keys)
		}
		p.clock(p.now + 1_000_000)
		p.mark(math.MaxInt64)
		if o := p.driver(); len(o.shelf.list)+len(o.hidden) != 0 {
			t.Errorf("%d slices are left", len(o.shelf.list))
		}
	})
}

func TestResultsAreThoseOfTheModel(t *testing.T) {
	for seed := range uint64(600) {
		attempt(t, seed, 80, 12, 200)
	}
}

// Many keys make slices dense, lists and dense again; long runs are cut.
func TestResultsOfCrowdsAreThoseOfTheModel(t *testing.T) {
	for seed := range uint64(40) {
		attempt(t, seed, 25, 1500, 3000)
	}
}
