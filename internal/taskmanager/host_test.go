package taskmanager

import (
	"slices"
	"strings"
	"testing"

	"github.com/flott-dev/flott/internal/host"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/statebackend"
)

// silent is a waiter that nobody waits at.
type silent struct{ host.Waiter }

func (silent) Wake() {}

func newTestHost() *Host {
	job := &Job{Parameters: map[string]string{"key": "value", "empty": ""}, Files: map[string]string{"dict": "/data/words"}}
	rt := &operator.Runtime{Scope: &operator.Scope{Mailbox: host.NewMailbox(silent{}), Spawn: &host.Spawner{}}}
	return newHost(job, rt)
}

func TestHostKnowsParametersAndFiles(t *testing.T) {
	h := newTestHost()
	for name, want := range map[string]struct {
		value string
		ok    bool
	}{"key": {"value", true}, "empty": {"", true}, "other": {"", false}} {
		if v, ok := h.GlobalParameter(name); v != want.value || ok != want.ok {
			t.Errorf("parameter %s is %q, %v", name, v, ok)
		}
	}
	if path, err := h.CachedFile("dict"); path != "/data/words" || err != nil {
		t.Errorf("file %q, %v", path, err)
	}
	if path, err := h.CachedFile("other"); err == nil || path != "" || !strings.Contains(err.Error(), `"other"`) {
		t.Errorf("a file that was not registered: %q, %v", path, err)
	}
}

// What is asked for by one name is one thing, made once.
func TestAccumulatorsAndMetricsAreMadeOnce(t *testing.T) {
	h := newTestHost()
	rt := process.NewRuntime(h)
	process.NewLongCounter(rt, "a").Add(2)
	process.NewLongCounter(rt, "a").Add(3)
	process.NewLongCounter(rt, "b").Add(7)
	process.NewMetricCounter(rt, "a").Inc(1)
	process.NewMetricCounter(rt, "a").Inc(1)
	acc := h.Accumulators()
	if len(acc) != 2 || acc["a"].Value() != int64(5) || acc["b"].Value() != int64(7) {
		t.Errorf("accumulators %v", acc)
	}
	metrics := h.Metrics()
	if len(metrics) != 1 || metrics["a"].Read() != int64(2) {
		t.Errorf("metrics %v", metrics)
	}
	delete(metrics, "a") // the reader's own map
	if len(h.Metrics()) != 1 {
		t.Error("a reader can take a metric away")
	}
}

func TestStateNeedsAKeyedStream(t *testing.T) {
	h := newTestHost()
	cell := h.BindTable(statebackend.TableSpec{Name: "total"})
	if cell == nil || cell.Table != nil {
		t.Errorf("cell %v", cell)
	}
}

func TestPostedLettersComeInOrder(t *testing.T) {
	h := newTestHost()
	var read []int
	for i := range 3 {
		h.Post(func() error { read = append(read, i); return nil })
	}
	for _, letter := range h.rt.Mailbox.Take() {
		if err := letter(); err != nil || h.rt.At != h.rt {
			t.Errorf("%v; at work is %v", err, h.rt.At)
		}
	}
	if !slices.Equal(read, []int{0, 1, 2}) {
		t.Errorf("read %v", read)
	}
	done := false
	h.Go(func() { done = true })
	h.rt.Spawn.Wait()
	if !done {
		t.Error("nobody waits for the goroutine")
	}
}
