package guide

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/flott-dev/flott/agg"
	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/stream"
	"github.com/flott-dev/flott/window"
)

// Click is what most pages about windows are about.
type Click struct {
	User string
	Page string
	At   time.Time
}

func (c Click) user() string { return c.User }
func (c Click) page() string { return c.Page }

// clock is a time of the day of the examples.
func clock(hour, minute, second int) time.Time {
	return time.Date(2024, 3, 1, hour, minute, second, 0, time.UTC)
}

// shown is a time of a window as people read it.
func shown(ms int64) string { return time.UnixMilli(ms).UTC().Format(time.TimeOnly) }

func clicks(env *stream.Env) *stream.Stream[Click] {
	return env.FromElements(
		Click{"ann", "/", clock(12, 0, 5)}, Click{"bob", "/", clock(12, 0, 20)}, Click{"ann", "/cart", clock(12, 0, 50)},
		Click{"ann", "/pay", clock(12, 1, 10)}, Click{"bob", "/help", clock(12, 2, 30)}, Click{"bob", "/help", clock(12, 2, 40)},
	).AssignAscendingTimestamps(func(c Click) time.Time { return c.At })
}

func execute(env *stream.Env) {
	if _, err := env.Execute(context.Background(), "guide"); err != nil {
		fmt.Println(err)
	}
}

func Example_windows() {
	env := stream.NewEnv().SetParallelism(1)
	clicks(env).
		KeyBy(func(c Click) string { return c.User }).
		Window(window.Tumbling(time.Minute)).
		AggregateWith(agg.Count[Click](), func(i window.Info[string, window.Time], n int64) string {
			return fmt.Sprintf("%s from %s: %d", i.Key, shown(i.Window.Start), n)
		}).UID("clicks per minute").
		Print()
	execute(env)
	// Unordered output:
	// ann from 12:00:00: 2
	// bob from 12:00:00: 1
	// ann from 12:01:00: 1
	// bob from 12:02:00: 2
}

func Example_windowAll() {
	env := stream.NewEnv().SetParallelism(1)
	clicks(env).
		WindowAll(window.Tumbling(time.Minute)).
		Apply(func(w window.Time, all []Click, emit func(string)) {
			emit(fmt.Sprintf("from %s: %d, first %s", shown(w.Start), len(all), all[0].Page))
		}).
		Print()
	execute(env)
	// Output:
	// from 12:00:00: 3, first /
	// from 12:01:00: 1, first /pay
	// from 12:02:00: 2, first /help
}

func Example_sliding() {
	env := stream.NewEnv().SetParallelism(1)
	clicks(env).
		KeyBy(Click.user).
		Window(window.Sliding(time.Minute, 20*time.Second)).
		Count().
		Filter(func(r window.Result[string, window.Time, int64]) bool { return r.Key == "ann" }).
		Map(func(r window.Result[string, window.Time, int64]) string {
			return fmt.Sprintf("%s to %s: %d", shown(r.Window.Start), shown(r.Window.End), r.Value)
		}).
		Print()
	execute(env)
	// Output:
	// 11:59:20 to 12:00:20: 1
	// 11:59:40 to 12:00:40: 1
	// 12:00:00 to 12:01:00: 2
	// 12:00:20 to 12:01:20: 2
	// 12:00:40 to 12:01:40: 2
	// 12:01:00 to 12:02:00: 1
}

func Example_sessions() {
	env := stream.NewEnv().SetParallelism(1)
	clicks(env).
		KeyBy(Click.user).
		Window(window.Session(30 * time.Second)).
		Aggregate(agg.Collect[Click]()).
		Map(func(r window.Result[string, window.Time, []Click]) string {
			pages := make([]string, len(r.Value))
			for i, c := range r.Value {
				pages[i] = c.Page
			}
			return fmt.Sprintf("%s %s to %s: %s", r.Key, shown(r.Window.Start), shown(r.Window.End), strings.Join(pages, " "))
		}).
		Print()
	execute(env)
	// Unordered output:
	// ann 12:00:05 to 12:00:35: /
	// ann 12:00:50 to 12:01:40: /cart /pay
	// bob 12:00:20 to 12:00:50: /
	// bob 12:02:30 to 12:03:10: /help /help
}

func Example_sessionsByElement() {
	env := stream.NewEnv().SetParallelism(1)
	clicks(env).
		KeyBy(Click.user).
		WindowBy(window.SessionBy(func(c Click) time.Duration {
			if c.Page == "/cart" {
				return 15 * time.Second // who looks into the cart goes on soon
			}
			return time.Minute
		})).
		Count().
		Map(func(r window.Result[string, window.Time, int64]) string {
			return fmt.Sprintf("%s %s to %s: %d", r.Key, shown(r.Window.Start), shown(r.Window.End), r.Value)
		}).
		Print()
	execute(env)
	// Unordered output:
	// ann 12:00:05 to 12:01:05: 2
	// ann 12:01:10 to 12:02:10: 1
	// bob 12:00:20 to 12:01:20: 1
	// bob 12:02:30 to 12:03:40: 2
}

func Example_countWindow() {
	env := stream.NewEnv().SetParallelism(1)
	env.FromElements(3, 4, 5, 6, 7).
		KeyBy(func(int) string { return "all" }).
		CountWindow(2).
		Sum(func(x int) int { return x }).
		Print()
	execute(env)
	// Output:
	// (all,global,7)
	// (all,global,11)
}

func Example_calendar() {
	env := stream.NewEnv().SetParallelism(1)
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		fmt.Println(err)
		return
	}
	var hours []time.Time // of two days, in one of which the clocks go forward
	for t := time.Date(2024, 3, 30, 0, 0, 0, 0, berlin); t.Day() != 1; t = t.Add(time.Hour) {
		hours = append(hours, t)
	}
	env.FromSlice(hours).
		AssignAscendingTimestamps(func(t time.Time) time.Time { return t }).
		WindowAll(window.Daily(berlin)).
		Apply(func(w window.Time, xs []time.Time, emit func(string)) {
			emit(fmt.Sprintf("%s: %d hours", time.UnixMilli(w.Start).In(berlin).Format(time.DateOnly), len(xs)))
		}).
		Print()
	execute(env)
	// Output:
	// 2024-03-30: 24 hours
	// 2024-03-31: 23 hours
}

// Invoice is to be paid by an account whose months begin on a day of its own.
type Invoice struct {
	Account string
	Day     int // 1 to 28
	Cents   int64
	At      time.Time
}

// billingMonths are windows from an account's day to the same day of the next month.
type billingMonths struct{}

func (billingMonths) AssignElement(dst []window.Time, x *Invoice, ts, _ int64) ([]window.Time, error) {
	at := time.UnixMilli(ts).UTC()
	start := time.Date(at.Year(), at.Month(), x.Day, 0, 0, 0, 0, time.UTC)
	if start.After(at) {
		start = start.AddDate(0, -1, 0)
	}
	return append(dst, window.Time{Start: start.UnixMilli(), End: start.AddDate(0, 1, 0).UnixMilli()}), nil
}

func (billingMonths) Domain() process.Domain         { return process.EventTime }
func (billingMonths) DefaultTrigger() window.Trigger { return window.EventTimeTrigger() }

func Example_customAssigner() {
	env := stream.NewEnv().SetParallelism(1)
	day := func(month time.Month, day int) time.Time { return time.Date(2024, month, day, 9, 0, 0, 0, time.UTC) }
	env.FromElements(Invoice{"ann", 10, 100, day(3, 9)}, Invoice{"ann", 10, 20, day(3, 10)}, Invoice{"ann", 10, 3, day(4, 9)}).
		AssignAscendingTimestamps(func(i Invoice) time.Time { return i.At }).
		KeyBy(func(i Invoice) string { return i.Account }).
		WindowBy(billingMonths{}).
		Sum(func(i Invoice) int64 { return i.Cents }).
		Map(func(r window.Result[string, window.Time, int64]) string {
			return fmt.Sprintf("%s, month from %s: %d", r.Key, time.UnixMilli(r.Window.Start).UTC().Format(time.DateOnly), r.Value)
		}).
		Print()
	execute(env)
	// Output:
	// ann, month from 2024-02-10: 100
	// ann, month from 2024-03-10: 23
}

func Example_windowsOfWindows() {
	env := stream.NewEnv().SetParallelism(1)
	clicks(env).
		KeyBy(Click.page).
		Window(window.Tumbling(time.Minute)).
		Count().
		WindowAll(window.Tumbling(time.Minute)).
		MaxBy(func(r window.Result[string, window.Time, int64]) int64 { return r.Value }).
		Map(func(r window.Result[string, window.Time, int64]) string {
			return fmt.Sprintf("%s: %s, %d clicks", shown(r.Window.Start), r.Key, r.Value)
		}).
		Print()
	execute(env)
	// Output:
	// 12:00:00: /, 2 clicks
	// 12:01:00: /pay, 1 clicks
	// 12:02:00: /help, 2 clicks
}

func Example_windowPaths() {
	env := stream.NewEnv().SetParallelism(1)
	perUser := clicks(env).KeyBy(Click.user)
	perUser.Window(window.Tumbling(time.Minute)).Count().Name("per minute").Discard()
	perUser.Window(window.Session(time.Minute)).Count().Name("per visit").Discard()
	perUser.Window(window.Tumbling(time.Minute)).Trigger(window.CountTrigger(3)).Count().Name("every third").Discard()
	plan, err := env.Explain()
	if err != nil {
		fmt.Println(err)
	}
	for line := range strings.Lines(plan) {
		name, attributes, _ := strings.Cut(strings.TrimLeft(line, " -"), "  ")
		if _, path, ok := strings.Cut(attributes, "window path: "); ok {
			path, _, _ = strings.Cut(path, ",")
			fmt.Printf("%s: %s\n", name, path)
		}
	}
	// Output:
	// per minute: slices
	// per visit: sessions
	// every third: general
}
