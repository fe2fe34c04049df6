package parquet_test

import (
	"bytes"
	"runtime/debug"
	"testing"

	"github.com/flott-dev/flott/connector/file/filetest"
	"github.com/flott-dev/flott/connector/parquet"
)

// FuzzFormat reads any bytes as a Parquet file, whole and in splits, and the beginning of a file of ours with bytes of it
// changed: there may be errors, but no panic, no end of memory and no endless reading.
func FuzzFormat(f *testing.F) {
	debug.SetMemoryLimit(1 << 30)
	whole := filetest.Pack(f, parquet.Encoding[reading](parquet.RowGroupSize(1<<10)), readings(0, 300))
	plain := filetest.Pack(f, parquet.Encoding[reading](parquet.Compression(parquet.Uncompressed)), readings(0, 9))
	f.Add(whole, uint32(1), []byte{}, uint16(100))
	f.Add(plain, uint32(40), []byte{1, 2}, uint16(1000))
	for _, back := range []int{8, 100, 500, 1000, 2000} {
		f.Add(whole, uint32(len(whole)-back), []byte{0xff, 0xff, 0x7f}, uint16(1000))
		f.Add(plain, uint32(len(plain)-back), []byte{0xff, 0x02}, uint16(1000))
	}
	f.Fuzz(func(t *testing.T, data []byte, at uint32, change []byte, split uint16) {
		data = bytes.Clone(data)
		if len(data) > 0 {
			copy(data[int(at)%len(data):], change)
		}
		src := parquet.Source[reading]("f").On(filetest.Disk(t, map[string][]byte{"f": data})).SplitSize(int64(split) + 1)
		filetest.Fuzzed(t, src)
	})
}
