package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/flott-dev/flott/internal/lint"
)

// write makes a small repository: a workspace with one module whose package serde is on floor F1.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	files["go.mod"] = "module example.org/m\n\ngo 1.27\n"
	files["go.work"] = "go 1.27\n\nuse .\n"
	for name, src := range files {
		name = filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(src), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

const code = `package serde

func Abs(x int) int {
	if x < 0 {
		return -x
	}
	return x
}

func Untested(x int) bool {
	if x > 3 {
		return true
	}
	return false
}
`

// absTest sees the flip in Abs and no other.
const absTest = "package serde\n\nimport \"testing\"\n\nfunc TestAbs(t *testing.T) {\n\tif Abs(-1) != 1 {\n\t\tt.Fail()\n\t}\n}\n"

// small are options for a repository with one or two conditions.
func small(root string) options {
	return options{dir: root, n: 10, seed: 1, wide: time.Minute, timeout: time.Minute, memory: 4096}
}

func runs(t *testing.T, o options) string {
	t.Helper()
	var out strings.Builder
	if err := run(t.Context(), &out, o); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func mustHold(t *testing.T, out string, all ...string) {
	t.Helper()
	for _, want := range all {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in:\n%s", want, out)
		}
	}
}

func TestFlipThatATestSeesIsNoticedAndTheOtherSurvives(t *testing.T) {
	root := write(t, map[string]string{"serde/serde.go": code, "serde/serde_test.go": absTest})
	o := small(root)
	mustHold(t, runs(t, o), "s serde/serde.go:4 Abs: !(x < 0) [TestAbs]",
		"s serde/serde.go:11 Untested: !(x > 3) [its own tests, 0 of 0 dependents]",
		"1 of 2 flips were noticed: 50.0%, 0 of them by other packages' tests only")
	o.skip = "Abs"
	mustHold(t, runs(t, o), "0 of 2 flips were noticed")
	o.skip, o.min = "", 60
	err := run(t.Context(), new(strings.Builder), o)
	if err == nil || !strings.Contains(err.Error(), "50.0% of the flips were noticed, 60.0% are wanted") {
		t.Errorf("a rate below the wanted one gives %v", err)
	}
}

func TestFlipThatOnlyADependentSeesIsSeen(t *testing.T) {
	root := write(t, map[string]string{
		"serde/serde.go":      strings.Split(code, "func Untested")[0],
		"stream/stream.go":    "package stream\n",
		"stream/uses_test.go": "package stream\n\nimport (\n\t\"testing\"\n\n\t\"example.org/m/serde\"\n)\n\nfunc TestAbs(t *testing.T) {\n\tif serde.Abs(-1) != 1 {\n\t\tt.Fail()\n\t}\n}\n",
	})
	o := small(root)
	mustHold(t, runs(t, o), "seen ", "!(x < 0) [stream TestAbs]", "1 of 1 flips were noticed: 100.0%, 1 of them by")
	o.wide = 0
	mustHold(t, runs(t, o), "SURVIVED ", "!(x < 0) [no tests of its own]")
}

func TestFlipThatHangsIsNoticed(t *testing.T) {
	root := write(t, map[string]string{
		"serde/serde.go":      "package serde\n\nfunc Count(n int) (i int) {\n\tfor i < n {\n\t\ti++\n\t}\n\treturn i\n}\n",
		"serde/serde_test.go": "package serde\n\nimport \"testing\"\n\nfunc TestCount(t *testing.T) { Count(0) }\n",
	})
	o := small(root)
	o.timeout = 100 * time.Millisecond
	// i < 0 becomes i >= 0, which holds until i overflows.
	mustHold(t, runs(t, o), "noticed ", "Count: !(i < n) [hung]")
}

func TestPackageThatIsRedUnflippedIsAnError(t *testing.T) {
	root := write(t, map[string]string{
		"serde/serde.go":      code,
		"serde/serde_test.go": "package serde\n\nimport \"testing\"\n\nfunc TestRed(t *testing.T) { t.Fail() }\n",
	})
	err := run(t.Context(), new(strings.Builder), small(root))
	if err == nil || !strings.Contains(err.Error(), "red without any flip: serde") {
		t.Errorf("got %v", err)
	}
}

func TestDependentThatIsRedUnflippedIsNotAsked(t *testing.T) {
	root := write(t, map[string]string{
		"serde/serde.go":        code,
		"serde/serde_test.go":   absTest,
		"stream/stream.go":      "package stream\n\nimport _ \"example.org/m/serde\"\n",
		"stream/stream_test.go": "package stream\n\nimport \"testing\"\n\nfunc TestRed(t *testing.T) { t.Fail() }\n",
	})
	mustHold(t, runs(t, small(root)), "SURVIVED ", "1 of 2 flips were noticed: 50.0%, 0 of them by")
}

func TestConditionsThatDoNotMatterAreNotFlipped(t *testing.T) {
	root := write(t, map[string]string{"serde/serde.go": code, "serde/serde_test.go": absTest})
	list := func(text string) {
		t.Helper()
		name := filepath.Join(root, filepath.FromSlash(equivalentFile))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	list("# a remark\n\nserde/serde.go Untested: !(x > 3)\n\tNobody calls it.\n")
	mustHold(t, runs(t, small(root)), "1 conditions, and 1 that are known not to matter", "1 of 1 flips were noticed")
	for text, want := range map[string]string{
		"serde/serde.go Untested: !(x > 4)\n\tNobody calls it.\n":                                     ":1: there is no such condition (any more): serde/serde.go Untested: !(x > 4)",
		"serde/serde.go Untested: !(x > 3)\n":                                                         "no reason is given for serde/serde.go Untested",
		"serde/serde.go Untested: !(x > 3)\nserde/serde.go Abs: !(x < 0)\n\tThis one has a reason.\n": "no reason is given for serde/serde.go Untested",
	} {
		list(text)
		if err := run(t.Context(), new(strings.Builder), small(root)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q gives %v", text, err)
		}
	}
}

func TestListOfThisRepositoryNamesConditions(t *testing.T) {
	root, err := lint.Root(".")
	if err != nil {
		t.Fatal(err)
	}
	tree, err := lint.Load(os.DirFS(root))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := readEquivalent(root, sites(tree, root, "")); err != nil {
		t.Error(err)
	}
}

func TestSurvivorsOfALogAreTriedAgain(t *testing.T) {
	root := write(t, map[string]string{"serde/serde.go": code, "serde/serde_test.go": absTest})
	o := small(root)
	o.log = filepath.Join(t.TempDir(), "log")
	if err := logged(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	o.again, o.log = o.log, ""
	mustHold(t, runs(t, o), "1 conditions,", "Untested: !(x > 3)", "0 of 1 flips were noticed")
}

// cutting ends a run as soon as it prints an outcome.
type cutting struct {
	strings.Builder
	cut func()
}

func (c *cutting) Write(p []byte) (int, error) {
	if strings.Contains(string(p), "noticed   ") || strings.Contains(string(p), "SURVIVED") {
		c.cut()
	}
	return c.Builder.Write(p)
}

func TestRunThatIsCutOffKeepsWhatItFound(t *testing.T) {
	root := write(t, map[string]string{"serde/serde.go": code, "serde/serde_test.go": absTest})
	ctx, cancel := context.WithCancel(t.Context())
	out := &cutting{cut: cancel}
	if err := run(ctx, out, small(root)); err == nil || err.Error() != "interrupted after 1 flips" {
		t.Fatalf("a run that was cut off ends with %v", err)
	}
	mustHold(t, out.String(), "interrupted at serde/serde.go", " of 1 flips were noticed")

	o := small(root)
	o.span = 1 // the time is over when the first flip would begin
	mustHold(t, runs(t, o), "nothing was flipped")
}

func TestDependentsAreThoseWhoseTestsReachThePackage(t *testing.T) {
	root := write(t, map[string]string{
		"serde/serde.go":    "package serde\n",
		"state/state.go":    "package state\n\nimport _ \"example.org/m/serde\"\n",
		"state/a_test.go":   "package state_test\n\nimport _ \"example.org/m/state\"\n",
		"window/window.go":  "package window\n\nimport _ \"example.org/m/state\"\n",
		"window/a_test.go":  "package window\n",
		"agg/agg.go":        "package agg\n\nimport _ \"example.org/m/serde\"\n", // has no tests
		"process/p.go":      "package process\n",
		"process/p_test.go": "package process\n\nimport _ \"example.org/m/serde\"\n",
		"row/row.go":        "package row\n",
		"row/row_test.go":   "package row\n",
		"row/tag_test.go":   "//go:build never\n\npackage row\n\nimport _ \"example.org/m/serde\"\n",
	})
	tree, err := lint.Load(os.DirFS(root))
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Join(newHouse(tree, root).dependents("serde"), " ")
	if want := "process state window"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestSitesAreTheAtomicConditionsOfTheEngineFloors(t *testing.T) {
	root := write(t, map[string]string{
		"stream/stream.go":     "package stream\n\nfunc f(x int) {\n\tif x > 0 {\n\t\treturn\n\t}\n}\n",
		"internal/task/off.go": "//go:build never\n\npackage task\n\nfunc g(x int) {\n\tif x > 0 {\n\t\treturn\n\t}\n}\n",
		"internal/task/task.go": `package task

func f(a, b bool, x int) int {
	for (a && x > 1) || !b {
		x--
	}
	switch {
	case x == 3, b:
	}
	switch x {
	case 4:
	}
	if invariants.Enabled && a {
		x++
	}
	return x
}
`,
	})
	tree, err := lint.Load(os.DirFS(root))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range sites(tree, root, "") {
		got = append(got, s.condition())
		if flipped := string(s.flipped()); !strings.Contains(flipped, "!("+s.condition()+")") {
			t.Errorf("flipping %s gives:\n%s", s.condition(), flipped)
		}
	}
	if want := "a; x > 1; !b; x == 3; b; a"; strings.Join(got, "; ") != want {
		t.Errorf("got %s, want %s", strings.Join(got, "; "), want)
	}
}

func TestSitesAreNamedByTheirFunction(t *testing.T) {
	root := write(t, map[string]string{"internal/vfs/vfs.go": `package vfs

type T[K any] struct{}

type U struct{}

func (*T[K]) Method(x bool) {
	if x {
		return
	}
	if x {
		return
	}
}

func (U) Method(x bool) {
	func() {
		if x {
			return
		}
	}()
}

func Function(x int) {
	if x ==
		1 {
		return
	}
}

var held = func(x bool) int {
	if x {
		return 1
	}
	return 0
}(true)
`})
	tree, err := lint.Load(os.DirFS(root))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range sites(tree, root, "") {
		got = append(got, s.mutation())
	}
	want := "(*T).Method: !(x); (*T).Method#2: !(x); U.Method: !(x); Function: !(x == 1); var: !(x)"
	if strings.Join(got, "; ") != want {
		t.Errorf("got %s, want %s", strings.Join(got, "; "), want)
	}
}
