package main

import (
	"cmp"
	"slices"

	"github.com/flott-dev/flott/bench/nexmark"
	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/state"
	"github.com/flott-dev/flott/stream"
)

// Queries about auctions that close. In SQL they join bids with auctions for ever and take results back whenever a bid
// outdoes another one. Here a timer of event time closes the auction: its one result is final, and its state is gone.

// offer is what the queries on prices need of an auction.
type offer struct{ ID, Category, Seller, DateTime, Expires int64 }

// price is what they need of a bid.
type price struct{ Auction, Price, DateTime int64 }

// closing is an auction that has closed with a bid. Its event time is when it expired.
type closing struct{ ID, Category, Seller, Price int64 }

// closings are the auctions as they close.
func closings(events *stream.Stream[nexmark.Event]) *stream.Stream[closing] {
	offers := auctions(events).
		Map(func(a *nexmark.Auction) offer { return offer{a.ID, a.Category, a.Seller, a.DateTime, a.Expires} }).
		KeyBy(func(o offer) int64 { return o.ID })
	prices := bids(events).
		Map(func(b *nexmark.Bid) price { return price{b.Auction, b.Price, b.DateTime} }).
		KeyBy(func(p price) int64 { return p.Auction })
	return offers.Connect(prices).Process[*closer, closing](newCloser).UID("closings")
}

// closer finds the highest price of an auction.
type closer struct {
	offer *state.Value[openOffer]
	early *state.List[price] // bids that came before their auction
}

type openOffer struct {
	offer
	Best int64 // 0: no bid
}

func newCloser(rt *process.Runtime) *closer {
	return &closer{state.NewValue[openOffer](rt, "offer"), state.NewList[price](rt, "early")}
}

// take says whether the bid is the best so far.
func (o *openOffer) take(p price) bool {
	if p.DateTime < o.DateTime || p.DateTime > o.Expires || p.Price <= o.Best {
		return false
	}
	o.Best = p.Price
	return true
}

func (c *closer) ProcessElement1(ctx *process.KeyedContext[int64], o offer, _ *process.Collector[closing]) error {
	open := openOffer{offer: o}
	if c.early.Exists() {
		for p := range c.early.All() {
			open.take(p)
		}
		c.early.Clear()
	}
	c.offer.Set(open)
	ctx.RegisterTimer(process.EventTime, o.Expires)
	return nil
}

// ProcessElement2 keeps a bid whose auction is not there yet until no auction can come any more that takes it.
func (c *closer) ProcessElement2(ctx *process.KeyedContext[int64], p price, _ *process.Collector[closing]) error {
	open, ok := c.offer.Lookup()
	if !ok {
		c.early.Add(p)
		ctx.RegisterTimer(process.EventTime, p.DateTime)
	} else if open.take(p) {
		c.offer.Set(open)
	}
	return nil
}

func (c *closer) OnTimer(_ *process.KeyedContext[int64], t process.Timer, out *process.Collector[closing]) error {
	open, ok := c.offer.Lookup()
	switch {
	case !ok:
		expire(c.early, func(p price) bool { return p.DateTime > t.Millis })
	case open.Expires == t.Millis:
		if open.Best > 0 {
			out.Collect(closing{open.ID, open.Category, open.Seller, open.Best})
		}
		c.offer.Clear()
	}
	return nil
}

// expire drops the elements of a list that need not be kept.
func expire[T any](l *state.List[T], keep func(T) bool) {
	if !l.Exists() {
		return
	}
	kept := slices.DeleteFunc(l.Get(), func(x T) bool { return !keep(x) })
	l.Set(kept)
}

// query4 is the average of the winning prices of each category. A category's row is taken back when it changes.
func query4(j *auctionJob) {
	sumChanges(j, closings(j.timed()).
		KeyBy(func(c closing) int64 { return c.Category }).
		Process[*averager, change[nexmark.AverageRow]](newAverager).UID("averages"))
}

// averager is the average of a category.
type averager struct {
	process.NoTimers[int64, change[nexmark.AverageRow]]
	total *state.Value[totalPrice]
}

type totalPrice struct{ Sum, Count int64 }

func newAverager(rt *process.Runtime) *averager {
	return &averager{total: state.NewValue[totalPrice](rt, "total")}
}

func (a *averager) ProcessElement(ctx *process.KeyedContext[int64], c closing, out *process.Collector[change[nexmark.AverageRow]]) error {
	t := a.total.Get()
	row := nexmark.AverageRow{Of: ctx.Key()}
	if t.Count > 0 {
		row.Average = t.Sum / t.Count
		out.Collect(change[nexmark.AverageRow]{row, true})
	}
	t.Sum += c.Price
	t.Count++
	row.Average = t.Sum / t.Count
	out.Collect(change[nexmark.AverageRow]{Row: row})
	a.total.Set(t)
	return nil
}

// query6 is, for each auction that closes with a bid, the average of its seller's last winning prices. Rows are final.
func query6(j *auctionJob) {
	sumRows(j, closings(j.timed()).
		KeyBy(func(c closing) int64 { return c.Seller }).
		Process[*lastPrices, nexmark.AverageRow](newLastPrices).UID("last prices"))
}

// lastPrices averages a seller's last prices. Closings come from several subtasks: it puts them in the order of time.
type lastPrices struct {
	last   *state.Value[ringOfPrices]
	closed *state.List[closedAt] // whose time has not come
}

type ringOfPrices struct {
	Prices [nexmark.Best]int64
	Count  int64
}

type closedAt struct {
	closing
	Millis int64
}

func newLastPrices(rt *process.Runtime) *lastPrices {
	return &lastPrices{state.NewValue[ringOfPrices](rt, "last"), state.NewList[closedAt](rt, "closed")}
}

func (l *lastPrices) ProcessElement(ctx *process.KeyedContext[int64], c closing, _ *process.Collector[nexmark.AverageRow]) error {
	at := ctx.TimestampMillis()
	l.closed.Add(closedAt{c, at})
	ctx.RegisterTimer(process.EventTime, at)
	return nil
}

func (l *lastPrices) OnTimer(ctx *process.KeyedContext[int64], t process.Timer, out *process.Collector[nexmark.AverageRow]) error {
	all := l.closed.Get()
	slices.SortFunc(all, func(a, b closedAt) int { return cmp.Or(cmp.Compare(a.Millis, b.Millis), cmp.Compare(a.ID, b.ID)) })
	n := 0
	l.last.Update(func(r *ringOfPrices) {
		for ; n < len(all) && all[n].Millis <= t.Millis; n++ {
			r.Prices[r.Count%nexmark.Best] = all[n].Price
			r.Count++
			var sum int64
			for _, p := range r.Prices {
				sum += p
			}
			out.Collect(nexmark.AverageRow{Of: ctx.Key(), Average: sum / min(r.Count, nexmark.Best)})
		}
	})
	l.closed.Set(all[n:])
	return nil
}

// query9 is the winning bid of each auction. Rows are final.
func query9(j *auctionJob) {
	events := j.timed()
	offers := auctions(events).KeyBy(func(a *nexmark.Auction) int64 { return a.ID })
	offered := bids(events).
		Map(func(b *nexmark.Bid) nexmark.BidRow {
			return nexmark.BidRow{Auction: b.Auction, Bidder: b.Bidder, Price: b.Price, DateTime: b.DateTime, Extra: b.Extra}
		}).
		KeyByPtr(func(b *nexmark.BidRow) int64 { return b.Auction })
	sumRows(j, offers.Connect(offered).Process[*chooser, nexmark.WinnerRow](newChooser).UID("winners"))
}

// chooser finds the winning bid of an auction. What every bid is compared with is kept apart from the texts.
type chooser struct {
	auction *state.Value[nexmark.Auction]
	best    *state.Value[bestBid]
	extra   *state.Value[string] // of the best bid
	early   *state.List[nexmark.BidRow]
}

type bestBid struct {
	From, To                int64 // when bids are taken
	Price, DateTime, Bidder int64 // Price 0: there is none yet
}

func newChooser(rt *process.Runtime) *chooser {
	return &chooser{
		state.NewValue[nexmark.Auction](rt, "auction"), state.NewValue[bestBid](rt, "best"),
		state.NewValue[string](rt, "extra"), state.NewList[nexmark.BidRow](rt, "early"),
	}
}

func (c *chooser) ProcessElement1(ctx *process.KeyedContext[int64], a *nexmark.Auction, _ *process.Collector[nexmark.WinnerRow]) error {
	c.auction.Set(*a)
	best := bestBid{From: a.DateTime, To: a.Expires}
	c.best.Set(best)
	if c.early.Exists() {
		for b := range c.early.All() {
			c.offer(&best, &b)
		}
		c.early.Clear()
	}
	ctx.RegisterTimer(process.EventTime, a.Expires)
	return nil
}

func (c *chooser) ProcessElement2(ctx *process.KeyedContext[int64], b nexmark.BidRow, _ *process.Collector[nexmark.WinnerRow]) error {
	best, ok := c.best.Lookup()
	if !ok {
		c.early.Add(b)
		ctx.RegisterTimer(process.EventTime, b.DateTime)
		return nil
	}
	c.offer(&best, &b)
	return nil
}

// offer makes b the best bid if it is.
func (c *chooser) offer(best *bestBid, b *nexmark.BidRow) {
	if b.DateTime < best.From || b.DateTime > best.To || b.Price < best.Price {
		return
	}
	if b.Price == best.Price {
		old := nexmark.Bid{Bidder: best.Bidder, Price: best.Price, DateTime: best.DateTime, Extra: c.extra.Get()}
		if now := (nexmark.Bid{Bidder: b.Bidder, Price: b.Price, DateTime: b.DateTime, Extra: b.Extra}); !now.Outbids(&old) {
			return
		}
	}
	best.Price, best.DateTime, best.Bidder = b.Price, b.DateTime, b.Bidder
	c.best.Set(*best)
	c.extra.Set(b.Extra)
}

func (c *chooser) OnTimer(_ *process.KeyedContext[int64], t process.Timer, out *process.Collector[nexmark.WinnerRow]) error {
	best, ok := c.best.Lookup()
	switch {
	case !ok:
		expire(c.early, func(b nexmark.BidRow) bool { return b.DateTime > t.Millis })
	case best.To == t.Millis:
		if best.Price > 0 {
			out.Collect(nexmark.WinnerRow{
				Auction: c.auction.Get(), Bidder: best.Bidder, Price: best.Price, BidTime: best.DateTime, BidExtra: c.extra.Get(),
			})
		}
		c.auction.Clear()
		c.best.Clear()
		c.extra.Clear()
	}
	return nil
}
