package nexmark

import (
	"cmp"
	"slices"
)

// Oracles of queries that join.

// Q3 says who in three states sells in the first category.
func Q3(d *Data) (sum uint64) {
	people := d.people()
	for _, a := range d.auctions() {
		p := people[a.Seller]
		if a.Category == FirstCategory && p != nil && (p.State == "OR" || p.State == "ID" || p.State == "CA") {
			sum += (&SellerRow{p.Name, p.City, p.State, a.ID}).Hash()
		}
	}
	return sum
}

// winners are the best bids of auctions that have one.
func (d *Data) winners() map[*Auction]*Bid {
	auctions, best := d.auctions(), map[*Auction]*Bid{}
	for b := range d.Bids() {
		a := auctions[b.Auction]
		if a != nil && a.Takes(b) && (best[a] == nil || b.Outbids(best[a])) {
			best[a] = b
		}
	}
	return best
}

// Q4 is the average of the winning prices of each category.
func Q4(d *Data) (sum uint64) {
	prices, counts := map[int64]int64{}, map[int64]int64{}
	for a, b := range d.winners() {
		prices[a.Category] += b.Price
		counts[a.Category]++
	}
	for c, n := range counts {
		sum += (&AverageRow{c, prices[c] / n}).Hash()
	}
	return sum
}

// Q6 is, for each auction that closes with a bid, the average of its seller's last winning prices.
func Q6(d *Data) (sum uint64) {
	winners := d.winners()
	closed := map[int64][]*Auction{}
	for a := range winners {
		closed[a.Seller] = append(closed[a.Seller], a)
	}
	for seller, as := range closed {
		slices.SortFunc(as, func(a, b *Auction) int {
			return cmp.Or(cmp.Compare(a.Expires, b.Expires), cmp.Compare(a.ID, b.ID))
		})
		for i := range as {
			last := as[max(0, i+1-Best) : i+1]
			var prices int64
			for _, a := range last {
				prices += winners[a].Price
			}
			sum += (&AverageRow{seller, prices / int64(len(last))}).Hash()
		}
	}
	return sum
}

// Q8 says which persons have come and offered something in the same window.
func Q8(d *Data) (sum uint64) {
	type offer struct{ person, window int64 }
	offers := map[offer]bool{}
	for _, a := range d.auctions() {
		offers[offer{a.Seller, a.DateTime / NewWindow}] = true
	}
	for _, p := range d.people() {
		if w := p.DateTime / NewWindow; offers[offer{p.ID, w}] {
			sum += (&NewcomerRow{p.ID, p.Name, w * NewWindow}).Hash()
		}
	}
	return sum
}

// Q9 is the winning bid of each auction.
func Q9(d *Data) (sum uint64) {
	for a, b := range d.winners() {
		sum += (&WinnerRow{*a, b.Bidder, b.Price, b.DateTime, b.Extra}).Hash()
	}
	return sum
}

// Q20 expands bids by their auctions, if these are of the first category.
func Q20(d *Data) (sum uint64) {
	auctions := d.auctions()
	for b := range d.Bids() {
		if a := auctions[b.Auction]; a != nil && a.Category == FirstCategory {
			sum += (&ExpandedRow{*b, *a}).Hash()
		}
	}
	return sum
}

// Q23 joins the bids of persons who sell as well with all that they sell.
func Q23(d *Data) (sum uint64) {
	people, offers := d.people(), map[int64][]*Auction{}
	for _, a := range d.auctions() {
		offers[a.Seller] = append(offers[a.Seller], a)
	}
	for b := range d.Bids() {
		if p := people[b.Bidder]; p != nil {
			for _, a := range offers[b.Bidder] {
				sum += (&SellerBidRow{*b, *p, *a}).Hash()
			}
		}
	}
	return sum
}
