package csv

import (
	"encoding"
	"errors"
	"math"
	"math/big"
	"reflect"
	"strconv"
	"time"
	"unsafe"
)

// errNilField says that a pointer is nil.
var errNilField = errors.New("nil")

// printer appends the text of the value at p.
type printer func(dst []byte, p unsafe.Pointer) ([]byte, error)

// source is a field that is written. Sources are compiled once per type and shared.
type source struct {
	name   string
	offset uintptr
	append printer
	bare   bool // the text never needs quotes
	quoted bool // the field may be nil and an empty one must differ from that
}

func newSource(c *column, o *options) (source, error) {
	s := source{name: c.name, offset: c.offset}
	s.append, s.bare = printerOf(c.typ, o)
	if s.append == nil && c.typ.Kind() == reflect.Pointer {
		inner, bare := printerOf(c.typ.Elem(), o)
		if inner != nil {
			s.append, s.bare, s.quoted = throughPointer(inner), bare, true
		}
	}
	if s.append == nil {
		return source{}, c.refuse()
	}
	s.bare = s.bare && numbersNeedNoQuotes(o)
	return s, nil
}

// numbersNeedNoQuotes tells whether no delimiter or quote can occur in a number or a bool.
func numbersNeedNoQuotes(o *options) bool {
	for _, c := range []byte{o.comma[0], o.delimiter[0], o.quote} {
		if c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || c == '-' || c == '+' || c == '.' {
			return false
		}
	}
	return !o.quoteAll && o.comment == ""
}

func throughPointer(inner printer) printer {
	return func(dst []byte, p unsafe.Pointer) ([]byte, error) {
		v := *(*unsafe.Pointer)(p)
		if v == nil {
			return dst, errNilField
		}
		return inner(dst, v)
	}
}

// printerOf is the printer of a type that is no pointer; nil if there is none.
func printerOf(t reflect.Type, o *options) (p printer, bare bool) {
	switch {
	case t == reflect.TypeFor[time.Time]():
		layout := o.layouts[0]
		return func(dst []byte, p unsafe.Pointer) ([]byte, error) {
			return (*time.Time)(p).AppendFormat(dst, layout), nil
		}, false
	case t == reflect.TypeFor[big.Int]():
		return func(dst []byte, p unsafe.Pointer) ([]byte, error) { return (*big.Int)(p).Append(dst, 10), nil }, true
	case reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextMarshaler]()):
		return textPrinter(t), false
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8:
		return func(dst []byte, p unsafe.Pointer) ([]byte, error) { return append(dst, *(*[]byte)(p)...), nil }, false
	case t.Kind() == reflect.String:
		return func(dst []byte, p unsafe.Pointer) ([]byte, error) { return append(dst, *(*string)(p)...), nil }, false
	case t.Kind() == reflect.Bool:
		return func(dst []byte, p unsafe.Pointer) ([]byte, error) { return strconv.AppendBool(dst, *(*bool)(p)), nil }, true
	}
	return numberPrinter(t.Kind()), true
}

// textPrinter uses MarshalText, with an interface value made once; see textConverter.
func textPrinter(t reflect.Type) printer {
	prototype := reflect.New(t).Interface().(encoding.TextMarshaler)
	return func(dst []byte, p unsafe.Pointer) ([]byte, error) {
		field := prototype
		(*[2]unsafe.Pointer)(unsafe.Pointer(&field))[1] = p
		text, err := field.MarshalText()
		return append(dst, text...), err
	}
}

func numberPrinter(k reflect.Kind) printer {
	switch k {
	case reflect.Int:
		return signed[int]
	case reflect.Int8:
		return signed[int8]
	case reflect.Int16:
		return signed[int16]
	case reflect.Int32:
		return signed[int32]
	case reflect.Int64:
		return signed[int64]
	case reflect.Uint:
		return unsigned[uint]
	case reflect.Uint8:
		return unsigned[uint8]
	case reflect.Uint16:
		return unsigned[uint16]
	case reflect.Uint32:
		return unsigned[uint32]
	case reflect.Uint64:
		return unsigned[uint64]
	case reflect.Float32:
		return func(dst []byte, p unsafe.Pointer) ([]byte, error) {
			return appendFloat(dst, float64(*(*float32)(p)), 32), nil
		}
	case reflect.Float64:
		return func(dst []byte, p unsafe.Pointer) ([]byte, error) { return appendFloat(dst, *(*float64)(p), 64), nil }
	}
	return nil
}

func signed[N int | int8 | int16 | int32 | int64](dst []byte, p unsafe.Pointer) ([]byte, error) {
	return strconv.AppendInt(dst, int64(*(*N)(p)), 10), nil
}

func unsigned[N uint | uint8 | uint16 | uint32 | uint64](dst []byte, p unsafe.Pointer) ([]byte, error) {
	return strconv.AppendUint(dst, uint64(*(*N)(p)), 10), nil
}

// appendFloat writes the shortest text that is read as the same number, with an exponent only if it is far from 1.
func appendFloat(dst []byte, x float64, bits int) []byte {
	switch {
	case math.IsInf(x, 1):
		return append(dst, "Infinity"...)
	case math.IsInf(x, -1):
		return append(dst, "-Infinity"...)
	}
	form := byte('f')
	if a := math.Abs(x); a != 0 && (a < 1e-6 || a >= 1e21) {
		form = 'e'
	}
	return strconv.AppendFloat(dst, x, form, -1, bits)
}
