package stream_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/flott-dev/flott/stream"
	"github.com/flott-dev/flott/window"
)

// hits are elements with timestamps.
func hits(env *stream.Env) *stream.Stream[hit] {
	return env.FromElements(hit{"a", 1}).AssignAscendingTimestamps(func(h hit) time.Time { return time.UnixMilli(h.N) })
}

func hitsByKey(env *stream.Env) *stream.KeyedStream[hit, string] { return hits(env).KeyBy(hit.key) }

// lonely is a trigger that can't merge.
type lonely struct{ window.Trigger }

func (lonely) CanMerge() bool { return false }

func windowMistakes() []mistake {
	w := func(env *stream.Env) *stream.WindowedStream[hit, string, window.Time] {
		return hitsByKey(env).Window(window.Tumbling(time.Second))
	}
	return []mistake{
		{"no size", func(env *stream.Env) { hitsByKey(env).Window(window.Tumbling(0)).Count() }, here(), []string{`"Window Count"`, "Tumbling", "size"}},
		{"negative size", func(env *stream.Env) { hitsByKey(env).TimeWindow(-time.Second).Count() }, here(), []string{`"Window Count"`, "-1s"}},
		{"less than a millisecond", func(env *stream.Env) { hitsByKey(env).TimeWindow(time.Microsecond).Count() }, here(), []string{`"Window Count"`, "less than a millisecond"}},
		{"no slide", func(env *stream.Env) { hitsByKey(env).TimeWindow(time.Second, 0).Count() }, here(), []string{`"Window Count"`, "slide"}},
		{"offset of the size", func(env *stream.Env) {
			hitsByKey(env).Window(window.Tumbling(time.Second).Offset(-time.Second)).Count()
		}, below(), []string{`"Window Count"`, "offset", "-1s"}},
		{"too many windows", func(env *stream.Env) { hitsByKey(env).TimeWindow(24*time.Hour, time.Millisecond).Count() }, here(), []string{`"Window Count"`, "86400000"}},
		{"no gap", func(env *stream.Env) { hitsByKey(env).Window(window.Session(0)).Count() }, here(), []string{`"Window Count"`, "gap"}},
		{"negative lateness", func(env *stream.Env) { w(env).AllowedLateness(-1).Count() }, here(), []string{`"Window Count"`, "lateness", "-1ns"}},
		{"count of no elements", func(env *stream.Env) { hitsByKey(env).CountWindow(0).Count() }, here(), []string{`"Window Count"`, "CountTrigger"}},
		{"no trigger", func(env *stream.Env) { w(env).Trigger(nil).Count() }, here(), []string{`"Window Count"`, "trigger"}},
		{"no evictor", func(env *stream.Env) { w(env).Evictor(nil).Count() }, here(), []string{`"Window Count"`, "evictor"}},
		{"evictor of no elements", func(env *stream.Env) { w(env).Evictor(window.CountEvictor(-1)).Count() }, here(), []string{`"Window Count"`, "-1"}},
		{"no assigner", func(env *stream.Env) { hitsByKey(env).Window(window.Assigner[window.Time](nil)).Count() }, here(), []string{`"Window Count"`, "no assigner"}},
		{"fold of sessions", func(env *stream.Env) {
			hitsByKey(env).Window(window.Session(time.Second)).Fold(0, func(n int, h hit) int { return n })
		}, below(), []string{`"Window Fold"`, "merge", "use Aggregate"}},
		{"trigger that can't merge", func(env *stream.Env) {
			hitsByKey(env).Window(window.Session(time.Second)).Trigger(lonely{window.EventTimeTrigger()}).Count()
		}, below(), []string{`"Window Count"`, "merge"}},
		{"event time in processing time", func(env *stream.Env) {
			env.SetStreamTimeCharacteristic(stream.ProcessingTime)
			hitsByKey(env).Window(window.Tumbling(time.Second)).Count()
		}, below(), []string{`"Window Count"`, "event time"}},
		{"no timestamps", func(env *stream.Env) { env.FromElements(hit{}).KeyBy(hit.key).TimeWindow(time.Second).Count() }, here(), []string{`"Window Count"`, "timestamp"}},
	}
}

func TestMistakesInWindowsNameOperatorAndLine(t *testing.T) {
	for _, m := range windowMistakes() {
		t.Run(m.name, func(t *testing.T) {
			env := stream.NewEnv()
			m.build(env)
			_, err := env.Execute(context.Background(), "wrong")
			if err == nil {
				t.Fatal("the job ran")
			}
			for _, want := range append(m.want, m.at) {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %q lacks %q", err, want)
				}
			}
		})
	}
}

// TestOneMistakeIsOneDescriptions: a description is a value, and its mistakes are those of the operators made from it.
func TestOneMistakeIsOneDescriptions(t *testing.T) {
	env := stream.NewEnv()
	w := hitsByKey(env).Window(window.Session(time.Second))
	w.AllowedLateness(-1)
	w.Count().Discard()
	if _, err := env.Execute(context.Background(), "right"); err != nil {
		t.Fatal(err)
	}
}
