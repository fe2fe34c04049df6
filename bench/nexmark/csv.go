package nexmark

import (
	"strconv"
	"time"
)

// AppendLine appends a bid as query 10 writes it: a line of comma-separated values.
func AppendLine(dst []byte, b *Bid) []byte {
	dst = strconv.AppendInt(dst, b.Auction, 10)
	dst = append(dst, ',')
	dst = strconv.AppendInt(dst, b.Bidder, 10)
	dst = append(dst, ',')
	dst = strconv.AppendInt(dst, b.Price, 10)
	dst = append(dst, ',')
	dst = appendTime(dst, b.DateTime)
	dst = append(dst, ',')
	dst = append(dst, b.Extra...) // letters only: nothing to quote
	return append(dst, '\n')
}

func appendTime(dst []byte, ms int64) []byte {
	return time.UnixMilli(ms).UTC().AppendFormat(dst, "2006-01-02 15:04:05.000")
}
