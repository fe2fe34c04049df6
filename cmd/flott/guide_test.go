package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/flott-dev/flott/checkpoint"
	"github.com/flott-dev/flott/internal/vfs"
)

// The page of the guide shows what the program prints, on snapshots like those of the scripts; the one in the folder copy is damaged.
func TestGuideShowsWhatIsPrinted(t *testing.T) {
	file, err := filepath.Abs("../../docs/guide/savepoints.md")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	takeAll(t, true)
	parts := strings.Split(string(page), "```console\n")
	if len(parts) < 5 {
		t.Fatalf("%d examples in the guide", len(parts)-1)
	}
	for i, part := range parts[1:] {
		example, rest, closed := strings.Cut(part, "```")
		if !closed {
			t.Fatalf("an example has no end:\n%s", example)
		}
		if strings.Contains(example, " copy/") {
			(&fixture{t: t, fs: vfs.OS{}, seed: 77, tidy: true}).take(checkpoint.Savepoint, 7, "copy/savepoint-001122-7", -1)
			harm(t, "change", "copy/savepoint-001122-7/*0002-0-*")
		}
		got := replay(t, example, false)
		if !*rewrite {
			compare(t, example, got)
		}
		parts[i+1] = got + "```" + rest
	}
	if *rewrite {
		if err := os.WriteFile(file, []byte(strings.Join(parts, "```console\n")), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}
