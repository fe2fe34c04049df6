package guide

import (
	"testing"

	"github.com/flott-dev/flott/flotttest"
	"github.com/flott-dev/flott/stream"
)

func TestAlarmOfALargePayment(t *testing.T) {
	h := flotttest.NewHarness(t, func(in *stream.Stream[Payment]) *stream.Stream[string] {
		return in.KeyBy(func(p Payment) string { return p.Account }).Process(newAlarm)
	})
	h.ProcessElement(Payment{Account: "ann", Cents: 100}, 1)
	h.ProcessElement(Payment{Account: "ann", Cents: 201}, 2)
	h.ProcessWatermark(5)
	h.Expect(t, "ann: 201@2", "watermark 5")
	if n := h.StateEntries("sum"); n != 1 {
		t.Errorf("%d accounts have a sum", n)
	}
}

func TestAlarmInEveryLayout(t *testing.T) {
	flotttest.Variants(t, func(t *testing.T, env *stream.Env) {
		alarms := env.FromElements(Payment{Account: "ann", Cents: 100}, Payment{Account: "ann", Cents: 300}).
			KeyBy(func(p Payment) string { return p.Account }).
			Process(newAlarm)
		flotttest.Same(t, flotttest.Collect(t, env, alarms), []flotttest.Element[string]{flotttest.Untimed("ann: 300")})
	})
}

func TestAlarmAfterAPause(t *testing.T) {
	env := stream.NewEnv().SetParallelism(1)
	script := flotttest.NewScript[Payment]().
		EmitAt(Payment{Account: "ann", Cents: 100}, 1).Watermark(1).
		Pause("lunch").
		EmitAt(Payment{Account: "ann", Cents: 500}, 2)
	alarms := flotttest.FromScripts(env, script).KeyBy(func(p Payment) string { return p.Account }).Process(newAlarm)
	script.Resume("lunch") // from another goroutine, once what was to be seen has been seen
	flotttest.Equal(t, flotttest.Collect(t, env, alarms), []flotttest.Element[string]{flotttest.At("ann: 500", 2)})
}
