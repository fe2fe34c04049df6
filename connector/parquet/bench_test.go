package parquet_test

import (
	"bytes"
	"io"
	"testing"

	"github.com/flott-dev/flott/connector/file/filetest"
	"github.com/flott-dev/flott/connector/parquet"
	pq "github.com/parquet-go/parquet-go"
)

// trade is a row of a plain kind.
type trade struct {
	ID     int64   `parquet:"id,delta"`
	At     int64   `parquet:"at"`
	Symbol string  `parquet:"symbol,dict"`
	Price  float64 `parquet:"price"`
	Count  int32   `parquet:"count"`
	Venue  string  `parquet:"venue"`
}

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

// BenchmarkWrite writes 200,000 rows with the library alone and as a sink does.
func BenchmarkWrite(b *testing.B) {
	rows := trades(benchRows)
	b.Run("library", func(b *testing.B) {
		for b.Loop() {
			w := pq.NewGenericWriter[trade](io.Discard, pq.Compression(&pq.Snappy))
			for at := 0; at < len(rows); at += 256 {
				if _, err := w.Write(rows[at:min(at+256, len(rows))]); err != nil {
					b.Fatal(err)
				}
			}
			if err := w.Close(); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(b.N)*benchRows/b.Elapsed().Seconds(), "rows/s")
	})
	b.Run("connector", func(b *testing.B) {
		for b.Loop() {
			w, err := parquet.Encoding[trade]().Open(io.Discard)
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
	})
}

// BenchmarkRead reads 200,000 rows with the library alone and as a source does.
func BenchmarkRead(b *testing.B) {
	data := filetest.Pack(b, parquet.Encoding[trade](), trades(benchRows))
	b.Run("library", func(b *testing.B) {
		b.SetBytes(int64(len(data)))
		buf := make([]trade, 256)
		for b.Loop() {
			r := pq.NewGenericReader[trade](bytes.NewReader(data))
			n := 0
			for {
				m, err := r.Read(buf)
				if n += m; err == io.EOF {
					break
				} else if err != nil {
					b.Fatal(err)
				}
			}
			if n != benchRows || r.Close() != nil {
				b.Fatal(n)
			}
		}
		b.ReportMetric(float64(b.N)*benchRows/b.Elapsed().Seconds(), "rows/s")
	})
	b.Run("connector", func(b *testing.B) {
		b.SetBytes(int64(len(data)))
		m := filetest.Disk(b, map[string][]byte{"a": data})
		for b.Loop() {
			d, err := filetest.Start(parquet.Source[trade]("a").On(m), 1, 512, nil)
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
