package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/flott-dev/flott/connector"
	"github.com/flott-dev/flott/stream"
)

// sided is an element of one side of a join.
type sided struct {
	Index int64
	At    int64
}

// pair is what a join gives: the indexes of its elements.
type pair struct{ Left, Right int64 }

func side(at ...int64) []sided {
	var s []sided
	for i, t := range at {
		s = append(s, sided{int64(i), t})
	}
	return s
}

func (s sided) time() time.Time { return time.UnixMilli(s.At) }

func paired(left, right sided) pair { return pair{left.Index, right.Index} }

// collected runs the job that build makes and returns what it emits.
func collected[R any](build func(env *stream.Env) *stream.Stream[R]) ([]R, error) {
	env := stream.NewEnv().SetParallelism(1)
	var all []R
	build(env).AddSink(func(_ context.Context, x R, _ connector.ElementContext) error {
		all = append(all, x)
		return nil
	})
	_, err := env.Execute(context.Background(), "picture")
	return all, err
}

// sides draws the elements of both sides and lines between those that were joined.
func sides(c *canvas, x axis, left, right []sided, pairs []pair, names [2]string, yLeft, yRight float64) {
	slices.SortFunc(pairs, func(a, b pair) int {
		if a.Left != b.Left {
			return int(a.Left - b.Left)
		}
		return int(a.Right - b.Right)
	})
	for _, p := range pairs {
		c.line("pair", x.x(left[p.Left].At), yLeft, x.x(right[p.Right].At), yRight)
	}
	for i, lane := range [][]sided{left, right} {
		y, class := [...]float64{yLeft, yRight}[i], [...]string{"a", "b"}[i]
		c.text(margin, y+4, "strong", names[i])
		for _, e := range lane {
			c.element(class, x.x(e.At), y, fmt.Sprint(e.Index+1))
		}
	}
}

func intervalJoin() ([]byte, error) {
	left := side(seconds(10), seconds(34), seconds(70))
	right := side(seconds(6), seconds(28), seconds(47), seconds(62), seconds(88))
	lower, upper := -5*time.Second, 20*time.Second
	pairs, err := collected(func(env *stream.Env) *stream.Stream[pair] {
		key := func(sided) string { return "all" }
		return env.FromSlice(left).AssignAscendingTimestamps(sided.time).KeyBy(key).
			IntervalJoin(env.FromSlice(right).AssignAscendingTimestamps(sided.time).KeyBy(key)).
			Between(lower, upper).
			Join(paired)
	})
	if err != nil {
		return nil, err
	}
	c := newCanvas(pictureWidth, 250, "An interval join",
		"Elements of two streams on a time axis. Each left element has an interval from five seconds before it to twenty seconds "+
			"after it and is joined with the right elements in it.")
	c.heading("Between(-5*time.Second, 20*time.Second)", "seen from each element on the left")
	x := axis{seconds(0), seconds(100), laneLeft, laneRight}
	x.draw(c, 200, 54, 10_000, "04:05", "event time")
	for _, e := range left {
		from, to := e.At+lower.Milliseconds(), e.At+upper.Milliseconds()
		c.box("window a", x.x(from), 66, x.x(to)-x.x(from), 126, 6)
	}
	sides(c, x, left, right, pairs, [2]string{"left", "right"}, 92, 164)
	return c.svg(), nil
}
