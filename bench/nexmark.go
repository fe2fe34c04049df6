package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"time"

	"github.com/flott-dev/flott/bench/nexmark"
	"github.com/flott-dev/flott/stream"
)

// query is one of Nexmark's.
type query struct {
	name   string
	flink  float64 // events/s on a core, as published for Flink (its open-source guide, version 1); 0: none
	build  func(j *auctionJob)
	oracle func(d *nexmark.Data) uint64
}

func queries() []query {
	return []query{
		{"q00-pass-through", 155_000, query0, nexmark.Q0},
		{"q01-currency", 158_000, query1, nexmark.Q1},
		{"q02-selection", 175_000, query2, nexmark.Q2},
		{"q03-local-items", 152_000, query3, nexmark.Q3},
		{"q04-category-average", 34_000, query4, nexmark.Q4},
		{"q05-hot-items", 22_000, query5, nexmark.Q5},
		{"q06-seller-average", 0, query6, nexmark.Q6},
		{"q07-highest-bid", 12_300, query7, nexmark.Q7},
		{"q08-new-users", 146_000, query8, nexmark.Q8},
		{"q09-winning-bids", 14_200, query9, nexmark.Q9},
		{"q10-log-to-files", 58_000, query10, nexmark.Q10},
		{"q11-sessions", 40_000, query11, nexmark.Q11},
		{"q12-clock-windows", 76_000, query12, nexmark.Q12},
		{"q13-side-input", 131_000, query13, nexmark.Q13},
		{"q14-calculation", 161_000, query14, nexmark.Q14},
		{"q15-day-activity", 72_000, query15, nexmark.Q15},
		{"q16-channel-activity", 18_700, query16, nexmark.Q16},
		{"q17-auction-statistics", 117_000, query17, nexmark.Q17},
		{"q18-last-bid", 54_000, query18, nexmark.Q18},
		{"q19-top-10-bids", 44_000, query19, nexmark.Q19},
		{"q20-expanded-bids", 19_000, query20, nexmark.Q20},
		{"q21-channel-id", 98_000, query21, nexmark.Q21},
		{"q22-url-folders", 130_000, query22, nexmark.Q22},
		{"q23-seller-bids", 0, query23, nexmark.Q23},
	}
}

// How many times as many events a core must handle as Flink's: in each query, and in the geometric mean of all.
const (
	leastFlink = 5
	meanFlink  = 15
)

// auctionEvents is how many events there are: 40 seconds of them.
const auctionEvents = 4_000_000

// auctionSuite are all queries, over the same events, with one worker and with two.
func auctionSuite() []workload {
	a := &auctionData{}
	suite := []workload{{name: "generator", parallelism: 1, own: a.generator}}
	for _, q := range queries() {
		want := new(uint64) // both have the same answer
		for p := 1; p <= 2; p++ {
			suite = append(suite, workload{name: q.name, parallelism: p, own: func(ctx context.Context, o options) (line, error) {
				d, err := a.get(ctx, o)
				if err != nil {
					return line{}, err
				}
				if *want == 0 {
					*want = q.oracle(d)
				}
				l, err := q.measure(ctx, d, p, o.runs, *want)
				if q.flink > 0 && l.CPUNsPerElement > 0 {
					l.compareFlink(q.flink, a.cpuNs)
					a.lines = append(a.lines, l)
				}
				return l, err
			}})
		}
	}
	if cpuSeconds() == 0 { // it is not known: there are no figures per core
		return suite
	}
	return append(suite, workload{name: "geometric-mean", parallelism: 2, own: a.mean})
}

// auctionData are the events of a suite, made when they are first asked for.
type auctionData struct {
	made  *nexmark.Data
	cpuNs float64 // of the generator, per event
	lines []line  // that compare with Flink
}

func (a *auctionData) get(ctx context.Context, o options) (*nexmark.Data, error) {
	if a.made != nil {
		return a.made, nil
	}
	c := nexmark.Config{Events: max(1000, auctionEvents/o.shrink)}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(runtime.NumCPU()))
	s, err := timed(ctx, "generator", func(context.Context) (err error) {
		a.made, err = nexmark.Generate(c)
		return err
	})
	a.cpuNs = s.cpu * 1e9 / float64(c.Events)
	return a.made, err
}

// generator measures how the events are made, which no query's figures have in them.
func (a *auctionData) generator(ctx context.Context, o options) (line, error) {
	c := nexmark.Config{Events: max(1000, auctionEvents/4/o.shrink)}
	var last *nexmark.Data
	s, err := timed(ctx, "generator", func(context.Context) (err error) {
		last, err = nexmark.Generate(c)
		return err
	})
	l := line{Elements: c.Events}
	if err == nil {
		l.took(s)
		l.Checksum = nexmark.Q0(last)
	}
	return l, err
}

// mean is the geometric mean of the comparisons with Flink of the queries that have been run.
func (a *auctionData) mean(context.Context, options) (line, error) {
	if len(a.lines) == 0 {
		return line{}, errors.New("average the comparisons: no query was run")
	}
	var bare, generated float64
	for _, l := range a.lines {
		bare += math.Log(l.FlinkRatio)
		generated += math.Log(l.FlinkRatioGenerated)
	}
	n := float64(len(a.lines))
	return line{FlinkRatio: math.Exp(bare / n), FlinkRatioGenerated: math.Exp(generated / n), FlinkMust: meanFlink}, nil
}

// took sets the figures of a run.
func (l *line) took(s sample) {
	n := float64(l.Elements)
	l.ElementsPerS, l.NsPerElement = n/s.seconds, s.seconds*1e9/n
	l.CPUNsPerElement, l.AllocsPerElement = s.cpu*1e9/n, s.allocs/n
	if s.cpu > 0 {
		l.ElementsPerCoreS = n / s.cpu
	}
}

// measure runs the query once to warm up, then as often as is asked for. Every run must give the wanted checksum.
func (q *query) measure(ctx context.Context, d *nexmark.Data, p, runs int, want uint64) (line, error) {
	l := line{Elements: len(d.Events), Checksum: want}
	var all []sample
	for i := range runs + 1 {
		s, got, err := q.run(ctx, d, p)
		if err == nil && got != want {
			err = fmt.Errorf("compare the results: checksum %d, the oracle's is %d", got, want)
		}
		if err != nil {
			return l, err
		}
		if i > 0 {
			all = append(all, s)
		}
	}
	l.took(medians(all))
	return l, nil
}

// compareFlink sets the figures of the comparison with Flink's elements per second on a core. Flink's figure has making the
// events in it; ours is given without that, and with what the generator takes here.
func (l *line) compareFlink(flink, generatorNs float64) {
	l.FlinkPerCoreS, l.FlinkMust = flink, leastFlink
	l.FlinkRatio = l.ElementsPerCoreS / flink
	l.FlinkRatioGenerated = 1e9 / (l.CPUNsPerElement + generatorNs) / flink
}

// watermarkInterval is short, since a second of event time takes a fraction of that here.
const watermarkInterval = 10 * time.Millisecond

// run executes the query with p workers and returns its checksum.
func (q *query) run(ctx context.Context, d *nexmark.Data, p int, opts ...stream.Option) (sample, uint64, error) {
	j := &auctionJob{env: stream.NewEnv(opts...).SetParallelism(p).SetAutoWatermarkInterval(watermarkInterval), data: d}
	q.build(j)
	s, err := timed(ctx, "ours", func(ctx context.Context) error {
		_, err := j.env.Execute(ctx, q.name)
		return err
	})
	got := j.total.Load()
	if j.after != nil {
		sum, e := j.after()
		got = sum
		if err == nil {
			err = e
		}
	}
	return s, got, err
}
