package slices

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/flott-dev/flott/internal/frame"
	kit "github.com/flott-dev/flott/internal/operator/operatortest"
	"github.com/flott-dev/flott/internal/operator/windowing"
	"github.com/flott-dev/flott/internal/operator/windows"
	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/window"
)

// move goes on with another driver, which begins with a snapshot of the one before: the general one, or slices.
func (p *pair) move(general bool) {
	p.story = append(p.story, fmt.Sprint("move, general ", general))
	t := p.t
	s := windows.Spec{
		In: kit.TypeOf[event](t), Out: kit.TypeOf[string](t), Key: kit.KeyOf(t, func(e event) int64 { return e.Key }), Lateness: p.lateness,
		Place: "here.go:1", Late: lateTag,
	}
	s.Sides = map[string]*frame.Type{lateTag: s.In}
	restored := kit.Take(t, p.op).Restored()
	if p.op = New(s, p.grid, p.layout.domain, p.f.kernels(t)); general {
		p.op = windowing.Aggregate(s, windowing.TimeDefinition[window.Time]{Assigner: p.assigner}, p.f.kernels(t))
	}
	p.rt = kit.Runtime()
	p.rt.Restored, p.rt.Now = restored, p.now
	p.lateOut = kit.Record(t, p.op.Output(lateTag), p.rt)
	p.out = kit.OpenAt(t, p.op, p.rt)
	if p.watermark > math.MinInt64 { // a task replays it
		kit.Must(t, p.op.Inputs()[0].Mark(kit.Watermark(p.watermark)))
		p.model.out = append(p.model.out, fmt.Sprint("watermark ", p.watermark))
	}
	p.compare()
}

// movedAttempt moves between slices and the general driver in a random case.
func movedAttempt(t *testing.T, seed uint64, steps, most int, crowd int64) {
	r := rand.New(rand.NewPCG(seed, 11))
	fs := functions()
	f := fs[r.IntN(len(fs))]
	l, name := randomLayout(r, !f.regroups || r.IntN(3) == 0)
	lateness := r.Int64N(100) * r.Int64N(2)
	disorder := []int64{0, 5, 40, 200}[r.IntN(4)]
	keys := 1 + r.Int64N([]int64{3, 20, crowd}[r.IntN(3)])
	t.Run(fmt.Sprintf("seed %d: %s, %s, disorder %d, lateness %d, %d keys", seed, f.name, name, disorder, lateness, keys), func(t *testing.T) {
		p := newPair(t, l, f, lateness, true)
		p.most = most
		for range steps {
			if r.IntN(8) == 0 {
				p.move(r.IntN(2) == 0)
			}
			p.step(r, 30, disorder, keys)
		}
		p.move(r.IntN(2) == 0)
		p.clock(p.now + 1_000_000)
		p.mark(math.MaxInt64)
		if o, ok := p.op.(*driver); ok && len(o.shelf.list)+len(o.hidden)+len(o.shelf.wholes) != 0 {
			t.Errorf("%d slices and %d windows are left", len(o.shelf.list), len(o.shelf.wholes))
		}
	})
}

// TestWindowsMoveBetweenDrivers compares with the model what comes of windows that are slices now and kept by the general driver
// then.
func TestWindowsMoveBetweenDrivers(t *testing.T) {
	for seed := range uint64(400) {
		movedAttempt(t, seed, 60, 12, 100)
	}
}

func TestWindowsOfCrowdsMoveBetweenDrivers(t *testing.T) {
	for seed := range uint64(20) {
		movedAttempt(t, seed, 15, 1000, 1500)
	}
}

// Domain and DefaultTrigger complete fewer for the general driver.
func (f fewer) Domain() process.Domain { return f.domain }

func (f fewer) DefaultTrigger() window.Trigger {
	if f.domain == process.ProcessingTime {
		return window.ProcessingTimeTrigger()
	}
	return window.EventTimeTrigger()
}
