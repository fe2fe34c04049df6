package main

import (
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

func TestFlipThatATestSeesIsNoticedAndTheOtherSurvives(t *testing.T) {
	root := write(t, map[string]string{
		"serde/serde.go":      code,
		"serde/serde_test.go": "package serde\n\nimport \"testing\"\n\nfunc TestAbs(t *testing.T) {\n\tif Abs(-1) != 1 {\n\t\tt.Fail()\n\t}\n}\n",
	})
	o := options{dir: root, n: 10, seed: 1, timeout: time.Minute, memory: 4096}
	var out strings.Builder
	if err := run(&out, o); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"noticed  serde/serde.go:4: x < 0", "SURVIVED serde/serde.go:11: x > 3", "1 of 2 flips were noticed: 50.0%",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in:\n%s", want, out.String())
		}
	}
	o.min = 60
	if err := run(&out, o); err == nil || !strings.Contains(err.Error(), "50.0% of the flips were noticed, 60.0% are wanted") {
		t.Errorf("a rate below the wanted one gives %v", err)
	}
}

func TestFlipThatOnlyADependentSeesIsNoticed(t *testing.T) {
	root := write(t, map[string]string{
		"serde/serde.go":      strings.Split(code, "func Untested")[0],
		"stream/stream.go":    "package stream\n",
		"stream/uses_test.go": "package stream\n\nimport (\n\t\"testing\"\n\n\t\"example.org/m/serde\"\n)\n\nfunc TestAbs(t *testing.T) {\n\tif serde.Abs(-1) != 1 {\n\t\tt.Fail()\n\t}\n}\n",
	})
	var out strings.Builder
	if err := run(&out, options{dir: root, n: 1, wide: "./...", timeout: time.Minute, memory: 4096}); err != nil {
		t.Fatal(err)
	}
	if want := "1 of 1 flips were noticed"; !strings.Contains(out.String(), want) {
		t.Errorf("no %q in:\n%s", want, out.String())
	}
}

func TestPackageThatIsRedUnflippedIsAnError(t *testing.T) {
	root := write(t, map[string]string{
		"serde/serde.go":      code,
		"serde/serde_test.go": "package serde\n\nimport \"testing\"\n\nfunc TestRed(t *testing.T) { t.Fail() }\n",
	})
	err := run(new(strings.Builder), options{dir: root, n: 10, timeout: time.Minute, memory: 4096})
	if err == nil || !strings.Contains(err.Error(), "red without any flip: serde") {
		t.Errorf("got %v", err)
	}
}

func TestWidePackageThatIsRedUnflippedIsAnError(t *testing.T) {
	root := write(t, map[string]string{
		"serde/serde.go":        code,
		"stream/stream.go":      "package stream\n",
		"stream/stream_test.go": "package stream\n\nimport \"testing\"\n\nfunc TestRed(t *testing.T) { t.Fail() }\n",
	})
	err := run(new(strings.Builder), options{dir: root, n: 10, wide: "./...", timeout: time.Minute, memory: 4096})
	if err == nil || !strings.Contains(err.Error(), "tests of ./... are red without any flip") {
		t.Errorf("got %v", err)
	}
}

func TestSitesAreTheAtomicConditionsOfTheEngineFloors(t *testing.T) {
	root := write(t, map[string]string{
		"internal/host/host.go": "package host\n\nfunc f(x int) {\n\tif x > 0 {\n\t\treturn\n\t}\n}\n",
		"internal/task/off.go":  "//go:build never\n\npackage task\n\nfunc g(x int) {\n\tif x > 0 {\n\t\treturn\n\t}\n}\n",
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
