package guide

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/flott-dev/flott/connector"
	"github.com/flott-dev/flott/connector/csv"
	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/serde"
	"github.com/flott-dev/flott/state"
	"github.com/flott-dev/flott/stream"
	"github.com/flott-dev/flott/watermark"
)

func Example_firstJob() {
	env := stream.NewEnv().SetParallelism(1)
	env.FromElements("to be or not to be", "that is the question").
		FlatMapSeq(strings.FieldsSeq).
		KeyBy(func(word string) string { return word }).
		Count().
		Print()
	if _, err := env.Execute(context.Background(), "words"); err != nil {
		fmt.Println(err)
	}
	// Output:
	// (to,1)
	// (be,1)
	// (or,1)
	// (not,1)
	// (to,2)
	// (be,2)
	// (that,1)
	// (is,1)
	// (the,1)
	// (question,1)
}

func Example_graph() {
	env := stream.NewEnv().SetParallelism(2)
	numbers := env.FromSequence(1, 10)
	even := numbers.Filter(func(x int64) bool { return x%2 == 0 }).Name("even")
	even.Map(func(x int64) int64 { return x * x }).Name("square").Discard() // two streams
	even.Discard()                                                          // from one
	plan, err := env.Explain()
	if err != nil {
		fmt.Println(err)
	}
	for line := range strings.Lines(plan) {
		if strings.HasPrefix(line, "[") {
			fmt.Print(line)
		}
	}
	// Output:
	// [1] Source: Sequence Source -> even -> (square -> Sink: Discard, Sink: Discard)
}

// Trade is a large element: more than four words.
type Trade struct {
	ID, Symbol, Buyer, Seller string
	Cents, Shares             int64
}

func Example_pointers() {
	env := stream.NewEnv().SetParallelism(1)
	env.FromElements(Trade{ID: "t1", Symbol: "GO", Cents: 250, Shares: 4}, Trade{ID: "t2", Symbol: "C", Cents: 90, Shares: 1}).
		Filter(func(t *Trade) bool { return t.Shares > 1 }).
		Update(func(t *Trade) { t.Cents *= t.Shares }).
		MapPtr(func(t *Trade) string { return fmt.Sprint(t.Symbol, " ", t.Cents) }).
		Print()
	if _, err := env.Execute(context.Background(), "trades"); err != nil {
		fmt.Println(err)
	}
	// Output: GO 1000
}

// Event is a closed set of types.
type Event interface{ user() string }

type Login struct{ User string }

type Logout struct {
	User string
	Long time.Duration
}

func (l Login) user() string  { return l.User }
func (l Logout) user() string { return l.User }

func Example_interfaces() {
	env := stream.NewEnv(stream.WithTypes(serde.OneOf[Event](Login{}, Logout{}))).SetParallelism(1)
	env.FromElements[Event](Login{"ann"}, Logout{"ann", time.Hour}, Login{"bob"}).
		KeyBy(Event.user).
		Count().
		Print()
	if _, err := env.Execute(context.Background(), "events"); err != nil {
		fmt.Println(err)
	}
	// Output:
	// (ann,1)
	// (ann,2)
	// (bob,1)
}

// Payment is what the page about state is about.
type Payment struct {
	Account string
	Cents   int64
	At      time.Time
}

// alarm emits an account's payment if it is more than twice the account's average so far.
type alarm struct {
	process.NoTimers[string, string]
	sum   *state.Value[int64]
	count *state.Value[int64]
}

func newAlarm(rt *process.Runtime) *alarm {
	return &alarm{sum: state.NewValue[int64](rt, "sum"), count: state.NewValue[int64](rt, "count")}
}

func (a *alarm) ProcessElement(ctx *process.KeyedContext[string], p Payment, out *process.Collector[string]) error {
	if n := a.count.Get(); n > 0 && p.Cents > 2*a.sum.Get()/n {
		out.Collect(fmt.Sprintf("%s: %d", ctx.Key(), p.Cents))
	}
	a.count.Update(func(n *int64) { *n++ })
	a.sum.Update(func(sum *int64) { *sum += p.Cents })
	return nil
}

func Example_state() {
	env := stream.NewEnv().SetParallelism(1)
	env.FromElements(Payment{Account: "ann", Cents: 100}, Payment{Account: "bob", Cents: 900},
		Payment{Account: "ann", Cents: 150}, Payment{Account: "ann", Cents: 500}).
		KeyBy(func(p Payment) string { return p.Account }).
		Process(newAlarm).UID("alarm").
		Print()
	if _, err := env.Execute(context.Background(), "alarm"); err != nil {
		fmt.Println(err)
	}
	// Output: ann: 500
}

// hourly adds up the payments of each hour and emits the sum when the hour is over.
type hourly struct{ sums *state.Map[int64, int64] }

func newHourly(rt *process.Runtime) *hourly {
	return &hourly{state.NewMap[int64, int64](rt, "sums")}
}

func (h *hourly) ProcessElement(ctx *process.KeyedContext[string], p Payment, _ *process.Collector[string]) error {
	end := p.At.Truncate(time.Hour).Add(time.Hour)
	h.sums.Update(end.UnixMilli(), func(sum *int64) { *sum += p.Cents })
	ctx.RegisterEventTimeTimer(end) // one timer, however often it is registered
	return nil
}

func (h *hourly) OnTimer(ctx *process.KeyedContext[string], t process.Timer, out *process.Collector[string]) error {
	out.Collect(fmt.Sprintf("%s until %s: %d", ctx.Key(), t.Time().UTC().Format("15:04"), h.sums.Get(t.Millis)))
	h.sums.Remove(t.Millis)
	return nil
}

func Example_eventTime() {
	at := func(hour, minute int) time.Time { return time.Date(2024, 3, 1, hour, minute, 0, 0, time.UTC) }
	env := stream.NewEnv().SetParallelism(1)
	env.FromElements(Payment{"ann", 100, at(9, 10)}, Payment{"ann", 50, at(10, 5)}, Payment{"ann", 30, at(9, 59)}).
		AssignTimestampsAndWatermarks(watermark.BoundedOutOfOrderness(10*time.Minute, func(p Payment) time.Time { return p.At })).
		KeyBy(func(p Payment) string { return p.Account }).
		Process(newHourly).UID("hourly").
		Print()
	if _, err := env.Execute(context.Background(), "hours"); err != nil {
		fmt.Println(err)
	}
	// Output:
	// ann until 10:00: 130
	// ann until 11:00: 50
}

// Reading is a row of a CSV file.
type Reading struct {
	Sensor  string  `csv:"sensor"`
	Celsius float64 `csv:"celsius"`
}

func Example_files() {
	folder, err := os.MkdirTemp("", "guide")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(folder)
	in, out := filepath.Join(folder, "readings.csv"), filepath.Join(folder, "warm.csv")
	if err := os.WriteFile(in, []byte("sensor,celsius\nattic,21.5\ncellar,9\nattic,hot\n"), 0o600); err != nil {
		fmt.Println(err)
		return
	}

	env := stream.NewEnv().SetParallelism(1)
	readings := env.ReadCSV[Reading](in, csv.Header())
	readings.Filter(func(r Reading) bool { return r.Celsius > 20 }).
		WriteAsCSV(out, stream.Overwrite, csv.Header())
	stream.BadRecords(readings).Map(func(b stream.BadRecord) string { return fmt.Sprint("line ", b.Line, ": ", b.Record) }).
		Print()
	if _, err := env.Execute(context.Background(), "warm"); err != nil {
		fmt.Println(err)
	}

	text, err := os.ReadFile(out)
	fmt.Printf("%s%v", text, err)
	// Output:
	// line 4: attic,hot
	// sensor,celsius
	// attic,21.5
	// <nil>
}

func Example_functionSource() {
	env := stream.NewEnv().SetParallelism(1)
	env.FromFunc("lines", func(ctx context.Context, out *stream.SourceContext[string]) error {
		for i := range 3 {
			if !out.Collect(fmt.Sprint("line ", i)) {
				return ctx.Err() // the job wants no more
			}
		}
		return nil // the source has ended
	}).AddSink(func(ctx context.Context, line string, at connector.ElementContext) error {
		fmt.Println(line)
		return nil // an error fails the job
	})
	if _, err := env.Execute(context.Background(), "lines"); err != nil {
		fmt.Println(err)
	}
	// Output:
	// line 0
	// line 1
	// line 2
}

func Example_async() {
	env := stream.NewEnv().SetParallelism(1)
	env.FromFunc("endless", func(ctx context.Context, out *stream.SourceContext[int64]) error {
		for i := int64(0); out.Collect(i); i++ {
		}
		return ctx.Err()
	}).Discard()

	job, err := env.ExecuteAsync(context.Background(), "endless")
	if err != nil {
		fmt.Println(err) // mistakes in the program
		return
	}
	job.Cancel()
	_, err = job.Wait()
	fmt.Println(job.Status(), errors.Is(err, stream.ErrCanceled))
	// Output: CANCELED true
}

func Example_restart() {
	env := stream.NewEnv().SetParallelism(1).
		SetRestartStrategy(stream.FixedDelayRestart(3, 10*time.Millisecond))
	var out bytes.Buffer
	failures := 0
	env.FromElements("a", "b").
		Map(func(s string) string {
			if failures++; failures == 1 {
				panic("the first time always goes wrong")
			}
			return s
		}).
		PrintTo(&out)
	_, err := env.Execute(context.Background(), "again")
	fmt.Printf("%q %v\n", out.String(), err)
	// Output: "a\nb\n" <nil>
}
