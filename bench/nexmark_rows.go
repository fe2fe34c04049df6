package main

import (
	"strings"

	"github.com/flott-dev/flott/bench/nexmark"
)

// Queries that look at one event at a time. Their rows are final.

// query0 passes bids through.
func query0(j *auctionJob) {
	sumRows(j, bids(j.events()).Map(func(b *nexmark.Bid) nexmark.BidRow {
		return nexmark.BidRow{Auction: b.Auction, Bidder: b.Bidder, Price: b.Price, DateTime: b.DateTime, Extra: b.Extra}
	}))
}

// query1 changes the currency of bids.
func query1(j *auctionJob) {
	sumRows(j, bids(j.events()).Map(func(b *nexmark.Bid) nexmark.BidRow {
		return nexmark.BidRow{
			Auction: b.Auction, Bidder: b.Bidder, Price: nexmark.Exchanged(b.Price), DateTime: b.DateTime, Extra: b.Extra,
		}
	}))
}

// query2 selects the bids on some auctions.
func query2(j *auctionJob) {
	sumRows(j, bids(j.events()).
		Filter(func(b *nexmark.Bid) bool { return b.Auction%123 == 0 }).
		Map(func(b *nexmark.Bid) nexmark.PriceRow { return nexmark.PriceRow{Auction: b.Auction, Price: b.Price} }))
}

// query13 looks bids up in a table, which all subtasks share.
func query13(j *auctionJob) {
	side := make(map[int64]string, len(j.data.Side))
	for _, s := range j.data.Side {
		side[s.Key] = s.Value
	}
	width := int64(len(j.data.Side))
	sumRows(j, bids(j.events()).FlatMap(func(b *nexmark.Bid, emit func(nexmark.LookupRow)) {
		if v, ok := side[b.Auction%width]; ok {
			emit(nexmark.LookupRow{Auction: b.Auction, Bidder: b.Bidder, Price: b.Price, DateTime: b.DateTime, Value: v})
		}
	}))
}

// query14 calculates.
func query14(j *auctionJob) {
	sumRows(j, bids(j.events()).
		Filter(func(b *nexmark.Bid) bool {
			price := nexmark.Exchanged(b.Price)
			return nexmark.LeastPrice < price && price < nexmark.MostPrice
		}).
		Map(func(b *nexmark.Bid) nexmark.CalculationRow {
			return nexmark.CalculationRow{
				Auction: b.Auction, Bidder: b.Bidder, Price: nexmark.Exchanged(b.Price), TimeType: nexmark.TimeType(b.DateTime),
				DateTime: b.DateTime, Extra: b.Extra, Cs: int64(strings.Count(b.Extra, "c")),
			}
		}))
}

// query21 adds the number of a bid's channel, if it has one.
func query21(j *auctionJob) {
	sumRows(j, bids(j.events()).FlatMap(func(b *nexmark.Bid, emit func(nexmark.ChannelRow)) {
		if id, ok := channelID(b); ok {
			emit(nexmark.ChannelRow{Auction: b.Auction, Bidder: b.Bidder, Price: b.Price, Channel: b.Channel, ChannelID: id})
		}
	}))
}

func channelID(b *nexmark.Bid) (string, bool) {
	switch {
	case strings.EqualFold(b.Channel, "apple"):
		return "0", true
	case strings.EqualFold(b.Channel, "google"):
		return "1", true
	case strings.EqualFold(b.Channel, "facebook"):
		return "2", true
	case strings.EqualFold(b.Channel, "baidu"):
		return "3", true
	}
	const name = "&channel_id="
	i := strings.Index(b.URL, name)
	if i < 0 {
		return "", false
	}
	id, _, _ := strings.Cut(b.URL[i+len(name):], "&")
	return id, true
}

// query22 splits URLs.
func query22(j *auctionJob) {
	sumRows(j, bids(j.events()).Map(func(b *nexmark.Bid) nexmark.PathRow {
		_, path, _ := strings.Cut(b.URL, "://")
		_, path, _ = strings.Cut(path, "/")
		folder1, path, _ := strings.Cut(path, "/")
		folder2, path, _ := strings.Cut(path, "/")
		file3, _, _ := strings.Cut(path, "/")
		return nexmark.PathRow{
			Auction: b.Auction, Bidder: b.Bidder, Price: b.Price, Channel: b.Channel,
			Folder1: folder1, Folder2: folder2, File3: file3,
		}
	}))
}
