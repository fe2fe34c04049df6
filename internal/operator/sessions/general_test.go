package sessions

import (
	"slices"
	"strings"
	"testing"
	"time"

	kit "github.com/flott-dev/flott/internal/operator/operatortest"
	"github.com/flott-dev/flott/internal/operator/windowing"
	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/window"
)

// definition is what the general driver is told of a job.
func (j job) definition() (d windowing.Definition[event, window.Time]) {
	gap := func(x event) time.Duration { return time.Duration(x.Gap) * time.Millisecond }
	fixed := time.Duration(j.gap.Millis) * time.Millisecond
	switch {
	case j.gap.Of != nil && j.domain == process.ProcessingTime:
		d.ElementAssigner = window.SessionProcessingTimeBy(gap)
	case j.gap.Of != nil:
		d.ElementAssigner = window.SessionBy(gap)
	case j.domain == process.ProcessingTime:
		d.Assigner = window.SessionProcessingTime(fixed)
	default:
		d.Assigner = window.Session(fixed)
	}
	return d
}

// general opens the general driver of the job.
func (j job) general(t *testing.T, now int64) *harness {
	t.Helper()
	o := j.operator(t)
	h := &harness{t: t, op: windowing.Aggregate(o.spec, j.definition(), o.k), rt: kit.Runtime()}
	h.rt.Now = now
	h.connect(j)
	return h
}

// agrees compares what came from the general driver with what came from this one.
func (tr *trial) agrees(seed uint64, step int, free bool) {
	if tr.twin == nil {
		return
	}
	got, want := tr.h.Got, tr.twin.Got
	if free {
		slices.Sort(want)
	}
	if !slices.Equal(got, want) {
		tr.h.t.Fatalf("seed %d, step %d (%+v): got\n%s\nthe general driver\n%s", seed, step, tr.job, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	tr.twin.Got = nil
	if tr.h.side != nil {
		if !slices.Equal(tr.h.side.Got, tr.twin.side.Got) {
			tr.h.t.Fatalf("seed %d, step %d: late: got %q, the general driver %q", seed, step, tr.h.side.Got, tr.twin.side.Got)
		}
		tr.twin.side.Got = nil
	}
	if a, b := readDropped(tr.h), readDropped(tr.twin); a != b {
		tr.h.t.Fatalf("seed %d, step %d: %d dropped, by the general driver %d", seed, step, a, b)
	}
}

func TestBothPathsGiveTheSame(t *testing.T) {
	for seed := uint64(10_000); seed < 10_150; seed++ {
		tr := newTrial(t, seed)
		tr.twin = tr.general(t, tr.h.rt.Now)
		tr.run(t, seed, func(int) {})
	}
}
