package sessions

import (
	"math"
	"testing"

	kit "github.com/flott-dev/flott/internal/operator/operatortest"
	"github.com/flott-dev/flott/internal/operator/windowing"
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
		tr.run(t, seed, func(step int) {
			if tr.rng.IntN(5) == 0 {
				tr.move(t, tr.rng.IntN(2) == 0)
				tr.compare(seed, step, true)
			}
		})
	}
}
