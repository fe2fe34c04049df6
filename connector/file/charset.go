package file

import (
	"encoding/binary"
	"fmt"
	"io"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Charset is an encoding of text, by its IANA name in any case.
type Charset string

const (
	// UTF8 is the default: bytes are taken as they are.
	UTF8 Charset = "UTF-8"
	// Latin1 has one byte for each of the code points up to 255.
	Latin1 Charset = "ISO-8859-1"
	// UTF16 is big-endian unless a byte order mark says otherwise.
	UTF16 Charset = "UTF-16"
	// UTF16LE is little-endian UTF-16.
	UTF16LE Charset = "UTF-16LE"
	// UTF16BE is big-endian UTF-16.
	UTF16BE Charset = "UTF-16BE"
)

// same tells whether text needs no decoding.
func (c Charset) same() bool { return c == "" || c.upper() == UTF8 }

func (c Charset) upper() Charset { return Charset(strings.ToUpper(string(c))) }

func (c Charset) check() error {
	switch c.upper() {
	case "", UTF8, Latin1, UTF16, UTF16LE, UTF16BE:
		return nil
	}
	return fmt.Errorf("unknown charset %q; known are %s, %s, %s, %s, %s", string(c), UTF8, Latin1, UTF16, UTF16LE, UTF16BE)
}

// Reader makes UTF-8 of what r gives. An unknown charset gives the bytes as they are.
func (c Charset) Reader(r io.Reader) io.Reader {
	t := &transcoder{src: r}
	switch c.upper() {
	case Latin1:
		t.step = latin1
	case UTF16:
		t.step = t.marked
	case UTF16LE:
		t.step = func(dst, src []byte) ([]byte, int) { return wide(dst, src, binary.LittleEndian) }
	case UTF16BE:
		t.step = func(dst, src []byte) ([]byte, int) { return wide(dst, src, binary.BigEndian) }
	default:
		return r
	}
	return t
}

// transcoder reads text in another charset.
type transcoder struct {
	src  io.Reader
	in   []byte // read, not decoded yet
	out  []byte // decoded, not read yet
	buf  []byte // behind out
	err  error
	step func(dst, src []byte) (decoded []byte, used int)
}

// Read implements io.Reader.
func (t *transcoder) Read(p []byte) (int, error) {
	for len(t.out) == 0 {
		if t.err != nil {
			return 0, t.err
		}
		t.more()
	}
	n := copy(p, t.out)
	t.out = t.out[n:]
	return n, nil
}

func (t *transcoder) more() {
	if t.in == nil {
		t.in = make([]byte, 0, 32<<10)
	}
	var n int
	n, t.err = t.src.Read(t.in[len(t.in):cap(t.in)])
	t.in = t.in[:len(t.in)+n]
	out, used := t.step(t.buf[:0], t.in)
	if t.err == io.EOF && used < len(t.in) {
		out, used = utf8.AppendRune(out, utf8.RuneError), len(t.in) // half a character
	}
	t.in = t.in[:copy(t.in, t.in[used:])]
	t.buf, t.out = out, out
}

func latin1(dst, src []byte) ([]byte, int) {
	for _, c := range src {
		if c < utf8.RuneSelf {
			dst = append(dst, c)
		} else {
			dst = append(dst, 0xc0|c>>6, 0x80|c&0x3f)
		}
	}
	return dst, len(src)
}

// marked looks for a byte order mark and goes on as it says.
func (t *transcoder) marked(dst, src []byte) ([]byte, int) {
	if len(src) < 2 {
		return dst, 0
	}
	var order binary.ByteOrder = binary.BigEndian
	if src[0] == 0xff && src[1] == 0xfe {
		order = binary.LittleEndian
	}
	t.step = func(dst, src []byte) ([]byte, int) { return wide(dst, src, order) }
	return t.step(dst, src)
}

// wide decodes UTF-16. The two halves of a character are decoded together or not yet.
func wide(dst, src []byte, order binary.ByteOrder) ([]byte, int) {
	i := 0
	for ; i+2 <= len(src); i += 2 {
		c := rune(order.Uint16(src[i:]))
		if !utf16.IsSurrogate(c) {
			dst = utf8.AppendRune(dst, c)
			continue
		}
		if i+4 > len(src) && c < 0xdc00 {
			break
		}
		pair := utf8.RuneError
		if i+4 <= len(src) {
			pair = utf16.DecodeRune(c, rune(order.Uint16(src[i+2:])))
		}
		if pair != utf8.RuneError {
			i += 2
		}
		dst = utf8.AppendRune(dst, pair)
	}
	return dst, i
}
