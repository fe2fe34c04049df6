package serde

import (
	"encoding/binary"
	"math"
	"unsafe"
)

// widened reads a number that once had fewer bytes.
type widened struct {
	readOnly
	bytes  int     // encoded
	signed bool    // the old kind
	size   uintptr // in Go memory
	float  bool    // float32 to float64
}

// widening gives the way from a kind of numbers to one that holds all of its values, in size bytes of memory; nil if there is
// none.
func widening(old, now Kind, size uintptr) codec {
	switch {
	case old == Float32 && now == Float64:
		return &widened{bytes: 4, size: size, float: true}
	case old >= Int8 && old < now && now <= Int64:
		return &widened{bytes: 1 << (old - Int8), signed: true, size: size}
	case old >= Uint8 && old < now && now <= Uint64:
		return &widened{bytes: 1 << (old - Uint8), size: size}
	case old >= Uint8 && old < Uint64 && now >= Int8 && now <= Int64 && now-Int8 > old-Uint8:
		return &widened{bytes: 1 << (old - Uint8), size: size}
	}
	return nil
}

func (w *widened) least() int { return w.bytes }

func (w *widened) read(src []byte, v unsafe.Pointer, _ int) (int, error) {
	if len(src) < w.bytes {
		return 0, errTruncated
	}
	var all [8]byte
	copy(all[:], src[:w.bytes])
	n := binary.LittleEndian.Uint64(all[:])
	if w.float {
		*(*float64)(v) = float64(math.Float32frombits(uint32(n)))
		return w.bytes, nil
	}
	if w.signed {
		shift := 64 - 8*w.bytes
		n = uint64(int64(n<<shift) >> shift)
	}
	switch w.size {
	case 2:
		*(*uint16)(v) = uint16(n)
	case 4:
		*(*uint32)(v) = uint32(n)
	default:
		*(*uint64)(v) = n
	}
	return w.bytes, nil
}
