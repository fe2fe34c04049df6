package main

import (
	"context"
	"time"
)

const (
	backToBack = 10 * time.Millisecond // the least interval there is
	watched    = 3 * time.Second       // of a job, at full size
	warmUp     = 200 * time.Millisecond
	wantSeen   = 2 // checkpoints, at least

	leastRate = 1e5 // elements per second that a slow sink takes
)

// atPace looks at a job after it has got used to a pace.
func (j *stateJob) atPace(ctx context.Context, o stateOptions, rate float64, checkpoints int) (observed, error) {
	j.feed.at(rate)
	j.flows = true
	select {
	case <-time.After(o.span(warmUp)):
	case <-ctx.Done():
	}
	return j.observe(ctx, o.span(watched), checkpoints)
}

// loads are the observations of a job at full speed and at a lower one.
type loads struct {
	full, half observed
	memory     float64 // held once the state was there
}

// observeLoads runs a job at full speed, and then at the given rate, 0: half of what full speed was.
func (j *stateJob) observeLoads(ctx context.Context, o stateOptions, l *stateLine, rate float64) (out loads, err error) {
	checkpoints := 0
	if j.interval > 0 {
		checkpoints = wantSeen
	}
	err = l.add(j.run(ctx, func(ctx context.Context) (err error) {
		out.memory = settle()
		if out.full, err = j.atPace(ctx, o, 0, checkpoints); err != nil {
			return err
		}
		if rate == 0 {
			rate = out.full.rate / 2
		}
		out.half, err = j.atPace(ctx, o, rate, checkpoints)
		return err
	}))
	return out, err
}

// fullCheckpoints compares a job that takes checkpoints without a pause with one that takes none.
func fullCheckpoints(ctx context.Context, o stateOptions) (l stateLine, err error) {
	l.StateBytes = o.keys * accountBytes
	empty := settle()
	bare, err := newStateJob("bare", 0, o.folder, o.keys, uniform(o.keys)).observeLoads(ctx, o, &l, 0)
	if err != nil {
		return l, err
	}
	settle()
	rate := bare.full.rate / 2
	saved, err := newStateJob("saved", backToBack, o.folder, o.keys, uniform(o.keys)).observeLoads(ctx, o, &l, rate)
	if err != nil {
		return l, err
	}
	raw, err := l.floors(o, saved.half.bytes)
	held, peak := bare.memory-empty, max(saved.full.peak, saved.half.peak)-empty
	l.Figures = []figure{
		{"elements per s without checkpoints", bare.full.rate / 1e6, "M", 0},
		{"elements per s with them", saved.full.rate / 1e6, "M", 0},
		percent("loss at full speed", 1-ratio(saved.full.rate, bare.full.rate), 0),
		percent("loss at half of it", 1-ratio(saved.half.rate, rate), 30),
		percent("more CPU per element at half of it", ratio(saved.half.cpu, bare.half.cpu)-1, 0),
		inMillis("checkpoint at full speed", saved.full.checkpoint.median(), 0),
		inMillis("checkpoint at half of it", saved.half.checkpoint.median(), 0),
		inMillis("from checkpoint to checkpoint", saved.half.cycle.median(), 0),
		multiple("checkpoint / raw write", ratio(saved.half.checkpoint.median(), raw), 1.3),
		inMillis("longest gap without checkpoints", bare.half.near.longest(), 0),
		inMillis("longest gap around a barrier", saved.half.near.longest(), 0),
		inMillis("pause", saved.half.near.longest()-bare.half.near.longest(), 5),
		inMillis("pause, in the median of barriers", saved.half.near.median()-bare.half.near.median(), 0),
		inMillis("standing still for a snapshot", saved.half.still.median(), 0),
		inMillis("longest gap of all with checkpoints", saved.half.longest, 0),
		inMillis("longest gap of all without", bare.half.longest, 0),
		multiple("memory held by the state / keys and values", held/float64(l.StateBytes), 0),
		multiple("peak / memory held by the state", ratio(peak, held), 1.6),
		multiple("peak without checkpoints / the same", ratio(max(bare.full.peak, bare.half.peak)-empty, held), 0),
	}
	return l, err
}

// ratio is a / b; 0 where b is not known.
func ratio[N time.Duration | float64](a, b N) float64 {
	if b == 0 {
		return 0
	}
	return float64(a) / float64(b)
}

// hotKeys compares a job that takes checkpoints every second with one that takes none, where few keys get most updates.
func hotKeys(ctx context.Context, o stateOptions) (l stateLine, err error) {
	l.StateBytes = o.keys * accountBytes
	observe := func(interval time.Duration, checkpoints int) (seen observed, err error) {
		settle()
		j := newStateJob("hot", interval, o.folder, o.keys, skewed(o.keys))
		err = l.add(j.run(ctx, func(ctx context.Context) (err error) {
			settle()
			seen, err = j.atPace(ctx, o, 0, checkpoints)
			return err
		}))
		return seen, err
	}
	bare, err := observe(0, 0)
	if err != nil {
		return l, err
	}
	saved, err := observe(max(20*time.Millisecond, time.Second/time.Duration(o.shrink)), wantSeen)
	if err != nil {
		return l, err
	}
	raw, err := l.floors(o, saved.bytes)
	l.Figures = []figure{
		{"elements per s without checkpoints", bare.rate / 1e6, "M", 0},
		{"elements per s with them", saved.rate / 1e6, "M", 0},
		percent("loss", 1-ratio(saved.rate, bare.rate), 8),
		percent("more CPU per element", ratio(saved.cpu, bare.cpu)-1, 0),
		inMillis("checkpoint", saved.checkpoint.median(), 150),
		multiple("checkpoint / raw write", ratio(saved.checkpoint.median(), raw), 0),
		inMillis("longest gap around a barrier", saved.near.longest(), 0),
		inMillis("pause", saved.near.longest()-bare.near.longest(), 0),
	}
	return l, err
}

// backpressure compares checkpoints of a job whose sink takes only a share of what could come with those of a job that has
// nothing to do.
func backpressure(share float64) func(context.Context, stateOptions) (stateLine, error) {
	return func(ctx context.Context, o stateOptions) (l stateLine, err error) {
		l.StateBytes = o.keys * accountBytes
		j := newStateJob("slow", backToBack, o.folder, o.keys, uniform(o.keys))
		var idle, free, slow observed
		err = l.add(j.run(ctx, func(ctx context.Context) (err error) {
			settle()
			if idle, err = j.observe(ctx, o.span(watched), wantSeen); err != nil {
				return err
			}
			if free, err = j.atPace(ctx, o, 0, wantSeen); err != nil {
				return err
			}
			j.out.limit(max(free.rate*share, leastRate))
			slow, err = j.atPace(ctx, o, 0, wantSeen)
			return err
		}))
		if err != nil {
			return l, err
		}
		_, err = l.floors(o, slow.bytes)
		l.Figures = []figure{
			inMillis("checkpoint without load", idle.checkpoint.median(), 0),
			inMillis("CPU of a checkpoint without load", time.Duration(idle.busy*float64(idle.cycle.median())), 0),
			inMillis("checkpoint at full speed", free.checkpoint.median(), 0),
			inMillis("checkpoint under backpressure", slow.checkpoint.median(), 0),
			multiple("under backpressure / without load", ratio(slow.checkpoint.median(), idle.checkpoint.median()), 1.5),
			{"elements per s that the sink took", slow.rate / 1e6, "M", 0},
		}
		return l, err
	}
}
