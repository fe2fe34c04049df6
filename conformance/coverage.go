package conformance

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
)

// Coverage is the table of what passes, by family.
type Coverage map[string]Tally

// coveragePath is the table as the tests of the folders below see it.
func coveragePath() string { return filepath.Join("..", "coverage.txt") }

// ReadCoverage reads a table.
func ReadCoverage(path string) (Coverage, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the coverage table: %w", err)
	}
	out := Coverage{}
	for i, line := range strings.Split(strings.TrimSpace(string(raw)), "\n")[1:] {
		var name string
		var n Tally
		if _, err := fmt.Sscan(line, &name, &n.Cases, &n.Run, &n.Passed, &n.Rules, &n.Covered); err != nil {
			return nil, fmt.Errorf("read the coverage table, line %d: %w", i+2, err)
		}
		out[name] = n
	}
	return out, nil
}

// Write writes the table.
func (c Coverage) Write(path string) error {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "family\tcases\trun\tpassed\trules\tcovered")
	for _, name := range sortedNames(c) {
		n := c[name]
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%d\n", name, n.Cases, n.Run, n.Passed, n.Rules, n.Covered)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(b.String()), 0o644)
}

func sortedNames(c Coverage) []string {
	var names []string
	for name := range c {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// CheckCoverage compares a family's tally with the table: fewer is a failure, more asks for a rewrite of the table. Only
// one package at a time may rewrite it (go test -p 1).
func CheckCoverage(t testing.TB, family string, n Tally, rewrite bool) {
	t.Helper()
	table, err := ReadCoverage(coveragePath())
	if err != nil {
		t.Fatal(err)
	}
	have, ok := table[family]
	switch {
	case ok && have == n:
	case rewrite:
		table[family] = n
		if err := table.Write(coveragePath()); err != nil {
			t.Fatal(err)
		}
	case n.Run < have.Run || n.Passed < have.Passed || n.Covered < have.Covered:
		t.Errorf("%s has fallen: %v; the table says %v", family, n, have)
	default:
		t.Errorf("%s has risen: %v; the table says %v: rewrite it with go test ./conformance/streaming -rewrite", family, n, have)
	}
}
