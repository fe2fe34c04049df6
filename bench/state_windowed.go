package main

import (
	"context"
	"fmt"
	"time"

	"github.com/flott-dev/flott/agg"
	"github.com/flott-dev/flott/stream"
	"github.com/flott-dev/flott/watermark"
	"github.com/flott-dev/flott/window"
)

const (
	windowKeys   = 1_000_000
	windowSlices = 6 // of a window
	windowSlide  = 10 * time.Second
	sessionGap   = 30 * time.Second
)

// pauseWindows tells how long tasks with windows stand still for checkpoints.
func pauseWindows(ctx context.Context, o stateOptions) (l stateLine, err error) {
	keys := max(1000, windowKeys/o.shrink)
	l.StateBytes = keys * rawEntry * windowSlices
	counts := agg.Count[touch]()
	sliding, err := observeWindows(ctx, o, &l, keys, windowSlices, func(s *stream.KeyedStream[touch, uint64]) *stream.Stream[windowed] {
		return s.Window(window.Sliding(windowSlices*windowSlide, windowSlide)).Aggregate(counts)
	})
	if err != nil {
		return l, fmt.Errorf("slide: %w", err)
	}
	sessions, err := observeWindows(ctx, o, &l, keys, 1, func(s *stream.KeyedStream[touch, uint64]) *stream.Stream[windowed] {
		return s.Window(window.Session(sessionGap)).Aggregate(counts)
	})
	if err != nil {
		return l, fmt.Errorf("make sessions: %w", err)
	}
	_, err = l.floors(o, sliding.bytes)
	l.Figures = []figure{
		inMillis("standing still, sliding windows, at most", sliding.still.longest(), 5),
		inMillis("standing still, sliding windows, median", sliding.still.median(), 0),
		inMillis("checkpoint, sliding windows", sliding.checkpoint.median(), 0),
		inMillis("standing still, sessions, at most", sessions.still.longest(), 5),
		inMillis("standing still, sessions, median", sessions.still.median(), 0),
		inMillis("checkpoint, sessions", sessions.checkpoint.median(), 0),
	}
	return l, err
}

// observeWindows observes checkpoints of a job with windows, each element of which is in so many of them. All keys come once in
// each slice; then event time stands still, so that nothing fires any more.
func observeWindows(ctx context.Context, o stateOptions, l *stateLine, keys int, windows uint64, build func(*stream.KeyedStream[touch, uint64]) *stream.Stream[windowed]) (seen observed, err error) {
	settle()
	first, any := uint64(windowSlices*keys), uniform(keys)
	j := newStateJob("windows", backToBack, o.folder, keys, func(u uint64) uint64 {
		if i := u + uint64(keys); i < first {
			return i % uint64(keys)
		}
		return any(u)
	})
	j.feed.stamp = func(i uint64) int64 {
		return int64(min(i, first-1)) * windowSlices * windowSlide.Milliseconds() / int64(first)
	}
	out := newTally(func(ws []windowed) (sum uint64) {
		for i := range ws {
			sum += uint64(ws[i].Value)
		}
		return sum
	})
	j.wire = func(touches *stream.Stream[touch]) {
		build(touches.AssignTimestampsAndWatermarks(watermark.ForMonotonousTimestamps[touch]().WithMillis(func(t touch) int64 { return t.At })).
			KeyBy(func(t touch) uint64 { return t.Key })).UID("windows").SinkTo(out)
	}
	n, err := j.runUnchecked(ctx, func(ctx context.Context) (err error) {
		j.feed.at(0)
		if err = j.until(ctx, func() bool { return j.feed.sent.Load() >= first }); err == nil {
			seen, err = j.observe(ctx, o.span(watched), wantPauses)
		}
		return err
	})
	if err == nil && out.total.Load() != n*windows {
		err = fmt.Errorf("compare the results: %d elements were counted, want %d times %d", out.total.Load(), n, windows)
	}
	return seen, l.add(n, out.total.Load(), err)
}
