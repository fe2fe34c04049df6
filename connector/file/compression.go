package file

import (
	"bufio"
	"compress/bzip2"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"io"
	"path"

	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"
)

// ErrTrailing says that something follows the compressed data of a file.
var ErrTrailing = errors.New("something else follows the compressed data")

// compressed tells by a file's name, case as written, whether it is decompressed.
func compressed(name string) bool {
	switch path.Ext(name) {
	case ".gz", ".gzip", ".deflate", ".bz2", ".zst", ".xz":
		return true
	}
	return false
}

// plain tells whether a file is read as it lies on the disk, so that it can be cut and read from anywhere.
func (s *settings) plain(name string) bool { return s.charset.same() && !compressed(name) }

// decode makes UTF-8 text of what is stored.
func (s *settings) decode(raw *stored) (io.ReadCloser, error) {
	t := &decoded{raw: raw}
	var err error
	switch path.Ext(raw.path) {
	case ".gz", ".gzip":
		t.Reader, err = newMembers(raw, s.trailing)
	case ".deflate":
		t.Reader, err = newZlib(raw, s.trailing)
	case ".bz2":
		t.Reader = bzip2.NewReader(bufio.NewReader(raw))
	case ".zst":
		err = t.zstd()
	case ".xz":
		t.Reader, err = xz.NewReader(bufio.NewReader(raw))
	default:
		t.Reader = raw
	}
	if err == io.EOF {
		err = io.ErrUnexpectedEOF // an empty file holds no compressed data, not even none
	}
	if err != nil {
		return nil, raw.name(err)
	}
	t.Reader = s.charset.Reader(t.Reader)
	return t, nil
}

// decoded is the text of a stored file. Its errors name the file and the place in it.
type decoded struct {
	io.Reader
	raw   *stored
	close func()
}

// Read implements io.Reader.
func (d *decoded) Read(p []byte) (int, error) {
	n, err := d.Reader.Read(p)
	if err != nil {
		err = d.raw.name(err)
	}
	return n, err
}

// Close implements io.Closer.
func (d *decoded) Close() error {
	if d.close != nil {
		d.close()
	}
	return d.raw.Close()
}

// zstd decodes on the goroutine that reads: a subtask has one core.
func (d *decoded) zstd() error {
	z, err := zstd.NewReader(d.raw, zstd.WithDecoderConcurrency(1))
	if err != nil {
		return err
	}
	d.Reader, d.close = z, z.Close
	return nil
}

// members reads the members of a gzip file one by one, so that the place behind each is known.
type members struct {
	raw     *stored
	in      *bufio.Reader
	z       *gzip.Reader
	lenient bool
}

func newMembers(raw *stored, lenient bool) (io.Reader, error) {
	m := &members{raw: raw, in: bufio.NewReaderSize(raw, 64<<10), lenient: lenient}
	var err error
	if m.z, err = gzip.NewReader(m.in); err != nil {
		return nil, err
	}
	m.z.Multistream(false)
	return m, nil
}

// Read implements io.Reader.
func (m *members) Read(p []byte) (int, error) {
	for {
		n, err := m.z.Read(p)
		if err != io.EOF || n > 0 {
			if err == io.EOF {
				err = nil // told again by the next Read
			}
			return n, err
		}
		if magic, _ := m.in.Peek(2); string(magic) != "\x1f\x8b" {
			return 0, behind(m.raw, m.in, m.lenient)
		}
		if err := m.z.Reset(m.in); err != nil {
			return 0, err
		}
		m.z.Multistream(false)
	}
}

// behind decides about what follows the compressed data: nothing and zeros, the padding of tapes, are fine.
func behind(raw *stored, in *bufio.Reader, lenient bool) error {
	if lenient {
		return io.EOF
	}
	at := raw.at - int64(in.Buffered())
	for {
		c, err := in.ReadByte()
		if err != nil {
			return err
		}
		if c != 0 {
			return &Error{Path: raw.path, Offset: at, Err: ErrTrailing}
		}
	}
}

// zlibText is a zlib stream that is looked behind.
type zlibText struct {
	io.Reader
	raw     *stored
	in      *bufio.Reader
	lenient bool
}

func newZlib(raw *stored, lenient bool) (io.Reader, error) {
	in := bufio.NewReaderSize(raw, 64<<10)
	z, err := zlib.NewReader(in)
	if err != nil {
		return nil, err
	}
	return &zlibText{z, raw, in, lenient}, nil
}

// Read implements io.Reader.
func (z *zlibText) Read(p []byte) (int, error) {
	n, err := z.Reader.Read(p)
	if err == io.EOF && n == 0 {
		err = behind(z.raw, z.in, z.lenient)
	} else if err == io.EOF {
		err = nil
	}
	return n, err
}
