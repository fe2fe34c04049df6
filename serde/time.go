package serde

import (
	"encoding/binary"
	"reflect"
	"time"
	"unsafe"
)

// instant is the codec of time.Time: seconds since 1970 (8 bytes), nanoseconds (4) and the zone's offset from UTC in
// seconds (4). The zone's name and the monotonic clock are dropped.
type instant struct{}

const (
	instantSize  = 16
	keyTimeWidth = 12

	errNanos = decodeError("a time has more than 999999999 nanoseconds")
)

// isTime reports whether t is time.Time or defined as it.
func isTime(t reflect.Type) bool {
	return t.Kind() == reflect.Struct && t.ConvertibleTo(reflect.TypeFor[time.Time]())
}

func (instant) least() int { return instantSize }

func (instant) append(dst []byte, v unsafe.Pointer, _ int) ([]byte, error) {
	t := (*time.Time)(v)
	_, offset := t.Zone()
	dst = binary.LittleEndian.AppendUint64(dst, uint64(t.Unix()))
	dst = binary.LittleEndian.AppendUint32(dst, uint32(t.Nanosecond()))
	return binary.LittleEndian.AppendUint32(dst, uint32(offset)), nil
}

func (instant) read(src []byte, v unsafe.Pointer, _ int) (int, error) {
	if len(src) < instantSize {
		return 0, errTruncated
	}
	t, err := readInstant(src)
	if err != nil {
		return 0, err
	}
	if offset := int32(binary.LittleEndian.Uint32(src[12:])); offset != 0 {
		t = t.In(time.FixedZone("", int(offset)))
	}
	*(*time.Time)(v) = t
	return instantSize, nil
}

// readInstant reads seconds and nanoseconds as a time in UTC.
func readInstant(src []byte) (time.Time, error) {
	nanos := binary.LittleEndian.Uint32(src[8:])
	if nanos > 999_999_999 {
		return time.Time{}, errNanos
	}
	return time.Unix(int64(binary.LittleEndian.Uint64(src)), int64(nanos)).UTC(), nil
}

// appendKeyTime appends the instant of the time at v, which is all of its identity as a key.
func appendKeyTime(dst []byte, v unsafe.Pointer) []byte {
	t := (*time.Time)(v)
	dst = binary.LittleEndian.AppendUint64(dst, uint64(t.Unix()))
	return binary.LittleEndian.AppendUint32(dst, uint32(t.Nanosecond()))
}

func readKeyTime(src []byte, v unsafe.Pointer) (int, error) {
	t, err := readInstant(src)
	if err == nil {
		*(*time.Time)(v) = t
	}
	return keyTimeWidth, err
}

func (instant) equal(a, b unsafe.Pointer, _ int) bool { return (*time.Time)(a).Equal(*(*time.Time)(b)) }

func (instant) clone(dst, src unsafe.Pointer, _ int) error {
	*(*time.Time)(dst) = *(*time.Time)(src)
	return nil
}
