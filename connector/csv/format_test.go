package csv_test

import (
	stdcsv "encoding/csv"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/flott-dev/flott/connector/csv"
	"github.com/flott-dev/flott/connector/file"
	"github.com/flott-dev/flott/connector/file/filetest"
	"github.com/flott-dev/flott/internal/vfs"
)

func disk(t testing.TB, files map[string]string) *vfs.Mem {
	t.Helper()
	m := vfs.NewMem()
	for name, text := range files {
		if err := vfs.WriteFile(m, name, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

type note struct {
	ID   int    `csv:"id"`
	Text string `csv:"text"`
}

// TestLineBreaksInQuotesBelongToTheField reads in parallel and in splits of any size.
func TestLineBreaksInQuotesBelongToTheField(t *testing.T) {
	m := disk(t, map[string]string{"f": "id,text\n1,\"a\nb\r\nc\"\n2,\"say \"\"hi\"\"\"\n3,plain\n"})
	want := []note{{1, "a\nb\r\nc"}, {2, `say "hi"`}, {3, "plain"}}
	for _, parallelism := range []int{1, 4} {
		for _, size := range []int64{1, 8, 13, 1 << 20} {
			got, err := filetest.Collect(file.New(csv.Format[note](csv.Header()), "f").On(m).SplitSize(size), parallelism, 2)
			if err != nil || !slices.Equal(got, want) {
				t.Errorf("parallelism %d, split size %d: %v, %v", parallelism, size, got, err)
			}
		}
	}
}

func TestUnclosedQuoteIsAnErrorWithItsLine(t *testing.T) {
	m := disk(t, map[string]string{"f": "1,a\n2,\"b\n3,c\n4,d\n"})
	for _, q := range []csv.Quoting{csv.Doubled, csv.DoubledInLine, csv.Backslash} {
		_, err := filetest.Collect(file.New(csv.Format[note](csv.Quotes(q)), "f").On(m), 1, 8)
		e, ok := errors.AsType[*csv.Error](err)
		if !ok || e.Path != "f" || e.Line != 2 || e.Column != 2 || e.Field != "text" || !errors.Is(err, csv.ErrQuote) {
			t.Errorf("quoting %d: %v", q, err)
		}
		got, err := filetest.Collect(file.New(csv.Format[note](csv.Quotes(q)), "f").On(m).SkipBad(), 1, 8)
		if err != nil || fmt.Sprint(got) != "[{1 a} {3 c} {4 d}]" {
			t.Errorf("quoting %d, lenient: %v, %v", q, got, err)
		}
	}
}

func TestAForgottenQuoteDoesNotReadTheWholeFile(t *testing.T) {
	text := "1,a\n2,\"b\n" + strings.Repeat("3,c\n", 10_000)
	src := file.New(csv.Format[note](csv.MaxRow(100)), "f").On(disk(t, map[string]string{"f": text}))
	got, err := filetest.Collect(src.SkipBad(), 1, 512)
	if err != nil || len(got) != 10_001 {
		t.Errorf("%d rows, %v", len(got), err)
	}
}

type three struct {
	A string
	B string
	N *int
}

// TestEmptyShortAndLargeFields has one good row of each kind among bad ones.
func TestEmptyShortAndLargeFields(t *testing.T) {
	const text = "aaa,bbb,\naaa,bbb,,\n1,2\nx,y,99999999999999999999999\n\"q,q\",z,7\nlast,cell,"
	m := disk(t, map[string]string{"f": text})
	_, err := filetest.Collect(file.New(csv.Format[three](), "f").On(m), 1, 8)
	e, ok := errors.AsType[*csv.Error](err)
	if !ok || e.Line != 3 || e.Column != 0 || !errors.Is(err, csv.ErrFieldCount) {
		t.Errorf("short row: %v", err)
	}
	var bad []string
	src := file.New(csv.Format[three](), "f").On(m).OnBad(func(b file.Bad) {
		bad = append(bad, fmt.Sprintf("%d %d %q %v", b.Line, b.Offset, b.Record, b.Err))
	})
	d, err := filetest.Start(src, 1, 8, nil)
	if err == nil {
		err = d.Run()
	}
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range d.Out[0] {
		if r.N == nil {
			got = append(got, r.A+" nil")
			continue
		}
		got = append(got, fmt.Sprint(r.A, " ", *r.N))
	}
	if want := []string{"aaa nil", "aaa nil", "q,q 7", "last nil"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	want := []string{
		`3 19 "1,2" read f, line 3: row has too few fields`,
		`4 23 "x,y,99999999999999999999999" read f, line 4, column 3 (N): "99999999999999999999999": value out of range`,
	}
	if !slices.Equal(bad, want) || d.Counts[file.BadRecords] != 2 {
		t.Errorf("bad rows %q, counted %d", bad, d.Counts[file.BadRecords])
	}
}

func TestSkippedQuotedColumns(t *testing.T) {
	const text = "\"1,\"\"x\",2,\"3\n3\",4\n"
	type pair struct{ A, B string }
	for _, opts := range [][]csv.Option{
		{csv.Positions(1, 3)},
		{csv.Include(false, true, false, true)},
		{csv.Columns("", "A", "", "B")},
	} {
		got, err := filetest.Collect(file.New(csv.Format[pair](opts...), "f").On(disk(t, map[string]string{"f": text})), 1, 8)
		if err != nil || fmt.Sprint(got) != "[{2 4}]" {
			t.Errorf("got %v, %v", got, err)
		}
	}
	// A line break in a quoted column behind the last one that is wanted is still not the end of the row.
	got, err := filetest.Collect(file.New(csv.Format[pair](csv.Positions(0, 1)), "f").On(disk(t, map[string]string{"f": text + text})), 1, 8)
	if err != nil || fmt.Sprint(got) != `[{1,"x 2} {1,"x 2}]` {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestHeaderOrdersColumnsInEverySplit(t *testing.T) {
	var text strings.Builder
	text.WriteString("# a comment\n\nextra,text,\"id\"\n")
	var want []note
	for i := range 40 {
		fmt.Fprintf(&text, "x,t%d,%d\n", i, i)
		want = append(want, note{i, fmt.Sprint("t", i)})
	}
	m := disk(t, map[string]string{"f": text.String(), "empty": ""})
	for _, q := range []csv.Quoting{csv.Doubled, csv.DoubledInLine} {
		format := csv.Format[note](csv.Header(), csv.Comment("#"), csv.Quotes(q))
		for size := int64(1); size < 60; size += 7 {
			got, err := filetest.Collect(file.New(format, "f", "empty").On(m).SplitSize(size), 1, 4)
			if err != nil || !slices.Equal(got, want) {
				t.Fatalf("quoting %d, split size %d: %v, %v", q, size, got, err)
			}
		}
		for steps := range 20 { // goes on from a snapshot
			src := file.New(format, "f").On(m).SplitSize(50)
			d, err := filetest.Start(src, 1, 3, nil)
			if err != nil {
				t.Fatal(err)
			}
			for range steps {
				if _, err := d.Step(); err != nil {
					t.Fatal(err)
				}
			}
			state, err := d.Snapshot()
			if err != nil {
				t.Fatal(err)
			}
			got := d.Out[0]
			if d, err = filetest.Start(src, 1, 3, state); err == nil {
				err = d.Run()
			}
			if got = append(got, d.Out[0]...); err != nil || !slices.Equal(got, want) {
				t.Fatalf("quoting %d, snapshot after %d steps: %v, %v", q, steps, got, err)
			}
		}
	}
}

func TestHeaderMistakesAreErrors(t *testing.T) {
	for text, want := range map[string]string{
		"id,other\n":   `no column "text"`,
		"id,text,id\n": `column "id" twice`,
		"id,\"text\n":  "quoted field without an end",
		"\"id\"x,text": "text behind the closing quote",
	} {
		_, err := filetest.Collect(file.New(csv.Format[note](csv.Header()), "f").On(disk(t, map[string]string{"f": text})), 1, 8)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "header of f") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestSkipFirstSkipsOneLinePerFile(t *testing.T) {
	m := disk(t, map[string]string{"a": "id,text\n1,x\n", "b": "\"i\nd\",text\n2,y\n", "c": "", "d": "# c\n3,z\n"})
	for _, size := range []int64{1, 9, 100} {
		format := csv.Format[note](csv.SkipFirst(), csv.Comment("#"))
		got, err := filetest.Collect(file.New(format, "a", "b", "c", "d").On(m).SplitSize(size), 1, 8)
		if err != nil || fmt.Sprint(got) != "[{1 x} {2 y} {3 z}]" {
			t.Errorf("got %v, %v", got, err)
		}
	}
}

func TestASingleColumnNeedsNoStruct(t *testing.T) {
	m := disk(t, map[string]string{"f": "a\n\n\"b,c\"\n"})
	got, err := filetest.Collect(file.New(csv.Format[string](), "f").On(m), 1, 8)
	if err != nil || !slices.Equal(got, []string{"a", "", "b,c"}) {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestEmptyNumbers(t *testing.T) {
	m := disk(t, map[string]string{"f": "1,a\n,b\n"})
	if _, err := filetest.Collect(file.New(csv.Format[note](), "f").On(m), 1, 8); !errors.Is(err, csv.ErrEmpty) {
		t.Errorf("got %v", err)
	}
	got, err := filetest.Collect(file.New(csv.Format[note](csv.EmptyZero()), "f").On(m), 1, 8)
	if err != nil || fmt.Sprint(got) != "[{1 a} {0 b}]" {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestMistakesOfTheFormatAreToldAtOnce(t *testing.T) {
	type twice struct {
		A int `csv:"x"`
		B int `csv:"x"`
	}
	type nested struct{ In struct{ A int } }
	for want, format := range map[string]interface{ Check() error }{
		"empty field delimiter":   csv.Format[note](csv.Comma("")),
		"same delimiter":          csv.Format[note](csv.Comma("\n")),
		"begins the field":        csv.Format[note](csv.Quote(',')),
		"no ASCII":                csv.Format[note](csv.Quote(0xe9)),
		"Header excludes":         csv.Format[note](csv.Header(), csv.Columns("id")),
		"no names for a header":   csv.Format[int](csv.Header()),
		`no column "nope"`:        csv.Format[note](csv.Columns("id", "nope")),
		"comes twice":             csv.Format[note](csv.Positions(1, 1)),
		"is negative":             csv.Format[note](csv.Positions(-1)),
		"the type has 2":          csv.Format[note](csv.Positions(0, 1, 2)),
		"includes no column":      csv.Format[note](csv.Include(false)),
		"2 columns have names":    csv.Format[note](csv.Columns("id", "text"), csv.Positions(1)),
		`twice.B are both column`: csv.Format[twice](),
		"nested.In: type struct":  csv.Format[nested](),
		"type chan int":           csv.Format[chan int](),
		"more than 64 bytes":      csv.Format[note](csv.RowDelimiter(strings.Repeat("x", 65))),
		"rows of at most 0":       csv.Format[note](csv.MaxRow(0)),
		"no time layout":          csv.Format[note](csv.TimeLayouts()),
		"struct {} has no column": csv.Format[struct{}](),
		"column 40000":            csv.Format[note](csv.Positions(40000)),
	} {
		if err := format.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// FuzzAgainstTheStandardLibrary reads what encoding/csv reads, in one piece and in small blocks.
func FuzzAgainstTheStandardLibrary(f *testing.F) {
	for _, s := range []string{
		"a,b\n\"c\",d\n", "\"a\nb\",\"say \"\"x\"\"\"\r\n1,2", "\n\na,b\n\n", "\"\",\"\"\n,", "a,\"b\r\nc\"\r\n", "x,y\r\r\n", "\"\r\n\",2\n",
	} {
		f.Add(s, uint8(3))
	}
	type pair struct{ A, B string }
	format := csv.Format[pair]()
	f.Fuzz(func(t *testing.T, text string, block uint8) {
		if strings.HasPrefix(text, "\xef\xbb\xbf") {
			return // a byte order mark, which encoding/csv takes for text
		}
		r := stdcsv.NewReader(strings.NewReader(text))
		r.FieldsPerRecord = 2
		all, err := r.ReadAll()
		if err != nil {
			return
		}
		var want []pair
		for _, row := range all {
			want = append(want, pair{row[0], row[1]})
		}
		got, err := filetest.Decode(format, text, 1+int(block))
		for i := range got { // encoding/csv makes \n of \r\n in fields
			got[i].A, got[i].B = strings.ReplaceAll(got[i].A, "\r\n", "\n"), strings.ReplaceAll(got[i].B, "\r\n", "\n")
		}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: got %q, %v, want %q", text, got, err, want)
		}
	})
}
