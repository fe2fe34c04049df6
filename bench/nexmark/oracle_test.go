package nexmark

import "testing"

// data are hand-made events.
func data(xs ...any) *Data {
	d := new(Data)
	for _, x := range xs {
		switch x := x.(type) {
		case Bid:
			d.Events = append(d.Events, Event{Bid: &x})
		case Auction:
			d.Events = append(d.Events, Event{Auction: &x})
		case Person:
			d.Events = append(d.Events, Event{Person: &x})
		}
	}
	return d
}

func sum(rows ...Row) (sum uint64) {
	for _, r := range rows {
		sum += r.Hash()
	}
	return sum
}

func TestOraclesGiveTheRowsThatTheQueriesSay(t *testing.T) {
	bid := func(auction, bidder, price, at int64, extra string) Bid {
		return Bid{Auction: auction, Bidder: bidder, Price: price, DateTime: at, Extra: extra}
	}
	ranked := func(b Bid, rank int64) *RankedRow { return &RankedRow{b, rank} }
	row := func(b Bid) *BidRow { return &BidRow{b.Auction, b.Bidder, b.Price, b.DateTime, b.Extra} }
	early, late := bid(1, 7, 50, 9_999, "a"), bid(2, 7, 50, 10_000, "b")
	tie := bid(1, 8, 50, 9_999, "b")
	for _, c := range []struct {
		name   string
		oracle func(*Data) uint64
		data   *Data
		want   uint64
	}{
		// The window from 0 on has a bid on each auction, the four after it have two on the second, the last one has one.
		{
			"ties and windows of query 5", Q5,
			data(bid(1, 0, 1, 8_000, ""), bid(2, 0, 1, 8_000, ""), bid(2, 0, 1, 10_000, "")),
			sum(&HotRow{1, 1}, &HotRow{2, 1}) + 4*sum(&HotRow{2, 2}) + sum(&HotRow{2, 1}),
		},
		{"the end of a window of query 7 belongs to it", Q7, data(early, late, bid(3, 7, 60, 12_000, "c")), sum(row(early), row(late), &BidRow{3, 7, 60, 12_000, "c"})},
		{
			"sessions that touch are one", Q11,
			data(bid(1, 7, 1, 20_000, ""), bid(2, 7, 1, 0, ""), bid(2, 7, 1, 10_000, ""), bid(2, 7, 1, 30_001, "")),
			sum(&SessionRow{7, 3, 0, 30_000}, &SessionRow{7, 1, 30_001, 40_001}),
		},
		{
			"persons and offers of one window", Q8,
			data(Person{ID: 1, Name: "x", DateTime: 9_999}, Auction{ID: 5, Seller: 1, DateTime: 0}, Auction{ID: 6, Seller: 1, DateTime: 1},
				Person{ID: 2, DateTime: 10_000}, Auction{ID: 7, Seller: 2, DateTime: 9_000}),
			sum(&NewcomerRow{1, "x", 0}),
		},
		{
			"bids within an auction's time", Q9,
			data(bid(5, 1, 99, 9, ""), bid(5, 2, 50, 10, "a"), Auction{ID: 5, DateTime: 10, Expires: 20}, bid(5, 3, 50, 20, ""), bid(5, 4, 99, 21, "")),
			sum(&WinnerRow{Auction{ID: 5, DateTime: 10, Expires: 20}, 2, 50, 10, "a"}),
		},
		{
			"averages of categories", Q4,
			data(Auction{ID: 5, Category: 3, Expires: 20}, Auction{ID: 6, Category: 3, Expires: 20}, bid(5, 1, 10, 1, ""), bid(5, 1, 20, 1, ""), bid(6, 1, 31, 1, "")),
			sum(&AverageRow{3, 25}),
		},
		{
			"averages of sellers in the order of closing", Q6,
			data(Auction{ID: 5, Seller: 3, Expires: 30}, Auction{ID: 6, Seller: 3, Expires: 20}, bid(5, 1, 10, 1, ""), bid(6, 1, 30, 1, "")),
			sum(&AverageRow{3, 30}, &AverageRow{3, 20}),
		},
		{
			"distinct bidders and auctions by rank", Q15,
			data(bid(1, 7, 9_999, 0, ""), bid(1, 7, 10_000, 0, ""), bid(1, 8, 1_000_000, 0, ""), bid(2, 8, 1_000_000, 0, "")),
			sum(&ActivityRow{Day: "1970-01-01", Bids: Ranks{4, 1, 1, 2}, Bidders: Ranks{2, 1, 1, 1}, Auctions: Ranks{2, 1, 1, 2}}),
		},
		{
			"statistics", Q17, data(bid(1, 0, 10, 0, ""), bid(1, 0, 15, 1, ""), bid(1, 0, 20_000, dayMillis, "")),
			sum(&StatisticsRow{1, "1970-01-01", Ranks{2, 2, 0, 0}, 10, 15, 12, 25}, &StatisticsRow{1, "1970-01-02", Ranks{1, 0, 1, 0}, 20_000, 20_000, 20_000, 20_000}),
		},
		{"the last of equal times", Q18, data(tie, bid(1, 8, 40, 9_999, "z"), bid(1, 8, 99, 9_998, "z")), sum(ranked(tie, 0))},
		{"the best of equal prices", Q19, data(tie, early, bid(1, 9, 60, 10_000, "")), sum(ranked(bid(1, 9, 60, 10_000, ""), 1), ranked(early, 2), ranked(tie, 3))},
		{
			"joins of three", Q23,
			data(bid(1, 7, 1, 0, "a"), Person{ID: 7}, Auction{ID: 5, Seller: 7}, Auction{ID: 6, Seller: 7}, Auction{ID: 8, Seller: 9}, bid(1, 9, 1, 0, "")),
			sum(&SellerBidRow{bid(1, 7, 1, 0, "a"), Person{ID: 7}, Auction{ID: 5, Seller: 7}}, &SellerBidRow{bid(1, 7, 1, 0, "a"), Person{ID: 7}, Auction{ID: 6, Seller: 7}}),
		},
	} {
		if got := c.oracle(c.data); got != c.want {
			t.Errorf("%s: checksum %d, want %d", c.name, got, c.want)
		}
	}
}

func TestTenBidsAreTheBest(t *testing.T) {
	var xs []any
	var want uint64
	for price := range int64(Best + 2) {
		b := Bid{Auction: 1, Price: price}
		xs = append(xs, b)
		if rank := Best + 2 - price; rank <= Best {
			want += (&RankedRow{b, rank}).Hash()
		}
	}
	if got := Q19(data(xs...)); got != want {
		t.Errorf("checksum %d, want %d", got, want)
	}
}

func TestHoursAreDayNightOrOther(t *testing.T) {
	for hour, want := range map[int64]string{
		0: "nightTime", 6: "nightTime", 7: "otherTime", 8: "dayTime", 18: "dayTime", 19: "otherTime", 20: "nightTime", 23: "nightTime",
	} {
		if got := TimeType(Midnight + hour*60*minuteMillis + 59*minuteMillis); got != want {
			t.Errorf("hour %d: %s, want %s", hour, got, want)
		}
	}
}

func TestEveryColumnIsInTheHash(t *testing.T) {
	a, b := Bid{1, 2, 3, 4, "abcdefghi", "", "x"}, Bid{1, 2, 3, 4, "abcdefghi", "", "x"}
	for name, change := range map[string]func(){
		"Auction": func() { b.Auction++ }, "Bidder": func() { b.Bidder++ }, "Price": func() { b.Price++ }, "DateTime": func() { b.DateTime++ },
		"Channel": func() { b.Channel = "abcdefghj" }, "URL": func() { b.URL, b.Extra = "x", "" }, "Extra": func() { b.Extra = "a text of nineteen." },
	} {
		b = a
		change()
		if (&RankedRow{Bid: a}).Hash() == (&RankedRow{Bid: b}).Hash() {
			t.Errorf("a change of %s changes nothing", name)
		}
	}
}
