package lint

import (
	"fmt"
	"go/ast"
	"go/token"
	"strings"
)

// Docs checks that every package has a package comment and that every exported name of a public package is documented.
// A field or an interface's method is documented by its own comment, by one at the end of its line, or if the comment of
// the type or of another member speaks of it.
func Docs(t *Tree) []Finding {
	var out []Finding
	for _, p := range t.Packages {
		if p.name() == "" {
			continue // tests only
		}
		out = append(out, packageComment(p)...)
		if !p.public() {
			continue
		}
		for _, f := range p.source() {
			for _, d := range f.AST.Decls {
				out = append(out, t.docsOfDecl(d)...)
			}
		}
	}
	return out
}

func packageComment(p *Package) []Finding {
	for _, f := range p.source() {
		text := f.AST.Doc.Text()
		want := "Package " + p.name() + " "
		if p.name() == "main" {
			want = ""
		}
		if text != "" && strings.HasPrefix(text, want) {
			return nil
		}
	}
	return []Finding{{p.Path, "no package comment (what it owns, what it never does, who calls it)"}}
}

func (t *Tree) docsOfDecl(d ast.Decl) []Finding {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Name.IsExported() && (d.Recv == nil || ast.IsExported(receiver(d))) && d.Doc.Text() == "" {
			return []Finding{t.undocumented(d.Name)}
		}
	case *ast.GenDecl:
		var out []Finding
		for _, spec := range d.Specs {
			out = append(out, t.docsOfSpec(d, spec)...)
		}
		return out
	}
	return nil
}

// docsOfSpec accepts, for constants and variables, the comment of the group: a group is one subject.
func (t *Tree) docsOfSpec(d *ast.GenDecl, spec ast.Spec) []Finding {
	switch spec := spec.(type) {
	case *ast.ValueSpec:
		if d.Doc.Text() != "" || spec.Doc.Text() != "" || spec.Comment.Text() != "" {
			return nil
		}
		var out []Finding
		for _, name := range spec.Names {
			if name.IsExported() {
				out = append(out, t.undocumented(name))
			}
		}
		return out
	case *ast.TypeSpec:
		if !spec.Name.IsExported() {
			return nil
		}
		doc := spec.Doc.Text()
		if doc == "" && d.Lparen == token.NoPos {
			doc = d.Doc.Text()
		}
		if doc == "" {
			return []Finding{t.undocumented(spec.Name)}
		}
		return t.docsOfMembers(spec, doc)
	}
	return nil
}

func (t *Tree) docsOfMembers(spec *ast.TypeSpec, doc string) []Finding {
	var fields *ast.FieldList
	switch typ := spec.Type.(type) {
	case *ast.StructType:
		fields = typ.Fields
	case *ast.InterfaceType:
		fields = typ.Methods
	default:
		return nil
	}
	for _, field := range fields.List {
		doc += " " + field.Doc.Text() + " " + field.Comment.Text()
	}
	var out []Finding
	for _, field := range fields.List {
		if field.Doc.Text() != "" || field.Comment.Text() != "" {
			continue
		}
		for _, name := range field.Names {
			if name.IsExported() && !mentions(doc, name.Name) {
				out = append(out, Finding{t.pos(name.Pos()), fmt.Sprintf("%s.%s has no doc comment", spec.Name.Name, name.Name)})
			}
		}
	}
	return out
}

func (t *Tree) undocumented(name *ast.Ident) Finding {
	return Finding{t.pos(name.Pos()), name.Name + " has no doc comment"}
}

// receiver is the name of the type that a method belongs to.
func receiver(fn *ast.FuncDecl) string {
	typ := fn.Recv.List[0].Type
	for {
		switch x := typ.(type) {
		case *ast.StarExpr:
			typ = x.X
		case *ast.ParenExpr:
			typ = x.X
		case *ast.IndexExpr:
			typ = x.X
		case *ast.IndexListExpr:
			typ = x.X
		case *ast.Ident:
			return x.Name
		default:
			return ""
		}
	}
}

// mentions reports whether a text holds name as a word of its own, in any case: "the path of the file" speaks of Path.
func mentions(text, name string) bool {
	for word := range strings.FieldsFuncSeq(text, func(r rune) bool {
		return r != '_' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	}) {
		if strings.EqualFold(word, name) {
			return true
		}
	}
	return false
}
