package csv

import (
	"reflect"
	"time"
	"unsafe"
)

// pointerTo makes the converter of a pointer to t: it allocates a value for each field that is not empty.
func pointerTo(t reflect.Type, o *options) converter {
	inner := target{}
	inner.kind, inner.convert = convertTo(t, o)
	switch inner.kind {
	case kindString:
		return allocated[string](inner)
	case kindBytes:
		return allocated[[]byte](inner)
	case kindBool, kindInt8, kindUint8:
		return allocated[uint8](inner)
	case kindInt16, kindUint16:
		return allocated[uint16](inner)
	case kindInt32, kindUint32, kindFloat32:
		return allocated[uint32](inner)
	case kindInt, kindUint:
		return allocated[uint](inner)
	case kindInt64, kindUint64, kindFloat64:
		return allocated[uint64](inner)
	}
	switch {
	case inner.convert == nil:
		return nil
	case t == reflect.TypeFor[time.Time]():
		return allocated[time.Time](inner)
	}
	return func(p unsafe.Pointer, text []byte) error {
		v := reflect.New(t).UnsafePointer() // for types with UnmarshalText only, which do much more themselves
		if err := inner.set(v, text); err != nil {
			return err
		}
		*(*unsafe.Pointer)(p) = v
		return nil
	}
}

// allocated is for pointers to types with the size and the pointers of K.
func allocated[K any](inner target) converter {
	return func(p unsafe.Pointer, text []byte) error {
		v := new(K)
		if err := inner.set(unsafe.Pointer(v), text); err != nil {
			return err
		}
		*(**K)(p) = v
		return nil
	}
}
