package guide

import (
	"fmt"
	"testing"
	"time"

	"github.com/flott-dev/flott/agg"
	"github.com/flott-dev/flott/flotttest"
	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/state"
	"github.com/flott-dev/flott/stream"
	"github.com/flott-dev/flott/window"
)

// clicksOfDay counts clicks and shows the result every second while the day lasts, at its end, and for each late click.
func clicksOfDay(clicks *stream.Stream[Click]) *stream.Stream[string] {
	return clicks.
		KeyBy(func(c Click) string { return c.Page }).
		Window(window.Daily(time.UTC)).
		AllowedLateness(time.Hour).
		Trigger(window.OnTime().
			Early(window.ContinuousProcessingTimeTrigger(time.Second)).
			Late(window.CountTrigger(1))).
		Count().UID("clicks of the day").
		Map(func(r window.Result[string, window.Time, int64]) string { return fmt.Sprintf("%s: %d", r.Key, r.Value) })
}

func TestClicksOfDayEarlyOnTimeAndLate(t *testing.T) {
	h := flotttest.NewHarness(t, clicksOfDay)
	day := time.Date(2024, 3, 1, 0, 0, 0, 0, time.UTC)
	click := func(after time.Duration) {
		h.ProcessElement(Click{Page: "/", At: day.Add(after)}, day.Add(after).UnixMilli())
	}
	last := day.Add(24*time.Hour).UnixMilli() - 1
	at := func(s string) string { return fmt.Sprintf("%s@%d", s, last) }

	click(time.Hour)
	click(2 * time.Hour)
	h.Advance(time.Second)
	click(3 * time.Hour)
	h.Advance(time.Second)
	h.Expect(t, at("/: 2"), at("/: 3"))

	h.ProcessWatermark(last)
	click(4 * time.Hour)
	h.Expect(t, at("/: 3"), fmt.Sprintf("watermark %d", last), at("/: 4"))
}

func Example_everyThird() {
	env := stream.NewEnv().SetParallelism(1)
	clicks(env).
		WindowAll(window.GlobalWindows()).
		Trigger(window.PurgingTrigger(window.CountTrigger(3))).
		Aggregate(agg.Last(func(c Click) string { return c.User + " " + c.Page })).
		Print()
	execute(env)
	// Output:
	// (global,ann /cart)
	// (global,bob /help)
}

// records fires as soon as a window has a bid that is higher than all before, and when the window is complete.
type records struct{}

func (records) New(rt *process.Runtime) window.ElementTriggerFunction[Bid] {
	return &recordsOf{highest: state.NewReducing(rt, "highest", func(a, b int64) int64 { return max(a, b) })}
}

func (records) CanMerge() bool { return true } // recordsOf has OnMerge

// recordsOf is the trigger of one subtask. Its state is that of the key and the window at hand.
type recordsOf struct{ highest *state.Reducing[int64] }

func (r *recordsOf) OnElement(ctx *window.TriggerContext, b *Bid, _ int64) (window.TriggerResult, error) {
	end := ctx.MaxTimestamp()
	if end > ctx.Watermark() {
		ctx.RegisterEventTimeTimer(end)
	}
	if b.Cents <= r.highest.Get() && end > ctx.Watermark() {
		return window.Continue, nil
	}
	r.highest.Add(b.Cents)
	return window.Fire, nil
}

func (r *recordsOf) OnEventTime(ctx *window.TriggerContext, at int64) (window.TriggerResult, error) {
	if at == ctx.MaxTimestamp() { // other times are those of the engine's own timers
		return window.Fire, nil
	}
	return window.Continue, nil
}

func (r *recordsOf) OnProcessingTime(*window.TriggerContext, int64) (window.TriggerResult, error) {
	return window.Continue, nil
}

// OnMerge is called for the window that others were merged into. Clear is called for each of those afterwards.
func (r *recordsOf) OnMerge(ctx *window.MergeContext) error {
	highest := int64(0)
	ctx.EachMerged(func() { highest = max(highest, r.highest.Get()) })
	r.highest.Add(highest)
	if end := ctx.MaxTimestamp(); end > ctx.Watermark() {
		ctx.RegisterEventTimeTimer(end)
	}
	return nil
}

func (r *recordsOf) Clear(ctx *window.TriggerContext) error {
	ctx.DeleteEventTimeTimer(ctx.MaxTimestamp())
	r.highest.Clear()
	return nil
}

// bidWars are sessions of bids for an item.
func bidWars(bids *stream.Stream[Bid]) *stream.Stream[string] {
	return bids.
		KeyBy(func(b Bid) string { return b.Item }).
		Window(window.Session(time.Minute)).
		TriggerBy(records{}).
		AggregateWith(agg.Max(func(b Bid) int64 { return b.Cents }), func(i window.Info[string, window.Time], highest int64) string {
			return fmt.Sprintf("%s: %d", i.Key, highest)
		}).UID("bid wars")
}

func TestBidWarsShowRecordsAtOnce(t *testing.T) {
	h := flotttest.NewHarness(t, bidWars)
	bid := func(cents, second int64) { h.ProcessElement(Bid{Item: "lamp", Cents: cents}, second*1000) }
	bid(500, 0)
	bid(400, 20) // no record
	bid(600, 40)
	h.Expect(t, "lamp: 500@59999", "lamp: 600@99999")
	h.ProcessWatermark(99_999)
	h.Expect(t, "lamp: 600@99999", "watermark 99999")
	for _, name := range []string{"highest"} {
		if n := h.StateEntries(name); n != 0 {
			t.Errorf("%d entries of %s are left", n, name)
		}
	}
}

func TestBidWarsThatMergeKeepTheirRecord(t *testing.T) {
	h := flotttest.NewHarness(t, bidWars)
	bid := func(cents, second int64) { h.ProcessElement(Bid{Item: "lamp", Cents: cents}, second*1000) }
	bid(500, 0)
	bid(700, 100)
	h.Expect(t, "lamp: 500@59999", "lamp: 700@159999")
	bid(600, 50) // joins the two: no record of the war that they are now
	h.Expect(t)
	bid(800, 60)
	h.Expect(t, "lamp: 800@159999")
}
