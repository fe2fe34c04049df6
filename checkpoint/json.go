package checkpoint

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json/jsontext"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/flott-dev/flott/serde"
)

// AppendJSON appends the value at the front of b, in the value encoding of the schema, as JSON, and says how many bytes it
// took. It needs no Go type. Structs become objects with their fields in order, slices and arrays become arrays, maps objects
// if their keys are strings, integers or bools and arrays of [key, value] otherwise, nil null, a type of a closed set an
// object with its name, times RFC 3339 text, complex numbers [real, imaginary], floats that JSON can't say "NaN", "+Inf" or
// "-Inf", byte slices and bytes that user code makes base64 text. Without a schema all of b is such bytes.
//
// A string that is no UTF-8 can be no text in JSON: it becomes an object with its bytes, {"base64":"/w=="}, so that different
// strings stay different and none is lost. See TextAsName for where only a text may stand.
func AppendJSON(dst []byte, s *serde.Schema, b []byte) (out []byte, used int, err error) {
	if s == nil {
		return appendBase64(dst, b), len(b), nil
	}
	w := jsonWriter{dst: dst, b: b}
	if err := w.value(shape{Schema: s}, maxNesting); err != nil {
		return dst, 0, fmt.Errorf("decode value of schema %.200s at byte %d: %w", s, len(b)-len(w.b), err)
	}
	return w.dst, len(b) - len(w.b), nil
}

// AppendKeyJSON appends a canonical key (or map key, or namespace), all of b, as JSON as AppendJSON does.
func AppendKeyJSON(dst []byte, s *serde.Schema, b []byte) ([]byte, error) {
	if s == nil {
		return appendBase64(dst, b), nil
	}
	fixed, varying := keyParts(s)
	w := jsonWriter{dst: dst, b: b, key: true, alone: fixed == 0 && varying == 1}
	err := w.value(shape{Schema: s}, maxNesting)
	if err == nil && len(w.b) > 0 {
		err = fmt.Errorf("%d bytes too many", len(w.b))
	}
	if err != nil {
		return dst, fmt.Errorf("decode key of schema %.200s at byte %d: %w", s, len(b)-len(w.b), err)
	}
	return w.dst, nil
}

// maxNesting bounds how deep values nest; structs and arrays count, which they do not in package serde.
const maxNesting = 80_000

// keyParts counts the parts of a key with a fixed width and those without, each up to 2.
func keyParts(s *serde.Schema) (fixed, varying int) {
	switch s.Kind {
	case serde.String, serde.Custom:
		return 0, 1
	case serde.Array:
		fixed, varying = keyParts(s.Elem)
		return min(2, fixed*min(2, s.Len)), min(2, varying*min(2, s.Len))
	case serde.Struct:
		for _, f := range s.Fields {
			a, b := keyParts(f.Schema)
			fixed, varying = min(2, fixed+a), min(2, varying+b)
		}
		return fixed, varying
	}
	return 1, 0
}

// shape is a schema with those around it, to which recursions lead.
type shape struct {
	*serde.Schema
	outer []*serde.Schema
}

// part is a schema inside of s.
func (s shape) part(inner *serde.Schema) (shape, error) {
	outer := append(s.outer[:len(s.outer):len(s.outer)], s.Schema)
	for inner.Kind == serde.Recursion {
		at := len(outer) - inner.Len
		if at < 0 || inner.Len < 1 {
			return shape{}, errors.New("its schema's recursion leads nowhere")
		}
		inner, outer = outer[at], outer[:at]
	}
	return shape{inner, outer}, nil
}

// jsonWriter turns encoded bytes into JSON.
type jsonWriter struct {
	dst, b []byte
	key    bool // the canonical encoding of keys
	alone  bool // a key of one part, without a length
}

func (w *jsonWriter) take(n int) ([]byte, error) {
	if n > len(w.b) {
		return nil, errCut
	}
	b := w.b[:n]
	w.b = w.b[n:]
	return b, nil
}

// number reads a number of n bytes.
func (w *jsonWriter) number(n int) (uint64, error) {
	b, err := w.take(n)
	if err != nil {
		return 0, err
	}
	var word [8]byte
	copy(word[:], b)
	return binary.LittleEndian.Uint64(word[:]), nil
}

func (w *jsonWriter) uvarint() (uint64, error) {
	v, n := binary.Uvarint(w.b)
	if n <= 0 {
		return 0, errCut
	}
	w.b = w.b[n:]
	return v, nil
}

// text reads a length and bytes, or, in a key of one part, all that is left.
func (w *jsonWriter) text() ([]byte, error) {
	if w.alone {
		return w.take(len(w.b))
	}
	n, err := w.uvarint()
	if err == nil && n > uint64(len(w.b)) {
		err = errCut
	}
	if err != nil {
		return nil, err
	}
	return w.take(int(n))
}

func (w *jsonWriter) value(s shape, depth int) error {
	if depth == 0 {
		return errors.New("nested too deep")
	}
	switch s.Kind {
	case serde.Bool, serde.Int8, serde.Int16, serde.Int32, serde.Int64, serde.Uint8, serde.Uint16, serde.Uint32, serde.Uint64,
		serde.Float32, serde.Float64, serde.Complex64, serde.Complex128:
		return w.scalar(s.Kind)
	case serde.String:
		b, err := w.text()
		w.dst = appendText(w.dst, b)
		return err
	case serde.Custom:
		b, err := w.text()
		w.dst = appendBase64(w.dst, b)
		return err
	case serde.Time:
		return w.time()
	case serde.Struct:
		return w.fields(s, depth)
	case serde.Array:
		if n := nothings(s.Schema); n > maxNothings {
			return errors.New("an array of many elements that take no bytes")
		}
		return w.elements(s, s.Len, depth)
	}
	if w.key {
		return fmt.Errorf("a key holds a %v", s.Kind)
	}
	switch s.Kind {
	case serde.Slice, serde.Map:
		return w.many(s, depth)
	case serde.Pointer:
		return w.pointer(s, depth)
	case serde.Interface:
		return w.oneOf(s, depth)
	}
	return fmt.Errorf("unknown kind %v", s.Kind)
}

func (w *jsonWriter) scalar(k serde.Kind) error {
	n, _ := fixedWidth(&serde.Schema{Kind: k}, 0)
	if k == serde.Complex64 || k == serde.Complex128 {
		part := serde.Float32 + (k - serde.Complex64)
		w.dst = append(w.dst, '[')
		if err := w.scalar(part); err != nil {
			return err
		}
		w.dst = append(w.dst, ',')
		err := w.scalar(part)
		w.dst = append(w.dst, ']')
		return err
	}
	v, err := w.number(n)
	if err != nil {
		return err
	}
	switch k {
	case serde.Bool:
		if v > 1 {
			return fmt.Errorf("a bool of %d", v)
		}
		w.dst = strconv.AppendBool(w.dst, v == 1)
	case serde.Float32:
		w.dst = appendFloat(w.dst, float64(math.Float32frombits(uint32(v))), 32)
	case serde.Float64:
		w.dst = appendFloat(w.dst, math.Float64frombits(v), 64)
	case serde.Uint8, serde.Uint16, serde.Uint32, serde.Uint64:
		w.dst = strconv.AppendUint(w.dst, v, 10)
	default:
		shift := 64 - 8*n
		w.dst = strconv.AppendInt(w.dst, int64(v<<shift)>>shift, 10)
	}
	return nil
}

func (w *jsonWriter) time() error {
	seconds, err := w.number(8)
	if err != nil {
		return err
	}
	nanos, err := w.number(4)
	if err != nil {
		return err
	}
	if nanos > 999_999_999 {
		return errors.New("a time with more than 999999999 nanoseconds")
	}
	t := time.Unix(int64(seconds), int64(nanos)).UTC()
	if !w.key {
		offset, err := w.number(4)
		if err != nil {
			return err
		}
		if o := int(int32(offset)); o != 0 && o%60 == 0 { // RFC 3339 has no seconds of offsets, as local mean times do
			t = t.In(time.FixedZone("", o))
		}
	}
	w.dst = append(w.dst, '"')
	w.dst = t.AppendFormat(w.dst, time.RFC3339Nano)
	w.dst = append(w.dst, '"')
	return nil
}

func (w *jsonWriter) fields(s shape, depth int) error {
	w.dst = append(w.dst, '{')
	for i, f := range s.Fields {
		if i > 0 {
			w.dst = append(w.dst, ',')
		}
		w.dst = append(appendName(w.dst, f.Name), ':')
		if err := w.inner(s, f.Schema, depth); err != nil {
			return err
		}
	}
	w.dst = append(w.dst, '}')
	return nil
}

// inner writes a value of a schema inside of s.
func (w *jsonWriter) inner(s shape, inner *serde.Schema, depth int) error {
	p, err := s.part(inner)
	if err != nil {
		return err
	}
	return w.value(p, depth-1)
}

// elements writes n elements of an array or slice.
func (w *jsonWriter) elements(s shape, n, depth int) error {
	w.dst = append(w.dst, '[')
	for i := range n {
		if i > 0 {
			w.dst = append(w.dst, ',')
		}
		if err := w.inner(s, s.Elem, depth); err != nil {
			return err
		}
	}
	w.dst = append(w.dst, ']')
	return nil
}

// many writes a slice or a map.
func (w *jsonWriter) many(s shape, depth int) error {
	n, err := w.uvarint()
	if err != nil {
		return err
	}
	if n == 0 {
		w.dst = append(w.dst, "null"...)
		return nil
	}
	n--
	if n > uint64(len(w.b)) && (s.Kind == serde.Slice || n > 1) {
		return errCut
	}
	switch {
	case s.Kind == serde.Map:
		return w.entries(s, int(n), depth)
	case s.Elem.Kind == serde.Uint8:
		b, err := w.take(int(n))
		w.dst = appendBase64(w.dst, b)
		return err
	case empty(s.Elem):
		return w.zeros(s, int(n), depth)
	}
	return w.elements(s, int(n), depth)
}

// empty says whether values of the schema take no bytes.
func empty(s *serde.Schema) bool {
	if s.Kind == serde.Array {
		return s.Len == 0 || empty(s.Elem)
	}
	if s.Kind != serde.Struct {
		return false
	}
	for _, f := range s.Fields {
		if !empty(f.Schema) {
			return false
		}
	}
	return true
}

// maxNothings bounds how many values without bytes one array holds: nothing else would.
const maxNothings = 1 << 10

// nothings is how many values without bytes are inside of one, up to some more than maxNothings.
func nothings(s *serde.Schema) int {
	if !empty(s) {
		return 0
	}
	n := 1
	switch s.Kind {
	case serde.Array:
		n += min(s.Len, maxNothings+1) * nothings(s.Elem)
	case serde.Struct:
		for _, f := range s.Fields {
			n += nothings(f.Schema)
		}
	}
	return min(n, maxNothings+1)
}

// zeros writes a slice of elements that take no bytes: each stands as one 0.
func (w *jsonWriter) zeros(s shape, n, depth int) error {
	w.dst = append(w.dst, '[')
	for i := range n {
		if i > 0 {
			w.dst = append(w.dst, ',')
		}
		if b, err := w.take(1); err != nil {
			return err
		} else if b[0] != 0 {
			return fmt.Errorf("%d for an element that takes no bytes", b[0])
		}
		if err := w.inner(s, s.Elem, depth); err != nil {
			return err
		}
	}
	w.dst = append(w.dst, ']')
	return nil
}

func (w *jsonWriter) entries(s shape, n, depth int) error {
	quote, object := keyQuote(s.Key.Kind)
	open, end := byte('['), byte(']')
	if object {
		open, end = '{', '}'
	}
	w.dst = append(w.dst, open)
	for i := range n {
		if i > 0 {
			w.dst = append(w.dst, ',')
		}
		if !object {
			w.dst = append(w.dst, '[')
		}
		if err := w.entryKey(s, quote, depth); err != nil {
			return err
		}
		if object {
			w.dst = append(w.dst, ':')
		} else {
			w.dst = append(w.dst, ',')
		}
		if err := w.inner(s, s.Elem, depth); err != nil {
			return err
		}
		if !object {
			w.dst = append(w.dst, ']')
		}
	}
	w.dst = append(w.dst, end)
	return nil
}

// entryKey writes the key of an entry of a map between its quotes.
func (w *jsonWriter) entryKey(s shape, quote string, depth int) error {
	if s.Key.Kind == serde.String {
		b, err := w.text()
		w.dst = appendName(w.dst, string(b))
		return err
	}
	w.dst = append(w.dst, quote...)
	err := w.inner(s, s.Key, depth)
	w.dst = append(w.dst, quote...)
	return err
}

// keyQuote says whether map keys of a kind are names of an object, and what has to stand around them.
func keyQuote(k serde.Kind) (quote string, object bool) {
	switch {
	case k == serde.String:
		return "", true
	case k >= serde.Bool && k <= serde.Uint64:
		return `"`, true
	}
	return "", false
}

func (w *jsonWriter) pointer(s shape, depth int) error {
	set, err := w.number(1)
	if err != nil {
		return err
	}
	switch set {
	case 0:
		w.dst = append(w.dst, "null"...)
		return nil
	case 1:
		return w.inner(s, s.Elem, depth)
	}
	return fmt.Errorf("a pointer of %d", set)
}

// oneOf writes a value of a closed set.
func (w *jsonWriter) oneOf(s shape, depth int) error {
	n, err := w.uvarint()
	if err != nil {
		return err
	}
	if n == 0 {
		w.dst = append(w.dst, "null"...)
		return nil
	}
	if n > uint64(len(s.Fields)) {
		return fmt.Errorf("type %d of %d", n, len(s.Fields))
	}
	f := s.Fields[n-1]
	w.dst = append(appendName(append(w.dst, '{'), f.Name), ':')
	err = w.inner(s, f.Schema, depth)
	w.dst = append(w.dst, '}')
	return err
}

// appendText appends text as JSON: as an object with its bytes if it is no UTF-8.
func appendText(dst, text []byte) []byte {
	if !utf8.Valid(text) {
		return append(appendBase64(append(dst, bytesName...), text), '}')
	}
	dst, _ = jsontext.AppendQuote(dst, text)
	return dst
}

// appendName appends text as the name of a field of an object.
func appendName(dst []byte, text string) []byte {
	dst, _ = jsontext.AppendQuote(dst, TextAsName(text))
	return dst
}

// bytesName is how a text that is no UTF-8 begins, in AppendJSON and TextAsName.
const bytesName = `{"base64":`

// TextAsName is a string as a text that is UTF-8, for what has nothing else: names of the fields of JSON objects, cells of CSV
// files, text columns of Parquet files. One that is no UTF-8 becomes what AppendJSON makes of it, {"base64":"/w=="}, and so does
// one that begins with {"base64": itself, so that each such text means one string. All others stay as they are.
func TextAsName(text string) string {
	if utf8.ValidString(text) && !strings.HasPrefix(text, bytesName) {
		return text
	}
	return string(append(appendBase64([]byte(bytesName), []byte(text)), '}'))
}

func appendBase64(dst, b []byte) []byte {
	dst = append(dst, '"')
	dst = base64.StdEncoding.AppendEncode(dst, b)
	return append(dst, '"')
}

func appendFloat(dst []byte, v float64, bits int) []byte {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return append(append(append(dst, '"'), strconv.FormatFloat(v, 'g', -1, bits)...), '"')
	}
	return strconv.AppendFloat(dst, v, 'g', -1, bits)
}
