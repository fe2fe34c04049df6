package avro_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flott-dev/flott/connector/avro"
	"github.com/flott-dev/flott/connector/file"
	"github.com/flott-dev/flott/connector/file/filetest"
	"github.com/flott-dev/flott/internal/vfs"
)

// reading has a field of each kind that matters.
type reading struct {
	ID     int64            `avro:"id"`
	Sensor string           `avro:"sensor"`
	Value  float64          `avro:"value"`
	Small  int              `avro:"small"`
	OK     bool             `avro:"ok"`
	At     time.Time        `avro:"at"`
	Note   *string          `avro:"note"`
	Tags   []string         `avro:"tags"`
	More   map[string]int64 `avro:"more"`
	Raw    []byte           `avro:"raw"`
	Kind   string           `avro:"kind"`
	Place  place            `avro:"place"`
}

type place struct {
	X float32 `avro:"x"`
	Y float32 `avro:"y"`
}

const schema = `{"type": "record", "name": "Reading", "namespace": "sensors", "fields": [
	{"name": "id", "type": "long"},
	{"name": "sensor", "type": "string"},
	{"name": "value", "type": "double"},
	{"name": "small", "type": "int"},
	{"name": "ok", "type": "boolean"},
	{"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
	{"name": "note", "type": ["null", "string"], "default": null},
	{"name": "tags", "type": {"type": "array", "items": "string"}},
	{"name": "more", "type": {"type": "map", "values": "long"}},
	{"name": "raw", "type": "bytes"},
	{"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["COLD", "HOT"]}},
	{"name": "place", "type": {"type": "record", "name": "Place", "fields": [
		{"name": "x", "type": "float"}, {"name": "y", "type": "float"}]}}
]}`

func readings(from, to int) (rs []reading) {
	for i := from; i < to; i++ {
		r := reading{
			ID: int64(i), Sensor: fmt.Sprint("s", i%7), Value: float64(i) / 4, Small: -i, OK: i%3 == 0,
			At: time.UnixMicro(int64(i) * 1_000_003).UTC(), Tags: []string{}, More: map[string]int64{"i": int64(i)},
			Raw: []byte{byte(i)}, Kind: []string{"COLD", "HOT"}[i%2], Place: place{float32(i), float32(-i)},
		}
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
	for _, opts := range [][]avro.Option{
		nil,
		{avro.Compression(avro.Zstd), avro.BlockSize(1 << 10)},
		{avro.Compression(avro.Deflate), avro.BlockSize(5000)},
		{avro.Compression(avro.Uncompressed), avro.BlockSize(1)},
		{avro.Compression(avro.Uncompressed), avro.BlockSize(1 << 20)},
	} {
		data := filetest.Pack(t, avro.Encoding[reading](schema, opts...), want)
		m := filetest.Disk(t, map[string][]byte{"d/a.avro": data})
		for _, split := range []int64{1 << 10, 9999, int64(len(data)), 1 << 30} {
			for _, reader := range []string{"", schema} {
				got, err := filetest.Collect(file.New(avro.Format[reading](reader), "d").On(m).SplitSize(split), 1, 33)
				if err != nil || !reflect.DeepEqual(got, want) {
					t.Errorf("split size %d: %d rows, %v", split, len(got), err)
				}
			}
		}
	}
}

// TestABlockBelongsToOneSplit cuts a small file everywhere: through the header, markers and blocks.
func TestABlockBelongsToOneSplit(t *testing.T) {
	data := filetest.Pack(t, avro.Encoding[int64](`"long"`, avro.BlockSize(3), avro.Compression(avro.Uncompressed)), []int64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10})
	m := filetest.Disk(t, map[string][]byte{"a": data})
	for split := int64(1); split <= int64(len(data)); split++ {
		got, err := filetest.Collect(file.New(avro.Format[int64](""), "a").On(m).SplitSize(split), 1, 2)
		if err != nil || !slices.Equal(got, []int64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}) {
			t.Errorf("split size %d: %v, %v", split, got, err)
		}
	}
}

// TestReadingGoesOnAtTheRecord stops after every few polls, and reads the rest with other readers.
func TestReadingGoesOnAtTheRecord(t *testing.T) {
	want := readings(0, 300)
	data := filetest.Pack(t, avro.Encoding[reading](schema, avro.BlockSize(1<<10)), want)
	src := avro.Source[reading]("a").On(filetest.Disk(t, map[string][]byte{"a": data})).SplitSize(int64(len(data)) / 3)
	filetest.GoesOn(t, src, 60, func(r reading) int { return int(r.ID) }, want)
}

func TestRestoredToAnotherFileIsAnError(t *testing.T) {
	data := filetest.Pack(t, avro.Encoding[reading](schema, avro.BlockSize(1<<10)), readings(0, 300))
	src := avro.Source[reading]("a").On(filetest.Disk(t, map[string][]byte{"a": data}))
	begin := int64(bytes.Index(data, data[len(data)-16:]) + 16)
	for _, s := range []file.Split{
		{Path: "a", Length: int64(len(data)), Position: 77, Skip: 1},
		{Path: "a", Length: int64(len(data)), Position: begin, Skip: 1000},
	} {
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
		if err == nil || !strings.Contains(err.Error(), fmt.Sprint("read a, offset ", s.Position)) {
			t.Errorf("%+v: %v", s, err)
		}
	}
}

func TestStreamsAndCompressedFilesAreReadFromBeginToEnd(t *testing.T) {
	want := readings(0, 200)
	data := string(filetest.Pack(t, avro.Encoding[reading](schema, avro.BlockSize(1<<12)), want))
	for _, chunk := range []int{1, 7, 4096} {
		got, err := filetest.Decode(avro.Format[reading](""), data, chunk)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("in pieces of %d: %d rows, %v", chunk, len(got), err)
		}
	}
	if _, err := filetest.Decode(avro.Format[reading](""), data[:len(data)-1], 100); !errors.Is(err, avro.ErrDamaged) {
		t.Errorf("cut off: %v", err)
	}
}

// TestSchemasOfReadersAreResolved reads with another schema than a file was written with.
func TestSchemasOfReadersAreResolved(t *testing.T) {
	type newer struct {
		Number float64  `avro:"number"` // long id before
		Value  float64  `avro:"value"`
		Small  int64    `avro:"small"` // int before
		Unit   string   `avro:"unit"`
		Tags   []string `avro:"tags"`
	}
	reader := `{"type": "record", "name": "Reading", "namespace": "sensors", "fields": [
		{"name": "unit", "type": "string", "default": "°C"},
		{"name": "small", "type": "long"},
		{"name": "value", "type": "double"},
		{"name": "number", "type": "double", "aliases": ["id"]},
		{"name": "tags", "type": {"type": "array", "items": "string"}}
	]}`
	m := filetest.Disk(t, map[string][]byte{"a": filetest.Pack(t, avro.Encoding[reading](schema), readings(0, 50))})
	got, err := filetest.Collect(file.New(avro.Format[newer](reader), "a").On(m), 1, 7)
	if err != nil || len(got) != 50 {
		t.Fatalf("%d rows, %v", len(got), err)
	}
	for i, g := range got {
		if want := (newer{float64(i), float64(i) / 4, int64(-i), "°C", readings(i, i+1)[0].Tags}); !reflect.DeepEqual(g, want) {
			t.Errorf("row %d: %+v, want %+v", i, g, want)
		}
	}
	_, err = filetest.Collect(file.New(avro.Format[newer](strings.Replace(reader, `, "default": "°C"`, "", 1)), "a").On(m), 1, 7)
	if err == nil || !strings.Contains(err.Error(), "read a, offset 0: the file's schema does not fit") || !strings.Contains(err.Error(), "unit") {
		t.Errorf("without a default: %v", err)
	}
}

func TestOnlyTheFieldsOfTheStructAreTaken(t *testing.T) {
	type narrow struct {
		Value  float64 `avro:"value"`
		Unused int     `avro:"-"`
		Kind   string  `avro:"kind"`
	}
	m := filetest.Disk(t, map[string][]byte{"a": filetest.Pack(t, avro.Encoding[reading](schema), readings(0, 50))})
	got, err := filetest.Collect(avro.Source[narrow]("a").On(m), 1, 7)
	if err != nil || len(got) != 50 || got[49] != (narrow{Value: 49. / 4, Kind: "HOT"}) {
		t.Errorf("%d rows, %v", len(got), err)
	}
	_, err = filetest.Collect(avro.Source[struct {
		Price float64 `avro:"price"`
	}]("a").On(m), 1, 7)
	if err == nil || !strings.Contains(err.Error(), "no field price") || !strings.Contains(err.Error(), "id, sensor, value") {
		t.Errorf("a field too many: %v", err)
	}
	_, err = filetest.Collect(avro.Source[struct {
		Value string `avro:"value"`
	}]("a").On(m), 1, 7)
	if err == nil || !strings.Contains(err.Error(), "read a, ") || !strings.Contains(err.Error(), "unsupported for Avro double") {
		t.Errorf("another type: %v", err)
	}
}

func TestMistakesAreToldWhenTheJobIsBuilt(t *testing.T) {
	type linked struct {
		Next *linked `avro:"next"`
	}
	const list = `{"type": "record", "name": "L", "fields": [{"name": "next", "type": ["null", "L"]}]}`
	for _, c := range []struct {
		err  error
		text string
	}{
		{avro.Format[reading](`{"type": "nothing"}`).Check(), "nothing"},
		{avro.Format[reading](`{`).Check(), "schema"},
		{avro.Format[int](schema).Check(), "type int for schema record"},
		{avro.Format[struct{ Tags []int64 }](`{"type": "record", "name": "R", "fields": [{"name": "Tags", "type": {"type": "array", "items": "string"}}]}`).Check(), "int64 is unsupported"},
		{avro.Format[map[string]any](`{"type": "record", "name": "R", "fields": [{"name": "Tags", "type": {"type": "array", "items": "null"}}]}`).Check(), "items without bytes"},
		{avro.Format[struct{ Other int }](schema).Check(), "no field Other"},
		{avro.Encoding[reading](`long`).Err, "schema"},
		{avro.Encoding[reading](`"long"`).Err, "reading for schema long"},
		{avro.Encoding[reading](schema, avro.Compression(9)).Err, "codec 9"},
		{avro.Encoding[reading](schema, avro.BlockSize(0)).Err, "blocks of 0 bytes"},
	} {
		if c.err == nil || !strings.Contains(c.err.Error(), c.text) {
			t.Errorf("%v lacks %q", c.err, c.text)
		}
	}
	if w, err := avro.Encoding[reading](`long`).Open(io.Discard); err == nil {
		t.Errorf("opened %v", w)
	}
	for _, err := range []error{avro.Format[linked](list).Check(), avro.Format[reading]("").Check(), avro.Encoding[linked](list).Err} {
		if err != nil {
			t.Error(err)
		}
	}
}

func TestValuesThatTheSchemaDoesNotHoldAreErrors(t *testing.T) {
	w, err := avro.Encoding[reading](schema).Open(io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	bad := readings(0, 2)
	bad[1].Kind = "WARM"
	if err := w.Write(bad); err == nil || !strings.Contains(err.Error(), "record 2") || !strings.Contains(err.Error(), "WARM") {
		t.Errorf("got %v", err)
	}
}

func TestDamagedFilesAreErrorsThatNameThePlace(t *testing.T) {
	data := filetest.Pack(t, avro.Encoding[reading](schema, avro.Compression(avro.Uncompressed), avro.BlockSize(1<<12)), readings(0, 500))
	begin := bytes.Index(data, data[len(data)-16:]) + 16
	change := func(at int, b ...byte) []byte {
		c := bytes.Clone(data)
		copy(c[at:], b)
		return c
	}
	for name, c := range map[string]struct {
		data []byte
		at   int
	}{
		"short":            {[]byte("Obj"), 0},
		"text":             {[]byte("a,b,c\n1,2,3\n4,5,6\n"), 0},
		"half a header":    {data[:100], 0},
		"no schema":        {[]byte("Obj\x01\x00" + strings.Repeat("x", 16)), 0},
		"schema":           {bytes.Replace(data, []byte(`"long"`), []byte(`"lung"`), 1), 0},
		"codec":            {bytes.Replace(data, []byte("null"), []byte("full"), 1), 0},
		"cut":              {data[:len(data)-1], bytes.LastIndex(data[:len(data)-16], data[len(data)-16:]) + 16},
		"more records":     {change(begin, 0xff, 0x7f), begin},
		"fewer records":    {change(begin, 0x82, 0x00), begin},
		"negative":         {change(begin, 0x01, 0x01), begin},
		"a longer block":   {change(begin+2, 0xff, 0xff, 0x7f), begin},
		"a shorter block":  {change(begin+2, 0x02, 0x00), begin},
		"no marker":        {bytes.Replace(data[:len(data)-16], data[len(data)-16:], bytes.Repeat([]byte{7}, 16), -1), 0},
		"a length inside":  {bytes.Replace(data, []byte("\x04s1"), []byte("\xffs1"), 1), begin},
		"header of 2^62":   {[]byte("Obj\x01\x02\xfe\xff\xff\xff\xff\xff\xff\xff\x7f"), 0},
		"a long as length": {[]byte("Obj\x01\x02\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), 0},
	} {
		got, err := filetest.Collect(avro.Source[reading]("d/x").On(filetest.Disk(t, map[string][]byte{"d/x": c.data})), 1, 64)
		e, ok := errors.AsType[*file.Error](err)
		if !ok || e.Path != "d/x" || name != "no marker" && e.Offset != int64(c.at) {
			t.Errorf("%s: %d rows, %v, want offset %d", name, len(got), err, c.at)
		}
	}
}

// container makes a file with one block of one record, without compression.
func container(schema, record string) []byte {
	text := func(b []byte, s string) []byte { return append(binary.AppendVarint(b, int64(len(s))), s...) }
	sync := strings.Repeat("s", 16)
	b := text(text([]byte("Obj\x01\x02"), "avro.schema"), schema)
	return append(text(append(append(b, 0), sync+"\x02"...), record), sync...)
}

// TestLengthsThatCanNotBeEndAtOnce reads records whose lengths would make the library loop for years, or take all memory.
func TestLengthsThatCanNotBeEndAtOnce(t *testing.T) {
	type narrow struct {
		ID int64 `avro:"id"`
	}
	type wide struct {
		ID   int64   `avro:"id"`
		More []int64 `avro:"more"`
	}
	type mapped struct {
		ID   int64            `avro:"id"`
		More map[string]int64 `avro:"more"`
	}
	const huge = "\xfe\xff\xff\xff\xff\xff\xff\xff\x7f"
	record := func(more string) string {
		return `{"type": "record", "name": "R", "fields": [{"name": "more", "type": ` + more + `}, {"name": "id", "type": "long"}]}`
	}
	array, dictionary := record(`{"type": "array", "items": "long"}`), record(`{"type": "map", "values": "long"}`)
	for name, c := range map[string]struct {
		schema, record string
		read           func(m *vfs.Mem) error
	}{
		"an array that is skipped":          {array, huge + "\x02", reads[narrow]},
		"an array of bytes that is skipped": {array, "\x01" + huge + "\x02", reads[narrow]},
		"a map that is skipped":             {dictionary, huge + "\x02", reads[narrow]},
		"a text that is skipped":            {record(`"string"`), huge + "\x02", reads[narrow]},
		"an array":                          {array, huge + "\x02", reads[wide]},
		"an array of some size":             {array, "\x80\x80\x80\x04", reads[wide]},
		"a map":                             {dictionary, huge + "\x00\x02", reads[mapped]},
	} {
		err := c.read(filetest.Disk(t, map[string][]byte{"a": container(c.schema, c.record)}))
		if e, ok := errors.AsType[*file.Error](err); !ok || e.Path != "a" {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := reads[wide](filetest.Disk(t, map[string][]byte{"a": container(array, "\x04\x02\x04\x00\x02")})); err != nil {
		t.Errorf("nothing is wrong: %v", err)
	}
}

func reads[T any](m *vfs.Mem) error {
	_, err := filetest.Collect(avro.Source[T]("a").On(m), 1, 9)
	return err
}

func TestDamagedBlocksAreErrors(t *testing.T) {
	for _, codec := range []avro.Codec{avro.Snappy, avro.Deflate, avro.Zstd} {
		data := filetest.Pack(t, avro.Encoding[reading](schema, avro.Compression(codec), avro.BlockSize(1<<12)), readings(0, 500))
		begin := bytes.Index(data, data[len(data)-16:]) + 16
		for _, at := range []int{20, 60, 100} {
			c := bytes.Clone(data)
			c[begin+at] ^= 0x55
			_, err := filetest.Collect(avro.Source[reading]("x").On(filetest.Disk(t, map[string][]byte{"x": c})), 1, 64)
			if codec == avro.Snappy && !errors.Is(err, avro.ErrDamaged) { // the others have no checksum that must notice
				t.Errorf("codec %d, byte %d: %v", codec, at, err)
			}
		}
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
		w, err := avro.Encoding[reading](schema, avro.BlockSize(1000)).Open(&broken{n})
		if err == nil {
			err = errors.Join(w.Write(readings(0, 500)), w.Close())
		}
		if !errors.Is(err, errBroken) {
			t.Errorf("%d writes: %v", n, err)
		}
	}
}

func TestHeldIsWhatIsNotWritten(t *testing.T) {
	var b bytes.Buffer
	w, err := avro.Encoding[reading](schema, avro.BlockSize(1<<12)).Open(&b)
	if err != nil {
		t.Fatal(err)
	}
	most := int64(0)
	for i := range 100 {
		if err := w.Write(readings(i, i+1)); err != nil {
			t.Fatal(err)
		}
		most = max(most, w.Held())
	}
	if most > 1<<12 || most < 1<<11 || b.Len() < 3000 {
		t.Errorf("%d bytes were held at most, %d are written", most, b.Len())
	}
}
