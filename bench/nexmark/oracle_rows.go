package nexmark

import "strings"

// Oracles of queries that look at one event at a time.

// Q0 passes bids through.
func Q0(d *Data) (sum uint64) {
	for b := range d.Bids() {
		sum += (&BidRow{b.Auction, b.Bidder, b.Price, b.DateTime, b.Extra}).Hash()
	}
	return sum
}

// Q1 changes the currency of bids.
func Q1(d *Data) (sum uint64) {
	for b := range d.Bids() {
		sum += (&BidRow{b.Auction, b.Bidder, Exchanged(b.Price), b.DateTime, b.Extra}).Hash()
	}
	return sum
}

// Q2 selects the bids on some auctions.
func Q2(d *Data) (sum uint64) {
	for b := range d.Bids() {
		if b.Auction%123 == 0 {
			sum += (&PriceRow{b.Auction, b.Price}).Hash()
		}
	}
	return sum
}

// Q10 writes bids into a partition for each minute. A row of the checksum is a line of a file with the partition's name.
func Q10(d *Data) (sum uint64) {
	for b := range d.Bids() {
		line := AppendLine(nil, b)
		sum += Hash(10).Text(Day(b.DateTime) + "/" + Minute(b.DateTime)).Text(string(line)).Sum()
	}
	return sum
}

// Q12 counts bids in windows of processing time: no result is the right one, but all counts add up to this number.
func Q12(d *Data) (n uint64) {
	for range d.Bids() {
		n++
	}
	return n
}

// Q13 looks bids up in a table.
func Q13(d *Data) (sum uint64) {
	side := map[int64]string{}
	for _, s := range d.Side {
		side[s.Key] = s.Value
	}
	for b := range d.Bids() {
		if v, ok := side[b.Auction%sideInputWidth]; ok {
			sum += (&LookupRow{b.Auction, b.Bidder, b.Price, b.DateTime, v}).Hash()
		}
	}
	return sum
}

// Q14 calculates.
func Q14(d *Data) (sum uint64) {
	for b := range d.Bids() {
		price := Exchanged(b.Price)
		if LeastPrice < price && price < MostPrice {
			cs := int64(strings.Count(b.Extra, "c"))
			sum += (&CalculationRow{b.Auction, b.Bidder, price, TimeType(b.DateTime), b.DateTime, b.Extra, cs}).Hash()
		}
	}
	return sum
}

// Q21 adds the number of a bid's channel, if it has one.
func Q21(d *Data) (sum uint64) {
	numbers := map[string]string{"apple": "0", "google": "1", "facebook": "2", "baidu": "3"}
	for b := range d.Bids() {
		id, ok := numbers[strings.ToLower(b.Channel)]
		if !ok {
			_, id, ok = strings.Cut(b.URL, "&channel_id=")
			id, _, _ = strings.Cut(id, "&")
		}
		if ok {
			sum += (&ChannelRow{b.Auction, b.Bidder, b.Price, b.Channel, id}).Hash()
		}
	}
	return sum
}

// Q22 splits URLs.
func Q22(d *Data) (sum uint64) {
	for b := range d.Bids() {
		p := strings.Split(b.URL, "/")
		sum += (&PathRow{b.Auction, b.Bidder, b.Price, b.Channel, p[3], p[4], p[5]}).Hash()
	}
	return sum
}
