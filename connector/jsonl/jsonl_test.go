package jsonl_test

import (
	"bytes"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/flott-dev/flott/connector/file"
	"github.com/flott-dev/flott/connector/file/filetest"
	"github.com/flott-dev/flott/connector/jsonl"
	"github.com/flott-dev/flott/internal/vfs"
)

type event struct {
	ID   int               `json:"id"`
	Name string            `json:"name,omitempty"`
	Tags []string          `json:"tags,omitempty"`
	More map[string]string `json:"more,omitempty"`
}

func disk(t testing.TB, text string) *vfs.Mem {
	t.Helper()
	m := vfs.NewMem()
	if err := vfs.WriteFile(m, "f", []byte(text)); err != nil {
		t.Fatal(err)
	}
	return m
}

func TestLinesBecomeElementsAtAnySplitSize(t *testing.T) {
	m := disk(t, "\xef\xbb\xbf{\"id\":1,\"name\":\"a\\nb\"}\r\n \r\n\n{\"id\":2,\"tags\":[\"x\"]}\n{\"id\":3}")
	want := []event{{ID: 1, Name: "a\nb"}, {ID: 2, Tags: []string{"x"}}, {ID: 3}}
	for _, size := range []int64{1, 7, 20, 1000} {
		got, err := filetest.Collect(file.New(jsonl.Format[event](), "f").On(m).SplitSize(size), 1, 2)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("split size %d: %v, %v", size, got, err)
		}
	}
}

func TestABadLineNamesFileLineAndOffset(t *testing.T) {
	for text, want := range map[string]string{
		"{\"id\":1}\n{\"id\":oops}\n":   "read f, line 2, offset 15: ",
		"{\"id\":1}\n{\"id\":\"x\"}\n":  "read f, line 2, offset 15: ",
		"{\"id\":1}\n{\"id\":2":         "read f, line 2, offset 16: ",
		"\n\n{} x\n":                    "read f, line 3, offset 5: ",
		"{\"id\":99999999999999999999}": "read f, line 1, offset 6: ",
	} {
		_, err := filetest.Collect(file.New(jsonl.Format[event](), "f").On(disk(t, text)).SplitSize(4), 1, 8)
		if _, ok := errors.AsType[*file.Error](err); !ok || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	_, err := filetest.Collect(file.New(jsonl.Format[event](json.RejectUnknownMembers(true)), "f").On(disk(t, `{"other":1}`)), 1, 8)
	if !errors.Is(err, json.ErrUnknownName) {
		t.Errorf("unknown member: %v", err)
	}
}

func TestBadLinesAreSkippedAndReported(t *testing.T) {
	var bad []string
	src := file.New(jsonl.Format[event](), "f").On(disk(t, "{\"id\":1}\nnope\n{\"id\":2,\"tags\":[\"kept\n{\"id\":3}\n"))
	d, err := filetest.Start(src.OnBad(func(b file.Bad) { bad = append(bad, fmt.Sprint(b.Line, " ", b.Record)) }), 1, 8, nil)
	if err == nil {
		err = d.Run()
	}
	if err != nil || !reflect.DeepEqual(d.Out[0], []event{{ID: 1}, {ID: 3}}) {
		t.Errorf("got %v, %v", d.Out[0], err)
	}
	if !slices.Equal(bad, []string{"2 nope", "3 {\"id\":2,\"tags\":[\"kept"}) || d.Counts[file.BadRecords] != 2 {
		t.Errorf("bad %q, counted %v", bad, d.Counts)
	}
}

func TestSinkWritesWhatFormatReads(t *testing.T) {
	m := vfs.NewMem()
	want := []event{{ID: 1, Name: "a\nb \u2028"}, {ID: 2, More: map[string]string{"k": "v"}}, {}}
	sink := jsonl.Sink[event]("f", jsontext.WithIndent("  ")).On(m)
	if err := filetest.Write(sink, &filetest.WriterContext{}, want...); err != nil {
		t.Fatal(err)
	}
	text, err := vfs.ReadFile(m, "f")
	if err != nil || bytes.Count(text, []byte("\n")) != 3 {
		t.Errorf("file %q, %v", text, err)
	}
	got, err := filetest.Collect(jsonl.Source[event]("f").On(m), 2, 8)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestAnElementThatIsNoJSONIsAnError(t *testing.T) {
	m := vfs.NewMem()
	err := filetest.Write(jsonl.Sink[func()]("f").On(m), &filetest.WriterContext{}, func() {})
	if err == nil || !strings.Contains(err.Error(), "encode an element for f") {
		t.Errorf("got %v", err)
	}
}

// FuzzLines compares the lines of a file, cut anywhere, with what encoding/json/v2 says of each line.
func FuzzLines(f *testing.F) {
	f.Add("{\"id\":1}\nnull\n{", uint8(3), uint8(2))
	f.Add("{\"name\":\"x\"}\r\n\n{\"id\":1}{}\n", uint8(9), uint8(1))
	f.Fuzz(func(t *testing.T, text string, size, chunk uint8) {
		var want []event
		bad := 0
		for line := range strings.SplitSeq(strings.TrimPrefix(text, "\xef\xbb\xbf"), "\n") {
			var e event
			if strings.TrimSpace(line) == "" {
				continue
			}
			if json.Unmarshal([]byte(strings.TrimSuffix(line, "\r")), &e) == nil {
				want = append(want, e)
			} else {
				bad++
			}
		}
		src := file.New(jsonl.Format[event](), "f").On(disk(t, text)).SplitSize(1 + int64(size)).SkipBad()
		d, err := filetest.Start(src, 1, 3, nil)
		if err == nil {
			err = d.Run()
		}
		if err != nil || !reflect.DeepEqual(d.Out[0], want) || d.Counts[file.BadRecords] != int64(bad) {
			t.Errorf("%q: got %v and %d bad, %v; want %v and %d bad", text, d.Out[0], d.Counts[file.BadRecords], err, want, bad)
		}
		if !utf8.ValidString(text) || bad > 0 {
			return
		}
		if got, err := filetest.Decode(jsonl.Format[event](), text, 1+int(chunk)); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q in chunks: got %v, %v; want %v", text, got, err, want)
		}
	})
}

func BenchmarkLines(b *testing.B) {
	const line = `{"symbol":"ACME","id":1234567890,"price":101.25,"size":500,"buy":true}` + "\n"
	type trade struct {
		Symbol string  `json:"symbol"`
		ID     int64   `json:"id"`
		Price  float64 `json:"price"`
		Size   int32   `json:"size"`
		Buy    bool    `json:"buy"`
	}
	const n = 100_000
	m := vfs.NewMem()
	if err := vfs.WriteFile(m, "f", []byte(strings.Repeat(line, n))); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(n * int64(len(line)))
	b.ReportAllocs()
	for b.Loop() {
		d, err := filetest.Start(jsonl.Source[trade]("f").On(m), 1, 512, nil)
		if err != nil {
			b.Fatal(err)
		}
		d.Drop = true
		if err := d.Run(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(b.Elapsed().Seconds()*1e9/float64(b.N*n), "ns/line")
}
