package lint

import (
	"fmt"
	"go/ast"
	"sort"
)

// Budget is the size that code may reach, in physical lines. The 95th percentiles are taken over the whole repository.
type Budget struct {
	FileP95, FileMax int
	FuncP95, FuncMax int
	PackageMax       int
}

// HouseBudget is the budget of this repository. The admired codebases agree on the medians; only the tail differs.
func HouseBudget() Budget {
	return Budget{FileP95: 600, FileMax: 1000, FuncP95: 50, FuncMax: 100, PackageMax: 8000}
}

// sized is one thing that was measured.
type sized struct {
	pos, name string
	lines     int
}

// Budgets checks the sizes of files, functions and packages. Generated files do not count; test files must keep the
// file maximum only, as a table of cases is one long function by nature.
func Budgets(t *Tree, b Budget) []Finding {
	var out []Finding
	var files, funcs []sized
	for _, p := range t.Packages {
		total := 0
		for _, f := range p.Files {
			if f.Generated {
				continue
			}
			n := f.lines()
			if n > b.FileMax {
				out = append(out, Finding{f.Path, fmt.Sprintf("%d lines; the most a file may have is %d", n, b.FileMax)})
			}
			if f.Test {
				continue
			}
			total += n
			files = append(files, sized{f.Path, f.Path, n})
			funcs = append(funcs, t.functions(f)...)
		}
		if total > b.PackageMax {
			out = append(out, Finding{p.Path, fmt.Sprintf("package of %d lines; the most is %d", total, b.PackageMax)})
		}
	}
	for _, fn := range funcs {
		if fn.lines > b.FuncMax {
			out = append(out, Finding{fn.pos, fmt.Sprintf("%s has %d lines; the most a function may have is %d", fn.name, fn.lines, b.FuncMax)})
		}
	}
	out = append(out, tail("file", files, b.FileP95)...)
	return append(out, tail("function", funcs, b.FuncP95)...)
}

// functions measures the declared functions of a file, from the line of func to that of the closing brace.
func (t *Tree) functions(f *File) []sized {
	var out []sized
	for _, d := range f.AST.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || fn.Body == nil {
			continue
		}
		from, to := t.Fset.Position(fn.Pos()).Line, t.Fset.Position(fn.End()).Line
		out = append(out, sized{t.pos(fn.Pos()), fn.Name.Name, to - from + 1})
	}
	return out
}

// tail reports a 95th percentile above the budget, with the longest items as places to begin.
func tail(kind string, items []sized, most int) []Finding {
	if len(items) == 0 {
		return nil
	}
	sort.Slice(items, func(i, j int) bool { return items[i].lines < items[j].lines })
	at := (len(items)*95 + 99) / 100
	if p95 := items[at-1].lines; p95 > most {
		longest := items[len(items)-1]
		return []Finding{{longest.pos, fmt.Sprintf(
			"95%% of %ss have up to %d lines; the budget is %d (the longest: %s, %d)", kind, p95, most, longest.name, longest.lines)}}
	}
	return nil
}
