package checkpoint

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"math"

	"github.com/flott-dev/flott/serde"
)

// encoder writes the fields of manifests and parts. Strings are written once and named by number afterwards, since the
// parts of all subtasks repeat names and schemas.
type encoder struct {
	b       []byte
	strings map[string]uint64
}

func newEncoder(b []byte) *encoder { return &encoder{b: b, strings: map[string]uint64{}} }

func (e *encoder) byte(b byte)      { e.b = append(e.b, b) }
func (e *encoder) uint(v uint64)    { e.b = binary.AppendUvarint(e.b, v) }
func (e *encoder) int(v int64)      { e.b = binary.AppendVarint(e.b, v) }
func (e *encoder) raw(b []byte)     { e.b = append(e.b, b...) }
func (e *encoder) fixed64(v uint64) { e.b = binary.LittleEndian.AppendUint64(e.b, v) }

func (e *encoder) bytes(b []byte) {
	e.uint(uint64(len(b)))
	e.raw(b)
}

func (e *encoder) bool(b bool) {
	if b {
		e.byte(1)
	} else {
		e.byte(0)
	}
}

// string writes 0, a length and bytes, or the number of an earlier string, counted from 1.
func (e *encoder) string(s string) {
	if n, ok := e.strings[s]; ok {
		e.uint(n)
		return
	}
	e.strings[s] = uint64(len(e.strings) + 1)
	e.uint(0)
	e.uint(uint64(len(s)))
	e.b = append(e.b, s...)
}

// schema writes the text of a schema; none is an empty text.
func (e *encoder) schema(s *serde.Schema) {
	if s == nil {
		e.string("")
		return
	}
	e.string(s.String())
}

// decoder reads what an encoder wrote. The first error stays; after it every read gives a zero value.
type decoder struct {
	b       []byte
	version uint32 // of the format
	err     error
	strings []string
	schemas map[string]*serde.Schema
}

func newDecoder(b []byte) *decoder { return &decoder{b: b, schemas: map[string]*serde.Schema{"": nil}} }

var errCut = errors.New("it ends too early")

func (d *decoder) fail(err error) {
	if d.err == nil {
		d.err, d.b = err, nil
	}
}

// take gives the next n bytes, which are those of the input.
func (d *decoder) take(n uint64) []byte {
	if n > uint64(len(d.b)) {
		d.fail(errCut)
		return nil
	}
	b := d.b[:n:n]
	d.b = d.b[n:]
	return b
}

func (d *decoder) byte() byte {
	if b := d.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (d *decoder) bool() bool {
	b := d.byte()
	if b > 1 {
		d.fail(fmt.Errorf("%d where 0 or 1 should be", b))
	}
	return b == 1
}

// uint reads a varint in its shortest form.
func (d *decoder) uint() uint64 {
	v, n := binary.Uvarint(d.b)
	switch {
	case n == 0:
		d.fail(errCut)
		return 0
	case n < 0 || n > 1 && d.b[n-1] == 0:
		d.fail(errors.New("a number that is too long"))
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *decoder) int() int64 {
	v := d.uint()
	return int64(v>>1) ^ -int64(v&1)
}

// number reads a number that is at most limit.
func (d *decoder) number(limit uint64) int {
	v := d.uint()
	if v > limit {
		d.fail(fmt.Errorf("%d, where at most %d is possible", v, limit))
		return 0
	}
	return int(v)
}

// items counts through things that follow, each of which takes at least so many bytes, as long as there is no error.
func (d *decoder) items(least int) iter.Seq[int] {
	return func(yield func(int) bool) {
		for i := range d.count(least) {
			if d.err != nil || !yield(i) {
				return
			}
		}
	}
}

// count reads how many things follow, each of which takes at least so many bytes: what is allocated for them stays in
// proportion to the input.
func (d *decoder) count(least int) int {
	v := d.uint()
	if v > uint64(len(d.b)/least) {
		d.fail(errCut)
		return 0
	}
	return int(v)
}

func (d *decoder) fixed64() uint64 {
	if b := d.take(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

// bytes gives a copy.
func (d *decoder) bytes() []byte {
	b := d.take(d.uint())
	if d.err != nil {
		return nil
	}
	return append([]byte{}, b...)
}

func (d *decoder) string() string {
	n := d.uint()
	switch {
	case n == 0:
		s := string(d.take(d.uint()))
		if d.err == nil {
			d.strings = append(d.strings, s)
		}
		return s
	case n > uint64(len(d.strings)):
		d.fail(fmt.Errorf("string %d of %d", n, len(d.strings)))
		return ""
	}
	return d.strings[n-1]
}

func (d *decoder) schema() *serde.Schema {
	text := d.string()
	if s, ok := d.schemas[text]; ok || d.err != nil {
		return s
	}
	s, err := serde.ParseSchema(text)
	if err != nil {
		d.fail(err)
		return nil
	}
	d.schemas[text] = s
	return s
}

// end fails unless everything was read.
func (d *decoder) end() error {
	if d.err == nil && len(d.b) > 0 {
		d.fail(fmt.Errorf("%d bytes too many", len(d.b)))
	}
	return d.err
}

// maxRows bounds numbers of rows, so that sums of them can't overflow.
const maxRows = math.MaxInt64 >> 16
