package property

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"

	"github.com/flott-dev/flott/flotttest"
	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/stream"
)

// records is a stream of the program.
type records = *stream.Stream[record]

// operation is a step of a program: the same thing said to Flott and to a plain loop.
type operation struct {
	name  string
	build func(in records) records
	model func(in []element) []element
	// untimed: what comes out has timestamps that depend on the order of arrival. needsTime: it looks at timestamps.
	untimed, needsTime bool
	// reorders: the order of what comes out is not promised.
	reorders bool
}

// eachOf makes a model of a function of one element.
func eachOf(f func(e element, emit func(record))) func([]element) []element {
	return func(in []element) []element {
		var out []element
		for _, e := range in {
			f(e, func(r record) { out = append(out, element{Value: r, Time: e.Time}) })
		}
		return out
	}
}

// operations are the operations that random numbers choose from.
func operations(rng *rand.Rand) []operation {
	a, b := rng.Int64N(7)-3, rng.Int64N(50)
	affine := func(r record) record { return newRecord(r.K, a*r.V+b) }
	keys := 1 + rng.Int64N(9)
	rekey := func(r record) record { return newRecord((r.V%keys+keys)%keys, r.V) }
	keep := func(r record) bool { return (r.V+b)%3 != 0 }
	split := func(r record, emit func(record)) {
		for i := range (r.V%3 + 3) % 3 {
			emit(newRecord(r.K+i, r.V+i))
		}
	}
	one := func(f func(record) record) func([]element) []element {
		return eachOf(func(e element, emit func(record)) { emit(f(e.Value)) })
	}
	return []operation{
		{name: fmt.Sprintf("map %d*v+%d", a, b), build: func(in records) records { return in.Map(affine) }, model: one(affine)},
		{
			name: "map by pointer", model: one(rekey),
			build: func(in records) records { return in.MapPtr(func(r *record) record { return rekey(*r) }) },
		},
		{
			name: "update", model: one(affine),
			build: func(in records) records { return in.Update(func(r *record) { *r = affine(*r) }) },
		},
		{
			name:  "filter",
			build: func(in records) records { return in.Filter(keep) },
			model: eachOf(func(e element, emit func(record)) {
				if keep(e.Value) {
					emit(e.Value)
				}
			}),
		},
		{
			name:  "flat map",
			build: func(in records) records { return in.FlatMap(split) },
			model: eachOf(func(e element, emit func(record)) { split(e.Value, emit) }),
		},
		{
			name: "through text", model: one(func(r record) record { return newRecord(r.K, r.V) }),
			build: func(in records) records {
				return in.Map(func(r record) string { return strconv.FormatInt(r.K, 10) + "/" + strconv.FormatInt(r.V, 10) }).Map(parse)
			},
		},
		{
			name: "asynchronous", reorders: true, model: one(affine),
			build: func(in records) records {
				f := func(_ context.Context, r record) ([]record, error) { return []record{affine(r)}, nil }
				return in.AsyncUnordered(f, stream.AsyncOptions[record, record]{Capacity: 3})
			},
		},
		{
			name: "asynchronous in order", model: one(affine),
			build: func(in records) records {
				f := func(_ context.Context, r record) ([]record, error) { return []record{affine(r)}, nil }
				return in.AsyncOrdered(f, stream.AsyncOptions[record, record]{Capacity: 4})
			},
		},
		sideOutput(keep),
		splitAndSelect(),
		halvingLoop(10 + b),
		partitioning(rng),
		windowSum(1 + rng.Int64N(30)),
		rollingCount(),
		total(rng.IntN(3)),
	}
}

func parse(s string) record {
	var k, v int64
	if _, err := fmt.Sscanf(s, "%d/%d", &k, &v); err != nil {
		panic(err)
	}
	return newRecord(k, v)
}

// splitter sends what it does not keep to a side output.
type splitter struct{ keep func(record) bool }

func others() process.OutputTag[record] { return process.NewOutputTag[record]("others") }

func (s splitter) ProcessElement(ctx *process.Context, r record, out *process.Collector[record]) error {
	if s.keep(r) {
		out.Collect(r)
	} else {
		ctx.Emit(others(), newRecord(r.K+1000, r.V))
	}
	return nil
}

func sideOutput(keep func(record) bool) operation {
	return operation{
		name: "side output", reorders: true,
		build: func(in records) records {
			s := in.Process(func(*process.Runtime) splitter { return splitter{keep} })
			return s.Union(s.SideOutput(others()))
		},
		model: eachOf(func(e element, emit func(record)) {
			if keep(e.Value) {
				emit(e.Value)
			} else {
				emit(newRecord(e.Value.K+1000, e.Value.V))
			}
		}),
	}
}

// splitAndSelect drops one of four classes, and takes another one twice.
func splitAndSelect() operation {
	class := func(r record) int64 { return (r.V%4 + 4) % 4 }
	return operation{
		name: "split", reorders: true,
		build: func(in records) records {
			s := in.Map(func(r record) record { return r }).Split(func(r record) []string { return []string{strconv.FormatInt(class(r), 10)} })
			return s.Select("0", "1").Union(s.Select("1"), s.Select("2"))
		},
		model: eachOf(func(e element, emit func(record)) {
			for range []int{1, 2, 1, 0}[class(e.Value)] {
				emit(e.Value)
			}
		}),
	}
}

// halvingLoop halves values, once at least, until they are small enough to leave the loop.
func halvingLoop(small int64) operation {
	leaves := func(r record) bool { return -small <= r.V && r.V <= small }
	half := func(r record) record { return newRecord(r.K, r.V/2) }
	return operation{
		name: fmt.Sprintf("loop down to %d", small), untimed: true, reorders: true,
		build: func(in records) records {
			loop := stream.Iterate(in)
			body := loop.Map(half)
			loop.CloseWith(body.Filter(func(r record) bool { return !leaves(r) }))
			return body.Filter(leaves)
		},
		model: eachOf(func(e element, emit func(record)) {
			r := half(e.Value)
			for !leaves(r) {
				r = half(r)
			}
			emit(r)
		}),
	}
}

// partitioning spreads a stream in one of the ways, to an operator of a parallelism of its own.
func partitioning(rng *rand.Rand) operation {
	ways := []struct {
		name   string
		spread func(in records) records
	}{
		{"rebalance", records.Rebalance},
		{"rescale", records.Rescale},
		{"shuffle", func(in records) records { return in.ShuffleSeeded(7) }},
		{"global", records.Global},
		{"custom", func(in records) records {
			return in.PartitionCustom(func(k int64, channels int) int { return int((k%int64(channels) + int64(channels)) % int64(channels)) }, record.key)
		}},
	}
	way := ways[rng.IntN(len(ways))]
	p := 1 + rng.IntN(3)
	return operation{
		name: fmt.Sprintf("%s to %d", way.name, p), reorders: p > 1,
		build: func(in records) records {
			return way.spread(in).Map(func(r record) record { return r }).Parallelism(p)
		},
		model: func(in []element) []element { return in },
	}
}

// rollingCount numbers the elements of each key.
func rollingCount() operation {
	return operation{
		name: "rolling count", untimed: true,
		build: func(in records) records {
			return in.KeyBy(record.key).Count().Map(func(c stream.KeyValue[int64, int64]) record { return newRecord(c.Key, c.Value) })
		},
		model: func(in []element) []element {
			n := map[int64]int64{}
			var out []element
			for _, e := range in {
				n[e.Value.K]++
				out = append(out, element{Value: newRecord(e.Value.K, n[e.Value.K]), Time: e.Time})
			}
			return out
		},
	}
}

// totals are sums of values by key.
func totals(in []element) map[int64]int64 {
	sums := map[int64]int64{}
	for _, e := range in {
		sums[e.Value.K] += e.Value.V
	}
	return sums
}

func finals(sums map[int64]int64) []element {
	var out []element
	for k, v := range sums {
		out = append(out, flotttest.At(newRecord(k, v), math.MaxInt64))
	}
	return out
}

func total(layout int) operation {
	return operation{
		name: fmt.Sprintf("total at the end, layout %d", layout), untimed: true, reorders: true,
		build: func(in records) records {
			switch layout {
			case 0:
				return in.KeyBy(record.key).Process(newFixedTotal)
			case 1:
				return in.KeyBy(record.key).Process(newTextTotal)
			}
			return in.KeyBy(record.key).Process(newListTotal)
		},
		model: func(in []element) []element { return finals(totals(in)) },
	}
}

// windowSum sums values by key and interval of time.
func windowSum(size int64) operation {
	return operation{
		name: fmt.Sprintf("sum per %d ms", size), needsTime: true, reorders: true,
		build: func(in records) records {
			return in.KeyBy(record.key).Process(func(rt *process.Runtime) *interval { return newInterval(rt, size) })
		},
		model: func(in []element) []element {
			type cell struct{ k, bucket int64 }
			sums := map[cell]int64{}
			for _, e := range in {
				sums[cell{e.Value.K, floorDiv(e.Time, size)}] += e.Value.V
			}
			var out []element
			for c, v := range sums {
				out = append(out, flotttest.At(newRecord(c.k, v), (c.bucket+1)*size-1))
			}
			return out
		},
	}
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
