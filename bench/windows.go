package main

import (
	"context"
	"time"

	"github.com/flott-dev/flott/agg"
	"github.com/flott-dev/flott/bench/loops"
	"github.com/flott-dev/flott/stream"
	"github.com/flott-dev/flott/watermark"
	"github.com/flott-dev/flott/window"
)

// windowed is the count of a key in a window.
type windowed = window.Result[uint64, window.Time, int64]

// windowSuite are the workloads of windows and of the interval join, with the least ratios and figures that are asked for.
// Parallelism is 1: the figures are per core.
func windowSuite() []workload {
	return []workload{
		{name: "tumbling-10s-10k", parallelism: 1, must: 0.4, compare: tumbling(10_000)},
		{name: "tumbling-10s-1m", parallelism: 1, must: 0.4, compare: tumbling(1_000_000)},
		{name: "tumbling-10s-10k-disorder", parallelism: 1, compare: tumblingDisorder},
		{name: "sliding-60s-1s-10k", parallelism: 1, mustRate: 10e6, compare: sliding(60_000, 1000)},
		{name: "sliding-60s-10s-10k", parallelism: 1, compare: sliding(60_000, 10_000)},
		{name: "sliding-60s-6s-10k", parallelism: 1, compare: sliding(60_000, 6000)},
		{name: "sliding-60s-7.001s-10k", parallelism: 1, compare: sliding(60_000, 7001)},
		{name: "sliding-60s-1s-max-10k", parallelism: 1, compare: slidingMax},
		{name: "session-2s-100k", parallelism: 1, mustRate: 5e6, compare: session(2000)},
		{name: "session-10s-100k", parallelism: 1, compare: session(10_000)},
		{name: "interval-join-100k", parallelism: 1, compare: intervalJoin},
	}
}

// stamped is a stream of events with their timestamps. The watermark comes every ms of the clock, behind disorder of that
// much.
func stamped(env *stream.Env, es []loops.Event, disorder time.Duration) *stream.Stream[loops.Event] {
	env.SetAutoWatermarkInterval(time.Millisecond)
	return env.FromSource(&repeat[loops.Event]{es, 1}, "Events").AssignTimestampsAndWatermarks(
		watermark.ForBoundedOutOfOrderness[loops.Event](disorder).WithMillis(func(e loops.Event) int64 { return e.TS }))
}

func byKey(e loops.Event) uint64 { return e.Key }

// windowPair compares a job of windows of counts with the loop.
func windowPair(es []loops.Event, loop func() uint64, sum func([]windowed) uint64, build func(*stream.Env) *stream.Stream[windowed]) *pair {
	return &pair{
		elements: len(es),
		loop:     loop,
		ours: func(ctx context.Context) (uint64, error) {
			out := newTally(sum)
			err := execute(ctx, "windows", 1, func(env *stream.Env) { build(env).SinkTo(out) })
			return out.total.Load(), err
		},
	}
}

func countTumbling(ws []windowed) (sum uint64) {
	for i := range ws {
		w := &ws[i]
		sum += loops.CountChecksum(w.Key, w.Value) * uint64(w.Window.End/10_000)
	}
	return sum
}

func tumbling(keys int) func(context.Context, options) (*pair, error) {
	return func(_ context.Context, o options) (*pair, error) {
		keys := max(1, keys/o.shrink)
		es := loops.Events(8<<20/o.shrink, keys, 200_000/o.shrink)
		return windowPair(es, func() uint64 { return loops.Tumbling(es, keys) }, countTumbling, func(env *stream.Env) *stream.Stream[windowed] {
			return stamped(env, es, 0).KeyBy(byKey).Window(window.Tumbling(10 * time.Second)).Aggregate(agg.Count[loops.Event]())
		}), nil
	}
}

// tumblingDisorder has every tenth event up to 2 s late, compared with the loop over the events in order.
func tumblingDisorder(_ context.Context, o options) (*pair, error) {
	keys := max(1, fewKeys/o.shrink)
	es := loops.Events(8<<20/o.shrink, keys, 200_000/o.shrink)
	mixed := loops.Disorder(es, 2000)
	return windowPair(es, func() uint64 { return loops.Tumbling(es, keys) }, countTumbling, func(env *stream.Env) *stream.Stream[windowed] {
		return stamped(env, mixed, 2*time.Second).KeyBy(byKey).Window(window.Tumbling(10 * time.Second)).Aggregate(agg.Count[loops.Event]())
	}), nil
}

// sliding counts in windows of size ms every slide ms. The loop fires what is complete before the last event.
func sliding(size, slide int64) func(context.Context, options) (*pair, error) {
	return func(_ context.Context, o options) (*pair, error) {
		es := slidingEvents(o)
		last := es[len(es)-1].TS
		return windowPair(es, func() uint64 { return loops.Sliding(es, size, slide) }, func(ws []windowed) (sum uint64) {
			for i := range ws {
				if w := &ws[i]; w.Window.End <= last {
					sum += uint64(w.Value) * (w.Key / loops.Spread)
				}
			}
			return sum
		}, func(env *stream.Env) *stream.Stream[windowed] {
			return stamped(env, es, 0).KeyBy(byKey).
				Window(window.Sliding(time.Duration(size)*time.Millisecond, time.Duration(slide)*time.Millisecond)).
				Aggregate(agg.Count[loops.Event]())
		}), nil
	}
}

// slidingEvents are 10,000 a second.
func slidingEvents(o options) []loops.Event {
	return loops.Events(4<<20/o.shrink, loops.SlidingKeys, 10_000/min(10, o.shrink))
}

// slidingMax takes the largest time of events per key, which can't be taken back when the window slides; compared with the
// counting loop's time.
func slidingMax(_ context.Context, o options) (*pair, error) {
	es := slidingEvents(o)
	p := windowPair(es, func() uint64 { return loops.Sliding(es, 60_000, 1000) }, func(ws []windowed) (sum uint64) {
		for i := range ws {
			if w := &ws[i]; w.Window.End <= es[len(es)-1].TS {
				sum += uint64(w.Value) * (w.Key + 1)
			}
		}
		return sum
	}, func(env *stream.Env) *stream.Stream[windowed] {
		return stamped(env, es, 0).KeyBy(byKey).Window(window.Sliding(time.Minute, time.Second)).
			Aggregate(agg.Max(func(e loops.Event) int64 { return e.TS }))
	})
	p.digest = func() uint64 { return loops.SlidingMax(es, 60_000, 1000) }
	return p, nil
}

// session counts per session. The watermark is a ms behind, so that an event at the very end of a session still finds it.
func session(gap int64) func(context.Context, options) (*pair, error) {
	return func(_ context.Context, o options) (*pair, error) {
		keys := max(1, 100_000/o.shrink)
		es := loops.Events(4<<20/o.shrink, keys, max(1, 20_000/o.shrink))
		return windowPair(es, func() uint64 { return loops.Sessions(es, keys, gap) }, func(ws []windowed) (sum uint64) {
			for i := range ws {
				w := &ws[i]
				sum += loops.SessionChecksum(w.Key, w.Window.Start, w.Window.End, w.Value)
			}
			return sum
		}, func(env *stream.Env) *stream.Stream[windowed] {
			return stamped(env, es, time.Millisecond).KeyBy(byKey).Window(window.Session(time.Duration(gap) * time.Millisecond)).
				Aggregate(agg.Count[loops.Event]())
		}), nil
	}
}

// intervalJoin joins two streams of 100,000 events a second each, -1 s ... +2 s, about 3 partners each.
func intervalJoin(_ context.Context, o options) (*pair, error) {
	keys, n := max(1, 100_000/o.shrink), 1<<20/o.shrink
	rate := max(1, 100_000/o.shrink)
	left, right := loops.Events(n, keys, rate), loops.EventsFrom(n, keys, rate, 977)
	return &pair{
		elements: len(left) + len(right),
		loop: func() uint64 {
			_, sum := loops.IntervalJoin(left, right, keys, 1000, 2000)
			return sum
		},
		ours: func(ctx context.Context) (uint64, error) {
			out := newTally(func(xs []uint64) (sum uint64) {
				for _, x := range xs {
					sum += x
				}
				return sum
			})
			err := execute(ctx, "interval join", 1, func(env *stream.Env) {
				stamped(env, left, 0).KeyBy(byKey).IntervalJoin(stamped(env, right, 0).KeyBy(byKey)).
					Between(-time.Second, 2*time.Second).
					JoinPtr(func(a, b *loops.Event) uint64 { return loops.PairChecksum(a.Key, a.TS, b.TS) }).SinkTo(out)
			})
			return out.total.Load(), err
		},
	}, nil
}
