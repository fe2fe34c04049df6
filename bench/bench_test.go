package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/flott-dev/flott/bench/loops"
)

// text is a folder with Go files whose words end in every way.
func text(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	long := strings.Repeat("LongWord", 100)
	for name, text := range map[string]string{
		"a.go":         "package a // To be, or not to be\r\n\n" + long + " x",
		"b/_hidden.go": "Über alles: naïve\nend",
		"b/c.txt":      "not counted",
		"empty.go":     "",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// The program fails when an answer differs from the loop's: this is a test of the engine as much as of the program.
func TestCoreAnswersAsTheLoopsDo(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), []string{"-shrink", "1024", "-n", "1", "-json", "-text", text(t)}, &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	var names []string
	dec := json.NewDecoder(&out)
	for dec.More() {
		var l line
		if err := dec.Decode(&l); err != nil {
			t.Fatal(err)
		}
		names = append(names, l.Name)
		if l.Elements == 0 || l.Checksum == 0 || l.ElementsPerS <= 0 || l.NsPerElement <= 0 {
			t.Errorf("%s lacks a figure: %+v", l.Name, l)
		}
		if l.HeapPerRaw == 0 && (l.Ratio <= 0 || l.LoopElementsPerS <= 0) {
			t.Errorf("%s lacks the comparison: %+v", l.Name, l)
		}
	}
	var want []string
	for _, w := range core() {
		want = append(want, w.name)
	}
	if !slices.Equal(names, want) {
		t.Errorf("printed %q, want %q", names, want)
	}
}

func TestTableHasALineForEachWorkload(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), []string{"-shrink", "4096", "-n", "1", "-run", "chain"}, &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 4 || !strings.HasPrefix(lines[0], "workload") || !strings.HasPrefix(lines[1], "chain-map-filter-map ") {
		t.Errorf("printed\n%s", out.String())
	}
}

func TestWrongAnswersEndTheProgram(t *testing.T) {
	right := func(context.Context) (uint64, error) { return 1, nil }
	wrong := func(context.Context) (uint64, error) { return 2, nil }
	for name, p := range map[string]*pair{
		"results": {elements: 1, loop: func() uint64 { return 1 }, ours: wrong},
		"digest":  {elements: 1, loop: func() uint64 { return 1 }, ours: right, digest: func() uint64 { return 2 }},
		"final":   {elements: 1, loop: func() uint64 { return 1 }, ours: right, exact: wrong},
	} {
		suite := []workload{{name: name, parallelism: 1, compare: func(context.Context, options) (*pair, error) { return p, nil }}}
		err := measureAll(t.Context(), suite, options{runs: 1, shrink: 1}, new(bytes.Buffer))
		if err == nil || !strings.Contains(err.Error(), "measure "+name) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

func TestUnknownSuitesAndNamesAreErrors(t *testing.T) {
	for _, args := range [][]string{{"-suite", "all"}, {"-run", "no such name"}, {"-n", "0"}, {"-run", "wordcount", "-text", t.TempDir()}} {
		if err := run(t.Context(), args, new(bytes.Buffer), io.Discard); err == nil {
			t.Errorf("%q: no error", args)
		}
	}
}

func TestWordsAreCutAsTheLoopCutsThem(t *testing.T) {
	dir := text(t)
	_, n, sum := loops.WordCount(loops.GoFiles(dir))
	var got int
	var length uint64
	for _, f := range loops.GoFiles(dir) {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for l := range strings.Lines(string(b)) {
			cutWords(l, func(w string) {
				got++
				length += uint64(len(w))
				if w != strings.ToLower(w) {
					t.Errorf("word %q is not in lower case", w)
				}
			})
		}
	}
	if got != n || length != sum {
		t.Errorf("%d words of %d letters, the loop has %d of %d", got, length, n, sum)
	}
}
