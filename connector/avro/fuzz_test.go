package avro_test

import (
	"bytes"
	"runtime/debug"
	"testing"

	"github.com/flott-dev/flott/connector/avro"
	"github.com/flott-dev/flott/connector/file"
	"github.com/flott-dev/flott/connector/file/filetest"
)

// FuzzFormat reads any bytes as an Avro file, in splits and with a schema of the reader, and files of ours with bytes of
// them changed: there may be errors, but no panic, no end of memory and no endless reading.
func FuzzFormat(f *testing.F) {
	debug.SetMemoryLimit(1 << 30)
	for _, codec := range []avro.Codec{avro.Snappy, avro.Deflate, avro.Zstd, avro.Uncompressed} {
		data := filetest.Pack(f, avro.Encoding[reading](schema, avro.Compression(codec), avro.BlockSize(500)), readings(0, 30))
		f.Add(data, uint32(1), []byte{}, uint16(100))
		f.Add(data, uint32(len(data)-100), []byte{0xff, 0xff, 0x7f}, uint16(1000))
		f.Add(data, uint32(750), []byte{0xff, 0xff, 0x7f}, uint16(1000))
		f.Add(data, uint32(900), []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0x0f}, uint16(1000))
	}
	f.Fuzz(func(t *testing.T, data []byte, at uint32, change []byte, split uint16) {
		data = bytes.Clone(data)
		if len(data) > 0 {
			copy(data[int(at)%len(data):], change)
		}
		own := ""
		if at%2 == 0 {
			own = schema
		}
		src := file.New(avro.Format[reading](own), "f").On(filetest.Disk(t, map[string][]byte{"f": data})).SplitSize(int64(split) + 1)
		filetest.Fuzzed(t, src)
	})
}
