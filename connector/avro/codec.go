package avro

import (
	"bytes"
	"compress/bzip2"
	"compress/flate"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
)

// Codec is how blocks are compressed.
type Codec uint8

const (
	// Snappy is the default: quick, and read by nearly everything that reads Avro.
	Snappy Codec = iota
	// Deflate makes smaller files, takes longer, and is read by everything.
	Deflate
	// Zstd makes smaller files quicker than Deflate.
	Zstd
	// Uncompressed leaves blocks as they are.
	Uncompressed
)

// name is the codec's name in files.
func (c Codec) name() (string, error) {
	switch c {
	case Snappy:
		return "snappy", nil
	case Deflate:
		return "deflate", nil
	case Zstd:
		return "zstandard", nil
	case Uncompressed:
		return "null", nil
	}
	return "", fmt.Errorf("unknown codec %d", c)
}

// maxBlock is the number of bytes that a block may have, compressed and not.
const maxBlock = 1 << 28

var (
	errBlockSize = fmt.Errorf("a block of more than %d bytes", maxBlock)
	errChecksum  = errors.New("the checksum of a block is wrong")
)

// packer returns what compresses blocks: it appends to dst.
func packer(c Codec) (func(dst, block []byte) ([]byte, error), error) {
	switch c {
	case Snappy:
		return func(dst, block []byte) ([]byte, error) {
			at := len(dst)
			dst = append(dst, make([]byte, s2.MaxEncodedLen(len(block)))...)
			packed := s2.EncodeSnappy(dst[at:], block) // package snappy makes it a little smaller in twice the time
			return binary.BigEndian.AppendUint32(dst[:at+len(packed)], crc32.ChecksumIEEE(block)), nil
		}, nil
	case Deflate:
		w, err := flate.NewWriter(nil, flate.DefaultCompression)
		if err != nil {
			return nil, err
		}
		return func(dst, block []byte) ([]byte, error) {
			b := bytes.NewBuffer(dst)
			w.Reset(b)
			if _, err := w.Write(block); err != nil {
				return nil, err
			}
			err := w.Close()
			return b.Bytes(), err
		}, nil
	case Zstd:
		w, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
		if err != nil {
			return nil, err
		}
		return func(dst, block []byte) ([]byte, error) { return w.EncodeAll(block, dst), nil }, nil
	}
	return func(dst, block []byte) ([]byte, error) { return append(dst, block...), nil }, nil
}

// unpacker returns what decompresses blocks, by the codec's name; it may use dst.
func unpacker(name string) (func(dst, packed []byte) ([]byte, error), error) {
	switch name {
	case "", "null":
		return func(_, packed []byte) ([]byte, error) { return packed, nil }, nil
	case "snappy":
		return unpackSnappy, nil
	case "deflate":
		in := bytes.NewReader(nil)
		r := flate.NewReader(in)
		return func(dst, packed []byte) ([]byte, error) {
			in.Reset(packed)
			if err := r.(flate.Resetter).Reset(in, nil); err != nil {
				return nil, err
			}
			return readBlock(dst, r)
		}, nil
	case "bzip2":
		return func(dst, packed []byte) ([]byte, error) {
			return readBlock(dst, bzip2.NewReader(bytes.NewReader(packed)))
		}, nil
	case "zstandard":
		z, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxBlock))
		if err != nil {
			return nil, err
		}
		return func(dst, packed []byte) ([]byte, error) { return z.DecodeAll(packed, dst[:0]) }, nil
	}
	return nil, fmt.Errorf("its blocks are compressed by %q, which is not supported; known are null, deflate, snappy, zstandard, bzip2", name)
}

func unpackSnappy(dst, packed []byte) ([]byte, error) {
	n := len(packed) - 4
	if n < 0 {
		return nil, errChecksum
	}
	size, err := snappy.DecodedLen(packed[:n])
	if err != nil {
		return nil, err
	}
	if size > maxBlock {
		return nil, errBlockSize
	}
	block, err := snappy.Decode(dst[:cap(dst)], packed[:n])
	if err == nil && crc32.ChecksumIEEE(block) != binary.BigEndian.Uint32(packed[n:]) {
		err = errChecksum
	}
	return block, err
}

// readBlock reads all of a block into the memory of dst, or more.
func readBlock(dst []byte, r io.Reader) ([]byte, error) {
	b := bytes.NewBuffer(dst[:0])
	n, err := b.ReadFrom(io.LimitReader(r, maxBlock+1))
	if err == nil && n > maxBlock {
		err = errBlockSize
	}
	return b.Bytes(), err
}
