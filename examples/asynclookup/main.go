// Command asynclookup completes orders with the names of their customers, which a slow directory knows: many requests are
// under way at a time, in place of one after the other. It shows results in the order of the orders or as they come
// (-unordered), requests that are made again when the directory is busy, and what becomes of those that take too long.
//
//	go run ./examples/asynclookup [-unordered]
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"sync"
	"time"

	"github.com/flott-dev/flott/stream"
)

// Order is an element of the stream.
type Order struct {
	ID       int
	Customer int
}

// Named is an order with the name of its customer.
type Named struct {
	Order
	Name string
}

func (n Named) String() string { return fmt.Sprintf("order %d is from %s", n.ID, n.Name) }

func main() {
	unordered := flag.Bool("unordered", false, "show results as they come")
	flag.Parse()
	var orders []Order
	for i := range 40 {
		orders = append(orders, Order{ID: i, Customer: i % 8})
	}
	dir := &directory{latency: 50 * time.Millisecond, names: []string{"Ann", "Bob", "Cy", "Di", "Ed", "Flo", "Gus"}}
	start := time.Now()
	if err := run(context.Background(), orders, dir, *unordered, os.Stdout); err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%d requests of %v took %v\n", dir.requests, dir.latency, time.Since(start).Round(time.Millisecond))
}

// run writes a line for each order.
func run(ctx context.Context, orders []Order, dir *directory, unordered bool, out io.Writer, opts ...stream.Option) error {
	env := stream.NewEnv(opts...).SetParallelism(1)
	lookup := func(ctx context.Context, o Order) ([]Named, error) { // called concurrently with itself
		name, err := dir.name(ctx, o.Customer)
		return []Named{{o, name}}, err
	}
	options := stream.AsyncOptions[Order, Named]{
		Capacity:  20,
		Timeout:   500 * time.Millisecond,
		OnTimeout: func(o Order) ([]Named, error) { return []Named{{o, "somebody"}}, nil },
		Retry: stream.AsyncRetry[Named]{
			MaxAttempts: 3,
			Delay:       10 * time.Millisecond,
			Multiplier:  2,
			IfError:     func(err error) bool { return errors.Is(err, errBusy) },
		},
	}
	source := env.FromSlice(orders).Name("Orders")
	var named *stream.Stream[Named]
	if unordered {
		named = source.AsyncUnordered(lookup, options)
	} else {
		named = source.AsyncOrdered(lookup, options)
	}
	named.Name("Lookup").PrintTo(out)
	_, err := env.Execute(ctx, "asynclookup")
	return err
}

var errBusy = errors.New("the directory is busy")

// directory stands for a remote service. It turns away every fifth request, and never answers about customers that it
// does not know.
type directory struct {
	latency time.Duration
	names   []string

	mu       sync.Mutex
	requests int
}

func (d *directory) name(ctx context.Context, customer int) (string, error) {
	d.mu.Lock()
	d.requests++
	busy := d.requests%5 == 0
	d.mu.Unlock()
	answer := time.NewTimer(d.latency)
	defer answer.Stop()
	select {
	case <-answer.C:
	case <-ctx.Done(): // the time is up, or the job has ended
		return "", ctx.Err()
	}
	if busy {
		return "", errBusy
	}
	if customer >= len(d.names) {
		<-ctx.Done()
		return "", ctx.Err()
	}
	return d.names[customer], nil
}
