package parquet_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/flott-dev/flott/connector/file"
	"github.com/flott-dev/flott/connector/file/filetest"
	"github.com/flott-dev/flott/connector/parquet"
	pq "github.com/parquet-go/parquet-go"
)

// reading has a column of each kind that matters.
type reading struct {
	ID     int64              `parquet:"id"`
	Sensor string             `parquet:"sensor,dict"`
	Value  float64            `parquet:"value"`
	Small  int32              `parquet:"small,delta"`
	OK     bool               `parquet:"ok"`
	At     time.Time          `parquet:"at,timestamp(microsecond)"`
	Note   *string            `parquet:"note"`
	Tags   []string           `parquet:"tags,list"`
	More   map[string]int64   `parquet:"more"`
	Place  struct{ X, Y int } `parquet:"place"`
}

func readings(from, to int) (rs []reading) {
	for i := from; i < to; i++ {
		r := reading{
			ID: int64(i), Sensor: fmt.Sprint("s", i%7), Value: float64(i) / 4, Small: int32(-i), OK: i%3 == 0,
			At: time.UnixMicro(int64(i) * 1_000_003).UTC(), Tags: []string{}, More: map[string]int64{"i": int64(i)},
		}
		r.Place.X, r.Place.Y = i, -i
		if i%2 == 0 {
			note := fmt.Sprint("note ", i)
			r.Note = &note
		}
		for j := range i % 4 {
			r.Tags = append(r.Tags, fmt.Sprint(i, "-", j))
		}
		rs = append(rs, r)
	}
	return rs
}

func TestWhatIsWrittenIsReadAtAnySplitSize(t *testing.T) {
	want := readings(0, 1000)
	for _, opts := range [][]parquet.Option{
		nil,
		{parquet.Compression(parquet.Zstd), parquet.RowGroupSize(1 << 12)},
		{parquet.Compression(parquet.Uncompressed), parquet.RowGroupSize(1)},
	} {
		data := filetest.Pack(t, parquet.Encoding[reading](opts...), want)
		m := filetest.Disk(t, map[string][]byte{"d/a.parquet": data})
		for _, split := range []int64{1 << 10, 9999, int64(len(data)), 1 << 30} {
			got, err := filetest.Collect(parquet.Source[reading]("d").On(m).SplitSize(split), 1, 33)
			if err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("split size %d: %d rows, %v", split, len(got), err)
			}
		}
	}
}

// TestReadingGoesOnAtTheRow stops after every few polls, and reads the rest with other readers.
func TestReadingGoesOnAtTheRow(t *testing.T) {
	want := readings(0, 300)
	data := filetest.Pack(t, parquet.Encoding[reading](parquet.RowGroupSize(1<<12)), want)
	src := parquet.Source[reading]("a").On(filetest.Disk(t, map[string][]byte{"a": data})).SplitSize(int64(len(data)) / 3)
	filetest.GoesOn(t, src, 60, func(r reading) int { return int(r.ID) }, want)
}

func TestRestoredToAnotherFileIsAnError(t *testing.T) {
	data := filetest.Pack(t, parquet.Encoding[reading](parquet.RowGroupSize(1<<12)), readings(0, 300))
	other := filetest.Pack(t, parquet.Encoding[reading](), readings(0, 5))
	for _, s := range []file.Split{
		{Path: "a", Length: int64(len(data)), Position: 77, Skip: 1},
		{Path: "b", Length: int64(len(other)), Position: 4, Skip: 6},
	} {
		src := parquet.Source[reading]("a").On(filetest.Disk(t, map[string][]byte{"a": data, "b": other}))
		d, err := filetest.Start(src, 1, 7, nil)
		if err != nil {
			t.Fatal(err)
		}
		state, err := d.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		state.Splits = []file.Split{s}
		if d, err = filetest.Start(src, 1, 7, state); err == nil {
			err = d.Run()
		}
		if err == nil || !strings.Contains(err.Error(), "another one") || !strings.Contains(err.Error(), "read "+s.Path) {
			t.Errorf("%+v: %v", s, err)
		}
	}
}

func TestOnlyTheColumnsOfTheStructAreRead(t *testing.T) {
	type narrow struct {
		Value float64 `parquet:"value"`
		Small int64   `parquet:"small"` // 32 bits in the file
		Lack  *string `parquet:"lack"`
		Gap   int64   `parquet:"gap,optional"`
	}
	data := filetest.Pack(t, parquet.Encoding[reading](parquet.Compression(parquet.Uncompressed)), readings(0, 2000))
	src := parquet.Source[narrow]("a").On(filetest.Disk(t, map[string][]byte{"a": data}))
	d, err := filetest.Start(src, 1, 100, nil)
	if err == nil {
		err = errors.Join(d.Run(), d.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range d.Out[0] {
		if r != (narrow{Value: float64(i) / 4, Small: int64(-i)}) {
			t.Fatalf("row %d is %+v", i, r)
		}
	}
	if len(d.Out[0]) != 2000 {
		t.Errorf("%d rows", len(d.Out[0]))
	}
	if read := d.Counts["numBytesIn"]; read == 0 {
		t.Errorf("%d bytes are counted", read)
	}
}

// TestNullsAndOtherUnits reads what other writers make: all columns may be null, times are in ms, floats are short.
func TestNullsAndOtherUnits(t *testing.T) {
	type theirs struct {
		N *int32     `parquet:"n"`
		F *float32   `parquet:"f"`
		S *string    `parquet:"s"`
		T *time.Time `parquet:"t,timestamp(millisecond)"`
	}
	type ours struct {
		N *int64    `parquet:"n"`
		F float64   `parquet:"f"`
		S string    `parquet:"s"`
		T time.Time `parquet:"t,timestamp(nanosecond)"`
	}
	n, f, s, at := int32(-5), float32(0.5), "x", time.UnixMilli(1234567890123).UTC()
	data := filetest.Pack(t, parquet.Encoding[theirs](), []theirs{{}, {&n, &f, &s, &at}, {}, {N: &n}})
	got, err := filetest.Collect(parquet.Source[ours]("a").On(filetest.Disk(t, map[string][]byte{"a": data})), 1, 3)
	if err != nil {
		t.Fatal(err)
	}
	long := int64(n)
	epoch := time.Unix(0, 0)
	want := []ours{{T: epoch}, {&long, 0.5, "x", at}, {T: epoch}, {N: &long, T: epoch}}
	for i := range want {
		if g, w := got[i], want[i]; g.F != w.F || g.S != w.S || !g.T.Equal(w.T) || (g.N == nil) != (w.N == nil) || g.N != nil && *g.N != *w.N {
			t.Errorf("row %d: %+v, want %+v", i, g, w)
		}
	}
}

func TestColumnsThatDoNotFitAreNamed(t *testing.T) {
	m := filetest.Disk(t, map[string][]byte{"a": filetest.Pack(t, parquet.Encoding[reading](), readings(0, 5))})
	check := func(what string, err error, texts ...string) {
		t.Helper()
		for _, text := range append(texts, "read a: ") {
			if err == nil || !strings.Contains(err.Error(), text) {
				t.Errorf("%s: %v lacks %q", what, err, text)
			}
		}
	}
	_, err := filetest.Collect(parquet.Source[struct {
		Price float64 `parquet:"price"`
	}]("a").On(m), 1, 3)
	check("missing", err, "no column price", "optional", "id, sensor, value")
	_, err = filetest.Collect(parquet.Source[struct {
		Value int64 `parquet:"value"`
	}]("a").On(m), 1, 3)
	check("another type", err, "column value is DOUBLE", "INT")
	_, err = filetest.Collect(parquet.Source[struct {
		ID int32 `parquet:"id"`
	}]("a").On(m), 1, 3)
	check("narrower", err, "column id is INT")
	_, err = filetest.Collect(parquet.Source[struct {
		ID []int64 `parquet:"id"`
	}]("a").On(m), 1, 3)
	check("a list", err, "column id is a list in the file or in the struct")
}

func TestMistakesAreToldWhenTheJobIsBuilt(t *testing.T) {
	type bad struct{ C chan int }
	for _, c := range []struct {
		err  error
		text string
	}{
		{parquet.Format[int]().Check(), "int is none"},
		{parquet.Format[bad]().Check(), "bad"},
		{parquet.Format[struct{ x int }]().Check(), "no exported field"},
		{parquet.Encoding[*reading]().Err, "structs"},
		{parquet.Encoding[bad]().Err, "bad"},
		{parquet.Encoding[reading](parquet.Compression(9)).Err, "codec 9"},
		{parquet.Encoding[reading](parquet.RowGroupSize(0)).Err, "row groups of 0 bytes"},
	} {
		if c.err == nil || !strings.Contains(c.err.Error(), c.text) {
			t.Errorf("%v lacks %q", c.err, c.text)
		}
	}
	if w, err := parquet.Encoding[bad]().Open(io.Discard); err == nil {
		t.Errorf("opened %v", w)
	}
	if err := parquet.Format[reading]().Check(); err != nil {
		t.Error(err)
	}
}

func TestDamagedFilesAreErrorsThatNameThem(t *testing.T) {
	data := filetest.Pack(t, parquet.Encoding[reading](parquet.Compression(parquet.Uncompressed)), readings(0, 500))
	change := func(at int, b ...byte) []byte {
		c := bytes.Clone(data)
		copy(c[(len(c)+at)%len(c):], b)
		return c
	}
	for name, c := range map[string][]byte{
		"empty":           {},
		"short":           []byte("PAR1PAR1"),
		"text":            []byte("a,b,c\n1,2,3\n4,5,6\n"),
		"cut":             data[:len(data)-1],
		"half":            data[:len(data)/2],
		"front is gone":   data[100:],
		"no mark":         change(0, 'X'),
		"long metadata":   change(-8, 0xff, 0xff, 0xff, 0x7f),
		"a page":          change(200, make([]byte, 400)...),
		"metadata":        change(-100, make([]byte, 60)...),
		"begin of footer": change(-1500, bytes.Repeat([]byte{0xff}, 300)...),
	} {
		got, err := filetest.Collect(parquet.Source[reading]("d/x").On(filetest.Disk(t, map[string][]byte{"d/x": c})), 1, 64)
		if len(c) > 0 && (!errors.Is(err, parquet.ErrDamaged) && !strings.Contains(fmt.Sprint(err), "read d/x: ")) {
			t.Errorf("%s: %d rows, %v", name, len(got), err)
		}
		if len(c) == 0 && !errors.Is(err, parquet.ErrDamaged) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestCompressedFilesAreRefused(t *testing.T) {
	m := filetest.Disk(t, map[string][]byte{"a": filetest.Pack(t, parquet.Encoding[reading](), readings(0, 5))})
	_, err := filetest.Collect(parquet.Source[reading]("a").On(m).Charset(file.Latin1), 1, 3)
	if !errors.Is(err, file.ErrSequential) || strings.Count(err.Error(), "read a") != 1 {
		t.Errorf("got %v", err)
	}
}

// TestOtherProgramsReadWhatIsWritten looks with the library at what the files say of themselves.
func TestOtherProgramsReadWhatIsWritten(t *testing.T) {
	data := filetest.Pack(t, parquet.Encoding[reading](parquet.Compression(parquet.Zstd), parquet.RowGroupSize(1<<14)), readings(0, 1000))
	f, err := pq.OpenFile(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	if f.NumRows() != 1000 || len(f.RowGroups()) < 3 {
		t.Errorf("%d rows in %d groups", f.NumRows(), len(f.RowGroups()))
	}
	if c := f.Metadata().RowGroups[0].Columns[0].MetaData.Codec; c.String() != "ZSTD" {
		t.Errorf("codec %v", c)
	}
	rows, err := pq.Read[reading](bytes.NewReader(data), int64(len(data)))
	if err != nil || !reflect.DeepEqual(rows, readings(0, 1000)) {
		t.Errorf("%d rows, %v", len(rows), err)
	}
}

func TestHeldGrowsWithRowsAndShrinksWithRowGroups(t *testing.T) {
	var b bytes.Buffer
	w, err := parquet.Encoding[reading](parquet.RowGroupSize(1 << 16)).Open(&b)
	if err != nil {
		t.Fatal(err)
	}
	before, shrunk := w.Held(), false
	for i := range 50 {
		if err := w.Write(readings(i*100, i*100+100)); err != nil {
			t.Fatal(err)
		}
		held := w.Held()
		shrunk = shrunk || held < before
		if held > 1<<17 || held <= before && !shrunk {
			t.Fatalf("after %d rows: %d bytes, before %d", i*100, held, before)
		}
		before = held
	}
	if !shrunk || b.Len() == 0 {
		t.Error("no row group was written")
	}
	written, held := b.Len(), w.Held()
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if end := int64(b.Len() - written); end > 2*held+1<<16 {
		t.Errorf("%d bytes were held, but %d came at the end", held, end)
	}
}

// broken fails from its n-th write.
type broken struct{ n int }

var errBroken = errors.New("broken disk")

func (b *broken) Write(p []byte) (int, error) {
	if b.n--; b.n < 0 {
		return 0, errBroken
	}
	return len(p), nil
}

func TestErrorsOfTheDiskComeThrough(t *testing.T) {
	for n := range 3 {
		w, err := parquet.Encoding[reading](parquet.RowGroupSize(1)).Open(&broken{n})
		if err == nil {
			err = errors.Join(w.Write(readings(0, 5000)), w.Close())
		}
		if !errors.Is(err, errBroken) {
			t.Errorf("%d writes: %v", n, err)
		}
	}
}
