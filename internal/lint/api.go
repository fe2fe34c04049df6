package lint

import (
	"bytes"
	"go/ast"
	"go/printer"
	"go/token"
	"slices"
	"sort"
	"strings"
)

// API lists the exported declarations of the public packages, one a line, sorted: what users may rely on. Bodies,
// comments and unexported parts are left out, so the list changes exactly when the promise changes.
func API(t *Tree) []string {
	var out []string
	for _, p := range t.Packages {
		if !p.public() {
			continue
		}
		a := apiOf{fset: t.Fset, pkg: p.Path}
		for _, f := range p.source() {
			for _, d := range f.AST.Decls {
				a.decl(d)
			}
		}
		out = append(out, a.lines...)
	}
	sort.Strings(out)
	return slices.Compact(out)
}

// apiOf collects the lines of one package.
type apiOf struct {
	fset  *token.FileSet
	pkg   string
	lines []string
}

func (a *apiOf) add(line string) { a.lines = append(a.lines, a.pkg+": "+line) }

func (a *apiOf) decl(d ast.Decl) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Name.IsExported() && (d.Recv == nil || ast.IsExported(receiver(d))) {
			a.add(a.print(&ast.FuncDecl{Recv: d.Recv, Name: d.Name, Type: d.Type}))
		}
	case *ast.GenDecl:
		switch d.Tok {
		case token.TYPE:
			for _, s := range d.Specs {
				if s := s.(*ast.TypeSpec); s.Name.IsExported() {
					a.typ(s)
				}
			}
		case token.CONST, token.VAR:
			a.values(d)
		}
	}
}

// values carries the type of a constant over the lines that leave it out, as Go does.
func (a *apiOf) values(d *ast.GenDecl) {
	var carried ast.Expr
	for _, s := range d.Specs {
		s := s.(*ast.ValueSpec)
		if s.Type != nil || len(s.Values) > 0 {
			carried = s.Type
		}
		for i, name := range s.Names {
			if !name.IsExported() {
				continue
			}
			line := d.Tok.String() + " " + name.Name
			if carried != nil {
				line += " " + a.print(carried)
			} else if i < len(s.Values) {
				line += " = " + a.print(s.Values[i])
			}
			a.add(line)
		}
	}
}

func (a *apiOf) typ(s *ast.TypeSpec) {
	head := "type " + s.Name.Name + a.typeParams(s.TypeParams)
	if s.Assign != token.NoPos {
		head += " ="
	}
	switch typ := s.Type.(type) {
	case *ast.StructType:
		a.add(head + " struct")
		a.fields(s.Name.Name, typ.Fields)
	case *ast.InterfaceType:
		a.add(head + " interface")
		a.methods(s.Name.Name, typ.Methods)
	default:
		a.add(head + " " + a.print(s.Type))
	}
}

func (a *apiOf) fields(owner string, list *ast.FieldList) {
	for _, f := range list.List {
		typ := a.print(f.Type)
		if f.Tag != nil {
			typ += " " + f.Tag.Value
		}
		if len(f.Names) == 0 && ast.IsExported(embeddedName(f.Type)) {
			a.add("field (" + owner + ") " + typ + " (embedded)")
		}
		for _, name := range f.Names {
			if name.IsExported() {
				a.add("field (" + owner + ") " + name.Name + " " + typ)
			}
		}
	}
}

// methods lists an interface. One unexported method closes it to implementations from outside, which is a promise, too.
func (a *apiOf) methods(owner string, list *ast.FieldList) {
	for _, m := range list.List {
		if len(m.Names) == 0 {
			a.add("interface (" + owner + ") " + a.print(m.Type))
			continue
		}
		for _, name := range m.Names {
			if name.IsExported() {
				a.add("interface (" + owner + ") " + name.Name + strings.TrimPrefix(a.print(m.Type), "func"))
			} else {
				a.add("interface (" + owner + ") (unexported methods)")
			}
		}
	}
}

func embeddedName(typ ast.Expr) string {
	if star, ok := typ.(*ast.StarExpr); ok {
		typ = star.X
	}
	if index, ok := typ.(*ast.IndexExpr); ok {
		typ = index.X
	}
	if index, ok := typ.(*ast.IndexListExpr); ok {
		typ = index.X
	}
	if sel, ok := typ.(*ast.SelectorExpr); ok {
		return sel.Sel.Name
	}
	return rootName(typ)
}

func (a *apiOf) typeParams(list *ast.FieldList) string {
	if list == nil {
		return ""
	}
	var params []string
	for _, f := range list.List {
		var names []string
		for _, n := range f.Names {
			names = append(names, n.Name)
		}
		params = append(params, strings.Join(names, ", ")+" "+a.print(f.Type))
	}
	return "[" + strings.Join(params, ", ") + "]"
}

// print renders a node on one line.
func (a *apiOf) print(node any) string {
	var b bytes.Buffer
	config := printer.Config{Mode: printer.RawFormat}
	if err := config.Fprint(&b, a.fset, node); err != nil {
		return "(unprintable: " + err.Error() + ")"
	}
	// A list that the source breaks over lines prints with the breaks and a last comma.
	return strings.NewReplacer("( ", "(", ", )", ")", "[ ", "[", ", ]", "]").Replace(strings.Join(strings.Fields(b.String()), " "))
}
