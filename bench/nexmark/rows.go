package nexmark

// The rows that queries give. Hash is what a row adds to the checksum of its query's result.

// BidRow is a row of queries 0, 1 and 7. Query 1 gives the price in another currency, in thousandths.
type BidRow struct {
	Auction, Bidder, Price, DateTime int64
	Extra                            string
}

// Hash implements Row.
func (r *BidRow) Hash() uint64 {
	return Hash(0).Int(r.Auction).Int(r.Bidder).Int(r.Price).Int(r.DateTime).Text(r.Extra).Sum()
}

// Row is what every row has.
type Row interface{ Hash() uint64 }

// PriceRow is a row of query 2.
type PriceRow struct{ Auction, Price int64 }

// Hash implements Row.
func (r *PriceRow) Hash() uint64 { return Hash(2).Int(r.Auction).Int(r.Price).Sum() }

// SellerRow is a row of query 3.
type SellerRow struct {
	Name, City, State string
	Auction           int64
}

// Hash implements Row.
func (r *SellerRow) Hash() uint64 {
	return Hash(3).Text(r.Name).Text(r.City).Text(r.State).Int(r.Auction).Sum()
}

// AverageRow is a row of query 4 (of a category) and of query 6 (of a seller).
type AverageRow struct{ Of, Average int64 }

// Hash implements Row.
func (r *AverageRow) Hash() uint64 { return Hash(4).Int(r.Of).Int(r.Average).Sum() }

// HotRow is a row of query 5: an auction that nobody has outdone in a window, with the number of its bids.
type HotRow struct{ Auction, Bids int64 }

// Hash implements Row.
func (r *HotRow) Hash() uint64 { return Hash(5).Int(r.Auction).Int(r.Bids).Sum() }

// NewcomerRow is a row of query 8: a person who came and offered in one window, and when that began.
type NewcomerRow struct {
	Person int64
	Name   string
	Start  int64
}

// Hash implements Row.
func (r *NewcomerRow) Hash() uint64 { return Hash(8).Int(r.Person).Text(r.Name).Int(r.Start).Sum() }

// WinnerRow is a row of query 9: an auction with its best bid.
type WinnerRow struct {
	Auction
	Bidder, Price, BidTime int64
	BidExtra               string
}

// Hash implements Row.
func (r *WinnerRow) Hash() uint64 {
	return r.Auction.hash(9).Int(r.Bidder).Int(r.Price).Int(r.BidTime).Text(r.BidExtra).Sum()
}

func (a *Auction) hash(h Hash) Hash {
	return h.Int(a.ID).Text(a.ItemName).Text(a.Description).Int(a.InitialBid).Int(a.Reserve).Int(a.DateTime).
		Int(a.Expires).Int(a.Seller).Int(a.Category).Text(a.Extra)
}

func (b *Bid) hash(h Hash) Hash {
	return h.Int(b.Auction).Int(b.Bidder).Int(b.Price).Int(b.DateTime).Text(b.Channel).Text(b.URL).Text(b.Extra)
}

func (p *Person) hash(h Hash) Hash {
	return h.Int(p.ID).Text(p.Name).Text(p.EmailAddress).Text(p.CreditCard).Text(p.City).Text(p.State).Int(p.DateTime).Text(p.Extra)
}

// SessionRow is a row of query 11: a stretch of a bidder's activity.
type SessionRow struct{ Bidder, Bids, Start, End int64 }

// Hash implements Row.
func (r *SessionRow) Hash() uint64 {
	return Hash(11).Int(r.Bidder).Int(r.Bids).Int(r.Start).Int(r.End).Sum()
}

// LookupRow is a row of query 13.
type LookupRow struct {
	Auction, Bidder, Price, DateTime int64
	Value                            string
}

// Hash implements Row.
func (r *LookupRow) Hash() uint64 {
	return Hash(13).Int(r.Auction).Int(r.Bidder).Int(r.Price).Int(r.DateTime).Text(r.Value).Sum()
}

// CalculationRow is a row of query 14.
type CalculationRow struct {
	Auction, Bidder, Price int64 // in thousandths
	TimeType               string
	DateTime               int64
	Extra                  string
	Cs                     int64
}

// Hash implements Row.
func (r *CalculationRow) Hash() uint64 {
	return Hash(14).Int(r.Auction).Int(r.Bidder).Int(r.Price).Text(r.TimeType).Int(r.DateTime).Text(r.Extra).Int(r.Cs).Sum()
}

// Ranks are figures by rank of price: the total, then those below Rank2, below Rank3, and the others.
type Ranks struct{ Total, Rank1, Rank2, Rank3 int64 }

// Where ranks of prices begin.
const (
	Rank2 = 10_000
	Rank3 = 1_000_000
)

// Add counts one of the rank.
func (r *Ranks) Add(rank int) {
	r.Total++
	switch rank {
	case 0:
		r.Rank1++
	case 1:
		r.Rank2++
	default:
		r.Rank3++
	}
}

// RankOf is the rank of a price: 0, 1 or 2.
func RankOf(price int64) int {
	switch {
	case price < Rank2:
		return 0
	case price < Rank3:
		return 1
	}
	return 2
}

func (h Hash) ranks(r *Ranks) Hash { return h.Int(r.Total).Int(r.Rank1).Int(r.Rank2).Int(r.Rank3) }

// ActivityRow is a row of query 15 (of a day) and of query 16 (of a channel and day, with the last minute): bids, distinct
// bidders and distinct auctions.
type ActivityRow struct {
	Channel, Day, Minute    string
	Bids, Bidders, Auctions Ranks
}

// Hash implements Row.
func (r *ActivityRow) Hash() uint64 {
	return Hash(15).Text(r.Channel).Text(r.Day).Text(r.Minute).ranks(&r.Bids).ranks(&r.Bidders).ranks(&r.Auctions).Sum()
}

// StatisticsRow is a row of query 17.
type StatisticsRow struct {
	Auction            int64
	Day                string
	Bids               Ranks
	Min, Max, Avg, Sum int64
}

// Hash implements Row.
func (r *StatisticsRow) Hash() uint64 {
	return Hash(17).Int(r.Auction).Text(r.Day).ranks(&r.Bids).Int(r.Min).Int(r.Max).Int(r.Avg).Int(r.Sum).Sum()
}

// RankedRow is a row of queries 18 and 19: a bid, and its place among those of the auction (0 in query 18).
type RankedRow struct {
	Bid
	Rank int64
}

// Hash implements Row.
func (r *RankedRow) Hash() uint64 { return r.Bid.hash(19).Int(r.Rank).Sum() }

// ExpandedRow is a row of query 20: a bid with its auction.
type ExpandedRow struct {
	Bid     Bid
	Auction Auction
}

// Hash implements Row.
func (r *ExpandedRow) Hash() uint64 { return r.Auction.hash(r.Bid.hash(20)).Sum() }

// ChannelRow is a row of query 21.
type ChannelRow struct {
	Auction, Bidder, Price int64
	Channel, ChannelID     string
}

// Hash implements Row.
func (r *ChannelRow) Hash() uint64 {
	return Hash(21).Int(r.Auction).Int(r.Bidder).Int(r.Price).Text(r.Channel).Text(r.ChannelID).Sum()
}

// PathRow is a row of query 22.
type PathRow struct {
	Auction, Bidder, Price  int64
	Channel                 string
	Folder1, Folder2, File3 string
}

// Hash implements Row.
func (r *PathRow) Hash() uint64 {
	return Hash(22).Int(r.Auction).Int(r.Bidder).Int(r.Price).Text(r.Channel).Text(r.Folder1).Text(r.Folder2).Text(r.File3).Sum()
}

// SellerBidRow is a row of query 23: a bid of a person, and an auction of the same person's.
type SellerBidRow struct {
	Bid     Bid
	Person  Person
	Auction Auction
}

// Hash implements Row.
func (r *SellerBidRow) Hash() uint64 {
	return r.Auction.hash(r.Person.hash(r.Bid.hash(23))).Sum()
}
