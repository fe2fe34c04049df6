// Command recovery survives kill -9. It adds payments up, by account and second of event time, and writes the totals into
// files, each exactly once. Started again after a kill, at whatever moment, it goes on from its last checkpoint; the files
// are the same in the end as if nothing had happened, which it checks itself.
//
//	go run ./examples/recovery -dir /tmp/payments     # kill it with -9 and start it again, as often as you like
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"log"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/flott-dev/flott/connector/file"
	"github.com/flott-dev/flott/connector/filesink"
	"github.com/flott-dev/flott/stream"
	"github.com/flott-dev/flott/watermark"
	"github.com/flott-dev/flott/window"
)

// Payment is one of many. They come at 1000 a second of event time.
type Payment struct {
	Account int64
	Cents   int64
	At      time.Time
}

const accounts = 10

// payment is the payment of that number: the same each time it is asked for.
func payment(i int64) Payment {
	return Payment{Account: i * 7 % accounts, Cents: 1 + i*31%500, At: time.UnixMilli(i)}
}

func (p Payment) account() int64  { return p.Account }
func (p Payment) cents() int64    { return p.Cents }
func (p Payment) time() time.Time { return p.At }

func main() {
	dir := flag.String("dir", "", "folder for results and recovery (required)")
	n := flag.Int64("n", 200_000, "payments in all")
	rate := flag.Float64("rate", 20_000, "payments per second")
	flag.Parse()
	if *dir == "" {
		flag.Usage()
		os.Exit(2)
	}
	if err := run(context.Background(), *dir, *n, *rate, os.Stdout); err != nil {
		log.Fatal(err)
	}
}

// run runs the job and checks its results. A job that has finished begins afresh when it is started again; so a program that may
// be killed behind its job's end looks first whether all is done.
func run(ctx context.Context, dir string, n int64, rate float64, out io.Writer) error {
	if check(filepath.Join(dir, "totals"), n, out) == nil {
		return nil
	}
	env := stream.NewEnv(stream.WithRecovery(filepath.Join(dir, "recovery"))).EnableCheckpointing(200 * time.Millisecond)
	var last atomic.Int64
	env.FromGenerator(n, payment, rate).UID("payments").
		Map(func(p Payment) Payment {
			last.Store(p.At.UnixMilli())
			return p
		}).Name("Progress").
		AssignTimestampsAndWatermarks(watermark.BoundedOutOfOrderness(0, Payment.time)).UID("times").
		KeyBy(Payment.account).
		Window(window.Tumbling(time.Second)).
		Sum(Payment.cents).UID("totals").
		Map(func(r window.Result[int64, window.Time, int64]) string {
			return fmt.Sprintf("%d %d %d", r.Window.Start, r.Key, r.Value)
		}).Name("Format").
		CommitTo(filesink.New(filepath.Join(dir, "totals"), file.TextEncoding[string]("\n"))).UID("files")
	job, err := env.ExecuteAsync(ctx, "payments")
	if err != nil {
		return err
	}
	if r := job.Checkpoints().LatestRestored; r != nil {
		fmt.Fprintf(out, "process %d goes on from checkpoint %d\n", os.Getpid(), r.ID)
	} else {
		fmt.Fprintf(out, "process %d begins\n", os.Getpid())
	}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for running := true; running; {
		select {
		case <-tick.C:
			fmt.Fprintf(out, "payment %d of %d, %d checkpoints\n", last.Load(), n, job.Checkpoints().Counts.Completed)
		case <-job.Done():
			running = false
		}
	}
	if _, err := job.Wait(); err != nil {
		return err
	}
	return check(filepath.Join(dir, "totals"), n, out)
}

// check compares the files with what a plain loop finds.
func check(dir string, n int64, out io.Writer) error {
	want := map[string]bool{}
	totals := map[[2]int64]int64{}
	for i := range n {
		p := payment(i)
		totals[[2]int64{i / 1000 * 1000, p.Account}] += p.Cents
	}
	for at, cents := range totals {
		want[fmt.Sprintf("%d %d %d", at[0], at[1], cents)] = true
	}
	lines := 0
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || strings.HasPrefix(e.Name(), ".") {
			return err
		}
		text, err := os.ReadFile(path)
		for line := range strings.Lines(string(text)) {
			if lines++; !want[strings.TrimSuffix(line, "\n")] {
				return fmt.Errorf("%s has the line %q, which is wrong or not the first of its kind", path, line)
			}
			delete(want, strings.TrimSuffix(line, "\n"))
		}
		return err
	})
	if err == nil && len(want) > 0 {
		err = errors.New("some totals are missing")
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%d totals, each there once and right\n", lines)
	return nil
}
