package main

import (
	"time"

	"github.com/flott-dev/flott/agg"
	"github.com/flott-dev/flott/bench/nexmark"
	"github.com/flott-dev/flott/stream"
	"github.com/flott-dev/flott/window"
)

// Queries with windows. Their rows are final, except those of query 12, which nobody can foretell.

const millis = time.Millisecond

// query5 says for each window which auctions have got the most bids: windows that slide count the bids of each auction,
// then the counts of one window meet.
func query5(j *auctionJob) {
	sumRows(j, bids(j.timed()).
		Map(func(b *nexmark.Bid) int64 { return b.Auction }).
		KeyBy(func(auction int64) int64 { return auction }).
		Window(window.Sliding(nexmark.HotWindow*millis, nexmark.HotSlide*millis)).
		AggregateWith(agg.Count[int64](), func(i window.Info[int64, window.Time], n int64) hot { return hot{i.Window.End, i.Key, n} }).
		KeyBy(func(h hot) int64 { return h.End }).
		Window(window.Tumbling(nexmark.HotSlide*millis)).
		AggregateWith(hottest{}, func(_ window.Info[int64, window.Time], h hottestAuctions) hottestAuctions { return h }).
		FlatMap(func(h hottestAuctions, emit func(nexmark.HotRow)) {
			for _, auction := range h.Auctions {
				emit(nexmark.HotRow{Auction: auction, Bids: h.Bids})
			}
		}))
}

// hot is how often an auction was bid on in a window.
type hot struct{ End, Auction, Bids int64 }

// hottestAuctions are those of a window that have got the most bids.
type hottestAuctions struct {
	Bids     int64
	Auctions []int64
}

// hottest keeps the auctions with the most bids.
type hottest struct{}

func (hottest) Create() (h hottestAuctions) { return h }

func (hottest) Add(acc *hottestAuctions, h hot) {
	if h.Bids > acc.Bids {
		acc.Bids, acc.Auctions = h.Bids, nil
	}
	if h.Bids == acc.Bids {
		acc.Auctions = append(acc.Auctions, h.Auction)
	}
}

func (hottest) Merge(acc, other *hottestAuctions) {
	if other.Bids > acc.Bids {
		*acc = hottestAuctions{Bids: other.Bids}
	}
	if other.Bids == acc.Bids {
		acc.Auctions = append(acc.Auctions, other.Auctions...)
	}
}

func (hottest) Result(acc *hottestAuctions) hottestAuctions {
	return hottestAuctions{acc.Bids, append([]int64(nil), acc.Auctions...)}
}

// query7 is the highest bids: each window's highest price is joined with the bids of that price from the window's start to
// its end, both included.
func query7(j *auctionJob) {
	offered := bids(j.timed()).Map(func(b *nexmark.Bid) nexmark.BidRow {
		return nexmark.BidRow{Auction: b.Auction, Bidder: b.Bidder, Price: b.Price, DateTime: b.DateTime, Extra: b.Extra}
	})
	highest := offered.
		MapPtr(func(b *nexmark.BidRow) int64 { return b.Price }).
		WindowAll(window.Tumbling(nexmark.TopWindow * millis)).
		Max(func(price int64) int64 { return price })
	sumRows(j, highest.KeyBy(func(r window.AllResult[window.Time, int64]) int64 { return r.Value }).
		IntervalJoin(offered.KeyByPtr(func(b *nexmark.BidRow) int64 { return b.Price })).
		Between(millis-nexmark.TopWindow*millis, millis). // of the window's last ms
		JoinPtr(func(_ *window.AllResult[window.Time, int64], b *nexmark.BidRow) nexmark.BidRow { return *b }))
}

// query8 says which persons have come and offered something in the same window: what both do is united, and a window knows
// of each person which of the two has happened.
func query8(j *auctionJob) {
	events := j.timed()
	came := persons(events).Map(func(p *nexmark.Person) deed { return deed{p.ID, p.Name, false} })
	offered := auctions(events).Map(func(a *nexmark.Auction) deed { return deed{a.Seller, "", true} })
	sumRows(j, came.Union(offered).
		KeyBy(func(d deed) int64 { return d.Person }).
		Window(window.Tumbling(nexmark.NewWindow*millis)).
		AggregateWith(newcomer{}, func(i window.Info[int64, window.Time], d deeds) newcomerRow {
			return newcomerRow{nexmark.NewcomerRow{Person: i.Key, Name: d.Name, Start: i.Window.Start}, d.Came && d.Offered}
		}).
		Filter(func(r *newcomerRow) bool { return r.Both }).
		MapPtr(func(r *newcomerRow) nexmark.NewcomerRow { return r.NewcomerRow }))
}

// deed is that a person came, with a name, or offered something.
type deed struct {
	Person  int64
	Name    string
	Offered bool
}

// deeds are what a person has done in a window.
type deeds struct {
	Name          string
	Came, Offered bool
}

type newcomerRow struct {
	nexmark.NewcomerRow
	Both bool
}

// newcomer gathers a person's deeds.
type newcomer struct{}

func (newcomer) Create() (d deeds) { return d }

func (newcomer) Add(acc *deeds, d deed) {
	if d.Offered {
		acc.Offered = true
	} else {
		acc.Came, acc.Name = true, d.Name
	}
}

func (newcomer) Merge(acc, other *deeds) {
	if other.Came {
		acc.Name = other.Name
	}
	acc.Came, acc.Offered = acc.Came || other.Came, acc.Offered || other.Offered
}

func (newcomer) Result(acc *deeds) deeds { return *acc }

// query11 counts the bids of each bidder's sessions.
func query11(j *auctionJob) {
	sumRows(j, bids(j.timed()).
		Map(func(b *nexmark.Bid) int64 { return b.Bidder }).
		KeyBy(func(bidder int64) int64 { return bidder }).
		Window(window.Session(nexmark.SessionGap*millis)).
		AggregateWith(agg.Count[int64](), func(i window.Info[int64, window.Time], n int64) nexmark.SessionRow {
			return nexmark.SessionRow{Bidder: i.Key, Bids: n, Start: i.Window.Start, End: i.Window.End}
		}))
}

// clockWindow is the size of query 12's windows: shorter than the original's ten seconds, since all events have passed by
// then.
const clockWindow = 100 * millis

// query12 counts the bids of each bidder in windows of processing time. Which window a bid belongs to is up to the clock,
// so the checksum is that of all counts. The source stays open until the last window has fired.
func query12(j *auctionJob) {
	bids(j.lingering(2 * clockWindow)).
		Map(func(b *nexmark.Bid) int64 { return b.Bidder }).
		KeyBy(func(bidder int64) int64 { return bidder }).
		Window(window.TumblingProcessingTime(clockWindow)).
		Aggregate(agg.Count[int64]()).
		SinkTo(tally[clockCount]{total: &j.total, sum: func(cs []clockCount) (sum uint64) {
			for i := range cs {
				sum += uint64(cs[i].Value)
			}
			return sum
		}})
}

type clockCount = window.Result[int64, window.Time, int64]

// lingering are all events from a source that stays open for a while after the last one.
func (j *auctionJob) lingering(d time.Duration) *stream.Stream[nexmark.Event] {
	return j.env.FromSource(&eventSource{j.data.Events, d}, "Events")
}
