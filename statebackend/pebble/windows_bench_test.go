package pebble_test

import (
	"testing"
	"time"

	"github.com/flott-dev/flott/statebackend/pebble"
	"github.com/flott-dev/flott/stream"
	"github.com/flott-dev/flott/watermark"
	"github.com/flott-dev/flott/window"
)

// BenchmarkTumbling sums 10,000 keys in windows of a second, 100 elements of a key in each: in memory, and on disk with a
// cache in which all open windows lie.
func BenchmarkTumbling(b *testing.B) {
	for _, c := range []struct {
		name   string
		opts   []stream.Option
		change func(*windowed) *windowed
	}{
		{"heap, slices", nil, asTheyAre},
		{"heap, general", []stream.Option{stream.WithGeneralWindows()}, asTheyAre},
		{"pebble, slices", []stream.Option{stream.WithBackends(pebble.Backend{Folder: b.TempDir()})}, (*windowed).KeepInMemory},
		{"pebble, general", []stream.Option{stream.WithBackends(pebble.Backend{Folder: b.TempDir()})}, asTheyAre},
	} {
		b.Run(c.name, func(b *testing.B) {
			env := stream.NewEnv(c.opts...).SetParallelism(1)
			keyed := env.FromGenerator(int64(b.N), func(i int64) visit { return visit{Who: i * 7919 % 10_000, At: i / 1000, N: i} }, 0).
				AssignTimestampsAndWatermarks(watermark.BoundedOutOfOrderness(0, func(v visit) time.Time { return time.UnixMilli(v.At) })).
				KeyBy(visit.who)
			c.change(keyed.Window(window.Tumbling(time.Second))).Sum(visit.n).Discard()
			if _, err := env.Execute(b.Context(), "tumbling"); err != nil {
				b.Fatal(err)
			}
		})
	}
}
