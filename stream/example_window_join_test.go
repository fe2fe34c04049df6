package stream_test

import (
	"fmt"
	"time"

	"github.com/flott-dev/flott/stream"
	"github.com/flott-dev/flott/watermark"
	"github.com/flott-dev/flott/window"
)

// everySale makes a watermark of every sale.
func everySale() watermark.Strategy[Sale] {
	return watermark.Punctuated(func(_ Sale, ms int64) (int64, bool) { return ms, true }).
		WithTimestamps(func(s Sale) time.Time { return time.UnixMilli(s.At) })
}

// Visit is somebody in a shop.
type Visit struct {
	Shop string
	Who  string
	At   int64 // ms
}

func timedVisits(env *stream.Env) *stream.Stream[Visit] {
	return env.FromElements(Visit{"north", "ann", 500}, Visit{"south", "bob", 1500}, Visit{"west", "eve", 2000}, Visit{"north", "bob", 4000}).
		AssignAscendingTimestamps(func(v Visit) time.Time { return time.UnixMilli(v.At) })
}

func visited(v Visit) string { return v.Shop }

func ExampleStream_Join() {
	env, in := timedSales()
	in.Join(timedVisits(env)).
		Where(shop).EqualTo(visited).
		Window(window.Tumbling(time.Minute)).
		Apply(func(s Sale, v Visit) string { return fmt.Sprintf("%s: %d, %s was there", s.Shop, s.Price, v.Who) }).
		Print()
	sell(env)
	// Unordered output:
	// north: 5, ann was there
	// north: 5, bob was there
	// north: 2, ann was there
	// north: 2, bob was there
	// south: 3, bob was there
}

func ExampleJoinedWindows_ApplyFlat() {
	env, in := timedSales()
	in.Join(timedVisits(env)).
		Where(shop).EqualTo(visited).
		Window(window.Session(time.Second)).
		ApplyFlat(func(s Sale, v Visit, emit func(string)) {
			if v.At < s.At {
				emit(v.Who + " may have bought for " + fmt.Sprint(s.Price))
			}
		}).
		Print()
	sell(env)
	// Unordered output:
	// ann may have bought for 5
	// bob may have bought for 3
}

func ExampleStream_CoGroup() {
	env, in := timedSales()
	in.CoGroup(timedVisits(env)).
		Where(shop).EqualTo(visited).
		Window(window.Tumbling(time.Minute)).
		Apply(func(i window.Info[string, window.Time], sales []Sale, visits []Visit, emit func(string)) {
			emit(fmt.Sprintf("%s %v: %d visits, %d sales", i.Key, i.Window, len(visits), len(sales)))
		}).
		Print()
	sell(env)
	// Unordered output:
	// north [0,60000): 2 visits, 2 sales
	// south [0,60000): 1 visits, 1 sales
	// west [0,60000): 1 visits, 0 sales
	// north [60000,120000): 0 visits, 1 sales
}
