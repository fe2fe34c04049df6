package main

import (
	"context"

	"github.com/flott-dev/flott/bench/loops"
	"github.com/flott-dev/flott/stream"
)

// core are the workloads of the data plane and the keyed operators, with the least ratios that are asked for.
func core() []workload {
	return []workload{
		{name: "chain-map-filter-map", parallelism: 1, must: 0.4, compare: chain},
		{name: "chain-5word-value", parallelism: 1, must: 0.4, compare: recordChain},
		{name: "chain-5word-pointer", parallelism: 1, must: 0.4, compare: recordPointerChain},
		{name: "flatmap", parallelism: 1, compare: flatMap},
		{name: "exchange-hash", parallelism: 2, must: 0.25, compare: exchange},
		{name: "union", parallelism: 2, compare: union},
		{name: "keyed-count-10k", parallelism: 2, must: 0.4, compare: keyedCount(10_000)},
		{name: "keyed-count-1m", parallelism: 2, must: 0.5, compare: keyedCount(1_000_000)},
		{name: "keyed-count-10m", parallelism: 2, must: 0.5, compare: keyedCount(10_000_000)},
		{name: "keyed-value-getset", parallelism: 2, must: 0.25, compare: keyedProcess(newGetSet)},
		{name: "keyed-value-update", parallelism: 2, must: 0.25, compare: keyedProcess(newUpdate)},
		{name: "keyed-value-string", parallelism: 2, must: 0.25, compare: keyedString},
		{name: "wordcount", parallelism: 1, must: 0.5, compare: wordCount},
		{name: "speedup-keyed-count-1m", parallelism: 2, own: speedup},
		{name: "memory-10m", parallelism: 2, own: memory},
	}
}

const cached = 1 << 16 // elements that the chains read again and again

// rounds is how often a chain reads its elements.
func (o options) rounds() int { return max(1, 256/o.shrink) }

// execute runs what build made of an environment of p workers.
func execute(ctx context.Context, name string, p int, build func(env *stream.Env)) error {
	env := stream.NewEnv().SetParallelism(p)
	build(env)
	_, err := env.Execute(ctx, name)
	return err
}

func chain(_ context.Context, o options) (*pair, error) {
	es, rounds := loops.Events(cached, 1000, 1000), o.rounds()
	return &pair{
		elements: len(es) * rounds,
		loop:     func() uint64 { return loops.Chain(es, rounds) },
		ours: func(ctx context.Context) (uint64, error) {
			var sum int64
			err := execute(ctx, "chain", 1, func(env *stream.Env) {
				env.FromSource(&repeat[loops.Event]{es, rounds}, "Events").
					Map(func(e loops.Event) loops.Event { e.Val += 2; return e }).
					Filter(func(e loops.Event) bool { return e.Key%3 != 0 }).
					Map(func(e loops.Event) int64 { return e.Val * 2 }).
					ForEach(func(v int64) { sum += v })
			})
			return uint64(sum), err
		},
	}, nil
}

func recordChain(_ context.Context, o options) (*pair, error) {
	rs, rounds := loops.Records(cached), o.rounds()
	return &pair{
		elements: len(rs) * rounds,
		loop:     func() uint64 { return loops.RecordChain(rs, rounds) },
		ours: func(ctx context.Context) (uint64, error) {
			var sum int64
			err := execute(ctx, "chain of records", 1, func(env *stream.Env) {
				env.FromSource(&repeat[loops.Record]{rs, rounds}, "Records").
					Map(func(r loops.Record) loops.Record { r.Amount += 2; return r }).
					Filter(func(r loops.Record) bool { return r.User%3 != 0 }).
					Map(func(r loops.Record) int64 { return r.Amount * int64(r.Item[0]-'0') }).
					ForEach(func(v int64) { sum += v })
			})
			return uint64(sum), err
		},
	}, nil
}

func recordPointerChain(_ context.Context, o options) (*pair, error) {
	rs, rounds := loops.Records(cached), o.rounds()
	return &pair{
		elements: len(rs) * rounds,
		loop:     func() uint64 { return loops.RecordPointerChain(rs, rounds) },
		ours: func(ctx context.Context) (uint64, error) {
			var sum int64
			err := execute(ctx, "chain of records by pointer", 1, func(env *stream.Env) {
				env.FromSource(&repeat[loops.Record]{rs, rounds}, "Records").
					Update(func(r *loops.Record) { r.Amount += 2 }).
					Filter(func(r *loops.Record) bool { return r.User%3 != 0 }).
					MapPtr(func(r *loops.Record) int64 { return r.Amount * int64(r.Item[0]-'0') }).
					ForEach(func(v int64) { sum += v })
			})
			return uint64(sum), err
		},
	}, nil
}

func flatMap(_ context.Context, o options) (*pair, error) {
	es, rounds := loops.Events(cached, 1000, 1000), o.rounds()
	return &pair{
		elements: len(es) * rounds,
		loop:     func() uint64 { return loops.FlatMap(es, rounds) },
		ours: func(ctx context.Context) (uint64, error) {
			var sum int64
			err := execute(ctx, "flat map", 1, func(env *stream.Env) {
				env.FromSource(&repeat[loops.Event]{es, rounds}, "Events").
					FlatMap(func(e loops.Event, emit func(int64)) {
						for range e.Key % 3 {
							emit(e.Val)
						}
					}).
					ForEach(func(v int64) { sum += v })
			})
			return uint64(sum), err
		},
	}, nil
}

func exchange(_ context.Context, o options) (*pair, error) {
	es := loops.Events(8<<20/o.shrink, 1_000_000, 1000)
	return &pair{
		elements: len(es),
		loop:     func() uint64 { return loops.Exchange(es) },
		ours: func(ctx context.Context) (uint64, error) {
			out := newTally(values)
			err := execute(ctx, "exchange", 2, func(env *stream.Env) {
				env.FromParallelSlice(es).KeyBy(func(e loops.Event) uint64 { return e.Key }).Stream().SinkTo(out)
			})
			return out.total.Load(), err
		},
	}, nil
}

func union(_ context.Context, o options) (*pair, error) {
	es := loops.Events(8<<20/o.shrink, 1000, 1000)
	a, b := es[:len(es)/2], es[len(es)/2:]
	return &pair{
		elements: len(es),
		loop:     func() uint64 { return loops.Union(a, b) },
		ours: func(ctx context.Context) (uint64, error) {
			out := newTally(values)
			err := execute(ctx, "union", 2, func(env *stream.Env) {
				env.FromParallelSlice(a).Union(env.FromParallelSlice(b)).SinkTo(out)
			})
			return out.total.Load(), err
		},
	}, nil
}

func values(es []loops.Event) (sum uint64) {
	for i := range es {
		sum += uint64(es[i].Val)
	}
	return sum
}
