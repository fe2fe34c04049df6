package filesink

import (
	"compress/gzip"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"
)

// Compression is how the bytes of files are compressed.
type Compression uint8

const (
	// Uncompressed is the default.
	Uncompressed Compression = iota
	// Gzip files end in .gz.
	Gzip
	// Zstd files end in .zst. It is faster than Gzip and makes smaller files, but fewer programs read them.
	Zstd
)

// String gives the compression's word.
func (c Compression) String() string {
	if c > Zstd {
		return fmt.Sprintf("compression %d", uint8(c))
	}
	return [...]string{"uncompressed", "gzip", "zstd"}[c]
}

// extension is the end of the files' names.
func (c Compression) extension() string { return [...]string{"", ".gz", ".zst"}[c] }

// compressor compresses one file after the other.
type compressor interface {
	io.WriteCloser
	Reset(to io.Writer)
}

// open makes a compressor; nil: there is nothing to compress.
func (c Compression) open() (compressor, error) {
	switch c {
	case Gzip:
		return gzip.NewWriter(nil), nil
	case Zstd:
		return zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1)) // on the goroutine that writes: a subtask has one core
	}
	return nil, nil
}
