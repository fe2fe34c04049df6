// Command sessions cuts the access log of a web server into visits: the requests of one client belong to one visit as long
// as it makes no pause of half an hour (session windows in event time, with an aggregate of its own). Lines that can't be
// read go to a side output.
//
//	go run ./examples/sessions [-gap 30m] [-parallelism n] [file, default examples/sessions/access.log]
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/stream"
	"github.com/flott-dev/flott/watermark"
	"github.com/flott-dev/flott/window"
)

// Visit is what a client did without a long pause.
type Visit struct {
	Client     string
	From, To   time.Time // of the first and the last request
	Requests   int
	Bytes      int64
	Pages      []string // in the order in which they were asked for first
	Unanswered int      // requests with a status of 400 or more
}

func (v Visit) String() string {
	return fmt.Sprintf("%s from %s for %s: %d requests (%d unanswered), %d bytes, %s", v.Client, v.From.UTC().Format(time.TimeOnly),
		v.To.Sub(v.From), v.Requests, v.Unanswered, v.Bytes, strings.Join(v.Pages, " "))
}

func main() {
	gap := flag.Duration("gap", 30*time.Minute, "the pause that ends a visit")
	parallelism := flag.Int("parallelism", 2, "subtasks of each operator")
	flag.Parse()
	path := "examples/sessions/access.log"
	if flag.NArg() > 0 {
		path = flag.Arg(0)
	}
	if err := run(context.Background(), path, *gap, *parallelism, os.Stdout); err != nil {
		log.Fatal(err)
	}
}

// run writes a line for each visit and each line that can't be read to out.
func run(ctx context.Context, path string, gap time.Duration, parallelism int, out io.Writer, opts ...stream.Option) error {
	env := stream.NewEnv(opts...).SetParallelism(parallelism)
	unreadable := process.NewOutputTag[string]("unreadable")
	requests := env.ReadTextFile(path).
		Process(func(*process.Runtime) parsing { return parsing{unreadable} }).Name("Parse")

	visits := requests.
		// A server writes a line when the request has been answered: lines may be out of order by the time that takes.
		AssignTimestampsAndWatermarks(watermark.BoundedOutOfOrderness(time.Minute, func(r Request) time.Time { return r.At })).
		KeyBy(func(r Request) string { return r.Client }).
		Window(window.Session(gap)).
		AggregateWith(visiting{}, func(i window.Info[string, window.Time], v Visit) Visit {
			v.Client = i.Key
			return v
		}).UID("visits")

	visits.Map(Visit.String).
		Union(requests.SideOutput(unreadable).Map(func(line string) string { return "unreadable: " + line })).
		PrintTo(out).Parallelism(1)
	_, err := env.Execute(ctx, "sessions")
	return err
}

// parsing makes requests of lines.
type parsing struct{ unreadable process.OutputTag[string] }

func (p parsing) ProcessElement(ctx *process.Context, line string, out *process.Collector[Request]) error {
	r, err := parseRequest(line)
	if err != nil {
		ctx.Emit(p.unreadable, line)
		return nil
	}
	out.Collect(r)
	return nil
}

// visiting folds requests into a visit. It is its own accumulator's result, but for the client.
type visiting struct{}

func (visiting) Create() Visit { return Visit{} }

func (s visiting) Add(v *Visit, r Request) {
	one := Visit{From: r.At, To: r.At, Requests: 1, Bytes: r.Bytes, Pages: []string{r.Path}}
	if r.Status >= 400 {
		one.Unanswered = 1
	}
	s.Merge(v, &one)
}

// Merge adds the visit o to v: a late request may join two visits that seemed to be apart.
func (visiting) Merge(v, o *Visit) {
	if v.Requests == 0 || o.From.Before(v.From) {
		v.From = o.From
	}
	if o.To.After(v.To) {
		v.To = o.To
	}
	v.Requests += o.Requests
	v.Bytes += o.Bytes
	v.Unanswered += o.Unanswered
	for _, page := range o.Pages {
		if !slices.Contains(v.Pages, page) {
			v.Pages = append(v.Pages, page)
		}
	}
}

// Result gives pages of its own: the accumulator may go on.
func (visiting) Result(v *Visit) Visit {
	r := *v
	r.Pages = slices.Clone(v.Pages)
	return r
}
