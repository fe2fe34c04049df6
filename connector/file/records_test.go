package file

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

// cut reads one split of a text as the reader does.
func cut(t *testing.T, text, delimiter string, start, stop int64, block int, wrap func(io.Reader) io.Reader) []string {
	t.Helper()
	base := max(0, start-Lookback)
	in := NewInput("f", wrap(strings.NewReader(text[base:])))
	in.base, in.start, in.stop, in.block = base, start, stop, block
	var lines []string
	for r := NewRecords(in, delimiter, 0); ; {
		rec, err := r.Next()
		if err == io.EOF {
			return lines
		}
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, string(rec))
	}
}

func plain(r io.Reader) io.Reader { return r }

// TestRecordsAreTheSameForEverySplitAndBlockSize covers CR LF on every edge and delimiters with false starts.
func TestRecordsAreTheSameForEverySplitAndBlockSize(t *testing.T) {
	for _, c := range []struct {
		text, delimiter string
		want            []string
	}{
		{"a\r\nbb\r\nccc", "\n", []string{"a", "bb", "ccc"}},
		{"a\r\nbb\r\nccc\r\n", "\r\n", []string{"a", "bb", "ccc"}},
		{"x$$$@y$$@$$@z", "$$@", []string{"x$", "y", "", "z"}},
		{"www112xx1123yyy11123zzzzz1123", "1123", []string{"www112xx", "yyy1", "zzzzz"}},
		{"\n\n\na\n\n", "\n", []string{"", "", "", "a", ""}},
		{"\xef\xbb\xbfa\nb", "\n", []string{"a", "b"}},
		{"\xef\xbb", "\n", []string{"\xef\xbb"}},
		{"\xef\xbb\xbf", "\n", nil},
		{"", "\n", nil},
		{"\n", "\n", []string{""}},
		{"one", "\n", []string{"one"}},
		{"aaaaa", "aa", []string{"", "", "a"}},
		{strings.Repeat("0123456789", 20) + "\nx", "\n", []string{strings.Repeat("0123456789", 20), "x"}},
	} {
		for split := 1; split <= len(c.text)+1; split++ {
			if split <= len(c.text) && !SplittableAt(c.delimiter) {
				continue
			}
			for block := 1; block <= 8; block++ {
				var got []string
				for at := 0; at < max(1, len(c.text)); at += split {
					stop := int64(min(at+split, len(c.text)))
					got = append(got, cut(t, c.text, c.delimiter, int64(at), stop, block, iotest.OneByteReader)...)
				}
				if !slices.Equal(got, c.want) {
					t.Fatalf("%q at %q, split %d, block %d: got %q, want %q", c.text, c.delimiter, split, block, got, c.want)
				}
			}
		}
	}
}

func TestRecordBelongsToTheSplitInWhichItBegins(t *testing.T) {
	text := "aaaaaaa\nbbbbbbb\nccccccc\nddddddd\n"
	if got := cut(t, text, "\n", 0, 16, 32, plain); fmt.Sprint(got) != "[aaaaaaa bbbbbbb ccccccc]" {
		t.Errorf("first split: %v", got)
	}
	if got := cut(t, text, "\n", 16, 32, 32, plain); fmt.Sprint(got) != "[ddddddd]" {
		t.Errorf("second split: %v", got)
	}
}
