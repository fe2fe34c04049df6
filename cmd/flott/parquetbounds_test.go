package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/parquet-go/parquet-go"

	"github.com/flott-dev/flott/checkpoint"
)

func TestBoundsAreShortAndBound(t *testing.T) {
	long := func(s string) []byte { return []byte(strings.Repeat(s, 100)) }
	all := [][]byte{
		nil, []byte("a"), long("a"), long("é"), long("€"), long("\U0001f600"), long("\ud7ff"), long("\U0010ffff"), long("\xff"),
		append(long("a")[:63], long("€")...), append(long("\xff")[:20], long("a")...), append(long("\xff")[:70], 1), long("\x80"),
		append(long("a")[:60], long("\U0010ffff")...),
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		b := make([]byte, rnd.IntN(200))
		for i := range b {
			b[i] = []byte{0, 'a', 0x7f, 0x80, 0xc3, 0xed, 0xef, 0xf4, 0xff}[rnd.IntN(9)]
		}
		all = append(all, b)
	}
	for _, b := range all {
		least, most := atMost(b), atLeast(b)
		if bytes.Compare(least, b) > 0 || bytes.Compare(most, b) < 0 {
			t.Errorf("%q is not from %q to %q", b, least, most)
		}
		if len(least) > boundBytes || len(most) > boundBytes && !bytes.HasPrefix(b, long("\xff")[:boundBytes-utf8.UTFMax]) {
			t.Errorf("bounds of %q: %d and %d bytes", b, len(least), len(most))
		}
		if utf8.Valid(b) && (!utf8.Valid(least) || !utf8.Valid(most) && !bytes.Equal(most, []byte{0xff})) {
			t.Errorf("bounds of the text %q are none: %q, %q", b, least, most)
		}
	}
}

// blobs takes a snapshot of values of a megabyte, of a text and of bytes.
func blobs(t *testing.T, n int) (at string) {
	t.Helper()
	type blob struct {
		Text string
		Data []byte
		Opt  *string
	}
	values := func(yield func(string, blob) bool) {
		for i := range n {
			text := strings.Repeat(string(rune('a'+i)), 1<<20)
			if !yield(text[:1+i*100_000], blob{text, []byte(text), &text}) {
				return
			}
		}
	}
	d := checkpoint.NewDraft("job")
	if err := d.Operator("all").SetValues("deep", values); err != nil {
		t.Fatal(err)
	}
	at = t.TempDir() + "/savepoint-1"
	if err := d.Write(t.Context(), nil, at); err != nil {
		t.Fatal(err)
	}
	return at
}

// A Parquet file has the bounds of each column and page several times, uncompressed.
func TestParquetOfLargeValuesIsNoLargerThanThese(t *testing.T) {
	const n = 8
	text := must(t, "savepoint", "dump", blobs(t, n), "-operator", "all", "-state", "deep", "-format", "parquet")
	if len(text) > 64<<10 {
		t.Errorf("%d values that compress well make a file of %d bytes", n, len(text))
	}
	file, err := parquet.OpenFile(strings.NewReader(text), int64(len(text)))
	if err != nil {
		t.Fatal(err)
	}
	for _, column := range file.Metadata().RowGroups[0].Columns {
		s := column.MetaData.Statistics
		if len(s.MinValue) == 0 || len(s.MinValue) > boundBytes || len(s.MaxValue) > boundBytes || bytes.Compare(s.MinValue, s.MaxValue) >= 0 {
			t.Errorf("%v: from %.80q to %.80q", column.MetaData.PathInSchema, s.MinValue, s.MaxValue)
		}
		if last := string(rune('a' + n - 1)); !bytes.HasPrefix(s.MaxValue, []byte(last)) || !bytes.HasPrefix(s.MinValue, []byte("a")) {
			t.Errorf("%v: from %.80q to %.80q", column.MetaData.PathInSchema, s.MinValue, s.MaxValue)
		}
	}
	rows, err := parquet.Read[struct {
		Key   string `parquet:"key"`
		Value struct {
			Text string  `parquet:"Text"`
			Data []byte  `parquet:"Data"`
			Opt  *string `parquet:"Opt"`
		} `parquet:"value"`
	}](strings.NewReader(text), int64(len(text)))
	if err != nil || len(rows) != n {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	for _, r := range rows {
		if want := strings.Repeat(r.Key[:1], 1<<20); r.Value.Text != want || string(r.Value.Data) != want || *r.Value.Opt != want {
			t.Errorf("a row of %q is not as it was", r.Key[:1])
		}
	}
}

func TestTimesOfAllYearsAreMicroseconds(t *testing.T) {
	for _, at := range []time.Time{
		time.Unix(0, 0), time.Unix(1, 5000), time.Unix(-1, 999_999_000), time.Date(9999, 12, 31, 23, 59, 59, 999_999_000, time.UTC),
		time.Date(10_000, 1, 1, 0, 0, 0, 1000, time.UTC), time.Date(12_345, 2, 28, 1, 2, 3, 0, time.FixedZone("", 5400)),
		time.Date(12_000, 2, 29, 0, 0, 0, 0, time.UTC), time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(-1, 12, 31, 0, 0, 0, 0, time.UTC),
		time.Date(-400, 2, 29, 0, 0, 0, 0, time.UTC), time.Date(-4713, 11, 24, 12, 0, 0, 0, time.UTC),
		time.Date(294_000, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(-290_000, 1, 1, 0, 0, 0, 0, time.UTC),
	} {
		text := at.UTC().Format(time.RFC3339Nano)
		if got, err := unixMicro(text); err != nil || got != at.UnixMicro() {
			t.Errorf("%s: %d, %v, want %d", text, got, err, at.UnixMicro())
		}
	}
	for _, year := range []int{-300_000, 300_000, 292_000_000_000} {
		text := time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC).Format(time.RFC3339Nano)
		if got, err := unixMicro(text); err == nil || !strings.Contains(err.Error(), text) || !strings.Contains(err.Error(), "dump it as jsonl or csv") {
			t.Errorf("%s: %d, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "-", "x-01-01T00:00:00Z", "2026-13-01T00:00:00Z"} {
		if got, err := unixMicro(text); err == nil {
			t.Errorf("%q: %d", text, got)
		}
	}
}

// Strings that are no UTF-8, and those that look like what stands for them, are different in all formats and can be read again.
func TestDumpsTellStringsApart(t *testing.T) {
	keys := []string{"\xff", "\xfe", "\ufffd", `{"base64":"/w=="}`, "plain"}
	names := map[string]string{
		"\xff": `{"base64":"/w=="}`, "\xfe": `{"base64":"/g=="}`, "\ufffd": "\ufffd", "plain": "plain",
		`{"base64":"/w=="}`: `{"base64":"eyJiYXNlNjQiOiIvdz09In0="}`,
	}
	d := checkpoint.NewDraft("job")
	err := d.Operator("all").SetValues("deep", func(yield func(string, map[string]string) bool) {
		for _, k := range keys {
			if !yield(k, map[string]string{k: k}) {
				return
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	at := t.TempDir() + "/savepoint-1"
	if err := d.Write(t.Context(), nil, at); err != nil {
		t.Fatal(err)
	}
	lines := must(t, "savepoint", "dump", at, "-operator", "all")
	cells := must(t, "savepoint", "dump", at, "-operator", "all", "-format", "csv")
	quoted := func(s string) string { return `"` + strings.ReplaceAll(s, `"`, `""`) + `"` }
	for _, k := range keys {
		value := fmt.Sprintf("%q", names[k])
		if !utf8.ValidString(k) {
			value = names[k]
		} else if k != names[k] {
			value = fmt.Sprintf("%q", k)
		}
		line := fmt.Sprintf(`{"state":"deep","key":%s,"value":{%q:%s}}`, value, names[k], value) + "\n"
		if !strings.Contains(lines, line) {
			t.Errorf("no line %s in\n%s", line, lines)
		}
		if cell := `"deep",` + quoted(names[k]) + ","; !strings.Contains(cells, cell) {
			t.Errorf("no cell %s in\n%s", cell, cells)
		}
	}
	rows := parquetOf[struct {
		Key   string            `parquet:"key"`
		Value map[string]string `parquet:"value"`
	}](t, at, "deep")
	got := map[string]string{}
	for _, r := range rows {
		got[r.Key] = fmt.Sprint(r.Value)
	}
	for _, k := range keys {
		if want := fmt.Sprint(map[string]string{names[k]: names[k]}); got[names[k]] != want || len(got) != len(keys) {
			t.Errorf("%q: %q, want %q of %d", k, got[names[k]], want, len(got))
		}
	}
}

// littleTime is a time as values have it.
func littleTime(at time.Time) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(at.Unix()))
	return append(binary.LittleEndian.AppendUint32(b, uint32(at.Nanosecond())), 0, 0, 0, 0)
}

func TestParquetHasTimesBehindTheYear9999(t *testing.T) {
	at := time.Date(12_345, 2, 3, 4, 5, 6, 7000, time.UTC)
	text, err := valueJSON(nil, (&fixture{t: t}).schema("time"), littleTime(at))
	if err != nil {
		t.Fatal(err)
	}
	p := partOf((&fixture{t: t}).schema("time"))
	v, err := p.decode(text)
	if err != nil {
		t.Fatal(err)
	}
	if cell, err := p.cell(v); err != nil || cell.Int64() != at.UnixMicro() {
		t.Errorf("%s: %v, %v", text, cell, err)
	}
}
