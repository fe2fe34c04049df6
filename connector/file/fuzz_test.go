package file

import (
	"bytes"
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"
)

// reference cuts a text as the contract says, without blocks and splits.
func reference(text, delimiter string) []string {
	lines := strings.Split(strings.TrimPrefix(text, "\xef\xbb\xbf"), delimiter)
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	if delimiter == "\n" {
		for i := range lines {
			lines[i] = strings.TrimSuffix(lines[i], "\r")
		}
	}
	return lines
}

// inMark reports whether a delimiter could begin inside of a byte order mark: a split that begins there would take it for one.
// No text in UTF-8 has such delimiters.
func inMark(delimiter string) bool {
	return strings.Contains("\xef\xbb\xbf", delimiter) || strings.HasPrefix(delimiter, "\xbf") || strings.HasPrefix(delimiter, "\xbb\xbf") ||
		strings.HasPrefix(delimiter, "\xef\xbb\xbf")
}

// FuzzRecords compares any splits, blocks and reads with strings.Split.
func FuzzRecords(f *testing.F) {
	f.Add("a\r\nbb\r\nccc", "\n", uint8(1), uint8(1), uint8(1))
	f.Add("x$$$@y$$@$$@z", "$$@", uint8(2), uint8(5), uint8(3))
	f.Add("\xef\xbb\xbfaaaa", "aa", uint8(1), uint8(2), uint8(9))
	f.Add("abababab", "abab", uint8(1), uint8(2), uint8(9))
	f.Add("\xef\xbb\xbfaaaa", "\xbfa", uint8(1), uint8(2), uint8(0))
	f.Fuzz(func(t *testing.T, text, delimiter string, split, block, chunk uint8) {
		if delimiter == "" || len(delimiter) > Lookback {
			return
		}
		size := max(1, int(split))
		if !SplittableAt(delimiter) || strings.HasPrefix(text, "\xef\xbb\xbf") && inMark(delimiter) {
			size = max(1, len(text)) // where a delimiter is depends on where one begins
		}
		var got []string
		for at := 0; at < max(1, len(text)); at += size {
			stop := int64(min(at+size, len(text)))
			got = append(got, cut(t, text, delimiter, int64(at), stop, 1+int(block), func(r io.Reader) io.Reader {
				return chunked{r, 1 + int(chunk)}
			})...)
		}
		if want := reference(text, delimiter); !slices.Equal(got, want) && len(got)+len(want) > 0 {
			t.Errorf("%q at %q, split %d, block %d, chunk %d: got %q, want %q", text, delimiter, size, block, chunk, got, want)
		}
	})
}

type chunked struct {
	io.Reader
	n int
}

func (c chunked) Read(p []byte) (int, error) { return c.Reader.Read(p[:min(len(p), c.n)]) }

// FuzzState decodes any bytes as a snapshot: what is accepted is encoded to a snapshot that means the same.
func FuzzState(f *testing.F) {
	f.Add(encodeState([]Split{{"a", 1, 2, 3, 4}}, seenFiles{"b": {4, 5, 6}}))
	f.Add([]byte{1, 0, 0})
	f.Add([]byte{2, 0, 0})
	f.Add([]byte("\x01\x01\x03d/a\x20\xd8\x04\x28\x00"))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		pending, seen, err := decodeState(b)
		if err != nil {
			return
		}
		again, seenAgain, err := decodeState(encodeState(pending, seen))
		if err != nil || !slices.Equal(pending, again) || !reflect.DeepEqual(seen, seenAgain) {
			t.Errorf("%x: %v %v, again %v %v, %v", b, pending, seen, again, seenAgain, err)
		}
	})
}

// FuzzWide decodes UTF-16 in pieces and compares with package unicode/utf16.
func FuzzWide(f *testing.F) {
	f.Add([]byte("\xd8\x3d\xde\x00\x00a\xdc\x00\xd8\x00"), uint8(3))
	f.Fuzz(func(t *testing.T, b []byte, chunk uint8) {
		got, err := io.ReadAll(UTF16BE.Reader(chunked{bytes.NewReader(b), 1 + int(chunk)}))
		var units []uint16
		for i := 0; i+1 < len(b); i += 2 {
			units = append(units, uint16(b[i])<<8|uint16(b[i+1]))
		}
		want := string(utf16.Decode(units))
		half := len(units) > 0 && units[len(units)-1]&0xfc00 == 0xd800 // of a character, and of a half with the odd byte
		if len(b)%2 != 0 && !half {
			want += "\ufffd"
		}
		if err != nil || string(got) != want {
			t.Errorf("%x: got %q, %v, want %q", b, got, err, want)
		}
	})
}

func TestStateOfAnotherVersionIsRefused(t *testing.T) {
	b := encodeState(nil, nil)
	b[0]++
	if _, _, err := decodeState(b); err == nil || !strings.Contains(err.Error(), "version 3") {
		t.Errorf("got %v", err)
	}
}

// TestStateFormat is the golden file of the format.
func TestStateFormat(t *testing.T) {
	got := encodeState([]Split{{"d/a", 16, 300, 20, 5}}, seenFiles{"b": {1, -1, 0}})
	want := "\x02\x01\x03d/a\x20\xd8\x04\x28\x0a\x01\x01b\x02\x01\x00"
	if string(got) != want {
		t.Errorf("got %q, want %q", got, want)
	}
	pending, seen, err := decodeState([]byte("\x01\x01\x03d/a\x20\xd8\x04\x28\x01\x01b\x02\x01\x00"))
	if err != nil || !slices.Equal(pending, []Split{{"d/a", 16, 300, 20, 0}}) || seen["b"] != (seenFile{1, -1, 0}) {
		t.Errorf("version 1: %v, %v, %v", pending, seen, err)
	}
}
