package fields

import (
	"cmp"
	"fmt"
	"reflect"
	"time"
	"unsafe"
)

// Adder returns the function that adds the field at x to that at acc, both addresses of elements. Integers wrap around.
func (f Field) Adder() (func(acc, x unsafe.Pointer), error) {
	at := f.Offset
	switch f.Type.Kind() {
	case reflect.Int:
		return add[int](at), nil
	case reflect.Int8:
		return add[int8](at), nil
	case reflect.Int16:
		return add[int16](at), nil
	case reflect.Int32:
		return add[int32](at), nil
	case reflect.Int64:
		return add[int64](at), nil
	case reflect.Uint:
		return add[uint](at), nil
	case reflect.Uint8:
		return add[uint8](at), nil
	case reflect.Uint16:
		return add[uint16](at), nil
	case reflect.Uint32:
		return add[uint32](at), nil
	case reflect.Uint64:
		return add[uint64](at), nil
	case reflect.Float32:
		return add[float32](at), nil
	case reflect.Float64:
		return add[float64](at), nil
	case reflect.Complex64:
		return add[complex64](at), nil
	case reflect.Complex128:
		return add[complex128](at), nil
	}
	return nil, fmt.Errorf("field %q is of type %s, which can't be added up", f.Path, f.Type)
}

type addable interface {
	int | int8 | int16 | int32 | int64 | uint | uint8 | uint16 | uint32 | uint64 | float32 | float64 | complex64 | complex128
}

func add[N addable](at uintptr) func(acc, x unsafe.Pointer) {
	return func(acc, x unsafe.Pointer) { *(*N)(unsafe.Add(acc, at)) += *(*N)(unsafe.Add(x, at)) }
}

// Order is how the values of a field are compared and copied; both functions take addresses of elements.
type Order struct {
	Compare func(a, b unsafe.Pointer) int
	Assign  func(dst, src unsafe.Pointer)
}

// Order returns the order of the field: of numbers, strings, bools (false first) and times. A NaN is greater than every
// number, as in Java.
func (f Field) Order() (Order, error) {
	at := f.Offset
	if f.Type == reflect.TypeFor[time.Time]() {
		return Order{compareTimes(at), assign[time.Time](at)}, nil
	}
	switch f.Type.Kind() {
	case reflect.Int:
		return ordered[int](at), nil
	case reflect.Int8:
		return ordered[int8](at), nil
	case reflect.Int16:
		return ordered[int16](at), nil
	case reflect.Int32:
		return ordered[int32](at), nil
	case reflect.Int64:
		return ordered[int64](at), nil
	case reflect.Uint:
		return ordered[uint](at), nil
	case reflect.Uint8:
		return ordered[uint8](at), nil
	case reflect.Uint16:
		return ordered[uint16](at), nil
	case reflect.Uint32:
		return ordered[uint32](at), nil
	case reflect.Uint64:
		return ordered[uint64](at), nil
	case reflect.Float32:
		return ordered[float32](at), nil
	case reflect.Float64:
		return ordered[float64](at), nil
	case reflect.String:
		return ordered[string](at), nil
	case reflect.Bool:
		return Order{compareBools(at), assign[bool](at)}, nil
	}
	return Order{}, fmt.Errorf("field %q is of type %s, which has no order", f.Path, f.Type)
}

// Compare orders values as Java does: a NaN is greater than every number and equal to itself.
func Compare[V cmp.Ordered](a, b V) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	case a == b:
		return 0
	case a == a: // b is NaN
		return -1
	case b == b:
		return 1
	}
	return 0
}

func ordered[V cmp.Ordered](at uintptr) Order {
	return Order{
		Compare: func(a, b unsafe.Pointer) int { return Compare(*(*V)(unsafe.Add(a, at)), *(*V)(unsafe.Add(b, at))) },
		Assign:  assign[V](at),
	}
}

func assign[V any](at uintptr) func(dst, src unsafe.Pointer) {
	return func(dst, src unsafe.Pointer) { *(*V)(unsafe.Add(dst, at)) = *(*V)(unsafe.Add(src, at)) }
}

func compareTimes(at uintptr) func(a, b unsafe.Pointer) int {
	return func(a, b unsafe.Pointer) int {
		return (*(*time.Time)(unsafe.Add(a, at))).Compare(*(*time.Time)(unsafe.Add(b, at)))
	}
}

func compareBools(at uintptr) func(a, b unsafe.Pointer) int {
	return func(a, b unsafe.Pointer) int {
		x, y := *(*bool)(unsafe.Add(a, at)), *(*bool)(unsafe.Add(b, at))
		switch {
		case x == y:
			return 0
		case y:
			return -1
		}
		return 1
	}
}
