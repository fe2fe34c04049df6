package main

import (
	"context"
	"errors"
	"time"

	"github.com/flott-dev/flott/stream"
)

const (
	backToBack = 10 * time.Millisecond // the least interval there is
	watched    = 3 * time.Second       // of a job, at full size
	warmUp     = 200 * time.Millisecond
	wantSeen   = 2 // checkpoints, at least
	wantPauses = 5 // checkpoints, where gaps are measured

	slowSink = 1e5 // elements per second that it takes
)

// atPace looks at a job for a time after it has got used to a pace.
func (j *stateJob) atPace(ctx context.Context, o stateOptions, rate float64, d time.Duration, checkpoints int) (observed, error) {
	j.feed.at(rate)
	j.flows = true
	select {
	case <-time.After(o.span(warmUp)):
	case <-ctx.Done():
	}
	return j.observe(ctx, o.span(d), checkpoints)
}

// loads are the observations of a job at full speed and at half of it.
type loads struct {
	full, half observed
	memory     float64 // held once the state was there
}

// observeLoads runs a job at full speed, and then at the given rate, 0: half of what full speed was.
func (j *stateJob) observeLoads(ctx context.Context, o stateOptions, l *stateLine, rate float64) (out loads, err error) {
	full, half := 0, 0
	if j.interval > 0 {
		full, half = wantSeen, wantPauses
	}
	err = l.add(j.run(ctx, func(ctx context.Context) (err error) {
		out.memory = settle()
		if out.full, err = j.atPace(ctx, o, 0, watched, full); err != nil {
			return err
		}
		if rate == 0 {
			rate = out.full.rate / 2
		}
		out.half, err = j.atPace(ctx, o, rate, watched, half)
		return err
	}))
	return out, err
}

// pause compares the gaps between outputs around the barriers of incremental checkpoints with those without any.
func pause(ctx context.Context, o stateOptions) (l stateLine, err error) {
	l.StateBytes = o.keys * accountBytes
	settle()
	bare, err := newStateJob("bare", 0, o.folder, o.keys, uniform(o.keys)).observeLoads(ctx, o, &l, 0)
	if err != nil {
		return l, err
	}
	settle()
	j := newStateJob("saved", o.second(), o.folder, o.keys, uniform(o.keys))
	j.how = []stream.CheckpointOption{stream.IncrementalCheckpoints(true)}
	rate := bare.full.rate / 2
	var saved observed
	err = l.add(j.run(ctx, func(ctx context.Context) (err error) {
		settle()
		saved, err = j.atPace(ctx, o, rate, 2*watched, wantPauses)
		return err
	}))
	if err != nil {
		return l, err
	}
	_, err = l.floors(o, saved.bytes)
	l.Figures = append([]figure{
		perSecond("elements that were due", rate),
		percent("loss", 1-ratio(saved.rate, rate), 0),
		inMillis("checkpoint", saved.checkpoint.median(), 0),
	}, pauses(&saved, &bare.half)...)
	return l, err
}

// second is the interval of checkpoints that come every second at full size.
func (o stateOptions) second() time.Duration {
	return max(20*time.Millisecond, time.Second/time.Duration(o.shrink))
}

// pauses compares the gaps of a job with checkpoints with those of one without.
func pauses(saved, bare *observed) []figure {
	return []figure{
		inMillis("longest gap without checkpoints", bare.near.longest(), 0),
		inMillis("longest gap around a barrier", saved.near.longest(), 0),
		inMillis("pause", saved.near.longest()-bare.near.longest(), 5),
		inMillis("pause, in the median of barriers", saved.near.median()-bare.near.median(), 0),
		inMillis("standing still for a snapshot, at most", saved.still.longest(), 0),
		inMillis("longest gap of all with checkpoints", saved.longest, 0),
		inMillis("longest gap of all without", bare.longest, 0),
	}
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
	size, held, peak := float64(l.StateBytes), bare.memory-empty, max(saved.full.peak, saved.half.peak)-empty
	l.Figures = append([]figure{
		perSecond("elements without checkpoints", bare.full.rate),
		perSecond("elements with them", saved.full.rate),
		percent("loss at full speed", 1-ratio(saved.full.rate, bare.full.rate), 0),
		percent("loss at half of it", 1-ratio(saved.half.rate, rate), 30),
		percent("more CPU per element at half of it", ratio(saved.half.cpu, bare.half.cpu)-1, 0),
		inMillis("checkpoint at full speed", saved.full.checkpoint.median(), 0),
		inMillis("checkpoint at half of it", saved.half.checkpoint.median(), 0),
		inMillis("from checkpoint to checkpoint", saved.half.cycle.median(), 0),
		multiple("checkpoint / raw write", ratio(saved.half.checkpoint.median(), raw), 1.3),
		multiple("memory held by the state / keys and values", held/size, 0),
		multiple("peak / memory held by the state", ratio(peak, held), 1.6),
		multiple("peak / keys and values", peak/size, 0),
		multiple("peak without checkpoints / memory held", ratio(max(bare.full.peak, bare.half.peak)-empty, held), 0),
	}, pauses(&saved.half, &bare.half)...)
	return l, err
}

// ratio is a / b; 0 where b is not known.
func ratio[N time.Duration | float64](a, b N) float64 {
	if b == 0 {
		return 0
	}
	return float64(a) / float64(b)
}

// hotKeys compares a job while it takes a checkpoint every second with itself before the first one, where few keys get most updates:
// two jobs differ by more than what is looked for, as their memory lies elsewhere. It looks at one chain of checkpoints: those of
// changes, and the one of all the state that ends it.
func hotKeys(ctx context.Context, o stateOptions) (l stateLine, err error) {
	l.StateBytes = o.keys * accountBytes
	settle()
	j := newStateJob("hot", never, o.folder, o.keys, skewed(o.keys))
	j.how = []stream.CheckpointOption{stream.IncrementalCheckpoints(true)}
	var bare, saved observed
	err = l.add(j.run(ctx, func(ctx context.Context) (err error) {
		settle()
		if bare, err = j.atPace(ctx, o, 0, 2*watched, 0); err != nil {
			return err
		}
		stop := j.checkpointEvery(ctx, o.second())
		j.layered = true
		if err = j.beginChain(ctx); err == nil {
			saved, err = j.observe(ctx, o.span(2*watched), wantSeen)
		}
		return errors.Join(err, stop())
	}))
	if err != nil {
		return l, err
	}
	raw, err := l.floors(o, saved.bytes)
	work := time.Duration((saved.cpu - bare.cpu) * saved.n / float64(max(1, len(saved.checkpoint))) * 1e9)
	l.Figures = append([]figure{
		perSecond("elements without checkpoints", bare.rate),
		perSecond("elements with them", saved.rate),
		percent("loss", 1-ratio(saved.rate, bare.rate), 8),
		percent("loss while checkpoints are of changes", 1-ratio(saved.changes, bare.rate), 0),
		percent("more CPU per element", ratio(saved.cpu, bare.cpu)-1, 0),
		inMillis("checkpoint", saved.checkpoint.median(), 150),
		{Name: "checkpoints", Value: float64(len(saved.checkpoint))},
		{Name: "of all the state", Value: float64(len(saved.whole))},
		inMillis("one of all the state", saved.whole.median(), 0),
		inMillis("more CPU for each", work, 0),
		multiple("checkpoint / raw write", ratio(saved.checkpoint.median(), raw), 0),
	}, pauses(&saved, &bare)...)
	return l, err
}

// never is an interval of checkpoints that are all asked for.
const never = time.Hour

// checkpointEvery asks the job for checkpoints until what it returns is called, which tells what failed.
func (j *stateJob) checkpointEvery(ctx context.Context, interval time.Duration) (stop func() error) {
	ctx, cancel := context.WithCancel(ctx)
	over := make(chan error, 1)
	go func() {
		t := time.NewTicker(interval)
		defer t.Stop()
		for {
			select {
			case <-t.C:
			case <-ctx.Done():
				over <- nil
				return
			}
			if _, err := j.job.TriggerCheckpoint(ctx, false); err != nil && ctx.Err() == nil {
				over <- err
				return
			}
		}
	}()
	return func() error {
		cancel()
		return <-over
	}
}

// beginChain waits until each subtask has written all of its state, so that the next checkpoints are of changes.
func (j *stateJob) beginChain(ctx context.Context) error {
	start, book := time.Now(), newCheckpointBook(true)
	return j.until(ctx, func() bool {
		book.read(j.job, 0)
		return book.chained() || time.Since(start) > chainPatience
	})
}

// backpressure compares checkpoints of a job with a slow sink with those of a job that has nothing to do.
func backpressure(how ...stream.CheckpointOption) func(context.Context, stateOptions) (stateLine, error) {
	return func(ctx context.Context, o stateOptions) (l stateLine, err error) {
		l.StateBytes = o.keys * accountBytes
		j := newStateJob("slow", backToBack, o.folder, o.keys, uniform(o.keys))
		j.how = how
		var idle, slow observed
		err = l.add(j.run(ctx, func(ctx context.Context) (err error) {
			settle()
			if idle, err = j.observe(ctx, o.span(watched), wantSeen); err != nil {
				return err
			}
			j.out.limit(slowSink)
			slow, err = j.atPace(ctx, o, 0, watched, wantSeen)
			return err
		}))
		if err != nil {
			return l, err
		}
		raw, err := l.floors(o, slow.bytes)
		l.Figures = []figure{
			inMillis("checkpoint without load", idle.checkpoint.median(), 0),
			inMillis("CPU of a checkpoint without load", time.Duration(idle.busy*float64(idle.cycle.median())), 0),
			multiple("checkpoint without load / raw write", ratio(idle.checkpoint.median(), raw), 0),
			inMillis("checkpoint under backpressure", slow.checkpoint.median(), 0),
			multiple("under backpressure / without load", ratio(slow.checkpoint.median(), idle.checkpoint.median()), 1.5),
			perSecond("elements that the sink took", slow.rate),
		}
		return l, err
	}
}
