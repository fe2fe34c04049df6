// Command windowjoin joins two streams in windows of a minute of event time: impressions of advertisements and clicks on
// them. It shows which click was made at which impression (a join by advertisement and user), and how many of its
// impressions in each minute were clicked (a co-group by advertisement, which has those without a click as well).
//
//	go run ./examples/windowjoin [-parallelism n] [impressions.csv clicks.csv, defaults in examples/windowjoin]
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"time"

	"github.com/flott-dev/flott/connector/csv"
	"github.com/flott-dev/flott/stream"
	"github.com/flott-dev/flott/watermark"
	"github.com/flott-dev/flott/window"
)

// Event is an impression of an advertisement, or a click on it: a line of a file.
type Event struct {
	Ad   string    `csv:"ad"`
	User string    `csv:"user"`
	At   time.Time `csv:"at"`
}

// AdUser is what impressions and clicks are joined by.
type AdUser struct{ Ad, User string }

func (e Event) adUser() AdUser  { return AdUser{e.Ad, e.User} }
func (e Event) ad() string      { return e.Ad }
func (e Event) time() time.Time { return e.At }

// Clicked is an impression with a click in the same minute that came after it.
type Clicked struct {
	Event
	After time.Duration
}

// Rate is how often an advertisement was shown and clicked in a minute.
type Rate struct {
	Ad             string
	Minute         time.Time
	Shown, Clicked int
}

func (r Rate) String() string {
	return fmt.Sprintf("%s %s: %d of %d clicked (%.0f %%)", r.Minute.Format("15:04"), r.Ad, r.Clicked, r.Shown,
		100*float64(r.Clicked)/float64(max(r.Shown, 1)))
}

func main() {
	parallelism := flag.Int("parallelism", 2, "subtasks of each operator")
	flag.Parse()
	impressions, clicks := "examples/windowjoin/impressions.csv", "examples/windowjoin/clicks.csv"
	if flag.NArg() == 2 {
		impressions, clicks = flag.Arg(0), flag.Arg(1)
	}
	if err := run(context.Background(), impressions, clicks, *parallelism, os.Stdout); err != nil {
		log.Fatal(err)
	}
}

// run writes a line for each pair and each rate to out.
func run(ctx context.Context, impressionsFile, clicksFile string, parallelism int, out io.Writer, opts ...stream.Option) error {
	env := stream.NewEnv(opts...).SetParallelism(parallelism)
	inOrder := watermark.BoundedOutOfOrderness(time.Second, Event.time)
	impressions := env.ReadCSV[Event](impressionsFile, csv.Header()).AssignTimestampsAndWatermarks(inOrder)
	clicks := env.ReadCSV[Event](clicksFile, csv.Header()).AssignTimestampsAndWatermarks(inOrder)

	clicked := impressions.Join(clicks).
		Where(Event.adUser).EqualTo(Event.adUser).
		Window(window.Tumbling(time.Minute)).
		Apply(func(shown, click Event) Clicked { return Clicked{shown, click.At.Sub(shown.At)} }).UID("clicked").
		Filter(func(c Clicked) bool { return c.After >= 0 }) // a user may be shown the same twice in a minute
	rates := impressions.CoGroup(clicks).
		Where(Event.ad).EqualTo(Event.ad).
		Window(window.Tumbling(time.Minute)).
		Apply(func(i window.Info[string, window.Time], shown, clicked []Event, emit func(Rate)) {
			emit(Rate{i.Key, time.UnixMilli(i.Window.Start).UTC(), len(shown), len(clicked)})
		}).UID("rates")

	clicked.Map(func(c Clicked) string { return fmt.Sprintf("%s clicked %s after %s", c.User, c.Ad, c.After) }).
		Union(rates.Map(Rate.String)).
		PrintTo(out).Parallelism(1)
	_, err := env.Execute(ctx, "window join")
	return err
}
