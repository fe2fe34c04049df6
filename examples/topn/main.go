// Command topn finds the most visited pages of each minute: a window per page counts, a second window over all pages ranks
// the counts. Results of a window carry its last millisecond as their timestamp, so that the second window of a minute gets
// exactly the counts of that minute. The visits are made by the program, the same ones for the same seed.
//
//	go run ./examples/topn [-n 3] [-minutes 5] [-seed 1] [-parallelism n]
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"iter"
	"log"
	"math/rand/v2"
	"os"
	"strings"
	"time"

	"github.com/flott-dev/flott/agg"
	"github.com/flott-dev/flott/stream"
	"github.com/flott-dev/flott/watermark"
	"github.com/flott-dev/flott/window"
)

// Visit is a request for a page.
type Visit struct {
	Page string
	At   time.Time
}

// Count is how often a page was visited in a minute.
type Count = window.Result[string, window.Time, int64]

func main() {
	n := flag.Int("n", 3, "how many pages")
	minutes := flag.Int("minutes", 5, "minutes of visits")
	seed := flag.Uint64("seed", 1, "of the visits")
	parallelism := flag.Int("parallelism", 2, "subtasks of each operator")
	flag.Parse()
	if err := run(context.Background(), visits(*minutes, *seed), *n, *parallelism, os.Stdout); err != nil {
		log.Fatal(err)
	}
}

// run writes a line for each minute to out. Of pages with equal counts any may come first.
func run(ctx context.Context, visits iter.Seq[Visit], n, parallelism int, out io.Writer, opts ...stream.Option) error {
	env := stream.NewEnv(opts...).SetParallelism(parallelism)
	env.FromSeq(visits).
		AssignTimestampsAndWatermarks(watermark.BoundedOutOfOrderness(5*time.Second, func(v Visit) time.Time { return v.At })).
		KeyBy(func(v Visit) string { return v.Page }).
		Window(window.Tumbling(time.Minute)).
		Count().UID("visits per page").
		WindowAll(window.Tumbling(time.Minute)).
		Aggregate(agg.TopN(n, func(c Count) int64 { return c.Value })).UID("top pages").
		Map(line).Parallelism(1). // of the window before it and the sink, so that lines stay in order
		PrintTo(out).Parallelism(1)
	_, err := env.Execute(ctx, "top n")
	return err
}

func line(top window.AllResult[window.Time, []Count]) string {
	var b strings.Builder
	b.WriteString(time.UnixMilli(top.Window.Start).UTC().Format("15:04"))
	for _, c := range top.Value {
		fmt.Fprintf(&b, " %s(%d)", c.Key, c.Value)
	}
	return b.String()
}

// visits are those of a small site, up to three seconds out of order: few pages get most of them, other ones each minute.
func visits(minutes int, seed uint64) iter.Seq[Visit] {
	pages := strings.Fields("/ /news /shop /cart /pay /help /about /jobs /press /blog /login /search")
	return func(yield func(Visit) bool) {
		random := rand.New(rand.NewPCG(seed, 0))
		at := time.Date(2024, 3, 1, 12, 0, 0, 0, time.UTC)
		for end := at.Add(time.Duration(minutes) * time.Minute); at.Before(end); {
			page := int(random.ExpFloat64()*2) + at.Minute()*5
			v := Visit{pages[page%len(pages)], at.Add(-time.Duration(random.IntN(3000)) * time.Millisecond)}
			if !yield(v) {
				return
			}
			at = at.Add(time.Duration(random.IntN(200)) * time.Millisecond)
		}
	}
}
