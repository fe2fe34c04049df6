package main

import (
	"github.com/flott-dev/flott/bench/nexmark"
	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/state"
	"github.com/flott-dev/flott/stream"
)

// Queries that join without an end: what may still find a partner is kept for ever, as in SQL. Ids are unique, so what has
// found its only partner is not kept. Rows are final.

// query3 says who in three states sells in the first category.
func query3(j *auctionJob) {
	events := j.events()
	sellers := persons(events).
		Filter(func(p *nexmark.Person) bool { return p.State == "OR" || p.State == "ID" || p.State == "CA" }).
		Map(func(p *nexmark.Person) seller { return seller{p.ID, p.Name, p.City, p.State} }).
		KeyByPtr(func(s *seller) int64 { return s.ID })
	offers := auctions(events).
		Filter(func(a *nexmark.Auction) bool { return a.Category == nexmark.FirstCategory }).
		Map(func(a *nexmark.Auction) stream.KeyValue[int64, int64] {
			return stream.KeyValue[int64, int64]{Key: a.Seller, Value: a.ID}
		}).
		KeyBy(func(o stream.KeyValue[int64, int64]) int64 { return o.Key })
	sumRows(j, sellers.Connect(offers).Process[*sellerJoin, nexmark.SellerRow](newSellerJoin).UID("sellers"))
}

type seller struct {
	ID                int64
	Name, City, State string
}

// sellerJoin joins a person with the auctions of theirs.
type sellerJoin struct {
	process.NoTimers[int64, nexmark.SellerRow]
	person *state.Value[seller]
	early  *state.List[int64] // auctions whose seller has not come yet
}

func newSellerJoin(rt *process.Runtime) *sellerJoin {
	return &sellerJoin{person: state.NewValue[seller](rt, "person"), early: state.NewList[int64](rt, "early")}
}

func (s *sellerJoin) ProcessElement1(_ *process.KeyedContext[int64], p seller, out *process.Collector[nexmark.SellerRow]) error {
	s.person.Set(p)
	for id := range s.early.All() {
		out.Collect(nexmark.SellerRow{Name: p.Name, City: p.City, State: p.State, Auction: id})
	}
	s.early.Clear()
	return nil
}

func (s *sellerJoin) ProcessElement2(_ *process.KeyedContext[int64], o stream.KeyValue[int64, int64], out *process.Collector[nexmark.SellerRow]) error {
	p, ok := s.person.Lookup()
	if !ok {
		s.early.Add(o.Value)
		return nil
	}
	out.Collect(nexmark.SellerRow{Name: p.Name, City: p.City, State: p.State, Auction: o.Value})
	return nil
}

// query20 expands bids by their auctions, if these are of the first category.
func query20(j *auctionJob) {
	events := j.events()
	sumRows(j, auctions(events).KeyBy(func(a *nexmark.Auction) int64 { return a.ID }).
		Connect(bids(events).KeyBy(func(b *nexmark.Bid) int64 { return b.Auction })).
		Process[*expander, nexmark.ExpandedRow](newExpander).UID("expanded"))
}

// expander joins an auction with its bids. All auctions come here: those of other categories are kept as that, so that no
// bid has to wait for them.
type expander struct {
	process.NoTimers[int64, nexmark.ExpandedRow]
	category *state.Value[int64]
	auction  *state.Value[nexmark.Auction] // of the first category
	early    *state.List[nexmark.Bid]
}

func newExpander(rt *process.Runtime) *expander {
	return &expander{
		category: state.NewValue[int64](rt, "category"), auction: state.NewValue[nexmark.Auction](rt, "auction"),
		early: state.NewList[nexmark.Bid](rt, "early"),
	}
}

func (e *expander) ProcessElement1(_ *process.KeyedContext[int64], a *nexmark.Auction, out *process.Collector[nexmark.ExpandedRow]) error {
	e.category.Set(a.Category)
	if a.Category == nexmark.FirstCategory {
		e.auction.Set(*a)
		for b := range e.early.All() {
			out.Collect(nexmark.ExpandedRow{Bid: b, Auction: *a})
		}
	}
	e.early.Clear()
	return nil
}

func (e *expander) ProcessElement2(_ *process.KeyedContext[int64], b *nexmark.Bid, out *process.Collector[nexmark.ExpandedRow]) error {
	switch e.category.Get() {
	case 0:
		e.early.Add(*b)
	case nexmark.FirstCategory:
		out.Collect(nexmark.ExpandedRow{Bid: *b, Auction: e.auction.Get()})
	}
	return nil
}

// query23 joins the bids of persons who sell as well with all that they sell.
func query23(j *auctionJob) {
	events := j.events()
	people := events.Filter(func(e nexmark.Event) bool { return e.Bid == nil }).KeyBy(func(e nexmark.Event) int64 {
		if e.Person != nil {
			return e.Person.ID
		}
		return e.Auction.Seller
	})
	sumRows(j, people.Connect(bids(events).KeyBy(func(b *nexmark.Bid) int64 { return b.Bidder })).
		Process[*sellerBids, nexmark.SellerBidRow](newSellerBids).UID("seller bids"))
}

// sellerBids joins a person with all bids and auctions of theirs.
type sellerBids struct {
	process.NoTimers[int64, nexmark.SellerBidRow]
	person   *state.Value[nexmark.Person]
	auctions *state.List[nexmark.Auction]
	bids     *state.List[nexmark.Bid]
}

func newSellerBids(rt *process.Runtime) *sellerBids {
	return &sellerBids{
		person: state.NewValue[nexmark.Person](rt, "person"), auctions: state.NewList[nexmark.Auction](rt, "auctions"),
		bids: state.NewList[nexmark.Bid](rt, "bids"),
	}
}

func (s *sellerBids) ProcessElement1(_ *process.KeyedContext[int64], e nexmark.Event, out *process.Collector[nexmark.SellerBidRow]) error {
	if e.Auction != nil {
		s.auctions.Add(*e.Auction)
		if p, ok := s.person.Lookup(); ok {
			for b := range s.bids.All() {
				out.Collect(nexmark.SellerBidRow{Bid: b, Person: p, Auction: *e.Auction})
			}
		}
		return nil
	}
	s.person.Set(*e.Person)
	for a := range s.auctions.All() {
		for b := range s.bids.All() {
			out.Collect(nexmark.SellerBidRow{Bid: b, Person: *e.Person, Auction: a})
		}
	}
	return nil
}

func (s *sellerBids) ProcessElement2(_ *process.KeyedContext[int64], b *nexmark.Bid, out *process.Collector[nexmark.SellerBidRow]) error {
	s.bids.Add(*b)
	if !s.auctions.Exists() {
		return nil
	}
	if p, ok := s.person.Lookup(); ok {
		for a := range s.auctions.All() {
			out.Collect(nexmark.SellerBidRow{Bid: *b, Person: p, Auction: a})
		}
	}
	return nil
}
