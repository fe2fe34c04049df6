package serde

import (
	"encoding/binary"
	"runtime"
	"unsafe"
)

// bigEndian says that numbers in Go memory are not in the byte order of the encodings.
const bigEndian = runtime.GOARCH == "s390x" || runtime.GOARCH == "ppc64" || runtime.GOARCH == "mips" ||
	runtime.GOARCH == "mips64"

// decodeError is the reason why bytes are not an encoding.
type decodeError string

func (e decodeError) Error() string { return string(e) }

const (
	errTruncated = decodeError("the bytes end inside the value")
	errVarint    = decodeError("a length is not a valid varint")
	errCount     = decodeError("a length is larger than the bytes that follow")
	errBool      = decodeError("a bool is neither 0 nor 1")
	errDepth     = decodeError("the value nests too deep")
	errWord      = decodeError("an int does not fit this platform")
)

func copyBytes(dst, src unsafe.Pointer, n uintptr) {
	copy(unsafe.Slice((*byte)(dst), n), unsafe.Slice((*byte)(src), n))
}

func bytesAt(p unsafe.Pointer, n uintptr) []byte { return unsafe.Slice((*byte)(p), n) }

func load64(p unsafe.Pointer) uint64 { return binary.LittleEndian.Uint64((*[8]byte)(p)[:]) }
func load32(p unsafe.Pointer) uint32 { return binary.LittleEndian.Uint32((*[4]byte)(p)[:]) }
func load16(p unsafe.Pointer) uint16 { return binary.LittleEndian.Uint16((*[2]byte)(p)[:]) }

// appendSwapped appends n bytes of numbers of unit bytes each in the opposite byte order of Go memory.
func appendSwapped(dst []byte, p unsafe.Pointer, n, unit uintptr) []byte {
	at := len(dst)
	dst = append(dst, bytesAt(p, n)...)
	swapUnits(dst[at:], unit)
	return dst
}

// swapUnits reverses the bytes of every number of unit bytes.
func swapUnits(b []byte, unit uintptr) {
	u := int(unit)
	for i := 0; i+u <= len(b); i += u {
		for l, r := i, i+u-1; l < r; l, r = l+1, r-1 {
			b[l], b[r] = b[r], b[l]
		}
	}
}

// readLen reads a varint length and checks that so many items of at least least bytes can follow.
func readLen(src []byte, least int) (n, used int, err error) {
	u, used, err := readUvarint(src)
	if err != nil {
		return 0, used, err
	}
	rest := uint64(len(src) - used)
	if least > 0 && u > rest/uint64(least) || u > 1<<62 {
		return 0, used, errCount
	}
	return int(u), used, nil
}

func readUvarint(src []byte) (u uint64, used int, err error) {
	if len(src) > 0 && src[0] < 0x80 {
		return uint64(src[0]), 1, nil
	}
	u, used = binary.Uvarint(src)
	if used > 0 {
		return u, used, nil
	}
	if used == 0 {
		return 0, 0, errTruncated
	}
	return 0, -used, errVarint
}

func appendUvarint(dst []byte, u uint64) []byte {
	if u < 0x80 {
		return append(dst, byte(u))
	}
	return binary.AppendUvarint(dst, u)
}
