package nexmark

import "slices"

// Oracles of queries that group.

// Q5 says for each window which auctions have got the most bids.
func Q5(d *Data) (sum uint64) {
	windows := map[int64]map[int64]int64{} // by start, then auction
	for b := range d.Bids() {
		for start := b.DateTime / HotSlide * HotSlide; start > b.DateTime-HotWindow; start -= HotSlide {
			if windows[start] == nil {
				windows[start] = map[int64]int64{}
			}
			windows[start][b.Auction]++
		}
	}
	for _, counts := range windows {
		var most int64
		for _, n := range counts {
			most = max(most, n)
		}
		for auction, n := range counts {
			if n == most {
				sum += (&HotRow{auction, n}).Hash()
			}
		}
	}
	return sum
}

// Q7 is the highest bids: each window's highest price, joined with the bids of that price from its start to its end, both
// included.
func Q7(d *Data) (sum uint64) {
	highest := map[int64]int64{}
	for b := range d.Bids() {
		w := b.DateTime / TopWindow
		highest[w] = max(highest[w], b.Price)
	}
	for b := range d.Bids() {
		w := b.DateTime / TopWindow
		row := &BidRow{b.Auction, b.Bidder, b.Price, b.DateTime, b.Extra}
		if b.Price == highest[w] {
			sum += row.Hash()
		}
		if price, ok := highest[w-1]; ok && b.DateTime == w*TopWindow && b.Price == price {
			sum += row.Hash()
		}
	}
	return sum
}

// Q11 counts the bids of each bidder's sessions.
func Q11(d *Data) (sum uint64) {
	times := map[int64][]int64{}
	for b := range d.Bids() {
		times[b.Bidder] = append(times[b.Bidder], b.DateTime)
	}
	for bidder, ts := range times {
		slices.Sort(ts)
		for from, i := 0, 1; i <= len(ts); i++ {
			if i == len(ts) || ts[i] > ts[i-1]+SessionGap {
				sum += (&SessionRow{bidder, int64(i - from), ts[from], ts[i-1] + SessionGap}).Hash()
				from = i
			}
		}
	}
	return sum
}

// activity is an ActivityRow with what has been seen for it.
type activity struct {
	ActivityRow
	bidders, auctions map[ranked]bool
}

// ranked is an id seen at a rank of prices; rank -1 stands for all ranks.
type ranked struct {
	id   int64
	rank int
}

func newActivity(channel, day string) *activity {
	a := &activity{bidders: map[ranked]bool{}, auctions: map[ranked]bool{}}
	a.Channel, a.Day = channel, day
	return a
}

func (a *activity) add(b *Bid) {
	rank := RankOf(b.Price)
	a.Bids.Add(rank)
	distinct(a.bidders, &a.Bidders, b.Bidder, rank)
	distinct(a.auctions, &a.Auctions, b.Auction, rank)
}

func distinct(seen map[ranked]bool, n *Ranks, id int64, rank int) {
	if !seen[ranked{id, -1}] {
		seen[ranked{id, -1}] = true
		n.Total++
	}
	if !seen[ranked{id, rank}] {
		seen[ranked{id, rank}] = true
		*[...]*int64{&n.Rank1, &n.Rank2, &n.Rank3}[rank]++
	}
}

// Q15 counts each day's bids, bidders and auctions.
func Q15(d *Data) uint64 {
	rows := map[string]*activity{}
	for b := range d.Bids() {
		day := Day(b.DateTime)
		if rows[day] == nil {
			rows[day] = newActivity("", day)
		}
		rows[day].add(b)
	}
	return total(rows)
}

// Q16 counts each channel's bids, bidders and auctions of a day.
func Q16(d *Data) uint64 {
	type group struct{ channel, day string }
	rows := map[group]*activity{}
	for b := range d.Bids() {
		g := group{b.Channel, Day(b.DateTime)}
		if rows[g] == nil {
			rows[g] = newActivity(g.channel, g.day)
		}
		rows[g].add(b)
		rows[g].Minute = max(rows[g].Minute, Minute(b.DateTime))
	}
	return total(rows)
}

// Q17 is the statistics of each auction's bids of a day.
func Q17(d *Data) uint64 {
	type group struct {
		auction int64
		day     string
	}
	rows := map[group]*StatisticsRow{}
	for b := range d.Bids() {
		g := group{b.Auction, Day(b.DateTime)}
		r := rows[g]
		if r == nil {
			r = &StatisticsRow{Auction: g.auction, Day: g.day, Min: b.Price}
			rows[g] = r
		}
		r.Bids.Add(RankOf(b.Price))
		r.Min, r.Max, r.Sum = min(r.Min, b.Price), max(r.Max, b.Price), r.Sum+b.Price
		r.Avg = r.Sum / r.Bids.Total
	}
	return total(rows)
}

// Q18 is the last bid of each bidder on each auction.
func Q18(d *Data) (sum uint64) {
	type pair struct{ bidder, auction int64 }
	last := map[pair]*Bid{}
	for b := range d.Bids() {
		p := pair{b.Bidder, b.Auction}
		if last[p] == nil || b.Follows(last[p]) {
			last[p] = b
		}
	}
	for _, b := range last {
		sum += (&RankedRow{Bid: *b}).Hash()
	}
	return sum
}

// Q19 is the best bids of each auction.
func Q19(d *Data) (sum uint64) {
	bids := map[int64][]*Bid{}
	for b := range d.Bids() {
		bids[b.Auction] = append(bids[b.Auction], b)
	}
	for _, bs := range bids {
		slices.SortFunc(bs, func(a, b *Bid) int {
			switch {
			case a.Outbids(b):
				return -1
			case b.Outbids(a):
				return 1
			}
			return 0
		})
		for i, b := range bs[:min(len(bs), Best)] {
			sum += (&RankedRow{*b, int64(i + 1)}).Hash()
		}
	}
	return sum
}
