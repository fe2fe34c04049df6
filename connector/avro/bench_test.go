package avro_test

import (
	"bytes"
	"io"
	"testing"

	"github.com/flott-dev/flott/connector/avro"
	"github.com/flott-dev/flott/connector/file/filetest"
	library "github.com/hamba/avro/v2"
)

// trade is a record of a plain kind.
type trade struct {
	ID     int64   `avro:"id"`
	At     int64   `avro:"at"`
	Symbol string  `avro:"symbol"`
	Price  float64 `avro:"price"`
	Count  int32   `avro:"count"`
	Venue  string  `avro:"venue"`
}

const tradeSchema = `{"type": "record", "name": "Trade", "fields": [
	{"name": "id", "type": "long"}, {"name": "at", "type": "long"}, {"name": "symbol", "type": "string"},
	{"name": "price", "type": "double"}, {"name": "count", "type": "int"}, {"name": "venue", "type": "string"}]}`

func trades(n int) []trade {
	ts := make([]trade, n)
	for i := range ts {
		ts[i] = trade{
			ID: int64(i), At: 1_600_000_000_000 + int64(i)*7, Symbol: []string{"AAA", "BBB", "CCC", "DDD"}[i*7%4],
			Price: float64(i*31%1000) / 8, Count: int32(i * 13 % 500), Venue: []string{"north", "south", "east", "west"}[i%4],
		}
	}
	return ts
}

const benchRows = 200_000

// BenchmarkWrite writes 200,000 records with the library alone, which makes no file of them, and as a sink does.
func BenchmarkWrite(b *testing.B) {
	rows := trades(benchRows)
	b.Run("library", func(b *testing.B) {
		s := library.MustParse(tradeSchema)
		for b.Loop() {
			w := library.NewWriter(io.Discard, 64<<10)
			for i := range rows {
				w.WriteVal(s, &rows[i])
				if w.Buffered() >= 64<<10 {
					if err := w.Flush(); err != nil {
						b.Fatal(err)
					}
				}
			}
		}
		b.ReportMetric(float64(b.N)*benchRows/b.Elapsed().Seconds(), "rows/s")
	})
	write := func(b *testing.B, opts ...avro.Option) {
		for b.Loop() {
			w, err := avro.Encoding[trade](tradeSchema, opts...).Open(io.Discard)
			if err != nil {
				b.Fatal(err)
			}
			for at := 0; at < len(rows); at += 256 {
				if err := w.Write(rows[at:min(at+256, len(rows))]); err != nil {
					b.Fatal(err)
				}
				w.Held() // as the sink does
			}
			if err := w.Close(); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(b.N)*benchRows/b.Elapsed().Seconds(), "rows/s")
	}
	b.Run("connector/null", func(b *testing.B) { write(b, avro.Compression(avro.Uncompressed)) })
	b.Run("connector/snappy", func(b *testing.B) { write(b) })
	b.Run("connector/zstd", func(b *testing.B) { write(b, avro.Compression(avro.Zstd)) })
	b.Run("connector/deflate", func(b *testing.B) { write(b, avro.Compression(avro.Deflate)) })
}

// BenchmarkRead reads 200,000 records with the library alone, from bytes without blocks, and as a source does.
func BenchmarkRead(b *testing.B) {
	rows := trades(benchRows)
	b.Run("library", func(b *testing.B) {
		s := library.MustParse(tradeSchema)
		w := library.NewWriter(nil, 1<<20)
		for i := range rows {
			w.WriteVal(s, &rows[i])
		}
		data := w.Buffer()
		b.SetBytes(int64(len(data)))
		for b.Loop() {
			r := library.NewReader(bytes.NewReader(data), 16<<10)
			var x trade
			for range rows {
				if r.ReadVal(s, &x); r.Error != nil {
					b.Fatal(r.Error)
				}
			}
		}
		b.ReportMetric(float64(b.N)*benchRows/b.Elapsed().Seconds(), "rows/s")
	})
	b.Run("connector", func(b *testing.B) {
		data := filetest.Pack(b, avro.Encoding[trade](tradeSchema), rows)
		b.SetBytes(int64(len(data)))
		m := filetest.Disk(b, map[string][]byte{"a": data})
		for b.Loop() {
			d, err := filetest.Start(avro.Source[trade]("a").On(m), 1, 512, nil)
			if err != nil {
				b.Fatal(err)
			}
			d.Drop = true
			if err := d.Run(); err != nil || d.Dropped != benchRows {
				b.Fatal(d.Dropped, err)
			}
		}
		b.ReportMetric(float64(b.N)*benchRows/b.Elapsed().Seconds(), "rows/s")
	})
}
