package avro_test

import (
	"bytes"
	"fmt"
	"math/big"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/flott-dev/flott/connector/avro"
	"github.com/flott-dev/flott/connector/file"
	"github.com/flott-dev/flott/connector/file/filetest"
)

type base struct {
	ID int64 `avro:"id"`
}

type step struct {
	Name string
	Next *step
}

type pair[A, B any] struct {
	Left  A
	Right B
}

type everything struct {
	base
	Yes     bool `avro:"yes,whatever"`
	I8      int8
	I16     int16
	I32     int32
	U8      uint8
	U16     uint16
	U32     uint32
	I       int
	F32     float32
	F64     float64
	Text    string
	Raw     []byte
	Hash    [4]byte
	At      time.Time
	Took    time.Duration
	From    netip.Addr
	Tags    []string
	Counts  map[string]int64
	Comment *string
	Steps   step
	Last    *step
	Pair    pair[int, string]
	Inner   struct{ X, Y float64 }
	Pairs   []pair[int, string]
}

func TestSchemaOfAStructWritesAndReadsIt(t *testing.T) {
	comment := "none"
	want := everything{
		base: base{ID: 1}, Yes: true, I8: -8, I16: -16, I32: -32, U8: 8, U16: 16, U32: 1 << 31, I: -1 << 40, F32: 0.5, F64: 0.25,
		Text: "text", Raw: []byte{1, 2}, Hash: [4]byte{1, 2, 3, 4}, At: time.UnixMicro(1_234_567_890_123_456).UTC(), Took: time.Second + 1,
		From: netip.MustParseAddr("10.0.0.1"), Tags: []string{"a", "b"}, Counts: map[string]int64{"x": 1}, Comment: &comment,
		Steps: step{"first", &step{"second", nil}}, Pair: pair[int, string]{1, "one"}, Pairs: []pair[int, string]{{2, "two"}},
	}
	want.Inner.X = 3
	e := avro.Encoding[everything]("")
	if e.Err != nil {
		t.Fatal(e.Err)
	}
	m := filetest.Disk(t, map[string][]byte{"a": filetest.Pack(t, e, []everything{want})})
	schema, err := avro.SchemaOf[everything]()
	if err != nil {
		t.Fatal(err)
	}
	for name, s := range map[string]string{"the file's": "", "the type's": schema} {
		got, err := filetest.Collect(file.New(avro.Format[everything](s), "a").On(m), 1, 512)
		if err != nil || len(got) != 1 {
			t.Fatalf("%s schema: %v", name, err)
		}
		if got[0].At = got[0].At.UTC(); !reflect.DeepEqual(got[0], want) {
			t.Errorf("%s schema: got\n%+v\nwant\n%+v", name, got[0], want)
		}
	}
}

func TestSchemaOfTypes(t *testing.T) {
	for _, c := range []struct {
		schema func() (string, error)
		want   string
	}{
		{avro.SchemaOf[int64], `"long"`},
		{avro.SchemaOf[Measurement], `{"type":"record","name":"Measurement","fields":[{"name":"sensor","type":"string"},` +
			`{"name":"celsius","type":"double"},{"name":"comment","type":["null","string"],"default":null}]}`},
		{avro.SchemaOf[step], `{"type":"record","name":"step","fields":[{"name":"Name","type":"string"},` +
			`{"name":"Next","type":["null","step"],"default":null}]}`},
		{avro.SchemaOf[struct{ A struct{ B [2]byte } }], `{"type":"record","name":"Record","fields":[{"name":"A","type":` +
			`{"type":"record","name":"Record_A","fields":[{"name":"B","type":{"type":"fixed","name":"Record_A_B","size":2}}]}}]}`},
		{avro.SchemaOf[struct {
			A int
			B any `avro:"-"`
			c int
		}], `{"type":"record","name":"Record","fields":[{"name":"A","type":"long"}]}`},
		{avro.SchemaOf[[]map[string]time.Time], `{"type":"array","items":{"type":"map","values":{"type":"long","logicalType":"timestamp-micros"}}}`},
	} {
		if got, err := c.schema(); got != c.want || err != nil {
			t.Errorf("got %s, %v\nwant %s", got, err, c.want)
		}
	}
	// Two types of one name are two records.
	other := func() (string, error) {
		type step struct{ A int }
		return avro.SchemaOf[pair[step, outer]]()
	}
	if got, err := other(); err != nil || !strings.Contains(got, `"name":"step_2"`) {
		t.Errorf("got %s, %v", got, err)
	}
}

type outer struct{ S step }

func TestTypesWithoutAnAvroSchemaAreNamed(t *testing.T) {
	for _, c := range []struct {
		schema func() (string, error)
		want   string
	}{
		{avro.SchemaOf[struct{ A uint64 }], "field A of struct { A uint64 }: there is no Avro type for uint64: give the schema"},
		{avro.SchemaOf[struct{ A any }], "no Avro type for interface {}"},
		{avro.SchemaOf[struct{ A big.Rat }], "field A of struct { A big.Rat }: big.Rat has no exported fields"},
		{avro.SchemaOf[struct{ A []chan int }], "no Avro type for chan int"},
		{avro.SchemaOf[struct{ A [3]int }], "no Avro type for [3]int"},
		{avro.SchemaOf[struct{ A map[int]string }], "the keys of Avro's maps are texts, not int"},
		{avro.SchemaOf[struct{ A **int }], "no pointers to pointers"},
	} {
		got, err := c.schema()
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %s, %v, want an error with %q", got, err, c.want)
		}
	}
	e := avro.Encoding[struct{ A uint64 }]("")
	if e.Err == nil || !strings.Contains(fmt.Sprint(e.Err), "avro encoding: make an Avro schema of struct { A uint64 }") {
		t.Errorf("encoding: %v", e.Err)
	}
	if _, err := e.Open(&bytes.Buffer{}); err == nil {
		t.Error("it writes all the same")
	}
}

// The library would follow records within themselves until the process has no stack left.
func TestRecordsWithinThemselvesAreReadByTheirOwnSchemaOnly(t *testing.T) {
	want := []step{{"a", &step{"b", nil}}, {"c", nil}}
	m := filetest.Disk(t, map[string][]byte{"a": filetest.Pack(t, avro.Encoding[step](""), want)})
	own, _ := avro.SchemaOf[step]()
	got, err := filetest.Collect(file.New(avro.Format[step](own), "a").On(m), 1, 512)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, %v", got, err)
	}
	other := strings.Replace(own, `"name":"Name","type":"string"`, `"name":"Name","type":"bytes"`, 1)
	if _, err = filetest.Collect(file.New(avro.Format[named](other), "a").On(m), 1, 512); err == nil || !strings.Contains(err.Error(), "record step has itself within it") {
		t.Errorf("another schema: %v", err)
	}
	// A type that comes twice is not within itself.
	type twice struct{ A, B pair[int, string] }
	pairs := []twice{{pair[int, string]{1, "a"}, pair[int, string]{2, "b"}}}
	m = filetest.Disk(t, map[string][]byte{"a": filetest.Pack(t, avro.Encoding[twice](""), pairs)})
	schema, _ := avro.SchemaOf[struct {
		A, B pair[int, string]
		C    *string
	}]()
	type more struct {
		A, B pair[int, string]
		C    *string
	}
	schema = strings.Replace(schema, `"name":"Record"`, `"name":"twice"`, 1)
	wider, err := filetest.Collect(file.New(avro.Format[more](schema), "a").On(m), 1, 512)
	if err != nil || len(wider) != 1 || wider[0].B != pairs[0].B {
		t.Errorf("a wider record: %v, %v", wider, err)
	}
}

type named struct {
	Name []byte
	Next *named
}
