package sessions

import (
	"fmt"
	"testing"

	"github.com/flott-dev/flott/agg"
	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/operator"
	kit "github.com/flott-dev/flott/internal/operator/operatortest"
	"github.com/flott-dev/flott/internal/operator/windows"
	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/serde"
	"github.com/flott-dev/flott/window"
)

// event is an element of the tests. Text is what the order-sensitive aggregates are made of.
type event struct {
	Key  int64
	Gap  int64
	Text string
}

func (e event) key() int64 { return e.Key }

func (e event) size() uint64 { return number(e.Text) }

func (e event) name() string { return fmt.Sprint("key ", e.Key) }

// concat is an aggregate that tells the order of its elements and has pointers.
type concat struct{}

type chapters struct{ Texts []string }

func (concat) Create() *chapters           { return &chapters{} }
func (concat) Add(acc **chapters, x event) { (*acc).Texts = append((*acc).Texts, x.Text) }
func (concat) Merge(acc, other **chapters) {
	(*acc).Texts = append((*acc).Texts, (*other).Texts...)
	*other = nil
}
func (concat) Result(acc **chapters) string { return fmt.Sprint((*acc).Texts) }

// polynomial tells the order of its elements in a number, without pointers.
type polynomial struct{}

type power struct{ Sum, Base uint64 }

const radix = 1_000_003

func number(text string) (n uint64) {
	for _, c := range []byte(text) {
		n = n*31 + uint64(c)
	}
	return n
}

func (polynomial) Create() power { return power{Base: 1} }
func (polynomial) Add(acc *power, x event) {
	acc.Sum, acc.Base = acc.Sum*radix+number(x.Text), acc.Base*radix
}

func (polynomial) Merge(acc, other *power) {
	acc.Sum, acc.Base = acc.Sum*other.Base+other.Sum, acc.Base*other.Base
}

func (polynomial) Result(acc *power) string {
	return fmt.Sprint(acc.Sum)
}

// wide is polynomial with an accumulator that fits into no node.
type wide struct{}

type wideAcc struct {
	power
	Elements uint64
}

func (wide) Create() wideAcc { return wideAcc{power: power{Base: 1}} }
func (wide) Add(acc *wideAcc, x event) {
	polynomial{}.Add(&acc.power, x)
	acc.Elements++
}

func (wide) Merge(acc, other *wideAcc) {
	polynomial{}.Merge(&acc.power, &other.power)
	acc.Elements += other.Elements
}
func (wide) Result(acc *wideAcc) string { return polynomial{}.Result(&acc.power) }

// wideKey is a key that fits into no node.
type wideKey struct {
	Key  int64
	Rest [3]int64
}

func (k wideKey) String() string { return fmt.Sprint("wide ", k.Key) }

func (e event) wide() wideKey { return wideKey{Key: e.Key} }

// kernels compiles an aggregate of events. Results become texts.
func kernels[K, A, R any](t testing.TB, a agg.Aggregate[event, A, R]) *windows.Incremental {
	t.Helper()
	acc, err := serde.Of[A]()
	kit.Must(t, err)
	p := windows.Program[event, K, window.Time, A, R, string]{
		Aggregate: a,
		Emit: func(x *string, info *window.Info[K, window.Time], r R) {
			*x = fmt.Sprint(info.Key, " ", info.Window, " ", r)
		},
	}
	return p.Incremental(acc)
}

func kernelsOf[K any](t testing.TB, name string) *windows.Incremental {
	t.Helper()
	switch name {
	case "polynomial":
		return kernels[K](t, polynomial{})
	case "wide":
		return kernels[K](t, wide{})
	case "sum": // it folds into columns and takes memory that is zero for an accumulator
		return kernels[K](t, agg.Sum(event.size))
	}
	return kernels[K](t, concat{})
}

// job is what a test makes of sessions.
type job struct {
	gap      Gap
	domain   process.Domain
	lateness int64
	late     string // tag of the side output; it is read
	agg      string // "polynomial", "wide", "sum", or concat
	key      string // "text", "wide", or numbers
	slack    int    // keys without a session that are kept; 0: the default
}

// harness drives a job.
type harness struct {
	*kit.Recorder
	t      testing.TB
	op     operator.Operator
	driver *driver // op, if it is one
	rt     *operator.Runtime
	side   *kit.Recorder
}

func (j job) operator(t testing.TB) *driver {
	t.Helper()
	spec := windows.Spec{In: kit.TypeOf[event](t), Out: kit.TypeOf[string](t), Lateness: j.lateness, Late: j.late, Place: "main.go:12"}
	if j.late != "" {
		spec.Sides = map[string]*frame.Type{j.late: spec.In}
	}
	var k *windows.Incremental
	switch j.key {
	case "text":
		spec.Key, k = kit.KeyOf(t, event.name), kernelsOf[string](t, j.agg)
	case "wide":
		spec.Key, k = kit.KeyOf(t, event.wide), kernelsOf[wideKey](t, j.agg)
	default:
		spec.Key, k = kit.KeyOf(t, event.key), kernelsOf[int64](t, j.agg)
	}
	o := New(spec, j.gap, j.domain, k).(*driver)
	if j.slack != 0 {
		o.broom.slack = j.slack
	}
	return o
}

func (j job) open(t testing.TB) *harness {
	t.Helper()
	o := j.operator(t)
	h := &harness{t: t, op: o, driver: o, rt: kit.Runtime()}
	h.connect(j)
	return h
}

// connect opens the operator.
func (h *harness) connect(j job) {
	t := h.t
	t.Helper()
	h.rt.Timers.Scope = h.rt.Scope
	h.Recorder = kit.Record(t, h.op.Output(""), h.rt)
	if j.late != "" {
		h.side = kit.Record(t, h.op.Output(j.late), h.rt)
	}
	kit.Must(t, h.op.Open(h.rt))
	t.Cleanup(func() { kit.Must(t, h.op.Close()) })
}

// give pushes a run.
func (h *harness) give(r *frame.Run) error { return h.op.Inputs()[0].Push(r) }

// mark hands over a mark.
func (h *harness) mark(m frame.Mark) error { return h.op.Inputs()[0].Mark(m) }

// push gives one element.
func (h *harness) push(ts int64, x event) {
	h.t.Helper()
	kit.Must(h.t, h.give(kit.Run(h.t, []int64{ts}, x)))
}

// at gives elements of key 1 whose texts are their times.
func (h *harness) at(times ...int64) {
	h.t.Helper()
	for _, ts := range times {
		h.push(ts, event{Key: 1, Text: fmt.Sprint(ts)})
	}
}

func (h *harness) watermark(ms int64) {
	h.t.Helper()
	kit.Must(h.t, h.mark(kit.Watermark(ms)))
}

// clock sets the clock as the task does: what it is past happens before the next element.
func (h *harness) clock(ms int64) {
	h.t.Helper()
	h.rt.Now = ms
	kit.Must(h.t, h.rt.Timers.Run(ms-1))
}

// static is a gap that all elements have.
func static(ms int64) Gap { return Gap{Millis: ms} }

// dynamic is the gap of the element.
func dynamic() Gap {
	return Gap{Of: func(r *frame.Run, i int) int64 { return frame.Values[event](r)[i].Gap }}
}

// readDropped is the metric of late elements.
func readDropped(h *harness) int64 {
	m := h.rt.Host.(*kit.Host).Metrics[windows.LateDropped]
	if m == nil {
		return 0
	}
	return m.Read().(int64)
}
