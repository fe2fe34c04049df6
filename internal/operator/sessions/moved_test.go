package sessions

import (
	"math"
	"testing"

	"github.com/flott-dev/flott/internal/frame"
	kit "github.com/flott-dev/flott/internal/operator/operatortest"
	"github.com/flott-dev/flott/internal/operator/windowing"
	"github.com/flott-dev/flott/process"
)

// move goes on with another driver, which begins with a snapshot of the one before: the general one, or sessions.
func (tr *trial) move(t *testing.T, general bool) {
	o := tr.job.operator(t)
	next := &harness{t: t, op: o, driver: o, rt: kit.Runtime()}
	if general {
		next.op, next.driver = windowing.Aggregate(o.spec, tr.definition(), o.k), nil
	}
	next.rt.Now, next.rt.Restored = tr.h.rt.Now, kit.Take(t, tr.h.op).Restored()
	next.connect(tr.job)
	tr.h, tr.model.dropped = next, 0
	if tr.model.eventTime() && tr.model.time > math.MinInt64 {
		tr.watermark(tr.model.time) // a task replays it
	}
}

// TestSessionsMoveBetweenDrivers compares with the model what comes of sessions that are kept here now and by the general driver
// then.
func TestSessionsMoveBetweenDrivers(t *testing.T) {
	for seed := range uint64(300) {
		tr := newTrial(t, seed)
		for step := range 40 {
			tr.elements(t)
			tr.compare(seed, step, false)
			if tr.rng.IntN(3) == 0 {
				tr.progress()
				tr.compare(seed, step, true)
			}
			if tr.rng.IntN(5) == 0 {
				tr.move(t, tr.rng.IntN(2) == 0)
				tr.compare(seed, step, true)
			}
		}
		if tr.domain == process.ProcessingTime {
			tr.clock(math.MaxInt64)
		} else {
			tr.watermark(frame.MaxWatermark)
		}
		tr.compare(seed, 40, true)
	}
}
