package main

import (
	"go/build"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/flott-dev/flott/internal/lint"
)

// house knows which package's tests depend on which packages.
type house struct {
	packages []string
	sources  map[string][]string // what a package imports of this repository, by folder
	tests    map[string][]string // what its tests import; nil: it has none
}

func newHouse(tree *lint.Tree, root string) *house {
	h := &house{sources: map[string][]string{}, tests: map[string][]string{}}
	for _, p := range tree.Packages {
		h.packages = append(h.packages, p.Path)
		for _, f := range p.Files {
			if !built(root, p.Path, f) {
				continue
			}
			imports := inside(tree, f)
			if f.Test {
				h.tests[p.Path] = append(h.tests[p.Path], append(imports, p.Path)...)
			} else {
				h.sources[p.Path] = append(h.sources[p.Path], imports...)
			}
		}
	}
	return h
}

// built reports whether a plain build takes a file: not one for other systems or with other tags.
func built(root, pkg string, f *lint.File) bool {
	ok, err := build.Default.MatchFile(filepath.Join(root, pkg), path.Base(f.Path))
	return ok && err == nil
}

// inside are the folders of the packages of the repository that a file imports.
func inside(tree *lint.Tree, f *lint.File) []string {
	var out []string
	for _, spec := range f.AST.Imports {
		if p, ok := strings.CutPrefix(strings.Trim(spec.Path.Value, "`\""), tree.Module+"/"); ok {
			out = append(out, p)
		}
	}
	return out
}

// dependents are the other packages whose tests depend on pkg, the nearest first, those of equal distance by name.
func (h *house) dependents(pkg string) []string {
	importers := map[string][]string{}
	for p, imports := range h.sources {
		for _, i := range imports {
			importers[i] = append(importers[i], p)
		}
	}
	distance := map[string]int{pkg: 0}
	for queue := []string{pkg}; len(queue) > 0; queue = queue[1:] {
		for _, p := range importers[queue[0]] {
			if _, known := distance[p]; !known {
				distance[p] = distance[queue[0]] + 1
				queue = append(queue, p)
			}
		}
	}
	far := map[string]int{}
	var out []string
	for _, p := range h.packages {
		for _, i := range h.tests[p] {
			if d, ok := distance[i]; ok && p != pkg && (far[p] == 0 || d+1 < far[p]) {
				far[p] = d + 1
			}
		}
		if far[p] > 0 {
			out = append(out, p)
		}
	}
	slices.SortStableFunc(out, func(a, b string) int { return far[a] - far[b] })
	return out
}
