package timers

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/process"
)

// readVectors reads a file of streaming vectors. FLOTT_CONFORMANCE names another folder for them, or the one above it.
func readVectors(t *testing.T, file string) []byte {
	t.Helper()
	dir := os.Getenv("FLOTT_CONFORMANCE")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "conformance", "testdata")
	}
	raw, err := os.ReadFile(filepath.Join(dir, "streaming", file))
	if errors.Is(err, os.ErrNotExist) {
		raw, err = os.ReadFile(filepath.Join(dir, file))
	}
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// millis is a time of a vector: a number, "min" or "max".
type millis int64

func (m *millis) UnmarshalJSON(b []byte) error {
	switch string(b) {
	case `"min"`:
		*m = math.MinInt64
	case `"max"`:
		*m = math.MaxInt64
	default:
		n, err := strconv.ParseInt(string(b), 10, 64)
		if err != nil {
			return err
		}
		*m = millis(n)
	}
	return nil
}

type vectorFile struct {
	Family string       `json:"family"`
	Cases  []vectorCase `json:"cases"`
}

type vectorCase struct {
	ID             string          `json:"id"`
	Source         string          `json:"source"`
	Note           string          `json:"note"`
	Kind           string          `json:"kind"`
	MaxParallelism int             `json:"max_parallelism"`
	Steps          json.RawMessage `json:"steps"`
}

type named struct {
	Key       string `json:"key"`
	Namespace string `json:"namespace"`
	Time      millis `json:"time"`
}

type expectation struct {
	EventTimers           *int           `json:"event_timers"`
	ProcessingTimers      *int           `json:"processing_timers"`
	EventTimersIn         map[string]int `json:"event_timers_in"`
	ProcessingTimersIn    map[string]int `json:"processing_timers_in"`
	PhysicalProcessing    *[]millis      `json:"physical_processing_timers"`
	FiredEvent            *[]named       `json:"fired_event"`
	FiredProcessing       *[]named       `json:"fired_processing"`
	ForEachEvent          *[]named       `json:"for_each_event"`
	ForEachProcessing     *[]named       `json:"for_each_processing"`
	CurrentWatermark      *millis        `json:"current_watermark"`
	CurrentProcessingTime *millis        `json:"current_processing_time"`
}

type step struct {
	SetKey              *string      `json:"set_key"`
	RegisterEvent       *named       `json:"register_event"`
	RegisterProcessing  *named       `json:"register_processing"`
	DeleteEvent         *named       `json:"delete_event"`
	DeleteProcessing    *named       `json:"delete_processing"`
	Watermark           *millis      `json:"watermark"`
	ProcessingTime      *millis      `json:"processing_time"`
	CallbackRegisters   *named       `json:"on_processing_callback_registers"`
	SnapshotRestore     bool         `json:"snapshot_restore"`
	SnapshotRestoreKeys []string     `json:"snapshot_restore_keys"`
	Expect              *expectation `json:"expect"`
}

// bench runs the steps of one timer_service case.
type bench struct {
	t         *testing.T
	callbacks *operator.Callbacks
	service   *Service
	key       string
	now       int64
	fired     [2][]named
	registers *named // by the next processing-time call
}

func newBench(t *testing.T) *bench {
	b := &bench{t: t}
	b.restart()
	return b
}

func (b *bench) restart() {
	b.callbacks = &operator.Callbacks{}
	b.service = New(Options{Callbacks: b.callbacks, OnProcessingTime: b.onProcessingTime})
	b.now = 0
	b.fired = [2][]named{}
}

func (b *bench) onProcessingTime(key []byte, hash uint64, ns []byte, at int64) error {
	b.fired[process.ProcessingTime] = append(b.fired[process.ProcessingTime], named{string(key), string(ns), millis(at)})
	if r := b.registers; r != nil {
		b.registers = nil
		b.service.Register(process.ProcessingTime, key, hash, []byte(r.Namespace), int64(r.Time))
	}
	return nil
}

func (b *bench) register(d process.Domain, n named) {
	b.service.Register(d, []byte(n.Key), hashOf(n.Key), []byte(n.Namespace), int64(n.Time))
}

func (b *bench) list(d process.Domain) []named {
	var all []named
	err := b.service.ForEach(d, func(key []byte, _ uint64, ns []byte, at int64) error {
		all = append(all, named{string(key), string(ns), millis(at)})
		return nil
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return all
}

func (b *bench) restore(keep func(key string) bool) {
	event, processing := b.list(process.EventTime), b.list(process.ProcessingTime)
	b.restart()
	for d, timers := range [2][]named{event, processing} {
		for _, n := range timers {
			if keep(n.Key) {
				b.register(process.Domain(d), n)
			}
		}
	}
}

func (b *bench) run(s step) {
	of := func(n named) named { return named{b.key, n.Namespace, n.Time} }
	remove := func(d process.Domain, n named) {
		b.service.Delete(d, []byte(b.key), hashOf(b.key), []byte(n.Namespace), int64(n.Time))
	}
	switch {
	case s.SetKey != nil:
		b.key = *s.SetKey
	case s.RegisterEvent != nil:
		b.register(process.EventTime, of(*s.RegisterEvent))
	case s.RegisterProcessing != nil:
		b.register(process.ProcessingTime, of(*s.RegisterProcessing))
	case s.DeleteEvent != nil:
		remove(process.EventTime, *s.DeleteEvent)
	case s.DeleteProcessing != nil:
		remove(process.ProcessingTime, *s.DeleteProcessing)
	case s.CallbackRegisters != nil:
		b.registers = s.CallbackRegisters
	case s.Watermark != nil:
		err := b.service.AdvanceWatermark(int64(*s.Watermark), func(key []byte, _ uint64, ns []byte, at int64) error {
			b.fired[process.EventTime] = append(b.fired[process.EventTime], named{string(key), string(ns), millis(at)})
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
	case s.SnapshotRestoreKeys != nil:
		b.restore(func(key string) bool { return slices.Contains(s.SnapshotRestoreKeys, key) })
	case s.Expect != nil:
		b.expect(s.Expect)
	default:
		b.t.Fatal("a step without a known word")
	}
}

func (b *bench) expect(e *expectation) {
	b.t.Helper()
	number := func(what string, got int64, want *millis) {
		if want != nil && got != int64(*want) {
			b.t.Errorf("%s is %d, want %d", what, got, *want)
		}
	}
	number("watermark", b.service.Watermark(), e.CurrentWatermark)
	number("processing time", b.now, e.CurrentProcessingTime)
	for d, want := range [2]*int{e.EventTimers, e.ProcessingTimers} {
		if got := b.service.Count(process.Domain(d)); want != nil && got != *want {
			b.t.Errorf("%d %v timers, want %d", got, process.Domain(d), *want)
		}
	}
	for d, in := range [2]map[string]int{e.EventTimersIn, e.ProcessingTimersIn} {
		for ns, want := range in {
			if got := b.service.CountIn(process.Domain(d), []byte(ns)); got != want {
				b.t.Errorf("%d %v timers in %q, want %d", got, process.Domain(d), ns, want)
			}
		}
	}
	same := func(what string, got []named, want *[]named) {
		if want != nil && fmt.Sprint(sorted(got)) != fmt.Sprint(sorted(*want)) {
			b.t.Errorf("%s: %v, want %v", what, sorted(got), sorted(*want))
		}
	}
	same("fired event time", b.fired[process.EventTime], e.FiredEvent)
	same("fired processing time", b.fired[process.ProcessingTime], e.FiredProcessing)
	same("event-time timers", b.list(process.EventTime), e.ForEachEvent)
	same("processing-time timers", b.list(process.ProcessingTime), e.ForEachProcessing)
	if e.PhysicalProcessing != nil {
		var got []millis
		if at, ok := b.service.NextProcessing(); ok {
			got = append(got, millis(at))
		}
		if fmt.Sprint(got) != fmt.Sprint(*e.PhysicalProcessing) {
			b.t.Errorf("callbacks at %v, want %v", got, *e.PhysicalProcessing)
		}
	}
}

func sorted(ns []named) []string {
	var out []string
	for _, n := range ns {
		out = append(out, fmt.Sprintf("%s/%s@%d", n.Key, n.Namespace, n.Time))
	}
	slices.Sort(out)
	return out
}

func decode(t *testing.T, b []byte, v any) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		t.Fatal(err)
	}
}

func TestTimerVectors(t *testing.T) {
	var f vectorFile
	decode(t, readVectors(t, "timers.json"), &f)
	ran, elsewhere := 0, 0
	for _, c := range f.Cases {
		switch c.Kind {
		case "command_operator": // a keyed process function: the keyed driver's
			elsewhere++
			continue
		case "timer_service":
		default:
			t.Errorf("%s: unknown kind %q", c.ID, c.Kind)
			continue
		}
		ran++
		t.Run(c.ID, func(t *testing.T) {
			var steps []step
			decode(t, c.Steps, &steps)
			b := newBench(t)
			for i, s := range steps {
				b.run(s)
				if t.Failed() {
					t.Fatalf("at step %d", i)
				}
			}
		})
	}
	t.Logf("%d cases ran, %d are the keyed driver's", ran, elsewhere)
	if ran == 0 {
		t.Error("no case ran")
	}
}
