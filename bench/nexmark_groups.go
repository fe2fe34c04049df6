package main

import (
	"github.com/flott-dev/flott/bench/nexmark"
	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/state"
)

// Queries that group without an end. As in SQL, each bid changes a row: the old one is taken back, the new one is added.
// (Flink's published figures are with mini-batches, which take back and add once for many bids.)

const dayMillis = 24 * 60 * 60_000

// dayNames gives the names of days. One subtask owns it.
type dayNames struct {
	day  int64
	name string
}

func (n *dayNames) of(day int64) string {
	if n.day != day || n.name == "" {
		n.day, n.name = day, nexmark.Day(day*dayMillis)
	}
	return n.name
}

// activityBid is what is counted of a bid.
type activityBid struct{ Auction, Bidder, Price, DateTime int64 }

// query15 counts each day's bids, bidders and auctions. All of a day's bids go to one subtask.
func query15(j *auctionJob) {
	sumChanges(j, bids(j.events()).
		Map(func(b *nexmark.Bid) activityBid { return activityBid{b.Auction, b.Bidder, b.Price, b.DateTime} }).
		KeyBy(func(b activityBid) int64 { return b.DateTime / dayMillis }).
		Process[*dayActivity, activityChange](newDayActivity).UID("activity"))
}

type activityChange = change[nexmark.ActivityRow]

// dayActivity counts the bids of a day.
type dayActivity struct {
	process.NoTimers[int64, activityChange]
	*activity
}

func newDayActivity(rt *process.Runtime) *dayActivity { return &dayActivity{activity: newActivity(rt)} }

func (a *dayActivity) ProcessElement(ctx *process.KeyedContext[int64], b activityBid, out *process.Collector[activityChange]) error {
	a.add("", ctx.Key(), b, out)
	return nil
}

// activity counts the bids of a group, and distinct bidders and auctions by the ranks in which each was seen.
type activity struct {
	counts            *state.Value[activityCounts]
	bidders, auctions *state.Map[int64, uint8]
	days              dayNames
	minutes           []string // names
}

type activityCounts struct {
	Bids, Bidders, Auctions nexmark.Ranks
	Minute                  int64
}

func newActivity(rt *process.Runtime) *activity {
	a := &activity{
		counts:  state.NewValue[activityCounts](rt, "counts"),
		bidders: state.NewMap[int64, uint8](rt, "bidders"), auctions: state.NewMap[int64, uint8](rt, "auctions"),
	}
	for m := range int64(dayMillis / 60_000) {
		a.minutes = append(a.minutes, nexmark.Minute(m*60_000))
	}
	return a
}

// add counts a bid. Rows of a day without a channel have no minute.
func (a *activity) add(channel string, day int64, b activityBid, out *process.Collector[activityChange]) {
	c, rank := a.counts.Get(), nexmark.RankOf(b.Price)
	if c.Bids.Total > 0 {
		out.Collect(activityChange{a.row(channel, day, &c), true})
	}
	c.Bids.Add(rank)
	a.bidders.Update(b.Bidder, func(seen *uint8) { distinct(&c.Bidders, seen, rank) })
	a.auctions.Update(b.Auction, func(seen *uint8) { distinct(&c.Auctions, seen, rank) })
	if channel != "" {
		c.Minute = max(c.Minute, b.DateTime%dayMillis/60_000)
	}
	a.counts.Set(c)
	out.Collect(activityChange{Row: a.row(channel, day, &c)})
}

// distinct counts what is seen for the first time, in all and in the rank. The bits of seen are ranks.
func distinct(n *nexmark.Ranks, seen *uint8, rank int) {
	bit := uint8(1) << rank
	if *seen&bit != 0 {
		return
	}
	total := n.Total
	n.Add(rank)
	if *seen != 0 {
		n.Total = total
	}
	*seen |= bit
}

func (a *activity) row(channel string, day int64, c *activityCounts) nexmark.ActivityRow {
	r := nexmark.ActivityRow{Channel: channel, Day: a.days.of(day), Bids: c.Bids, Bidders: c.Bidders, Auctions: c.Auctions}
	if channel != "" {
		r.Minute = a.minutes[c.Minute]
	}
	return r
}

// query16 counts each channel's bids, bidders and auctions of a day.
func query16(j *auctionJob) {
	sumChanges(j, bids(j.events()).
		KeyBy(func(b *nexmark.Bid) channelDay { return channelDay{b.Channel, b.DateTime / dayMillis} }).
		Process[*channelActivity, activityChange](newChannelActivity).UID("activity"))
}

type channelDay struct {
	Channel string
	Day     int64
}

// channelActivity counts the bids of a channel on a day.
type channelActivity struct {
	process.NoTimers[channelDay, activityChange]
	*activity
}

func newChannelActivity(rt *process.Runtime) *channelActivity {
	return &channelActivity{activity: newActivity(rt)}
}

func (a *channelActivity) ProcessElement(ctx *process.KeyedContext[channelDay], b *nexmark.Bid, out *process.Collector[activityChange]) error {
	k := ctx.Key()
	a.add(k.Channel, k.Day, activityBid{b.Auction, b.Bidder, b.Price, b.DateTime}, out)
	return nil
}

// query17 is the statistics of each auction's bids of a day.
func query17(j *auctionJob) {
	sumChanges(j, bids(j.events()).
		Map(func(b *nexmark.Bid) price { return price{b.Auction, b.Price, b.DateTime} }).
		KeyBy(func(p price) auctionDay { return auctionDay{p.Auction, p.DateTime / dayMillis} }).
		Process[*statistics, change[nexmark.StatisticsRow]](newStatistics).UID("statistics"))
}

type auctionDay struct{ Auction, Day int64 }

// statistics are those of an auction's bids of a day.
type statistics struct {
	process.NoTimers[auctionDay, change[nexmark.StatisticsRow]]
	figures *state.Value[figures]
	days    dayNames
}

type figures struct {
	Bids          nexmark.Ranks
	Min, Max, Sum int64
}

func newStatistics(rt *process.Runtime) *statistics {
	return &statistics{figures: state.NewValue[figures](rt, "figures")}
}

func (s *statistics) ProcessElement(ctx *process.KeyedContext[auctionDay], p price, out *process.Collector[change[nexmark.StatisticsRow]]) error {
	k := ctx.Key()
	s.figures.Update(func(f *figures) {
		if f.Bids.Total > 0 {
			out.Collect(change[nexmark.StatisticsRow]{s.row(k, f), true})
		} else {
			f.Min = p.Price
		}
		f.Bids.Add(nexmark.RankOf(p.Price))
		f.Min, f.Max, f.Sum = min(f.Min, p.Price), max(f.Max, p.Price), f.Sum+p.Price
		out.Collect(change[nexmark.StatisticsRow]{Row: s.row(k, f)})
	})
	return nil
}

func (s *statistics) row(k auctionDay, f *figures) nexmark.StatisticsRow {
	return nexmark.StatisticsRow{
		Auction: k.Auction, Day: s.days.of(k.Day), Bids: f.Bids, Min: f.Min, Max: f.Max, Avg: f.Sum / f.Bids.Total, Sum: f.Sum,
	}
}

type rankedChange = change[nexmark.RankedRow]

// query18 is the last bid of each bidder on each auction.
func query18(j *auctionJob) {
	sumChanges(j, bids(j.events()).
		KeyBy(func(b *nexmark.Bid) bidderAuction { return bidderAuction{b.Bidder, b.Auction} }).
		Process[*lastBid, rankedChange](newLastBid).UID("last bids"))
}

type bidderAuction struct{ Bidder, Auction int64 }

// lastBid is a bidder's last bid on an auction.
type lastBid struct {
	process.NoTimers[bidderAuction, rankedChange]
	bid *state.Value[nexmark.Bid]
}

func newLastBid(rt *process.Runtime) *lastBid {
	return &lastBid{bid: state.NewValue[nexmark.Bid](rt, "bid")}
}

func (l *lastBid) ProcessElement(_ *process.KeyedContext[bidderAuction], b *nexmark.Bid, out *process.Collector[rankedChange]) error {
	if old, ok := l.bid.Lookup(); ok {
		if !b.Follows(&old) {
			return nil
		}
		out.Collect(rankedChange{nexmark.RankedRow{Bid: old}, true})
	}
	l.bid.Set(*b)
	out.Collect(rankedChange{Row: nexmark.RankedRow{Bid: *b}})
	return nil
}

// query19 is the best bids of each auction with their places. A bid that gets in moves those behind it, each of which is
// taken back and added again.
func query19(j *auctionJob) {
	sumChanges(j, bids(j.events()).
		KeyBy(func(b *nexmark.Bid) int64 { return b.Auction }).
		Process[*bestBids, rankedChange](newBestBids).UID("best bids"))
}

// bestBids are the best bids of an auction. What each bid is compared with is kept apart from the bids.
type bestBids struct {
	process.NoTimers[int64, rankedChange]
	places *state.Value[places]
	bids   *state.Map[uint8, nexmark.Bid]
}

// places say which bids are the best, the best first.
type places struct {
	Price [nexmark.Best]int64
	Bid   [nexmark.Best]uint8 // in the map
	N     uint8
}

func newBestBids(rt *process.Runtime) *bestBids {
	return &bestBids{places: state.NewValue[places](rt, "places"), bids: state.NewMap[uint8, nexmark.Bid](rt, "bids")}
}

func (s *bestBids) ProcessElement(_ *process.KeyedContext[int64], b *nexmark.Bid, out *process.Collector[rankedChange]) error {
	p := s.places.Get()
	at := int(p.N)
	for at > 0 && s.outbids(b, &p, at-1) {
		at--
	}
	if at == nexmark.Best {
		return nil
	}
	slot := p.N
	for i := int(p.N) - 1; i >= at; i-- {
		row := nexmark.RankedRow{Bid: s.bids.Get(p.Bid[i]), Rank: int64(i + 1)}
		out.Collect(rankedChange{row, true})
		if i+1 == nexmark.Best {
			slot = p.Bid[i]
			continue
		}
		row.Rank++
		out.Collect(rankedChange{Row: row})
	}
	copy(p.Price[at+1:], p.Price[at:])
	copy(p.Bid[at+1:], p.Bid[at:])
	p.Price[at], p.Bid[at], p.N = b.Price, slot, min(p.N+1, nexmark.Best)
	s.places.Set(p)
	s.bids.Put(slot, *b)
	out.Collect(rankedChange{Row: nexmark.RankedRow{Bid: *b, Rank: int64(at + 1)}})
	return nil
}

// outbids says whether b is better than the bid in a place.
func (s *bestBids) outbids(b *nexmark.Bid, p *places, place int) bool {
	if b.Price != p.Price[place] {
		return b.Price > p.Price[place]
	}
	other := s.bids.Get(p.Bid[place])
	return b.Outbids(&other)
}
