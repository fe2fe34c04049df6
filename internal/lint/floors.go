package lint

import (
	"fmt"
	"strings"
)

// Floors checks direct imports against the floor map. Tests are exempt: they may look at the whole house.
func Floors(t *Tree) []Finding {
	var out []Finding
	for _, p := range t.Packages {
		at, ok := t.rank(p.Path)
		if !ok {
			out = append(out, Finding{p.Path, "the floor map (internal/lint/ranks.go) does not know this package"})
			continue
		}
		for _, f := range p.source() {
			out = append(out, t.floorsOfFile(p, f, at)...)
		}
	}
	return out
}

func (t *Tree) floorsOfFile(p *Package, f *File, at int) []Finding {
	var out []Finding
	me := t.ranks[at]
	inside, outside := t.imports(f)
	for _, spec := range inside {
		target := t.folder(spec)
		to, ok := t.rank(target)
		switch {
		case !ok:
			continue // the missing line is reported at the package itself
		case to >= at:
			out = append(out, Finding{t.pos(spec.Pos()), fmt.Sprintf(
				"%s (%s) imports %s (%s), which does not stand below it", p.Path, me.Floor, target, t.ranks[to].Floor)})
		case testKit(target) && !testKit(p.Path):
			out = append(out, Finding{t.pos(spec.Pos()), fmt.Sprintf("%s imports the test kit %s outside of tests", p.Path, target)})
		case me.Floor == "F7" && isEngine(target):
			out = append(out, Finding{t.pos(spec.Pos()), fmt.Sprintf(
				"%s imports %s: a front door's only way to the engine is internal/env", p.Path, target)})
		}
	}
	for _, spec := range outside {
		path := importPath(spec)
		if me.Floor == "F0" && !standard(path) {
			out = append(out, Finding{t.pos(spec.Pos()), fmt.Sprintf("%s (F0) imports %s: F0 needs the standard library only", p.Path, path)})
		}
		if path == "testing" && !testKit(p.Path) {
			out = append(out, Finding{t.pos(spec.Pos()), p.Path + " imports testing outside of tests: only a test kit (a package named ...test) may"})
		}
	}
	return out
}

func isEngine(pkg string) bool {
	for _, e := range engine() {
		if within(pkg, e) {
			return true
		}
	}
	return false
}

// standard reports whether an import path is the standard library's: its first element has no dot.
func standard(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	return !strings.Contains(first, ".")
}

// testKit names the packages whose purpose is to be used by tests.
func testKit(pkg string) bool {
	return strings.HasSuffix(pkg, "test") || within(pkg, "bench") || within(pkg, "conformance")
}
