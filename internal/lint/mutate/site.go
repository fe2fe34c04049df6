package main

import (
	"go/ast"
	"go/build"
	"go/token"
	"path"
	"path/filepath"
	"strings"

	"github.com/flott-dev/flott/internal/lint"
)

// site is one condition that can be flipped: the bytes from start to end of a file.
type site struct {
	pkg        string // folder of the package
	file       string // slash-separated, relative to the root
	line       int
	src        []byte
	start, end int
}

// condition is the text of the condition, on one line.
func (s site) condition() string {
	return strings.Join(strings.Fields(string(s.src[s.start:s.end])), " ")
}

// flipped is the whole file with the condition negated.
func (s site) flipped() []byte {
	out := make([]byte, 0, len(s.src)+3)
	out = append(out, s.src[:s.start]...)
	out = append(out, "!("...)
	out = append(out, s.src[s.start:s.end]...)
	out = append(out, ')')
	return append(out, s.src[s.end:]...)
}

// sites finds the conditions of the packages on floors F1 to F4, or of those below prefix, if it is given. Files that a
// plain build leaves out (other systems, other tags) are left out here: no plain test can see them.
func sites(tree *lint.Tree, root, prefix string) []site {
	var out []site
	for _, p := range tree.Packages {
		if !chosen(tree, p.Path, prefix) {
			continue
		}
		for _, f := range p.Files {
			built, err := build.Default.MatchFile(filepath.Join(root, p.Path), path.Base(f.Path))
			if f.Test || f.Generated || err != nil || !built {
				continue
			}
			out = append(out, sitesOfFile(tree.Fset, p.Path, f)...)
		}
	}
	return out
}

func chosen(tree *lint.Tree, pkg, prefix string) bool {
	if prefix != "" {
		return pkg == prefix || strings.HasPrefix(pkg, prefix+"/")
	}
	switch tree.Floor(pkg) {
	case "F1", "F2", "F3", "F4":
		return true
	}
	return false
}

func sitesOfFile(fset *token.FileSet, pkg string, f *lint.File) []site {
	var out []site
	add := func(e ast.Expr) {
		from, to := fset.Position(e.Pos()), fset.Position(e.End())
		s := site{pkg: pkg, file: f.Path, line: from.Line, src: f.Src, start: from.Offset, end: to.Offset}
		// The assertions are switched off in a plain build: to flip their switch proves nothing.
		if !strings.Contains(s.condition(), "invariants.") {
			out = append(out, s)
		}
	}
	ast.Inspect(f.AST, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.IfStmt:
			operands(n.Cond, add)
		case *ast.ForStmt:
			if n.Cond != nil {
				operands(n.Cond, add)
			}
		case *ast.SwitchStmt:
			if n.Tag != nil {
				break
			}
			for _, clause := range n.Body.List {
				for _, e := range clause.(*ast.CaseClause).List {
					operands(e, add)
				}
			}
		}
		return true
	})
	return out
}

// operands gives each atomic condition of a && b || c to add.
func operands(e ast.Expr, add func(ast.Expr)) {
	switch x := e.(type) {
	case *ast.ParenExpr:
		operands(x.X, add)
	case *ast.BinaryExpr:
		if x.Op == token.LAND || x.Op == token.LOR {
			operands(x.X, add)
			operands(x.Y, add)
			return
		}
		add(e)
	default:
		add(e)
	}
}
