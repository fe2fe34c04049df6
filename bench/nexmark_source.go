package main

import (
	"sync/atomic"
	"time"

	"github.com/flott-dev/flott/bench/nexmark"
	"github.com/flott-dev/flott/connector"
	"github.com/flott-dev/flott/stream"
	"github.com/flott-dev/flott/watermark"
)

// auctionJob is one run of a query.
type auctionJob struct {
	env   *stream.Env
	data  *nexmark.Data
	total atomic.Uint64 // the checksum of the rows that came
	// after is called when the job has ended, outside the clock, and gives the checksum instead; nil: total is it.
	after func() (uint64, error)
}

// lateness is how far watermarks stay behind: the suite's own setting.
const lateness = 4 * time.Second

// events are all events, without timestamps.
func (j *auctionJob) events() *stream.Stream[nexmark.Event] {
	return j.env.FromSource(&eventSource{events: j.data.Events}, "Events")
}

// timed are all events with their times and watermarks.
func (j *auctionJob) timed() *stream.Stream[nexmark.Event] {
	return j.events().AssignTimestampsAndWatermarks(
		watermark.ForBoundedOutOfOrderness[nexmark.Event](lateness).WithMillisPtr((*nexmark.Event).Millis))
}

func bids(s *stream.Stream[nexmark.Event]) *stream.Stream[*nexmark.Bid] {
	return s.Filter(nexmark.Event.IsBid).Map(func(e nexmark.Event) *nexmark.Bid { return e.Bid })
}

func auctions(s *stream.Stream[nexmark.Event]) *stream.Stream[*nexmark.Auction] {
	return s.Filter(nexmark.Event.IsAuction).Map(func(e nexmark.Event) *nexmark.Auction { return e.Auction })
}

func persons(s *stream.Stream[nexmark.Event]) *stream.Stream[*nexmark.Person] {
	return s.Filter(nexmark.Event.IsPerson).Map(func(e nexmark.Event) *nexmark.Person { return e.Person })
}

// rowOf is a pointer to a row.
type rowOf[R any] interface {
	*R
	nexmark.Row
}

// sumRows ends a query whose rows are final when they come.
func sumRows[R any, P rowOf[R]](j *auctionJob, s *stream.Stream[R]) {
	s.SinkTo(tally[R]{total: &j.total, sum: func(rs []R) (sum uint64) {
		for i := range rs {
			sum += P(&rs[i]).Hash()
		}
		return sum
	}})
}

// change says that a row has become part of a query's result, or is no longer one: what SQL calls a changelog. What is left
// when all changes are taken into account is the result, in whatever order they came.
type change[R any] struct {
	Row     R
	Retract bool
}

// sumChanges ends a query whose rows may be taken back: it adds up what is left.
func sumChanges[R any, P rowOf[R]](j *auctionJob, s *stream.Stream[change[R]]) {
	s.SinkTo(tally[change[R]]{total: &j.total, sum: func(cs []change[R]) (sum uint64) {
		for i := range cs {
			h := P(&cs[i].Row).Hash()
			if cs[i].Retract {
				h = -h
			}
			sum += h
		}
		return sum
	}})
}

// eventSource reads generated events. Its subtasks take blocks of them in turn, so that all stay at about the same time.
type eventSource struct {
	events []nexmark.Event
	linger time.Duration // for which readers stay open after their last event
}

const eventBlock = 4096

// stripe is the split of a subtask: every Step-th block from First on.
type stripe struct{ First, Step int }

// Bounded implements connector.Source.
func (s *eventSource) Bounded() bool { return true }

// Enumerator implements connector.Source.
func (s *eventSource) Enumerator(ctx connector.EnumeratorContext[stripe], _ []byte) (connector.Enumerator[stripe], error) {
	return &striper{ctx}, nil
}

// Reader implements connector.Source.
func (s *eventSource) Reader(ctx connector.ReaderContext) (connector.Reader[nexmark.Event, stripe], error) {
	return &eventReader{ctx: ctx, eventSource: s}, nil
}

type striper struct {
	ctx connector.EnumeratorContext[stripe]
}

func (s *striper) Start() error { return nil }

func (s *striper) Request(subtask int) error {
	s.ctx.Assign(subtask, stripe{subtask, s.ctx.Parallelism()})
	s.ctx.NoMoreSplits(subtask)
	return nil
}

func (s *striper) AddBack(int, []stripe) error    { return nil }
func (s *striper) Snapshot(int64) ([]byte, error) { return nil, nil }
func (s *striper) Close() error                   { return nil }

type eventReader struct {
	*eventSource
	ctx     connector.ReaderContext
	next    int // event
	end     int // of the block
	step    int // events from a block to the next one; 0: there is no split yet
	waiting bool
	waited  atomic.Bool
}

func (r *eventReader) Poll(out *connector.Output[nexmark.Event]) (connector.Status, error) {
	if r.step == 0 {
		return connector.Nothing, nil
	}
	for r.next < len(r.events) {
		end := min(r.end, len(r.events))
		if out.Room() == 0 {
			return connector.More, nil
		}
		r.next += out.EmitSlice(r.events[r.next:end])
		if r.next == end {
			r.next = r.end - eventBlock + r.step
			r.end = r.next + eventBlock
		}
	}
	if r.linger == 0 || r.waited.Load() {
		return connector.Done, nil
	}
	if !r.waiting {
		r.waiting = true
		r.ctx.Go(r.wait)
	}
	return connector.Nothing, nil
}

// wait lets the reader end after a while.
func (r *eventReader) wait() {
	select {
	case <-time.After(r.linger):
	case <-r.ctx.Context().Done():
	}
	r.waited.Store(true)
	r.ctx.Wake()
}

func (r *eventReader) AddSplits(splits []stripe) error {
	r.next, r.step = splits[0].First*eventBlock, splits[0].Step*eventBlock
	r.end = r.next + eventBlock
	r.ctx.Wake()
	return nil
}

func (r *eventReader) NoMoreSplits()                    {}
func (r *eventReader) Snapshot(int64) ([]stripe, error) { return nil, nil }
func (r *eventReader) Committed(int64) error            { return nil }
func (r *eventReader) Close() error                     { return nil }
