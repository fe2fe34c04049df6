package sessions

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/flott-dev/flott/internal/frame"
	kit "github.com/flott-dev/flott/internal/operator/operatortest"
	"github.com/flott-dev/flott/internal/operator/windows"
	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/window"
)

// adder adds up what a checksum of sessions is made of.
type adder struct {
	typ *frame.Type
	sum uint64
	n   int
}

func (a *adder) Type() *frame.Type { return a.typ }

func (a *adder) Mark(frame.Mark) error { return nil }

func (a *adder) Push(r *frame.Run) error {
	for i, x := range frame.Values[result](r) {
		a.add(x)
		if r.Time(i) != x.Window.MaxTimestamp() {
			return fmt.Errorf("%v has timestamp %d", x, r.Time(i))
		}
	}
	return nil
}

func (a *adder) add(x result) {
	h := uint64(x.Key)*0x9e3779b97f4a7c15 + uint64(x.Window.Start)
	h = h*0xff51afd7ed558ccd + uint64(x.Window.End)
	h = h*0xc4ceb9fe1a85ec53 + uint64(x.Value)
	a.sum += h ^ h>>29
	a.n++
}

// TestManyKeysGiveWhatALoopGives has more keys than small tests have: tables and wheels that grow, keys that come and go,
// runs of all lengths. Elements are in order; those that touch a session that has fired open another.
func TestManyKeysGiveWhatALoopGives(t *testing.T) {
	const keys, gap, n = 30_000, 2000, 400_000
	for seed := range uint64(3) {
		rng := rand.New(rand.NewPCG(seed, 4))
		spec := windows.Spec{In: kit.TypeOf[click](t), Out: kit.TypeOf[result](t), Key: kit.KeyOf(t, click.key)}
		o := New(spec, static(gap), process.EventTime, totals(t)).(*driver)
		o.broom.slack = 1000
		rt := kit.Runtime()
		got, want := &adder{typ: o.Out.Type}, &adder{}
		kit.Must(t, o.Out.Connect(got, rt))
		kit.Must(t, o.Open(rt))

		type session struct{ start, end, sum int64 }
		open := make([]session, keys)
		watermark := int64(-1)
		fire := func(key int64) {
			if s := &open[key]; s.sum != 0 {
				want.add(result{Key: key, Window: window.Time{Start: s.start, End: s.end}, Value: s.sum})
				*s = session{}
			}
		}
		for i := 0; i < n; {
			length := 1 + rng.IntN(frame.MaxLen)
			xs, times := make([]click, length), make([]int64, length)
			for j := range xs {
				ts := int64(i / 20)
				i++
				xs[j], times[j] = click{rng.Int64N(keys), 1 + rng.Int64N(5)}, ts
				s := &open[xs[j].Key]
				if s.sum != 0 && (ts > s.end || s.end-1 <= watermark) {
					fire(xs[j].Key)
				}
				if s.sum == 0 {
					s.start = ts
				}
				s.end = ts + gap
				s.sum += xs[j].Value
			}
			kit.Must(t, o.Push(kit.Run(t, times, xs...)))
			if rng.IntN(3) == 0 {
				watermark = int64((i-1)/20) - 1
				kit.Must(t, o.Mark(kit.Watermark(watermark)))
			}
		}
		kit.Must(t, o.Mark(kit.Watermark(frame.MaxWatermark)))
		for key := range open {
			fire(int64(key))
		}
		if got.n != want.n || got.sum != want.sum {
			t.Errorf("seed %d: %d sessions with checksum %x, want %d with %x", seed, got.n, got.sum, want.n, want.sum)
		}
		kit.Must(t, o.Close())
	}
}
