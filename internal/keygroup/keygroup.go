// Package keygroup assigns keys to key groups and key groups to subtasks, exactly as Flink does. It is arithmetic only:
// it knows no key types (package serde makes the hashes) and holds no state. Planning calls it to lay out subtasks,
// exchanges and state tables call it for every run of elements, restores call it to find what a subtask owns.
package keygroup

import (
	"fmt"
	"math/bits"
)

const (
	// MinDefaultMaxParallelism is the least maximum parallelism that is chosen by default.
	MinDefaultMaxParallelism = 128
	// MaxParallelismLimit is the largest maximum parallelism, so that a key group fits 16 bits.
	MaxParallelismLimit = 1 << 15
)

// Validate reports whether parallelism subtasks can share maxParallelism key groups: the latter lies in
// 1 ... MaxParallelismLimit and the former in 1 ... maxParallelism.
func Validate(maxParallelism, parallelism int) error {
	if maxParallelism < 1 || maxParallelism > MaxParallelismLimit {
		return fmt.Errorf("keygroup: max parallelism %d is outside 1 ... %d", maxParallelism, MaxParallelismLimit)
	}
	if parallelism < 1 {
		return fmt.Errorf("keygroup: parallelism %d is less than 1", parallelism)
	}
	if parallelism > maxParallelism {
		return fmt.Errorf("keygroup: parallelism %d is above max parallelism %d", parallelism, maxParallelism)
	}
	return nil
}

// Of gives the key group of a 32-bit hash. maxParallelism must have passed Validate.
func Of(hash uint32, maxParallelism int) int {
	return int(murmur(hash) % uint32(maxParallelism))
}

// Groups writes the key group of each hash to out, which must have room for all of them. It looks at the low 32 bits of
// a hash. maxParallelism must have passed Validate.
func Groups(hashes []uint64, maxParallelism uint32, out []uint16) {
	if maxParallelism == 0 || maxParallelism > MaxParallelismLimit {
		panic(fmt.Sprintf("keygroup: max parallelism %d was not validated", maxParallelism))
	}
	out = out[:len(hashes)]
	if maxParallelism&(maxParallelism-1) == 0 {
		mask := maxParallelism - 1
		for i, h := range hashes {
			out[i] = uint16(murmur(uint32(h)) & mask)
		}
		return
	}
	// The remainder by a multiplication with the inverse: exact for 32-bit dividends and divisors.
	d := uint64(maxParallelism)
	inverse := ^uint64(0)/d + 1
	for i, h := range hashes {
		group, _ := bits.Mul64(inverse*uint64(murmur(uint32(h))), d)
		out[i] = uint16(group)
	}
}

// murmur is MurmurHash3 (x86, 32 bit, seed 0) of the four bytes of a hash code, made positive: a negative result is
// negated and -2^31, which has no negation, becomes 0. There is no branch: the sign of a hash can't be predicted.
func murmur(code uint32) uint32 {
	code *= 0xcc9e2d51
	code = bits.RotateLeft32(code, 15)
	code *= 0x1b873593
	code = bits.RotateLeft32(code, 13)
	code = code*5 + 0xe6546b64
	code ^= 4
	code ^= code >> 16
	code *= 0x85ebca6b
	code ^= code >> 13
	code *= 0xc2b2ae35
	code ^= code >> 16
	sign := uint32(int32(code) >> 31)
	return ((code ^ sign) - sign) & 0x7fffffff
}

// SubtaskOf gives the subtask that owns a key group.
func SubtaskOf(maxParallelism, parallelism, group int) int {
	return group * parallelism / maxParallelism
}

// RangeOf gives the first and last key group (both inclusive) of a subtask. The three numbers must be valid: Validate
// checks the first two, and subtask lies in 0 ... parallelism-1.
func RangeOf(maxParallelism, parallelism, subtask int) (first, last int) {
	first = (subtask*maxParallelism + parallelism - 1) / parallelism
	last = ((subtask+1)*maxParallelism - 1) / parallelism
	return first, last
}

// DefaultMaxParallelism gives the maximum parallelism for an operator that sets none: room to grow by half, rounded up
// to a power of two, within MinDefaultMaxParallelism ... MaxParallelismLimit.
func DefaultMaxParallelism(parallelism int) int {
	return min(max(RoundUpPowerOfTwo(parallelism+parallelism/2), MinDefaultMaxParallelism), MaxParallelismLimit)
}

// RoundUpPowerOfTwo gives the least power of two that is not below n; for n < 1 it is 0, as in Flink.
func RoundUpPowerOfTwo(n int) int {
	if n < 1 {
		return 0
	}
	return 1 << bits.Len(uint(n-1))
}
