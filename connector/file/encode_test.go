package file_test

import (
	"strings"
	"testing"

	"github.com/flott-dev/flott/connector/file"
	"github.com/flott-dev/flott/connector/file/filetest"
)

func TestEncodingInAnotherCharsetIsReadBack(t *testing.T) {
	want := []string{"", "a", "gr\u00fc\u00df", "\u20ac", "\U0001f600 and more"}
	for charset, lines := range map[file.Charset][]string{
		"": want, file.UTF8: want, file.UTF16: want, file.UTF16LE: want, "utf-16be": want, file.Latin1: want[:3],
	} {
		e := file.TextEncoding[string]("\n").In(charset)
		if e.Err != nil {
			t.Fatal(e.Err)
		}
		data, encode := []byte(e.Begin), e.Open()
		for _, l := range lines {
			var err error
			if data, err = encode(data, l); err != nil {
				t.Fatal(err)
			}
			data = append(data, e.Delimiter...)
		}
		m := disk(t, map[string]string{"a": string(data)})
		got, err := filetest.Collect(file.Lines("a").On(m).Charset(charset), 1, 16)
		if err != nil || strings.Join(got, "|") != strings.Join(lines, "|") {
			t.Errorf("%s: %q, %v", charset, got, err)
		}
		if marked := strings.HasPrefix(string(data), "\xfe\xff"); marked != (charset == file.UTF16) {
			t.Errorf("%s: it begins with a mark: %v", charset, marked)
		}
	}
}

func TestWhatACharsetCannotHoldIsAnError(t *testing.T) {
	e := file.TextEncoding[string]("\n").In(file.Latin1)
	if _, err := e.Open()(nil, "10 \u20ac"); err == nil || !strings.Contains(err.Error(), "character '\u20ac' can't be written in ISO-8859-1") {
		t.Errorf("an element: %v", err)
	}
	for want, e := range map[string]file.Encoding[string]{
		"unknown charset":    file.TextEncoding[string]("\n").In("EBCDIC"),
		"character '\u20ac'": file.TextEncoding[string]("\u20ac").In(file.Latin1),
	} {
		if e.Err == nil || !strings.Contains(e.Err.Error(), want) {
			t.Errorf("got %v, want %q", e.Err, want)
		}
	}
}
