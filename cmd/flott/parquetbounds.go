package main

import (
	"unicode/utf8"

	"github.com/parquet-go/parquet-go"
)

// boundBytes is how long the least and the greatest value of a page or column are at most, which a Parquet file has several times:
// in the head of each page, in the index of the pages and in its footer.
const boundBytes = 64

// bounded is a type of bytes whose pages tell beginnings of their least and greatest value only. Whole ones would be in the file
// many times, uncompressed, and a state may have values of 100 MB. To leave them out is no way: the writer would say of each page
// then that all its values are the empty one, by which readers skip pages.
type bounded struct{ parquet.Type }

// NewColumnBuffer implements parquet.Type.
func (b bounded) NewColumnBuffer(column, values int) parquet.ColumnBuffer {
	return boundedBuffer{b.Type.NewColumnBuffer(column, values)}
}

type boundedBuffer struct{ parquet.ColumnBuffer }

// Page implements parquet.ColumnBuffer.
func (b boundedBuffer) Page() parquet.Page { return boundedPage{b.ColumnBuffer.Page()} }

type boundedPage struct{ parquet.Page }

// Bounds implements parquet.Page.
func (p boundedPage) Bounds() (least, most parquet.Value, ok bool) {
	if least, most, ok = p.Page.Bounds(); ok {
		column := p.Column()
		least = parquet.ByteArrayValue(atMost(least.ByteArray())).Level(0, 0, column)
		most = parquet.ByteArrayValue(atLeast(most.ByteArray())).Level(0, 0, column)
	}
	return least, most, ok
}

// beginning is the first bytes of b, as many as a bound may have, without a part of a character.
func beginning(b []byte) []byte {
	if len(b) <= boundBytes {
		return b
	}
	n := boundBytes
	for n > boundBytes-utf8.UTFMax && !utf8.RuneStart(b[n]) {
		n--
	}
	return b[:n]
}

// atMost is a short value that is not greater than b.
func atMost(b []byte) []byte { return beginning(b) }

// atLeast is a short value that is not less than b: the first one behind all that begin as b does. Texts become texts. There is
// none behind bytes that are all 255: then it is b.
func atLeast(b []byte) []byte {
	short := beginning(b)
	if len(short) == len(b) {
		return b
	}
	if utf8.Valid(short) {
		return nextText(short)
	}
	for n := len(short) - 1; n >= 0; n-- {
		if short[n] < 0xff {
			next := append([]byte(nil), short[:n+1]...)
			next[n]++
			return next
		}
	}
	return b
}

// nextText is the first text behind all that begin with a text, which is not empty.
func nextText(text []byte) []byte {
	for len(text) > 0 {
		r, n := utf8.DecodeLastRune(text)
		text = text[:len(text)-n]
		switch {
		case r == utf8.MaxRune:
			continue
		case r == surrogates-1:
			r = surrogatesEnd
		default:
			r++
		}
		return utf8.AppendRune(append([]byte(nil), text...), r)
	}
	return []byte{0xff} // no text is behind the last character, but these bytes are
}

// There are no characters from surrogates up to surrogatesEnd.
const (
	surrogates    = 0xd800
	surrogatesEnd = 0xe000
)
