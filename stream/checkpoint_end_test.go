package stream_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/flott-dev/flott/connector"
	"github.com/flott-dev/flott/stream"
)

// dawdling is a source that ends while its enumerator still takes the state for a checkpoint.
type dawdling struct{ asked atomic.Bool }

func (*dawdling) Bounded() bool { return true }

func (s *dawdling) Enumerator(ctx connector.EnumeratorContext[int], _ []byte) (connector.Enumerator[int], error) {
	return &dawdler{ctx: ctx, source: s}, nil
}

func (s *dawdling) Reader(ctx connector.ReaderContext) (connector.Reader[int, int], error) {
	return &dawdlingReader{ctx: ctx, source: s}, nil
}

type dawdler struct {
	ctx    connector.EnumeratorContext[int]
	source *dawdling
}

func (d *dawdler) Start() error             { return nil }
func (d *dawdler) Request(int) error        { return nil }
func (d *dawdler) AddBack(int, []int) error { return nil }
func (d *dawdler) Close() error             { return nil }

// Snapshot answers some time after the job is over.
func (d *dawdler) Snapshot(int64) ([]byte, error) {
	d.source.asked.Store(true)
	<-d.ctx.Context().Done()
	time.Sleep(20 * time.Millisecond) // the job waits for it; what gave up meanwhile must not count
	return nil, context.Cause(d.ctx.Context())
}

type dawdlingReader struct {
	ctx    connector.ReaderContext
	source *dawdling
}

func (r *dawdlingReader) Poll(*connector.Output[int]) (connector.Status, error) {
	if r.source.asked.Load() {
		return connector.Done, nil
	}
	return connector.More, nil
}

func (r *dawdlingReader) AddSplits([]int) error         { return nil }
func (r *dawdlingReader) NoMoreSplits()                 {}
func (r *dawdlingReader) Snapshot(int64) ([]int, error) { return nil, nil }
func (r *dawdlingReader) Committed(int64) error         { return nil }
func (r *dawdlingReader) Close() error                  { return nil }

// TestJobEndsWellWhileACheckpointBegins: what is not wanted any more is no failure.
func TestJobEndsWellWhileACheckpointBegins(t *testing.T) {
	for range 5 {
		env := stream.NewEnv().SetParallelism(2).EnableCheckpointing(10 * time.Millisecond)
		env.FromSource(&dawdling{}, "Dawdling").Discard()
		if _, err := env.Execute(t.Context(), t.Name()); err != nil {
			t.Fatal(err)
		}
	}
}
