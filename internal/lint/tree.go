// Package lint is the house law as code: which package may import which, how large files and functions may grow, what
// must be documented, and what the engine's floors must not do (wait, read clocks, hold globals). Each rule is a
// function from a parsed Tree to findings; the tests of this package run all rules over the repository, and each rule
// over samples that break it.
//
// It reads source text only: it never builds, imports or runs what it judges, and no other package imports it except
// its own command, internal/lint/mutate. If a rule refuses code that is right, change the rule here, with the reason, in
// a commit of its own.
package lint

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"sort"
	"strings"
)

// File is one Go file of the repository.
type File struct {
	Path      string // slash-separated, relative to the root of the repository
	Src       []byte
	AST       *ast.File
	Test      bool // its name ends in _test.go
	Generated bool // it carries the standard "Code generated" line
}

// Package is the Go files of one folder, external test package included.
type Package struct {
	Path  string // folder relative to the root, which is also the import path below the module's; "." for the root
	Files []*File
}

// Tree is all Go source of the repository, whatever its build tags.
type Tree struct {
	Module   string
	Fset     *token.FileSet
	Packages []*Package // sorted by path
	ranks    []Rank
}

// Finding is one breach of the law.
type Finding struct {
	Pos  string // file:line, or the folder of a package
	Text string
}

// String implements fmt.Stringer.
func (f Finding) String() string { return f.Pos + ": " + f.Text }

// Root finds the top of the repository: the nearest folder above dir that has a go.work.
func Root(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.work")); err == nil {
			return dir, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", errors.New("find the repository's root: no go.work in any folder above")
		}
		dir = up
	}
}

// Load parses every Go file below the root of fsys. Folders that the go command skips (testdata, vendor, names that begin with a dot
// or an underscore) are skipped, and the tools' module, which holds no code.
func Load(fsys fs.FS) (*Tree, error) {
	module, err := modulePath(fsys)
	if err != nil {
		return nil, err
	}
	t := &Tree{Module: module, Fset: token.NewFileSet(), ranks: Ranks()}
	byDir := map[string]*Package{}
	err = fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if skipFolder(name) {
				return fs.SkipDir
			}
			return nil
		}
		if path.Ext(name) != ".go" {
			return nil
		}
		f, err := t.parse(fsys, name)
		if err != nil {
			return err
		}
		dir := path.Dir(name)
		if byDir[dir] == nil {
			byDir[dir] = &Package{Path: dir}
			t.Packages = append(t.Packages, byDir[dir])
		}
		byDir[dir].Files = append(byDir[dir].Files, f)
		return nil
	})
	if err != nil {
		return nil, err
	}
	sort.Slice(t.Packages, func(i, j int) bool { return t.Packages[i].Path < t.Packages[j].Path })
	return t, nil
}

func skipFolder(name string) bool {
	base := path.Base(name)
	if name == "." {
		return false
	}
	return name == "tools" || base == "testdata" || base == "vendor" || base == "node_modules" ||
		strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_")
}

func modulePath(fsys fs.FS) (string, error) {
	mod, err := fs.ReadFile(fsys, "go.mod")
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(mod)) {
		if rest, ok := strings.CutPrefix(line, "module "); ok {
			return strings.TrimSpace(rest), nil
		}
	}
	return "", errors.New("read go.mod: no module line")
}

func (t *Tree) parse(fsys fs.FS, name string) (*File, error) {
	src, err := fs.ReadFile(fsys, name)
	if err != nil {
		return nil, err
	}
	tree, err := parser.ParseFile(t.Fset, name, src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, fmt.Errorf("parse %s: %w", name, err)
	}
	return &File{
		Path:      name,
		Src:       src,
		AST:       tree,
		Test:      strings.HasSuffix(name, "_test.go"),
		Generated: ast.IsGenerated(tree),
	}, nil
}

// pos is the place of a node, as findings print it.
func (t *Tree) pos(p token.Pos) string {
	at := t.Fset.Position(p)
	return fmt.Sprintf("%s:%d", at.Filename, at.Line)
}

// lines counts the physical lines of a file.
func (f *File) lines() int {
	n := bytes.Count(f.Src, []byte("\n"))
	if len(f.Src) > 0 && f.Src[len(f.Src)-1] != '\n' {
		n++
	}
	return n
}

// source returns the files that are built into programs: no tests.
func (p *Package) source() []*File {
	var out []*File
	for _, f := range p.Files {
		if !f.Test {
			out = append(out, f)
		}
	}
	return out
}

// name is the package clause of the folder's non-test files, or "" if it has none.
func (p *Package) name() string {
	for _, f := range p.source() {
		return f.AST.Name.Name
	}
	return ""
}

// public reports whether users import the package: its exported names are the promise that docs/api.txt lists.
func (p *Package) public() bool {
	first, _, _ := strings.Cut(p.Path, "/")
	switch first {
	case "cmd", "examples", "bench", "conformance", "python":
		return false
	}
	return p.name() != "" && p.name() != "main" && !within(p.Path, "internal") && !strings.Contains("/"+p.Path+"/", "/internal/")
}

// within reports whether the folder path is root or lies below it.
func within(path, root string) bool {
	return path == root || strings.HasPrefix(path, root+"/")
}

// imports returns the import paths of a file below the module ("internal/frame"), and the others as they stand.
func (t *Tree) imports(f *File) (inside, outside []*ast.ImportSpec) {
	for _, spec := range f.AST.Imports {
		if p := importPath(spec); p == t.Module || strings.HasPrefix(p, t.Module+"/") {
			inside = append(inside, spec)
		} else {
			outside = append(outside, spec)
		}
	}
	return inside, outside
}

func importPath(spec *ast.ImportSpec) string { return strings.Trim(spec.Path.Value, "`\"") }

// folder is an import path of the module as a folder of the repository.
func (t *Tree) folder(spec *ast.ImportSpec) string {
	p := strings.TrimPrefix(importPath(spec), t.Module)
	if p == "" {
		return "."
	}
	return strings.TrimPrefix(p, "/")
}

// localNames maps the names under which a file uses imported packages to their import paths.
func localNames(f *File) map[string]string {
	names := map[string]string{}
	for _, spec := range f.AST.Imports {
		p := importPath(spec)
		name := path.Base(p)
		if name == "v2" { // math/rand/v2 and its like are named after the folder above
			name = path.Base(path.Dir(p))
		}
		if spec.Name != nil {
			name = spec.Name.Name
		}
		names[name] = p
	}
	return names
}
