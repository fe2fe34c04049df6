package streaming_test

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/flott-dev/flott/conformance"
	"github.com/flott-dev/flott/flotttest"
	"github.com/flott-dev/flott/internal/env"
	"github.com/flott-dev/flott/internal/keygroup"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/internal/operator/operatortest"
	"github.com/flott-dev/flott/internal/operator/timers"
	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/serde"
	"github.com/flott-dev/flott/state"
	"github.com/flott-dev/flott/stream"
)

func TestTimerVectors(t *testing.T) {
	s := conformance.Suite{
		Folder: "streaming", Family: "timers", Rewrite: *rewrite,
		Runners: map[string]conformance.Runner{"timer_service": runTimerService, "command_operator": conformance.EachWay(runCommands)},
	}
	s.Run(t)
}

// timer is a timer of a vector; in steps the key is the one at hand.
type timer struct {
	Key       string             `json:"key"`
	Namespace string             `json:"namespace"`
	Time      conformance.Millis `json:"time"`
}

type timerExpectation struct {
	EventTimers           *int                  `json:"event_timers"`
	ProcessingTimers      *int                  `json:"processing_timers"`
	EventTimersIn         map[string]int        `json:"event_timers_in"`
	ProcessingTimersIn    map[string]int        `json:"processing_timers_in"`
	PhysicalProcessing    *[]conformance.Millis `json:"physical_processing_timers"`
	FiredEvent            *[]timer              `json:"fired_event"`
	FiredProcessing       *[]timer              `json:"fired_processing"`
	ForEachEvent          *[]timer              `json:"for_each_event"`
	ForEachProcessing     *[]timer              `json:"for_each_processing"`
	CurrentWatermark      *conformance.Millis   `json:"current_watermark"`
	CurrentProcessingTime *conformance.Millis   `json:"current_processing_time"`
}

type timerStep struct {
	SetKey             *string             `json:"set_key"`
	RegisterEvent      *timer              `json:"register_event"`
	RegisterProcessing *timer              `json:"register_processing"`
	DeleteEvent        *timer              `json:"delete_event"`
	DeleteProcessing   *timer              `json:"delete_processing"`
	Watermark          *conformance.Millis `json:"watermark"`
	ProcessingTime     *conformance.Millis `json:"processing_time"`
	CallbackRegisters  *timer              `json:"on_processing_callback_registers"`
	SnapshotRestore    bool                `json:"snapshot_restore"`
	RestoreKeys        []string            `json:"snapshot_restore_keys"`
	Expect             *timerExpectation   `json:"expect"`
}

// timerBench drives a timer service.
type timerBench struct {
	t         *testing.T
	ahead     int64 // bytes of timers in memory, beside a store; 0: all are in memory
	callbacks *operator.Callbacks
	service   *timers.Service
	key       string
	now       int64
	fired     [2][]timer
	registers *timer
}

func runTimerService(t *testing.T, c conformance.Case) {
	var v struct {
		conformance.Head
		Kind           string      `json:"kind"`
		MaxParallelism int         `json:"max_parallelism"`
		Steps          []timerStep `json:"steps"`
	}
	c.Decode(t, &v)
	for _, ahead := range []int64{0, 1, 100, 300} {
		b := &timerBench{t: t, ahead: ahead}
		b.start()
		for i, s := range v.Steps {
			b.step(s)
			if t.Failed() {
				t.Fatalf("at step %d, %d bytes of timers in memory (0: all)", i, ahead)
			}
		}
	}
}

func (b *timerBench) start() {
	b.callbacks, b.now, b.fired = &operator.Callbacks{}, 0, [2][]timer{}
	o := timers.Options{Callbacks: b.callbacks, OnProcessingTime: b.onProcessingTime}
	if b.ahead > 0 {
		o.Store = &operatortest.TimerShelf{Rand: rand.New(rand.NewPCG(1, 2)), Ahead: b.ahead}
	}
	b.service = timers.New(o)
	key, err := serde.KeyOf[string]()
	if err != nil {
		b.t.Fatal(err)
	}
	if err := b.service.Restore(nil, timers.Types{Key: key, Namespace: key}); err != nil {
		b.t.Fatal(err)
	}
}

func (b *timerBench) onProcessingTime(key []byte, hash uint64, ns []byte, at int64) error {
	d := process.ProcessingTime
	b.fired[d] = append(b.fired[d], timer{string(key), string(ns), conformance.Millis(at)})
	if r := b.registers; r != nil {
		b.registers = nil
		return b.service.Register(d, key, hash, []byte(r.Namespace), int64(r.Time))
	}
	return nil
}

func textHash(s string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(s))
	return h.Sum64()
}

func (b *timerBench) register(d process.Domain, n timer) {
	if err := b.service.Register(d, []byte(n.Key), textHash(n.Key), []byte(n.Namespace), int64(n.Time)); err != nil {
		b.t.Fatal(err)
	}
}

func (b *timerBench) remove(d process.Domain, n timer) {
	if err := b.service.Delete(d, []byte(n.Key), textHash(n.Key), []byte(n.Namespace), int64(n.Time)); err != nil {
		b.t.Fatal(err)
	}
}

func (b *timerBench) list(d process.Domain) []timer {
	var all []timer
	err := b.service.ForEach(d, func(key []byte, _ uint64, ns []byte, at int64) error {
		all = append(all, timer{string(key), string(ns), conformance.Millis(at)})
		return nil
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return all
}

// restore starts again with the timers of the keys to keep.
func (b *timerBench) restore(keep func(key string) bool) {
	all := [2][]timer{b.list(process.EventTime), b.list(process.ProcessingTime)}
	b.start()
	for d, list := range all {
		for _, n := range list {
			if keep(n.Key) {
				b.register(process.Domain(d), n)
			}
		}
	}
}

func (b *timerBench) step(s timerStep) {
	b.t.Helper()
	own := func(n *timer) timer { return timer{b.key, n.Namespace, n.Time} }
	switch {
	case s.SetKey != nil:
		b.key = *s.SetKey
	case s.RegisterEvent != nil:
		b.register(process.EventTime, own(s.RegisterEvent))
	case s.RegisterProcessing != nil:
		b.register(process.ProcessingTime, own(s.RegisterProcessing))
	case s.DeleteEvent != nil:
		b.remove(process.EventTime, own(s.DeleteEvent))
	case s.DeleteProcessing != nil:
		b.remove(process.ProcessingTime, own(s.DeleteProcessing))
	case s.CallbackRegisters != nil:
		b.registers = s.CallbackRegisters
	case s.Watermark != nil:
		d := process.EventTime
		err := b.service.AdvanceWatermark(int64(*s.Watermark), func(key []byte, _ uint64, ns []byte, at int64) error {
			b.fired[d] = append(b.fired[d], timer{string(key), string(ns), conformance.Millis(at)})
			return nil
		})
		if err != nil {
			b.t.Fatal(err)
		}
	case s.ProcessingTime != nil:
		b.now = int64(*s.ProcessingTime)
		if err := b.callbacks.Run(b.now); err != nil {
			b.t.Fatal(err)
		}
	case s.SnapshotRestore:
		b.restore(func(string) bool { return true })
	case s.RestoreKeys != nil:
		b.restore(func(key string) bool { return slices.Contains(s.RestoreKeys, key) })
	case s.Expect != nil:
		b.expect(s.Expect)
	default:
		b.t.Fatal("a step without a known word")
	}
}

func (b *timerBench) expect(e *timerExpectation) {
	b.t.Helper()
	if e.CurrentWatermark != nil && b.service.Watermark() != int64(*e.CurrentWatermark) {
		b.t.Errorf("watermark %d, want %d", b.service.Watermark(), *e.CurrentWatermark)
	}
	if e.CurrentProcessingTime != nil && b.now != int64(*e.CurrentProcessingTime) {
		b.t.Errorf("processing time %d, want %d", b.now, *e.CurrentProcessingTime)
	}
	counts := [2]*int{e.EventTimers, e.ProcessingTimers}
	counts2 := [2]map[string]int{e.EventTimersIn, e.ProcessingTimersIn}
	fired := [2]*[]timer{e.FiredEvent, e.FiredProcessing}
	each := [2]*[]timer{e.ForEachEvent, e.ForEachProcessing}
	for d := process.EventTime; d <= process.ProcessingTime; d++ {
		if want := counts[d]; want != nil && b.service.Count(d) != *want {
			b.t.Errorf("%d %v timers, want %d", b.service.Count(d), d, *want)
		}
		for ns, want := range counts2[d] {
			if got := b.service.CountIn(d, []byte(ns)); got != want {
				b.t.Errorf("%d %v timers in %q, want %d", got, d, ns, want)
			}
		}
		sameTimers(b.t, fmt.Sprintf("fired %v timers", d), b.fired[d], fired[d])
		sameTimers(b.t, fmt.Sprintf("%v timers", d), b.list(d), each[d])
	}
	if e.PhysicalProcessing != nil {
		got := []conformance.Millis{}
		if at, ok := b.service.NextProcessing(); ok {
			got = append(got, conformance.Millis(at))
		}
		if !slices.Equal(got, *e.PhysicalProcessing) {
			b.t.Errorf("callbacks at %v, want %v", got, *e.PhysicalProcessing)
		}
	}
}

func sameTimers(t *testing.T, what string, got []timer, want *[]timer) {
	t.Helper()
	if want == nil {
		return
	}
	texts := func(ts []timer) []string {
		out := []string{}
		for _, n := range ts {
			out = append(out, fmt.Sprintf("%s/%s@%d", n.Key, n.Namespace, n.Time))
		}
		slices.Sort(out)
		return out
	}
	if g, w := texts(got), texts(*want); !slices.Equal(g, w) {
		t.Errorf("%s: %q, want %q", what, g, w)
	}
}

type commandCase struct {
	conformance.Head
	Kind           string        `json:"kind"`
	MaxParallelism int           `json:"max_parallelism"`
	Steps          []commandStep `json:"steps"`
}

type commandStep struct {
	Element         json.RawMessage     `json:"element"`
	TS              conformance.Millis  `json:"ts"`
	Watermark       *conformance.Millis `json:"watermark"`
	ProcessingTime  *conformance.Millis `json:"processing_time"`
	Subtask         json.RawMessage     `json:"subtask"`
	SnapshotRestore bool                `json:"snapshot_restore"`
	Rescale         *struct {
		From       int `json:"from"`
		To         int `json:"to"`
		RunSubtask int `json:"run_subtask"`
	} `json:"rescale"`
	ExpectOutput *[]string `json:"expect_output"`
}

// command is an element of a command operator: a key, and what to do with its state and timers.
type command struct {
	Key  int64
	What string
}

func (c *command) UnmarshalJSON(b []byte) error {
	var key any
	if err := tuple(b, &key, &c.What); err != nil {
		return err
	}
	switch key := key.(type) {
	case float64:
		c.Key = int64(key)
	case string:
		c.Key = symbolic(key)
	}
	return nil
}

// symbolic is a key of the lower or the upper half of ten key groups.
func symbolic(name string) int64 {
	key, err := serde.KeyOf[int64]()
	if err != nil {
		panic(err)
	}
	for k := int64(0); ; k++ {
		hash := key.HashOne(binary.LittleEndian.AppendUint64(nil, uint64(k)), env.DefaultSeed)
		if high := keygroup.Of(uint32(hash), 10) >= 5; high == (name == "high") {
			return k
		}
	}
}

// commander carries out commands on a text that is kept as a V.
type commander[V any] struct {
	v    *state.Value[V]
	to   func(string) V
	from func(V) string
}

func (f *commander[V]) ProcessElement(ctx *process.KeyedContext[int64], x command, out *process.Collector[string]) error {
	verb, arg, _ := strings.Cut(x.What, ":")
	switch verb {
	case "SET_STATE":
		f.v.Set(f.to(arg))
	case "DELETE_STATE":
		f.v.Clear()
	case "EMIT_STATE":
		out.Collect(fmt.Sprintf("ON_ELEMENT:%d:%s", x.Key, f.from(f.v.Get())))
	case "SET_EVENT_TIME_TIMER":
		ctx.RegisterTimer(process.EventTime, number(arg))
	case "SET_PROC_TIME_TIMER":
		ctx.RegisterTimer(process.ProcessingTime, number(arg))
	default:
		return fmt.Errorf("command %q is unknown", x.What)
	}
	return nil
}

func (f *commander[V]) OnTimer(_ *process.KeyedContext[int64], t process.Timer, out *process.Collector[string]) error {
	if t.Domain == process.EventTime {
		out.Collect("ON_EVENT_TIME:" + f.from(f.v.Get()))
	} else {
		out.Collect("ON_PROC_TIME:" + f.from(f.v.Get()))
	}
	return nil
}

// short is a text in place: a fixed layout.
type short struct {
	N    int
	Text [32]byte
}

func commandSubject[V any](t *testing.T, opts []flotttest.Option, to func(string) V, from func(V) string) subject {
	t.Helper()
	s := newOne(t, opts, func(in *stream.Stream[command]) *stream.Stream[string] {
		return in.KeyBy(func(c command) int64 { return c.Key }).Process(func(rt *process.Runtime) *commander[V] {
			return &commander[V]{state.NewValue[V](rt, "state"), to, from}
		})
	})
	return s
}

func runCommands(t *testing.T, c conformance.Case, w conformance.Way) {
	var v commandCase
	c.Decode(t, &v)
	opts := wayOptions(w)
	if v.MaxParallelism > 0 {
		opts = append(opts, flotttest.WithMaxParallelism(v.MaxParallelism))
	}
	makers := map[string]func(t *testing.T) subject{
		"fixed": func(t *testing.T) subject {
			return commandSubject(t, opts, func(s string) (x short) {
				x.N = copy(x.Text[:], s)
				return x
			}, func(x short) string { return string(x.Text[:x.N]) })
		},
		"text": func(t *testing.T) subject {
			same := func(s string) string { return s }
			return commandSubject(t, opts, same, same)
		},
		"encoded": func(t *testing.T) subject {
			return commandSubject(t, opts, func(s string) []byte { return []byte(s) }, func(b []byte) string { return string(b) })
		},
	}
	for name, subject := range makers {
		t.Run(name, func(t *testing.T) {
			b := commandBench{all: fresh(t, subject(t), parallelismOf(v.Steps)), way: w}
			b.reset()
			b.play(t, v.Steps)
		})
	}
}

// parallelismOf is how many subtasks a case begins with.
func parallelismOf(steps []commandStep) int {
	for _, s := range steps {
		if s.Rescale != nil {
			return s.Rescale.From
		}
	}
	return 1
}

// commandBench plays the steps of one case on the subtasks of an operator.
type commandBench struct {
	all  []subject
	held []pending // by subtask
	way  conformance.Way
	only int // steps that name no subtask mean this one
}

// reset is called when there are other subtasks.
func (b *commandBench) reset() {
	b.held = make([]pending, len(b.all))
	for i, s := range b.all {
		b.held[i] = pending{to: s, way: b.way, input: 1}
	}
}

func (b *commandBench) play(t *testing.T, steps []commandStep) {
	t.Helper()
	for i, step := range steps {
		first, last := b.only, b.only
		if named := string(step.Subtask); named == `"all"` {
			first, last = 0, len(b.all)-1
		} else if named != "" {
			first = int(number(named))
			last = first
		}
		for n := first; n <= last; n++ {
			if err := b.step(t, i, &step, n); err != nil {
				t.Fatalf("step %d: %v", i, err)
			}
		}
	}
}

// step does one step on subtask n.
func (b *commandBench) step(t *testing.T, i int, step *commandStep, n int) error {
	t.Helper()
	if step.Element != nil {
		return b.held[n].add(1, rawElement{step.Element, int64(step.TS)})
	}
	for n := range b.held {
		if err := b.held[n].flush(); err != nil {
			return err
		}
	}
	s := b.all[n]
	switch {
	case step.Watermark != nil:
		return s.watermark(1, int64(*step.Watermark))
	case step.ProcessingTime != nil:
		return s.clock(int64(*step.ProcessingTime))
	case step.SnapshotRestore:
		b.all[n] = restarted(t, s)
		b.reset()
	case step.Rescale != nil:
		b.all, b.only = rescaled(t, b.all, step.Rescale.To), step.Rescale.RunSubtask
		b.reset()
	case step.ExpectOutput != nil:
		compare(t, i, "output", recordsOf(s), quoted(*step.ExpectOutput), false)
		s.clear()
	default:
		t.Fatalf("step %d is unknown", i)
	}
	return nil
}

// recordsOf are the values of a subject's records, without timestamps.
func recordsOf(s subject) []string {
	out := []string{}
	for _, text := range s.output() {
		if strings.HasPrefix(text, `"`) {
			out = append(out, text[:strings.LastIndex(text, `"`)+1])
		}
	}
	return out
}

func quoted(texts []string) []string {
	out := []string{}
	for _, s := range texts {
		out = append(out, conformance.Text(s))
	}
	return out
}
