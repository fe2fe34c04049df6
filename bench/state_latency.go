package main

import (
	"context"
	"errors"
	"time"

	"github.com/flott-dev/flott/stream"
)

// latency measures the time from when an element was due until it comes out, while a million of them are due each second,
// over as many keys; ten million where the state is to be 1 GiB or more.
func latency(interval time.Duration) func(context.Context, stateOptions) (stateLine, error) {
	return func(ctx context.Context, o stateOptions) (l stateLine, err error) {
		keys, rate := 1_000_000, 1e6
		if o.mib >= 1024 {
			keys = 10_000_000
		}
		keys, rate = max(1000, keys/o.shrink), max(10_000, rate/float64(o.shrink))
		l.StateBytes = keys * rawEntry
		var every time.Duration
		checkpoints := 0
		if interval > 0 {
			every, checkpoints = max(20*time.Millisecond, interval/time.Duration(o.shrink)), wantSeen
		}
		j := newStateJob("latency", every, o.folder, keys, uniform(keys))
		j.small, j.how = true, []stream.CheckpointOption{stream.IncrementalCheckpoints(true)}
		var seen observed
		err = l.add(j.run(ctx, func(ctx context.Context) (err error) {
			settle()
			seen, err = j.atPace(ctx, o, rate, watched, checkpoints)
			return err
		}))
		if err == nil && seen.latency.n == 0 {
			err = errors.New("time the elements: none came out")
		}
		if err != nil {
			return l, err
		}
		_, err = l.floors(o, max(seen.bytes, int64(l.StateBytes)))
		most := max(5, 2*l.JitterMs)
		l.Figures = []figure{
			perSecond("elements that were due", rate),
			perSecond("elements that came out", seen.rate),
			inMillis("p50", seen.latency.quantile(.5), 0),
			inMillis("p99", seen.latency.quantile(.99), most),
			inMillis("p99.9", seen.latency.quantile(.999), 0),
		}
		if interval > 0 {
			l.Figures = append(l.Figures, inMillis("checkpoint", seen.checkpoint.median(), 0))
		}
		return l, err
	}
}

// restore compares the time until a job that begins with a savepoint brings something out with that of reading its files.
func restore(ctx context.Context, o stateOptions) (l stateLine, err error) {
	l.StateBytes = o.keys * accountBytes
	j := newStateJob("first", 0, o.folder, o.keys, uniform(o.keys))
	var at string
	var saving time.Duration
	err = l.add(j.run(ctx, func(ctx context.Context) (err error) {
		settle()
		start := time.Now()
		at, err = j.job.TriggerSavepoint(ctx, o.folder)
		saving = time.Since(start)
		return err
	}))
	if err != nil {
		return l, err
	}
	settle()
	if err = forgetFiles(at); err != nil {
		return l, err
	}
	read, bytes, err := rawRead(at)
	if err == nil {
		err = forgetFiles(at)
	}
	if err != nil {
		return l, err
	}
	again := newStateJob("again", 0, o.folder, o.keys, uniform(o.keys))
	again.before = 1
	again.options = []stream.Option{stream.WithSavepoint(at, stream.AllowNonRestored())}
	if err = l.add(again.run(ctx, func(context.Context) error { return nil })); err != nil {
		return l, err
	}
	raw, err := l.floors(o, bytes)
	first := again.out.first()
	l.Figures = []figure{
		inMillis("savepoint", saving, 0),
		multiple("savepoint / raw write", ratio(saving, raw), 0),
		inMillis("restore", first, 0),
		inMillis("raw read", read, 0),
		inMillis("restore - raw read", first-read, 1000),
	}
	return l, err
}
