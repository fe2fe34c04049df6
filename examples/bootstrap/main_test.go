package main

import (
	"bytes"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The job goes on with the balances of the savepoint that was written for it, at any parallelism.
func TestJobBeginsWithTheStateThatWasWrittenForIt(t *testing.T) {
	for _, parallelism := range []int{1, 3} {
		var out bytes.Buffer
		if err := run(t.Context(), filepath.Join(t.TempDir(), "savepoints"), parallelism, &out); err != nil {
			t.Fatal(err)
		}
		paid, repaired, _ := strings.Cut(out.String(), "repaired:\n")
		lines := strings.Split(strings.TrimSpace(paid), "\n")
		slices.Sort(lines)
		want := []string{
			"ada has 150 after 4 payments, the last [40 60 50]",
			"ada has 175 after 5 payments, the last [40 60 50 25]",
			"bob has -15 after 2 payments, the last [-20 5]",
			"eve has 1 after 1 payments, the last [1]",
		}
		if !slices.Equal(lines, want) {
			t.Errorf("parallelism %d: got %q, want %q", parallelism, lines, want)
		}
		if want := "ada has 100 after 3 payments\nbob has -10 after 1 payments\ncy has 7 after 1 payments\n"; repaired != want {
			t.Errorf("repaired: got %q, want %q", repaired, want)
		}
	}
}

func TestSavepointsAreNotOverwritten(t *testing.T) {
	dir := t.TempDir()
	if err := bootstrap(t.Context(), dir+"/one"); err != nil {
		t.Fatal(err)
	}
	if err := bootstrap(t.Context(), dir+"/one"); err == nil {
		t.Error("a second savepoint lies upon the first")
	}
}
