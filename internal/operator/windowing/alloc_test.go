//go:build !race && !invariants

package windowing

import (
	"testing"
	"time"

	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/operator"
	kit "github.com/flott-dev/flott/internal/operator/operatortest"
	"github.com/flott-dev/flott/internal/operator/windows"
	"github.com/flott-dev/flott/window"
)

func TestSteadyStateAllocatesNothing(t *testing.T) {
	in := kit.TypeOf[number](t)
	spec := windows.Spec{In: in, Out: in, Key: kit.KeyOf(t, number.key)}
	k := numberKernels[window.Time](t)
	process := func(d Definition[number, window.Time]) operator.Operator {
		return Process(spec, d, func(*window.Runtime) window.Function[int64, number, window.Time, number] { return last{} })
	}
	session, slides := window.Session(5*time.Millisecond), window.Sliding(30*time.Millisecond, 10*time.Millisecond)
	for name, op := range map[string]operator.Operator{
		"tumbling aggregate": Aggregate(spec, Definition[number, window.Time]{Assigner: window.Tumbling(10 * time.Millisecond)}, k),
		"sliding aggregate":  Aggregate(spec, Definition[number, window.Time]{Assigner: slides}, k),
		"session aggregate":  Aggregate(spec, Definition[number, window.Time]{Assigner: session}, k),
		"counted":            Aggregate(spec, Definition[number, window.Time]{Assigner: slides, Trigger: window.CountTrigger(3)}, k),
		"tumbling process":   process(Definition[number, window.Time]{Assigner: window.Tumbling(10 * time.Millisecond)}),
		"session process":    process(Definition[number, window.Time]{Assigner: session}),
		"evicting process":   process(Definition[number, window.Time]{Assigner: slides, Trigger: window.CountTrigger(3), Evictor: window.CountEvictor(2)}),
	} {
		rt := kit.Runtime()
		kit.Must(t, op.Output("").Connect(kit.Null{Of: in}, rt))
		kit.Must(t, op.Open(rt))
		now, col, to, r := int64(0), frame.NewColumn(in, 512), op.Inputs()[0], &frame.Run{}
		step := func() {
			for i := range int64(512) {
				frame.Add(col, number{i % 100, i}, now+i%10)
			}
			*r = col.Run()
			kit.Must(t, to.Push(r))
			col.Reset()
			now += 20
			kit.Must(t, to.Mark(kit.Watermark(now-5)))
		}
		for range 200 {
			step()
		}
		if n := testing.AllocsPerRun(50, step) / 512; n >= 0.001 {
			t.Errorf("%s: %.4f allocations per element", name, n)
		}
		kit.Must(t, op.Close())
	}
}
