package stream_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flott-dev/flott/connector"
	"github.com/flott-dev/flott/stream"
)

// commitBook is a sink in memory: writers keep a page each, committers enter pages into the book.
type commitBook struct {
	mu        sync.Mutex
	book      []int64
	tries     int
	refuse    int   // so many commits may be tried again
	broken    error // every commit fails
	closed    int
	abandoned int // elements written and never committed
}

type commitPage struct {
	of      *commitBook
	entries []int64
}

func (l *commitBook) Writer(connector.WriterContext) (connector.Writer[int64], error) {
	return &commitPage{of: l}, nil
}

func (l *commitBook) Committer(connector.WriterContext) (connector.Committer[[]int64], error) {
	return &commitClerk{l}, nil
}

func (p *commitPage) Write(x int64, _ connector.ElementContext) error {
	p.entries = append(p.entries, x)
	return nil
}

func (p *commitPage) Flush(bool) error { return nil }

func (p *commitPage) Prepare() ([][]int64, error) {
	entries := p.entries
	p.entries = nil
	return [][]int64{entries}, nil
}

func (p *commitPage) Close() error {
	p.of.mu.Lock()
	defer p.of.mu.Unlock()
	p.of.closed++
	p.of.abandoned += len(p.entries)
	return nil
}

type commitClerk struct{ of *commitBook }

func (c *commitClerk) Commit(_ context.Context, pages [][]int64) error {
	l := c.of
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tries++
	if l.broken != nil {
		return l.broken
	}
	if l.tries <= l.refuse {
		return fmt.Errorf("the book is in use: %w", connector.ErrRetry)
	}
	for _, p := range pages {
		l.book = append(l.book, p...)
	}
	return nil
}

func (c *commitClerk) Close() error {
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	c.of.closed++
	return nil
}

func TestCommitHappensAtTheEndOfTheInput(t *testing.T) {
	broken := errors.New("no paper")
	for _, c := range []struct {
		name        string
		parallelism int
		book        *commitBook
		fail        bool
		committed   int
		tries       int
		took        time.Duration
		err         error
	}{
		{name: "at once", parallelism: 2, book: &commitBook{}, committed: 100, tries: 2},
		{name: "third try", parallelism: 2, book: &commitBook{refuse: 2}, committed: 100, tries: 4, took: 100 * time.Millisecond},
		{name: "broken", parallelism: 2, book: &commitBook{broken: broken}, err: broken},
		{name: "never", parallelism: 2, book: &commitBook{broken: connector.ErrRetry}, err: connector.ErrRetry},
		{name: "failed before", parallelism: 1, book: &commitBook{}, fail: true, err: context.Canceled},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := c.book
				ctx, cancel := context.WithCancel(context.Background())
				defer cancel()
				env := stream.NewEnv().SetParallelism(c.parallelism)
				env.FromSequence(1, 100).Map(func(x int64) int64 {
					if c.fail && x == 1 {
						cancel()
						<-ctx.Done()
					}
					return x
				}).CommitTo(l)
				start := time.Now()
				_, err := env.Execute(ctx, "ledger")
				if !errors.Is(err, c.err) || (err == nil) != (c.err == nil) {
					t.Fatalf("error %v, want %v", err, c.err)
				}
				if c.err == nil {
					slices.Sort(l.book)
					if len(l.book) != c.committed || l.book[0] != 1 || l.book[99] != 100 || l.tries != c.tries {
						t.Errorf("%d entries in %d tries, want %d in %d", len(l.book), l.tries, c.committed, c.tries)
					}
					if took := time.Since(start); took != c.took {
						t.Errorf("took %v, want %v", took, c.took)
					}
				} else if len(l.book) != 0 {
					t.Errorf("%d entries were committed by a job that failed", len(l.book))
				}
				if l.closed != 2*c.parallelism {
					t.Errorf("%d writers and committers were closed, want %d", l.closed, 2*c.parallelism)
				}
			})
		})
	}
}

func TestCommittingSinkIsRefusedWhereNobodyCommits(t *testing.T) {
	env := stream.NewEnv()
	env.FromSequence(1, 1).SinkTo(&commitBook{})
	_, err := env.Execute(context.Background(), "ledger")
	if err == nil || !strings.Contains(err.Error(), "CommitTo") || !strings.Contains(err.Error(), "commit_test.go:") {
		t.Errorf("got %v, want an error that names CommitTo and the line", err)
	}
}

// A sink with two-phase commit: nothing is visible before the job has come to its end.
func ExampleStream_CommitTo() {
	book := &commitBook{}
	env := stream.NewEnv().SetParallelism(1)
	env.FromSequence(1, 3).CommitTo(book)
	if _, err := env.Execute(context.Background(), "ledger"); err != nil {
		log.Fatal(err)
	}
	fmt.Println(book.book)
	// Output: [1 2 3]
}
