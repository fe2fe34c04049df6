package async

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/flott-dev/flott/internal/clock"
	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/host"
	"github.com/flott-dev/flott/internal/operator"
)

// TestAllocationsPerElement holds the number of what an asynchronous call costs, in the best of some rounds: the runtime makes another
// goroutine for a call while those of others have not quite ended.
func TestAllocationsPerElement(t *testing.T) {
	for _, c := range []struct {
		timeout int64
		most    float64
	}{{0, 5.5}, {int64(time.Hour / time.Millisecond), 10}} {
		b := open(t, func(_ context.Context, x int64) ([]int64, error) { return nil, nil }, Options[int64, int64]{Order: Unordered, Capacity: 8, Timeout: c.timeout})
		xs := make([]int64, 512)
		run := func() {
			if err := b.push(nil, xs...); err != nil {
				t.Fatal(err)
			}
		}
		run()
		got := math.Inf(1)
		for range 10 {
			got = min(got, testing.AllocsPerRun(5, run)/float64(len(xs)))
		}
		if got > c.most {
			t.Errorf("timeout %d: %.1f allocations per element, want at most %v", c.timeout, got, c.most)
		} else {
			t.Logf("timeout %d: %.2f allocations per element", c.timeout, got)
		}
	}
}

func BenchmarkUnordered(b *testing.B) {
	typ, err := frame.TypeOf[int64]()
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	c := clock.NewManual(0)
	w := host.NewParker(c)
	rt := &operator.Runtime{Scope: &operator.Scope{
		Ctx: ctx, Clock: c, Mailbox: host.NewMailbox(w), Waiter: w, Spawn: &host.Spawner{}, Timers: &operator.Callbacks{},
	}}
	op := New(typ, typ, func(context.Context, int64) ([]int64, error) { return nil, nil }, Options[int64, int64]{Order: Unordered, Capacity: 100})
	if err := op.Open(rt); err != nil {
		b.Fatal(err)
	}
	col := frame.NewColumn(typ, 512)
	frame.Fill[int64](col, 512)
	r := col.Run()
	b.ReportAllocs()
	for b.Loop() {
		if err := op.Inputs()[0].Push(&r); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/512, "ns/element")
	if err := op.Close(); err != nil {
		b.Fatal(err)
	}
	rt.Spawn.Wait()
}
