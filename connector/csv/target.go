package csv

import (
	"bytes"
	"encoding"
	"errors"
	"math"
	"math/big"
	"reflect"
	"strconv"
	"strings"
	"time"
	"unsafe"
)

// kind is how the text of a field becomes a value.
type kind uint8

const (
	kindOther kind = iota // by target.convert
	kindString
	kindBytes
	kindBool
	kindInt
	kindInt8
	kindInt16
	kindInt32
	kindInt64
	kindUint
	kindUint8
	kindUint16
	kindUint32
	kindUint64
	kindFloat32
	kindFloat64
)

// converter sets the value at p.
type converter func(p unsafe.Pointer, text []byte) error

// target is a field that is set. Targets are compiled once per type and shared.
type target struct {
	name     string
	offset   uintptr
	kind     kind
	nullable bool // a pointer: empty is nil
	verbatim bool // empty text is a value
	convert  converter
}

func newTarget(c *column, o *options) (target, error) {
	t := target{name: c.name, offset: c.offset}
	t.kind, t.convert = convertTo(c.typ, o)
	t.verbatim = t.kind == kindString || t.kind == kindBytes
	if t.kind == kindOther && t.convert == nil && c.typ.Kind() == reflect.Pointer {
		t.nullable = true
		t.convert = pointerTo(c.typ.Elem(), o)
		inner, _ := convertTo(c.typ.Elem(), o)
		t.verbatim = inner == kindString || inner == kindBytes
	}
	if t.kind == kindOther && t.convert == nil {
		return target{}, c.refuse()
	}
	return t, nil
}

// convertTo is the kind of a type, or a converter for it; neither if it is no column or a pointer.
func convertTo(t reflect.Type, o *options) (kind, converter) {
	switch {
	case t == reflect.TypeFor[time.Time]():
		return kindOther, timeConverter(o)
	case t == reflect.TypeFor[big.Int]():
		return kindOther, setBigInt
	case reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()):
		return kindOther, textConverter(t)
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8:
		return kindBytes, nil
	}
	switch t.Kind() {
	case reflect.String:
		return kindString, nil
	case reflect.Bool:
		return kindBool, nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return kindInt + kind(t.Kind()-reflect.Int), nil
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return kindUint + kind(t.Kind()-reflect.Uint), nil
	case reflect.Float32:
		return kindFloat32, nil
	case reflect.Float64:
		return kindFloat64, nil
	}
	return kindOther, nil
}

// textConverter makes an interface value of the type once and puts the address of the field into a copy of it, so that
// nothing is looked up per element.
func textConverter(t reflect.Type) converter {
	prototype := reflect.New(t).Interface().(encoding.TextUnmarshaler)
	return func(p unsafe.Pointer, text []byte) error {
		field := prototype
		(*[2]unsafe.Pointer)(unsafe.Pointer(&field))[1] = p // the data word of an interface that holds a pointer
		return field.UnmarshalText(text)
	}
}

func setBigInt(p unsafe.Pointer, text []byte) error {
	if _, ok := (*big.Int)(p).SetString(string(text), 10); !ok || text[0] == '+' {
		return ErrSyntax
	}
	return nil
}

func timeConverter(o *options) converter {
	layouts, location := o.layouts, o.location
	return func(p unsafe.Pointer, text []byte) error {
		s := unsafe.String(unsafe.SliceData(text), len(text))
		if tooFine(text) {
			return ErrSyntax
		}
		for _, layout := range layouts {
			if t, err := time.ParseInLocation(layout, s, location); err == nil {
				*(*time.Time)(p) = t
				return nil
			}
		}
		return ErrSyntax
	}
}

// tooFine tells whether a time has more than nine digits behind the point, which package time cuts off.
func tooFine(text []byte) bool {
	i := bytes.LastIndexAny(text, ".,")
	if i < 0 {
		return false
	}
	n := 0
	for _, c := range text[i+1:] {
		if c < '0' || c > '9' {
			break
		}
		n++
	}
	return n > 9
}

// set converts the text of a field. What a string or a slice becomes points into text.
func (t *target) set(row unsafe.Pointer, text []byte) error {
	p := unsafe.Add(row, t.offset)
	switch t.kind {
	case kindString:
		*(*string)(p) = unsafe.String(unsafe.SliceData(text), len(text))
	case kindBytes:
		*(*[]byte)(p) = text[:len(text):len(text)]
	case kindInt64:
		n, err := parseInt(text, 64)
		*(*int64)(p) = n
		return err
	case kindInt:
		n, err := parseInt(text, strconv.IntSize)
		*(*int)(p) = int(n)
		return err
	case kindFloat64:
		x, err := parseFloat(text, 64)
		*(*float64)(p) = x
		return err
	case kindInt8, kindInt16, kindInt32:
		return setSmallInt(t.kind, p, text)
	case kindUint, kindUint8, kindUint16, kindUint32, kindUint64:
		return setUint(t.kind, p, text)
	case kindFloat32:
		x, err := parseFloat(text, 32)
		*(*float32)(p) = float32(x)
		return err
	case kindBool:
		b, err := parseBool(text)
		*(*bool)(p) = b
		return err
	default:
		if len(text) == 0 && !t.verbatim {
			return ErrEmpty
		}
		return t.convert(p, text)
	}
	return nil
}

func setSmallInt(k kind, p unsafe.Pointer, text []byte) error {
	n, err := parseInt(text, 8<<(k-kindInt8))
	switch k {
	case kindInt8:
		*(*int8)(p) = int8(n)
	case kindInt16:
		*(*int16)(p) = int16(n)
	default:
		*(*int32)(p) = int32(n)
	}
	return err
}

func setUint(k kind, p unsafe.Pointer, text []byte) error {
	switch k {
	case kindUint8:
		n, err := parseUint(text, math.MaxUint8)
		*(*uint8)(p) = uint8(n)
		return err
	case kindUint16:
		n, err := parseUint(text, math.MaxUint16)
		*(*uint16)(p) = uint16(n)
		return err
	case kindUint32:
		n, err := parseUint(text, math.MaxUint32)
		*(*uint32)(p) = uint32(n)
		return err
	case kindUint:
		n, err := parseUint(text, math.MaxUint)
		*(*uint)(p) = uint(n)
		return err
	default:
		n, err := parseUint(text, math.MaxUint64)
		*(*uint64)(p) = n
		return err
	}
}

// parseInt takes an optional minus sign and digits.
func parseInt(text []byte, bits int) (int64, error) {
	negative := len(text) > 0 && text[0] == '-'
	most := uint64(1)<<(bits-1) - 1
	if negative {
		text = text[1:]
		most++
	}
	n, err := parseUint(text, most)
	if negative {
		return -int64(n), err
	}
	return int64(n), err
}

func parseUint(text []byte, most uint64) (uint64, error) {
	if len(text) == 0 {
		return 0, ErrEmpty
	}
	var n uint64
	var over bool
	for _, c := range text {
		c -= '0'
		if c > 9 {
			return 0, ErrSyntax
		}
		if n > (math.MaxUint64-9)/10 && (n > math.MaxUint64/10 || n*10 > math.MaxUint64-uint64(c)) {
			over = true
		}
		n = n*10 + uint64(c)
	}
	if over || n > most {
		return 0, ErrRange
	}
	return n, nil
}

// parseFloat takes decimal numbers, NaN and Infinity, as Java writes them; not the other forms that Go knows.
func parseFloat(text []byte, bits int) (float64, error) {
	if len(text) == 0 {
		return 0, ErrEmpty
	}
	s := unsafe.String(unsafe.SliceData(text), len(text))
	for _, c := range text {
		if c-'0' <= 9 || c == '.' || c == '-' || c == 'e' || c == 'E' || c == '+' {
			continue
		}
		if word := strings.TrimLeft(s[:1], "+-") + s[1:]; word != "NaN" && word != "Infinity" {
			return 0, ErrSyntax
		}
		break
	}
	x, err := strconv.ParseFloat(s, bits)
	switch {
	case err == nil:
		return x, nil
	case errors.Is(err, strconv.ErrRange):
		return 0, ErrRange
	}
	return 0, ErrSyntax
}

// parseBool takes true and false in any case, 1 and 0.
func parseBool(text []byte) (bool, error) {
	switch {
	case len(text) == 0:
		return false, ErrEmpty
	case len(text) == 1 && text[0]-'0' <= 1:
		return text[0] == '1', nil
	case len(text) == 4 && strings.EqualFold(string(text), "true"):
		return true, nil
	case len(text) == 5 && strings.EqualFold(string(text), "false"):
		return false, nil
	}
	return false, ErrSyntax
}
