package main

import (
	"context"
	"fmt"
	"runtime"
	"strconv"
	"strings"

	"github.com/flott-dev/flott/bench/loops"
	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/state"
	"github.com/flott-dev/flott/stream"
)

// count is a key with its rolling count.
type count = stream.KeyValue[uint64, int64]

// rolling is what a key adds to the digest when its count reaches n: unlike the checksum of final counts it can be added
// up as the results come, and it is right only if every one of them is.
func rolling(key, n uint64) uint64 { return key * n }

func rollingCounts(cs []count) (sum uint64) {
	for i := range cs {
		sum += rolling(cs[i].Key, uint64(cs[i].Value))
	}
	return sum
}

// counting compares a job that counts es per key with the loop. build makes the job's stream of rolling counts.
func counting(es []loops.Event, keys int, build func(*stream.Env) *stream.Stream[count]) *pair {
	return &pair{
		elements: len(es),
		loop: func() uint64 {
			_, sum := loops.KeyedCount(es, keys, 2)
			return sum
		},
		digest: func() uint64 {
			counts, _ := loops.KeyedCount(es, keys, 2)
			return counts.Rolling(rolling)
		},
		ours: func(ctx context.Context) (uint64, error) {
			out := newTally(rollingCounts)
			err := execute(ctx, "count", 2, func(env *stream.Env) { build(env).SinkTo(out) })
			return out.total.Load(), err
		},
		exact: func(ctx context.Context) (uint64, error) {
			last := make([]int64, keys) // each key belongs to one subtask
			out := newTally(func(cs []count) uint64 {
				for i := range cs {
					last[cs[i].Key/loops.Spread] = cs[i].Value
				}
				return 0
			})
			err := execute(ctx, "count", 2, func(env *stream.Env) { build(env).SinkTo(out) })
			var sum uint64
			for i, n := range last {
				if n != 0 {
					sum += loops.CountChecksum(uint64(i)*loops.Spread, n)
				}
			}
			return sum, err
		},
	}
}

func sumByKey(es []loops.Event) func(*stream.Env) *stream.Stream[count] {
	return func(env *stream.Env) *stream.Stream[count] {
		return env.FromParallelSlice(es).
			KeyBy(func(e loops.Event) uint64 { return e.Key }).
			Sum(func(e loops.Event) int64 { return e.Val })
	}
}

func keyedCount(keys int) func(context.Context, options) (*pair, error) {
	return func(_ context.Context, o options) (*pair, error) {
		keys := max(1, keys/o.shrink)
		es := loops.Events(8<<20/o.shrink, keys, 1000)
		return counting(es, keys, sumByKey(es)), nil
	}
}

const fewKeys = 10_000

// getSet counts with Get and Set.
type getSet struct {
	process.NoTimers[uint64, count]
	n *state.Value[int64]
}

func newGetSet(rt *process.Runtime) *getSet { return &getSet{n: state.NewValue[int64](rt, "n")} }

func (c *getSet) ProcessElement(ctx *process.KeyedContext[uint64], e loops.Event, out *process.Collector[count]) error {
	n := c.n.Get() + e.Val
	c.n.Set(n)
	out.Collect(count{Key: ctx.Key(), Value: n})
	return nil
}

// update counts in place.
type update struct {
	process.NoTimers[uint64, count]
	n *state.Value[int64]
}

func newUpdate(rt *process.Runtime) *update { return &update{n: state.NewValue[int64](rt, "n")} }

func (c *update) ProcessElement(ctx *process.KeyedContext[uint64], e loops.Event, out *process.Collector[count]) error {
	c.n.Update(func(n *int64) {
		*n += e.Val
		out.Collect(count{Key: ctx.Key(), Value: *n})
	})
	return nil
}

func keyedProcess[P process.KeyedFunction[uint64, loops.Event, count]](construct func(*process.Runtime) P) func(context.Context, options) (*pair, error) {
	return func(_ context.Context, o options) (*pair, error) {
		es := loops.Events(8<<20/o.shrink, fewKeys, 1000)
		return counting(es, fewKeys, func(env *stream.Env) *stream.Stream[count] {
			return env.FromParallelSlice(es).KeyBy(func(e loops.Event) uint64 { return e.Key }).Process[P, count](construct)
		}), nil
	}
}

// named is an event whose key is text.
type named struct {
	Key string
	TS  int64
	Val int64
}

const keyPrefix = "key-"

// names are the events with the same keys as text: what has one key shares one string.
func names(es []loops.Event) []named {
	text := map[uint64]string{}
	out := make([]named, len(es))
	for i, e := range es {
		key, ok := text[e.Key]
		if !ok {
			key = keyPrefix + strconv.FormatUint(e.Key, 10)
			text[e.Key] = key
		}
		out[i] = named{key, e.TS, e.Val}
	}
	return out
}

// getSetName counts keys of text with Get and Set.
type getSetName struct {
	process.NoTimers[string, words]
	n *state.Value[int64]
}

func newGetSetName(rt *process.Runtime) *getSetName {
	return &getSetName{n: state.NewValue[int64](rt, "n")}
}

func (c *getSetName) ProcessElement(ctx *process.KeyedContext[string], e named, out *process.Collector[words]) error {
	n := c.n.Get() + e.Val
	c.n.Set(n)
	out.Collect(words{Key: ctx.Key(), Value: n})
	return nil
}

// keyedString is keyedProcess with keys of text, compared with the loop over the same keys as numbers.
func keyedString(_ context.Context, o options) (*pair, error) {
	es := loops.Events(8<<20/o.shrink, fewKeys, 1000)
	ns := names(es)
	job := func(ctx context.Context, sum func([]words) uint64) (uint64, error) {
		out := newTally(sum)
		err := execute(ctx, "count", 2, func(env *stream.Env) {
			env.FromParallelSlice(ns).KeyBy(func(e named) string { return e.Key }).Process[*getSetName, words](newGetSetName).SinkTo(out)
		})
		return out.total.Load(), err
	}
	p := counting(es, fewKeys, nil)
	p.digest = func() uint64 {
		counts, _ := loops.KeyedCount(es, fewKeys, 2)
		return counts.Rolling(func(_, n uint64) uint64 { return n })
	}
	p.ours = func(ctx context.Context) (uint64, error) {
		return job(ctx, func(cs []words) (sum uint64) {
			for i := range cs {
				sum += uint64(cs[i].Value)
			}
			return sum
		})
	}
	p.exact = func(ctx context.Context) (uint64, error) {
		last := newFinals()
		if _, err := job(ctx, last.add); err != nil {
			return 0, err
		}
		var sum uint64
		for key, n := range last.counts {
			k, err := strconv.ParseUint(strings.TrimPrefix(key, keyPrefix), 10, 64)
			if err != nil {
				return 0, fmt.Errorf("read a key back: %w", err)
			}
			sum += loops.CountChecksum(k, n)
		}
		return sum, nil
	}
	return p, nil
}

// speedup measures what the second worker brings, to the loop and to us.
func speedup(ctx context.Context, o options) (line, error) {
	keys := max(1, 1_000_000/o.shrink)
	es := loops.Events(8<<20/o.shrink, keys, 1000)
	two := counting(es, keys, sumByKey(es))
	one := counting(es, keys, sumByKey(es))
	one.exact = nil
	one.loop = func() uint64 {
		_, sum := loops.KeyedCount(es, keys, 1)
		return sum
	}
	one.ours = func(ctx context.Context) (uint64, error) {
		out := newTally(rollingCounts)
		err := execute(ctx, "count", 1, func(env *stream.Env) { sumByKey(es)(env).SinkTo(out) })
		return out.total.Load(), err
	}
	l := line{Elements: len(es)}
	with2, err := two.race(ctx, o.runs)
	if err != nil {
		return l, err
	}
	runtime.GOMAXPROCS(1)
	with1, err := one.race(ctx, o.runs)
	runtime.GOMAXPROCS(2)
	if err != nil {
		return l, fmt.Errorf("with one worker: %w", err)
	}
	l.Checksum = with2.checksum
	l.fill(with2)
	l.Speedup, l.LoopSpeedup = with1.ours.seconds/with2.ours.seconds, with1.loop.seconds/with2.loop.seconds
	return l, nil
}
