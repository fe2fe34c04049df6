package nexmark

import (
	"cmp"
	"iter"
	"strings"
	"time"
)

// Sizes of windows in ms.
const (
	HotWindow  = 10_000 // of query 5
	HotSlide   = 2_000
	TopWindow  = 10_000 // of query 7
	NewWindow  = 10_000 // of query 8
	SessionGap = 10_000 // of query 11
)

const (
	dayMillis    = 24 * 60 * minuteMillis
	minuteMillis = 60_000
)

// Best is how many bids query 19 wants for each auction, and how many closings query 6 takes the average of.
const Best = 10

// Bids are the bids among the events, in their order.
func (d *Data) Bids() iter.Seq[*Bid] {
	return func(yield func(*Bid) bool) {
		for _, e := range d.Events {
			if e.Bid != nil && !yield(e.Bid) {
				return
			}
		}
	}
}

// people are the persons by id.
func (d *Data) people() map[int64]*Person {
	m := map[int64]*Person{}
	for _, e := range d.Events {
		if e.Person != nil {
			m[e.Person.ID] = e.Person
		}
	}
	return m
}

// auctions are the auctions by id.
func (d *Data) auctions() map[int64]*Auction {
	m := map[int64]*Auction{}
	for _, e := range d.Events {
		if e.Auction != nil {
			m[e.Auction.ID] = e.Auction
		}
	}
	return m
}

// Takes says whether a bid comes within the auction's time.
func (a *Auction) Takes(b *Bid) bool { return a.DateTime <= b.DateTime && b.DateTime <= a.Expires }

// Outbids is the order of queries 9 and 19: the higher price, then the earlier time. Where the queries leave ties open,
// other columns decide, so that there is one right answer.
func (b *Bid) Outbids(o *Bid) bool {
	return cmp.Or(cmp.Compare(b.Price, o.Price), cmp.Compare(o.DateTime, b.DateTime), cmp.Compare(o.Bidder, b.Bidder),
		strings.Compare(o.Extra, b.Extra)) > 0
}

// Follows is the order of query 18: the later time; ties are broken as by Outbids.
func (b *Bid) Follows(o *Bid) bool {
	return cmp.Or(cmp.Compare(b.DateTime, o.DateTime), cmp.Compare(b.Price, o.Price), cmp.Compare(b.Extra, o.Extra)) > 0
}

// Day is the day of a time, as 2015-07-15.
func Day(ms int64) string { return time.UnixMilli(ms).UTC().Format(time.DateOnly) }

// Minute is the minute of a time, as 23:59.
func Minute(ms int64) string { return time.UnixMilli(ms).UTC().Format("15:04") }

// TimeType says of a time, in the words of query 14, whether it is day.
func TimeType(ms int64) string {
	switch hour := ms % dayMillis / (60 * minuteMillis); {
	case 8 <= hour && hour <= 18:
		return "dayTime"
	case hour <= 6 || hour >= 20:
		return "nightTime"
	}
	return "otherTime"
}

// Bounds of query 14, in thousandths of query 1's currency.
const (
	LeastPrice = 1_000_000_000
	MostPrice  = 50_000_000_000
)

// Exchanged is a price in the currency of queries 1 and 14, in thousandths.
func Exchanged(price int64) int64 { return price * 908 }

// total is the checksum of rows by key.
func total[K comparable, R Row](rows map[K]R) (sum uint64) {
	for _, r := range rows {
		sum += r.Hash()
	}
	return sum
}
