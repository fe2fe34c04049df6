package serde

import (
	"encoding/binary"
	"unsafe"
)

// word is the codec of int, uint and uintptr where they have 4 bytes in Go memory; encoded they always have 8.
type word struct{ signed bool }

func (word) least() int { return 8 }

func (w word) append(dst []byte, v unsafe.Pointer, _ int) ([]byte, error) {
	if w.signed {
		return binary.LittleEndian.AppendUint64(dst, uint64(*(*int)(v))), nil
	}
	return binary.LittleEndian.AppendUint64(dst, uint64(*(*uint)(v))), nil
}

func (w word) read(src []byte, v unsafe.Pointer, _ int) (int, error) {
	if len(src) < 8 {
		return 0, errTruncated
	}
	u := binary.LittleEndian.Uint64(src)
	if w.signed {
		if int64(int(u)) != int64(u) {
			return 0, errWord
		}
		*(*int)(v) = int(u)
		return 8, nil
	}
	if uint64(uint(u)) != u {
		return 0, errWord
	}
	*(*uint)(v) = uint(u)
	return 8, nil
}

func (word) equal(a, b unsafe.Pointer, _ int) bool { return *(*uint)(a) == *(*uint)(b) }

func (word) clone(dst, src unsafe.Pointer, _ int) error {
	*(*uint)(dst) = *(*uint)(src)
	return nil
}
