package sessions

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unsafe"

	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/host"
	kit "github.com/flott-dev/flott/internal/operator/operatortest"
	"github.com/flott-dev/flott/internal/operator/windows"
	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/statebackend"
	"github.com/flott-dev/flott/window"
)

// crowd gives n elements of keys of their own, from first on.
func (h *harness) crowd(ts, first int64, n int) error {
	xs, times := make([]event, n), make([]int64, n)
	for i := range xs {
		xs[i], times[i] = event{Key: first + int64(i), Text: "x"}, ts
	}
	return h.give(kit.Run(h.t, times, xs...))
}

func TestSessionsDrawOnTheMemoryBudget(t *testing.T) {
	for _, c := range []job{{}, {agg: "wide", key: "wide"}, {agg: "polynomial", key: "text"}} {
		c.gap = static(1_000_000)
		op, rt := c.operator(t), kit.Runtime()
		rt.Memory = host.NewMemory(1 << 20)
		h := &harness{Recorder: kit.Record(t, op.Output(""), rt), t: t, op: op, driver: op, rt: rt}
		kit.Must(t, op.Open(rt))
		used := rt.Memory.Used()
		var err error
		n := 0
		for ; err == nil && n < 100_000; n += 1000 {
			err = h.crowd(int64(n), int64(n), 1000)
		}
		if !errors.Is(err, statebackend.ErrOutOfMemory) || !strings.Contains(err.Error(), `operator "op"`) {
			t.Fatalf("%+v: %d sessions in a MiB: error %v", c, n, err)
		}
		if n < 3000 || used <= 0 || rt.Memory.Used() < 400_000 {
			t.Errorf("%+v: %d sessions in a MiB, of which %d bytes before the first and %d in all", c, n, used, rt.Memory.Used())
		}
		kit.Must(t, op.Close())
		if got := rt.Memory.Used(); got != 0 {
			t.Errorf("%+v: %d bytes are held after Close", c, got)
		}
	}
}

func TestSessionsThatDoNotFitFailToOpen(t *testing.T) {
	op, rt := job{gap: static(1)}.operator(t), kit.Runtime()
	rt.Memory = host.NewMemory(1000)
	if err := op.Open(rt); !errors.Is(err, statebackend.ErrOutOfMemory) {
		t.Errorf("opened with %v", err)
	}
	kit.Must(t, op.Close())
}

// The wheel takes memory first and asks afterwards: the run or watermark fails.
func TestShortageOfTheWheelFailsTheRun(t *testing.T) {
	h := job{gap: dynamic()}.open(t)
	h.rt.Memory = host.NewMemory(1)
	h.driver.ledger.memory = h.rt.Memory
	if err := h.give(kit.Run(t, []int64{0}, event{Gap: 1 << 40})); !errors.Is(err, statebackend.ErrOutOfMemory) {
		t.Errorf("pushed with %v", err)
	}
	h.driver.ledger.memory = nil
}

// Keys that don't come back leave nothing, and those that do find nothing.
func TestKeysWithoutSessionsAreSwept(t *testing.T) {
	for _, key := range []string{"", "text", "wide"} {
		h := job{gap: static(10), agg: "polynomial", key: key, slack: 2000}.open(t)
		o := h.driver
		const crowd = 1000
		for round := range int64(200) {
			kit.Must(t, h.crowd(round*100, round*crowd, crowd))
			h.watermark(round*100 + 50)
			if most := 2000 + 4*crowd + crowd; o.idle > most || o.live != 0 || o.keyer.table.Len() != o.idle || o.used > most+2*crowd {
				t.Fatalf("key %q, round %d: %d keys without a session and %d with one, %d in the table, %d nodes", key, round, o.idle, o.live, o.keyer.table.Len(), o.used)
			}
		}
		kit.Must(t, h.crowd(30_000, 0, crowd)) // keys of the first round
		h.Take()
		h.watermark(40_000)
		if len(h.Got) != crowd+1 {
			t.Errorf("key %q: %d sessions of keys that came back", key, len(h.Got)-1)
		}
	}
}

// Accumulators and keys of sessions that are gone are no longer held.
func TestNothingOfASessionIsHeldOnceItIsGone(t *testing.T) {
	for _, name := range []string{"", "polynomial", "wide", "sum"} {
		h := job{gap: static(10), key: "text", agg: name, slack: 1}.open(t)
		for round := range int64(10) {
			now := round * 1000
			for i := range int64(50) {
				key := event{Key: round*100 + i, Text: "x"}
				h.push(now, key)
				h.push(now+20, key)
				h.push(now+10, key) // merges
				h.push(now+100, key)
			}
			h.watermark(now + 500)
		}
		for range 10 { // runs go on sweeping
			h.push(20_000, event{Key: -1})
		}
		o := h.driver
		if o.live != 1 || o.idle > 6 {
			t.Fatalf("%q: %d sessions, %d keys without", name, o.live, o.idle)
		}
		for id := uint32(1); id < uint32(o.used); id++ {
			s := &o.nodes[id]
			acc := unsafe.Slice((*byte)(o.accs.at(id)), o.accs.Size)
			if s.empty() && !bytes.Equal(acc, make([]byte, len(acc))) {
				t.Errorf("%q: node %d has no session but an accumulator", name, id)
			}
			if s.newer == freeNode && *(*string)(o.keys.at(id)) != "" {
				t.Errorf("%q: node %d is free but has a key", name, id)
			}
		}
	}
}

// The text of a key is a copy: the element's may be a part of something large.
func TestKeysAreCopied(t *testing.T) {
	acc := kernelsOf[string](t, "")
	spec := windows.Spec{In: kit.TypeOf[event](t), Out: kit.TypeOf[string](t), Key: kit.KeyOf(t, func(e event) string { return e.Text })}
	o := New(spec, static(10), process.EventTime, acc).(*driver)
	out, _ := kit.Open(t, o)
	large := strings.Repeat("word ", 1000)
	kit.Must(t, o.Push(kit.Run(t, []int64{1}, event{Text: large[5:9]})))
	kept := *(*string)(o.keys.at(1))
	if kept != "word" || unsafe.StringData(kept) == unsafe.StringData(large[5:9]) {
		t.Errorf("the key %q is the element's own memory", kept)
	}
	kit.Must(t, o.Mark(kit.Watermark(100)))
	out.Want(t, "word [1,11) [word]@10", "watermark 100")
}

func TestSessionsOverAllElements(t *testing.T) {
	acc := kernelsOf[window.All](t, "")
	all := func(event) window.All { return window.All{} }
	spec := windows.Spec{In: kit.TypeOf[event](t), Out: kit.TypeOf[string](t), Key: kit.KeyOf(t, all)}
	op := New(spec, static(10), process.EventTime, acc)
	out, _ := kit.Open(t, op)
	kit.Must(t, op.Inputs()[0].Push(kit.Run(t, []int64{1, 30, 8, 41}, event{1, 0, "a"}, event{2, 0, "b"}, event{3, 0, "c"}, event{1, 0, "d"})))
	kit.Must(t, op.Inputs()[0].Mark(kit.Watermark(100)))
	out.Want(t, "{} [1,18) [a c]@17", "{} [30,40) [b]@39", "{} [41,51) [d]@50", "watermark 100")
}

func TestRunsOfAnyLengthAreTaken(t *testing.T) {
	h := job{gap: static(10)}.open(t)
	const n = 2*frame.MaxLen + 7
	xs, times := make([]event, n), make([]int64, n)
	for i := range xs {
		xs[i], times[i] = event{Key: 5, Text: fmt.Sprint(i)}, int64(i)
	}
	kit.Must(t, h.give(kit.Run(t, times, xs...)))
	h.watermark(frame.MaxWatermark)
	if len(h.Got) != 2 || !strings.HasPrefix(h.Got[0], fmt.Sprintf("5 [0,%d) [0 1 2", n+9)) || !strings.HasSuffix(h.Got[0], fmt.Sprintf(" %d]@%d", n-1, n+8)) {
		t.Errorf("got %.100q", h.Got)
	}
}
