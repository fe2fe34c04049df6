// Package nexmark is the Nexmark benchmark without an engine: its model of online auctions, a generator of events, and for
// every query a naive single-threaded oracle, written with Go's own maps, that says which rows the query must give. The
// package imports nothing of Flott; the program bench runs the queries as Flott programs over the same events and compares
// their checksums with the oracles'.
package nexmark

import "fmt"

// Person is somebody who offers or bids. Times are ms since 1970.
type Person struct {
	ID           int64
	Name         string
	EmailAddress string
	CreditCard   string
	City         string
	State        string
	DateTime     int64
	Extra        string
}

// Auction is an item that is offered until Expires.
type Auction struct {
	ID          int64
	ItemName    string
	Description string
	InitialBid  int64 // cents, as all prices
	Reserve     int64
	DateTime    int64
	Expires     int64
	Seller      int64
	Category    int64
	Extra       string
}

// Bid is an offer for an auction's item.
type Bid struct {
	Auction  int64
	Bidder   int64
	Price    int64
	DateTime int64
	Channel  string
	URL      string
	Extra    string
}

// Event is what happens: exactly one of the three. It points to what the generator has made, which never changes: three
// words go through a stream at a quarter of what a bid by value would cost, and a bid is looked at only where it is needed.
// An engine that sends events to other processes encodes what they point to.
type Event struct {
	Person  *Person
	Auction *Auction
	Bid     *Bid
}

// IsPerson says whether the event is a new person.
func (e Event) IsPerson() bool { return e.Person != nil }

// IsAuction says whether the event is a new auction.
func (e Event) IsAuction() bool { return e.Auction != nil }

// IsBid says whether the event is a bid.
func (e Event) IsBid() bool { return e.Bid != nil }

// Millis is the event's time in ms since 1970.
func (e *Event) Millis() int64 {
	switch {
	case e.Bid != nil:
		return e.Bid.DateTime
	case e.Auction != nil:
		return e.Auction.DateTime
	}
	return e.Person.DateTime
}

// Proportions of events: of Epoch events in a row one is a person, three are auctions, the others are bids.
const (
	Epoch    = 50
	persons  = 1
	auctions = 3
)

// Ids of the first ones.
const (
	FirstPerson   = 1000
	FirstAuction  = 1000
	FirstCategory = 10
	categories    = 5
)

// Midnight is the time of event 0 unless said otherwise: midnight of 15 July 2015, in ms since 1970.
const Midnight = 1436918400000

// Sizes in bytes that a record of each kind has on average: what its fields lack is made up by Extra.
const (
	personBytes  = 200
	auctionBytes = 500
	bidBytes     = 100
)

// Who and what is hot: one of so many persons or auctions, to which most bids and offers go.
const (
	hotStride      = 100
	hotSellers     = 4 // 3 of 4 auctions are offered by a hot seller
	hotAuctions    = 2 // 1 of 2 bids goes to a hot auction
	hotBidders     = 4 // 3 of 4 bids come from a hot bidder
	activePeople   = 1000
	personLead     = 10 // how many persons that are yet to come may be meant
	inFlight       = 100
	auctionLead    = 10 // how many auctions that are yet to come may be bid on
	channels       = 10_000
	bidderQuirk    = FirstPerson // the original adds the first person's id twice
	sideInputWidth = 10_000
)

// Config says which events are made. The same configuration gives the same events.
type Config struct {
	Events int    // how many
	Rate   int    // events per second of event time; default DefaultRate
	Start  int64  // time of event 0, ms since 1970; default Midnight
	Group  int    // events within a group of so many come out of order; default 1: in order. Not a multiple of 953.
	Seed   uint64 // of all choices
}

// DefaultRate is a tenth of the original's: with it, windows of ten seconds matter.
const DefaultRate = 100_000

func (c Config) check() (Config, error) {
	if c.Rate == 0 {
		c.Rate = DefaultRate
	}
	if c.Start == 0 {
		c.Start = Midnight
	}
	if c.Group == 0 {
		c.Group = 1
	}
	if c.Events < 0 || c.Rate < 0 || c.Group < 0 || c.Group > 1 && c.Group%shuffle == 0 {
		return c, fmt.Errorf("generate events: %+v has a number that is not possible", c)
	}
	return c, nil
}
