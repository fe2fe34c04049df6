package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"strings"

	"github.com/flott-dev/flott/internal/lint"
)

// site is one condition that can be flipped: the bytes from start to end of a file.
type site struct {
	pkg        string // folder of the package
	file       string // slash-separated, relative to the root
	line       int
	function   string // with its receiver's type
	nth        int    // among equal conditions of the function, from 1
	src        []byte
	start, end int
}

// condition is the text of the condition, on one line.
func (s site) condition() string {
	return strings.Join(strings.Fields(string(s.src[s.start:s.end])), " ")
}

// mutation says what is done where, within the file: it holds as long as the function does not change.
func (s site) mutation() string {
	nth := ""
	if s.nth > 1 {
		nth = fmt.Sprintf("#%d", s.nth)
	}
	return fmt.Sprintf("%s%s: !(%s)", s.function, nth, s.condition())
}

// key identifies the site in the list of equivalent ones.
func (s site) key() string { return s.file + " " + s.mutation() }

// String implements fmt.Stringer.
func (s site) String() string { return fmt.Sprintf("%s:%d %s", s.file, s.line, s.mutation()) }

// flipped is the whole file with the condition negated.
func (s site) flipped() []byte {
	out := make([]byte, 0, len(s.src)+3)
	out = append(out, s.src[:s.start]...)
	out = append(out, "!("...)
	out = append(out, s.src[s.start:s.end]...)
	out = append(out, ')')
	return append(out, s.src[s.end:]...)
}

// sites finds the conditions of the packages in or below folder; "": of the engine and what stands beside it. Files that a
// plain build leaves out (other systems, other tags) are left out here: no plain test can see them.
func sites(tree *lint.Tree, root, folder string) []site {
	var out []site
	for _, p := range tree.Packages {
		if !chosen(tree, p.Path, folder) {
			continue
		}
		for _, f := range p.Files {
			if f.Test || f.Generated || !built(root, p.Path, f) {
				continue
			}
			out = append(out, sitesOfFile(tree.Fset, p.Path, f)...)
		}
	}
	return out
}

func chosen(tree *lint.Tree, pkg, folder string) bool {
	switch {
	case folder == pkg:
		return true
	case strings.HasSuffix(pkg, "test"):
		return false // a kit that tests are made of
	case folder != "":
		return within(pkg, folder)
	}
	switch tree.Floor(pkg) {
	case "F0", "F1", "F2", "F3", "F4", "F5":
		return true
	case "side":
		// The libraries of the other storages take minutes to build, and their tests speak with servers.
		return !within(pkg, "storage") || within(pkg, "storage/blob")
	}
	return false
}

func within(pkg, folder string) bool { return pkg == folder || strings.HasPrefix(pkg, folder+"/") }

func sitesOfFile(fset *token.FileSet, pkg string, f *lint.File) []site {
	var out []site
	for _, d := range f.AST.Decls {
		name, seen := nameOf(d), map[string]int{}
		conditions(d, func(e ast.Expr) {
			from, to := fset.Position(e.Pos()), fset.Position(e.End())
			s := site{pkg: pkg, file: f.Path, line: from.Line, function: name, src: f.Src, start: from.Offset, end: to.Offset}
			// The assertions are switched off in a plain build: to flip their switch proves nothing.
			if strings.Contains(s.condition(), "invariants.") {
				return
			}
			seen[s.condition()]++
			s.nth = seen[s.condition()]
			out = append(out, s)
		})
	}
	return out
}

// nameOf is the name of a function as in (*T).Method, T.Method and Function.
func nameOf(d ast.Decl) string {
	f, ok := d.(*ast.FuncDecl)
	if !ok {
		return "var"
	}
	if f.Recv == nil {
		return f.Name.Name
	}
	star, t := "", f.Recv.List[0].Type
	if p, ok := t.(*ast.StarExpr); ok {
		star, t = "*", p.X
	}
	switch x := t.(type) { // the parameters of a generic type are left out
	case *ast.IndexExpr:
		t = x.X
	case *ast.IndexListExpr:
		t = x.X
	}
	receiver := "?"
	if id, ok := t.(*ast.Ident); ok {
		receiver = id.Name
	}
	if star != "" {
		receiver = "(*" + receiver + ")"
	}
	return receiver + "." + f.Name.Name
}

// conditions gives each atomic condition of if, for and switch below a node to add.
func conditions(n ast.Node, add func(ast.Expr)) {
	ast.Inspect(n, func(n ast.Node) bool {
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
