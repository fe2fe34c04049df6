package lint

import (
	"flag"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

var rewrite = flag.Bool("rewrite", false, "rewrite docs/api.txt from the code")

// house parses the repository once for all tests.
var house = sync.OnceValues(func() (*repository, error) {
	root, err := Root(".")
	if err != nil {
		return nil, err
	}
	tree, err := Load(os.DirFS(root))
	if err != nil {
		return nil, err
	}
	return &repository{root, tree}, nil
})

type repository struct {
	root string
	tree *Tree
}

func openHouse(t *testing.T) *repository {
	t.Helper()
	h, err := house()
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func report(t *testing.T, findings []Finding) {
	t.Helper()
	for _, f := range findings {
		t.Error(f)
	}
}

func TestImportsGoStrictlyDownward(t *testing.T) { report(t, Floors(openHouse(t).tree)) }

func TestSizesAreWithinBudget(t *testing.T) { report(t, Budgets(openHouse(t).tree, HouseBudget())) }

func TestPackagesAndExportedNamesAreDocumented(t *testing.T) { report(t, Docs(openHouse(t).tree)) }

func TestNothingIsGlobal(t *testing.T) { report(t, Globals(openHouse(t).tree)) }

func TestEngineFloorsNeverWait(t *testing.T) { report(t, Waiting(openHouse(t).tree)) }

func TestNamesSaySomething(t *testing.T) { report(t, Names(openHouse(t).tree)) }

func TestCommentsPromiseNothing(t *testing.T) { report(t, Promises(openHouse(t).tree)) }

func TestNoFileNamesAMachinePath(t *testing.T) {
	h := openHouse(t)
	findings, err := MachinePaths(os.DirFS(h.root), sourceFiles(t, h.root))
	if err != nil {
		t.Fatal(err)
	}
	report(t, findings)
}

func TestEveryDependencyHasAReason(t *testing.T) {
	h := openHouse(t)
	doc, err := os.ReadFile(filepath.Join(h.root, "docs", "dependencies.md"))
	if err != nil {
		t.Fatal(err)
	}
	mods := map[string]string{}
	for _, name := range sourceFiles(t, h.root) {
		if filepath.Base(name) != "go.mod" || strings.Contains(name, "testdata/") {
			continue
		}
		mod, err := os.ReadFile(filepath.Join(h.root, name))
		if err != nil {
			t.Fatal(err)
		}
		mods[name] = string(mod)
	}
	report(t, Dependencies(mods, string(doc)))
}

// TestPublicAPI compares the public declarations with the reviewed list. A difference is no mistake as such: it asks for
// a look at each line, and for `make api`.
func TestPublicAPI(t *testing.T) {
	h := openHouse(t)
	file := filepath.Join(h.root, "docs", "api.txt")
	now := strings.Join(API(h.tree), "\n") + "\n"
	if *rewrite {
		if err := os.WriteFile(file, []byte(now), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	golden, err := os.ReadFile(file)
	if os.IsNotExist(err) {
		t.Fatal("docs/api.txt IS MISSING, so the public API is unguarded: make api writes it")
	}
	if err != nil {
		t.Fatal(err)
	}
	reviewed := map[string]bool{}
	for line := range strings.Lines(string(golden)) {
		reviewed[line] = true
	}
	for line := range strings.Lines(now) {
		if !reviewed[line] {
			t.Errorf("new or changed: %s", strings.TrimSpace(line))
		}
		delete(reviewed, line)
	}
	for line := range reviewed {
		t.Errorf("gone: %s", strings.TrimSpace(line))
	}
	if t.Failed() {
		t.Log("review these lines as a promise to users, then: make api")
	}
}

// sourceFiles lists the files that are, or would be, committed. Outside of a git checkout it lists all but dot folders.
func sourceFiles(t *testing.T, root string) []string {
	t.Helper()
	cmd := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	cmd.Dir = root
	var files []string
	if out, err := cmd.Output(); err == nil {
		for name := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
			if info, err := os.Lstat(filepath.Join(root, name)); err == nil && info.Mode().IsRegular() {
				files = append(files, name)
			}
		}
		return files
	}
	err := fs.WalkDir(os.DirFS(root), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && name != "." && strings.HasPrefix(d.Name(), ".") {
			return fs.SkipDir
		}
		if d.Type().IsRegular() {
			files = append(files, name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}
