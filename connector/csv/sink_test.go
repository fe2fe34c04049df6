package csv_test

import (
	"encoding/json"
	"errors"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/flott-dev/flott/connector/csv"
	"github.com/flott-dev/flott/connector/file"
	"github.com/flott-dev/flott/connector/file/filetest"
	"github.com/flott-dev/flott/internal/vfs"
)

type wctx = filetest.WriterContext

// written writes rows and returns the file.
func written[T any](t *testing.T, opts []csv.Option, rows ...T) (string, error) {
	t.Helper()
	m := vfs.NewMem()
	if err := filetest.Write(csv.Sink[T]("f", opts...).On(m), &wctx{}, rows...); err != nil {
		return "", err
	}
	data, err := vfs.ReadFile(m, "f")
	return string(data), err
}

type mixed struct {
	Name  string `csv:"name"`
	Maybe *string
	N     int32
	X     float64
	Flag  bool
}

func TestSinkWritesWhatFormatReads(t *testing.T) {
	empty, text := "", "x"
	rows := []mixed{
		{"plain", nil, 1, 1.5, true},
		{"a,b", &empty, -1, math.Inf(-1), false},
		{"say \"hi\"", &text, math.MaxInt32, 1e21, false},
		{"two\nlines\r\n", nil, 0, 1e-7, false},
		{"\"", nil, 0, 100000000, false},
		{"# no comment", nil, 0, 0, false},
		{"", nil, 0, 0, false},
	}
	got, err := written(t, []csv.Option{csv.Header(), csv.NilEmpty(), csv.Comment("#")}, rows...)
	want := `name,Maybe,N,X,Flag
plain,,1,1.5,true
"a,b","",-1,-Infinity,false
"say ""hi""",x,2147483647,1e+21,false
"two
lines` + "\r" + `
",,0,1e-07,false
"""",,0,100000000,false
"# no comment",,0,0,false
,,0,0,false
`
	if err != nil || got != want {
		t.Errorf("got  %q, %v\nwant %q", got, err, want)
	}
	back, err := filetest.Collect(file.New(csv.Format[mixed](csv.Header(), csv.Comment("#")), "f").On(disk(t, map[string]string{"f": got})), 1, 3)
	if err != nil || len(back) != len(rows) {
		t.Fatal(back, err)
	}
	for i := range rows {
		a, b := rows[i], back[i]
		same := (a.Maybe == nil) == (b.Maybe == nil) && (a.Maybe == nil || *a.Maybe == *b.Maybe)
		if a.Maybe, b.Maybe = nil, nil; a != b || !same {
			t.Errorf("row %d: wrote %+v, read %+v", i, rows[i], back[i])
		}
	}
}

func TestSinkOptions(t *testing.T) {
	type pair struct{ A, B string }
	for _, c := range []struct {
		opts []csv.Option
		want string
	}{
		{nil, "a,\"b;\"\"\"\n"},
		{[]csv.Option{csv.Comma(";"), csv.RowDelimiter("|\n")}, "a;\"b;\"\"\"|\n"},
		{[]csv.Option{csv.Quote('\'')}, "a,b;\"\n"},
		{[]csv.Option{csv.Quote(0)}, "a,b;\"\n"},
		{[]csv.Option{csv.QuoteAll()}, "\"a\",\"b;\"\"\"\n"},
		{[]csv.Option{csv.Columns("B", "A")}, "\"b;\"\"\",a\n"},
		{[]csv.Option{csv.Columns("A")}, "a\n"},
	} {
		if got, err := written(t, c.opts, pair{"a", "b;\""}); err != nil || got != c.want {
			t.Errorf("got %q, %v, want %q", got, err, c.want)
		}
	}
	if got, err := written(t, nil, 1.5, 2.5); err != nil || got != "1.5\n2.5\n" {
		t.Errorf("a single column: %q, %v", got, err)
	}
}

func TestSinkRefusesWhatCanNotBeReadBack(t *testing.T) {
	type one struct{ A string }
	for _, c := range []struct {
		text string
		opts []csv.Option
	}{
		{"a\nb", []csv.Option{csv.Quote(0)}},
		{"a\nb", []csv.Option{csv.Quotes(csv.DoubledInLine)}},
		{"a,b", []csv.Option{csv.Quote(0)}},
		{"a,\"b", []csv.Option{csv.Quotes(csv.Backslash)}},
		{"a,\\", []csv.Option{csv.Quotes(csv.Backslash)}},
	} {
		if got, err := written(t, c.opts, one{c.text}); !errors.Is(err, csv.ErrUnwritable) || !strings.Contains(err.Error(), "column 1 (A)") {
			t.Errorf("%q: %q, %v", c.text, got, err)
		}
	}
	for want, s := range map[string]interface{ Check() error }{
		"type chan int":         csv.Sink[struct{ A chan int }]("f"),
		"no meaning for a sink": csv.Sink[one]("f", csv.Positions(0)),
		`no column "x"`:         csv.Sink[one]("f", csv.Columns("x")),
		"QuoteAll without":      csv.Sink[one]("f", csv.QuoteAll(), csv.Quote(0)),
		"no names for a header": csv.Sink[int]("f", csv.Header()),
	} {
		if err := s.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

func TestVectorsOfWrittenRows(t *testing.T) {
	data, err := os.ReadFile("../../conformance/testdata/batch/csv.json")
	if err != nil {
		t.Fatal(err)
	}
	var all struct {
		Cases []struct {
			ID, Kind string
			Rows     [][3]any
			Options  struct {
				AllowNull bool `json:"allow_null"`
			}
			Expect struct{ Content *string }
		}
	}
	if err := json.Unmarshal(data, &all); err != nil {
		t.Fatal(err)
	}
	type row struct {
		A, B *string
		C    int32
	}
	n := 0
	for _, v := range all.Cases {
		if v.Kind != "csv_out" {
			continue
		}
		n++
		var rows []row
		for _, r := range v.Rows {
			a := r[0].(string)
			rows = append(rows, row{&a, nil, int32(r[2].(float64))})
		}
		var opts []csv.Option
		if v.Options.AllowNull {
			opts = append(opts, csv.NilEmpty())
		}
		got, err := written(t, opts, rows...)
		if v.Expect.Content == nil {
			if !errors.Is(err, csv.ErrNil) {
				t.Errorf("%s: %q, %v", v.ID, got, err)
			}
		} else if err != nil || got != *v.Expect.Content {
			t.Errorf("%s: %q, %v", v.ID, got, err)
		}
	}
	if n == 0 {
		t.Error("no vector")
	}
}

// FuzzRoundTrip writes any two texts and reads them back.
func FuzzRoundTrip(f *testing.F) {
	f.Add("a", "b\"\r\n,")
	f.Add("", "")
	f.Add("\xef\xbb\xbf", "#")
	type pair struct {
		A string
		B *string
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		m := vfs.NewMem()
		row := pair{a, &b}
		opts := []csv.Option{csv.NilEmpty(), csv.Header()}
		if err := filetest.Write(csv.Sink[pair]("f", opts...).On(m), &wctx{}, row, row); err != nil {
			t.Fatal(err)
		}
		got, err := filetest.Collect(file.New(csv.Format[pair](opts...), "f").On(m), 1, 8)
		if err != nil || len(got) != 2 || got[1].A != a || got[1].B == nil || *got[1].B != b {
			t.Errorf("%q, %q: got %v, %v", a, b, got, err)
		}
	})
}

func BenchmarkSink(b *testing.B) {
	m := vfs.NewMem()
	w, err := csv.Sink[trade]("f").On(discard{m}).Writer(&wctx{})
	if err != nil {
		b.Fatal(err)
	}
	xs := slices.Repeat([]trade{{"ACME", 1234567890, 101.25, 500, true}}, 512)
	b.ReportAllocs()
	for b.Loop() {
		if err := w.(interface{ WriteRun([]trade, []int64) error }).WriteRun(xs, nil); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(b.Elapsed().Seconds()*1e9/float64(b.N*len(xs)), "ns/row")
}

// discard keeps nothing of what is written.
type discard struct{ *vfs.Mem }

func (discard) Create(string, vfs.Mode) (vfs.Writer, error) { return nowhere{}, nil }

type nowhere struct{}

func (nowhere) Write(p []byte) (int, error) { return len(p), nil }
func (nowhere) Sync() error                 { return nil }
func (nowhere) Close() error                { return nil }
