package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/flott-dev/flott/connector/file"
	"github.com/flott-dev/flott/stream"
)

// table is what run writes without its last line, which tells the time.
func table(t *testing.T, parallelism, top int, opts []stream.Option, paths ...string) string {
	t.Helper()
	var out bytes.Buffer
	if err := run(context.Background(), file.Lines(paths...).Recursive(), parallelism, top, &out, nil, opts...); err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(out.String(), "\n")
	return strings.Join(lines[:len(lines)-2], "")
}

func TestMostFrequentWordsAreFound(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "inner"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"a.txt":       "The cat and the dog.\nthe END",
		"inner/b.txt": "a dog, a cat - and THE cat\n\n42!\n",
		"empty.txt":   "",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want := "   1  the                                 4\n" +
		"   2  cat                                 3\n" +
		"   3  a                                   2\n"
	for _, opts := range [][]stream.Option{nil, {stream.WithIsolation()}} {
		for _, parallelism := range []int{1, 3} {
			if got := table(t, parallelism, 3, opts, dir); got != want {
				t.Errorf("parallelism %d, %d options: got\n%swant\n%s", parallelism, len(opts), got, want)
			}
		}
	}
}

// Many words come and go below the best: pruned ones that return must not be lost.
func TestPrunedWordsReturn(t *testing.T) {
	var text strings.Builder
	counts := map[string]int64{}
	for round := range 40 {
		for i := range 100 {
			if round%20 < i%20 { // a word's turn comes in some rounds, and again much later
				word := string([]byte{'a' + byte(i%26), 'a' + byte(i/26)})
				text.WriteString(word + " ")
				counts[word]++
			}
		}
		text.WriteByte('\n')
	}
	path := filepath.Join(t.TempDir(), "words.txt")
	if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	var all []count
	for word, n := range counts {
		all = append(all, count{Key: word, Value: n})
	}
	slices.SortFunc(all, byCount)
	var want strings.Builder
	for i, c := range all[:6] {
		fmt.Fprintf(&want, "%4d  %-24s %12d\n", i+1, c.Key, c.Value)
	}
	if got := table(t, 2, 6, nil, path); got != want.String() {
		t.Errorf("got\n%swant\n%s", got, want.String())
	}
}

func TestTableOfNoWordsIsRefused(t *testing.T) {
	err := run(context.Background(), file.Lines("main.go"), 1, 0, new(bytes.Buffer), nil)
	if err == nil || !strings.Contains(err.Error(), "at least one") {
		t.Errorf("got %v", err)
	}
}

func TestMissingFileIsAnError(t *testing.T) {
	err := run(context.Background(), file.Lines("no-such-file.txt"), 1, 5, new(bytes.Buffer), nil)
	if err == nil || !strings.Contains(err.Error(), "no-such-file.txt") {
		t.Errorf("got %v", err)
	}
}
