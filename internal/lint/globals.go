package lint

import (
	"go/ast"
	"go/token"
	"strings"
)

// Globals checks that no package outside cmd has an init function, and that no package has a variable that can change.
// What is allowed is constant in all but Go's syntax:
//   - error sentinels: var ErrX = errors.New(...), or another package's sentinel under a name that users can reach
//   - interface guards: var _ I = ...
//   - embedded files
//   - immutable handles (a compiled regexp, a CRC table, a reflect.Type: see immutable), never assigned again
//   - unexported array literals that the package only reads by index or range (Go has no constant arrays)
func Globals(t *Tree) []Finding {
	var out []Finding
	for _, p := range t.Packages {
		written := writtenNames(p)
		for _, f := range p.source() {
			for _, d := range f.AST.Decls {
				switch d := d.(type) {
				case *ast.FuncDecl:
					if d.Recv == nil && d.Name.Name == "init" && !within(p.Path, "cmd") {
						out = append(out, Finding{t.pos(d.Pos()), "init function: nothing may happen by being linked"})
					}
				case *ast.GenDecl:
					if d.Tok == token.VAR {
						out = append(out, t.globalsOfDecl(f, d, written)...)
					}
				}
			}
		}
	}
	return out
}

func (t *Tree) globalsOfDecl(f *File, d *ast.GenDecl, written map[string]bool) []Finding {
	var out []Finding
	for _, s := range d.Specs {
		spec := s.(*ast.ValueSpec)
		if embedded(d, spec) {
			continue
		}
		for i, name := range spec.Names {
			if name.Name == "_" {
				continue
			}
			var value ast.Expr
			if i < len(spec.Values) && len(spec.Values) == len(spec.Names) {
				value = spec.Values[i]
			}
			if !constantInSpirit(f, name.Name, value, written) {
				out = append(out, Finding{t.pos(name.Pos()), "package-level variable " + name.Name + ": pass what is needed, or make it a constant"})
			}
		}
	}
	return out
}

func embedded(d *ast.GenDecl, spec *ast.ValueSpec) bool {
	for _, doc := range []*ast.CommentGroup{d.Doc, spec.Doc} {
		if doc == nil {
			continue
		}
		for _, c := range doc.List {
			if strings.HasPrefix(c.Text, "//go:embed ") {
				return true
			}
		}
	}
	return false
}

func constantInSpirit(f *File, name string, value ast.Expr, written map[string]bool) bool {
	if value == nil || written[name] {
		return false
	}
	switch value := value.(type) {
	case *ast.CallExpr:
		callee := qualified(f, value.Fun)
		if callee == "errors.New" || callee == "fmt.Errorf" {
			return strings.HasPrefix(name, "Err") || strings.HasPrefix(name, "err")
		}
		return immutable(callee)
	case *ast.SelectorExpr:
		return strings.HasPrefix(name, "Err") && strings.HasPrefix(value.Sel.Name, "Err")
	case *ast.CompositeLit:
		array, ok := value.Type.(*ast.ArrayType)
		return ok && array.Len != nil && !ast.IsExported(name)
	}
	return false
}

// immutable names the functions whose results nobody can change, by their documentation.
func immutable(callee string) bool {
	switch callee {
	case "regexp.MustCompile", "hash/crc32.MakeTable", "hash/crc64.MakeTable", "reflect.TypeFor", "reflect.TypeOf",
		"strings.NewReplacer":
		return true
	}
	return false
}

// qualified spells the function of a call as importpath.Name; "" if it is none of another package.
func qualified(f *File, fun ast.Expr) string {
	if index, ok := fun.(*ast.IndexExpr); ok { // reflect.TypeFor[T]
		fun = index.X
	}
	sel, ok := fun.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	pkg, ok := sel.X.(*ast.Ident)
	if !ok {
		return ""
	}
	if path := localNames(f)[pkg.Name]; path != "" {
		return path + "." + sel.Sel.Name
	}
	return ""
}

// writtenNames collects the names that a package, tests included, assigns to, takes the address of or slices: through
// any of these a variable could change. A local variable of the same name counts as well; the law is cautious.
func writtenNames(p *Package) map[string]bool {
	names := map[string]bool{}
	note := func(e ast.Expr) {
		if id := rootName(e); id != "" {
			names[id] = true
		}
	}
	for _, f := range p.Files {
		ast.Inspect(f.AST, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.AssignStmt:
				if n.Tok == token.DEFINE {
					break
				}
				for _, e := range n.Lhs {
					note(e)
				}
			case *ast.IncDecStmt:
				note(n.X)
			case *ast.UnaryExpr:
				if n.Op == token.AND {
					note(n.X)
				}
			case *ast.SliceExpr:
				note(n.X)
			case *ast.RangeStmt:
				if n.Tok == token.ASSIGN {
					note(n.Key)
					note(n.Value)
				}
			}
			return true
		})
	}
	return names
}

// rootName is the variable that an expression such as x.f[i] is part of.
func rootName(e ast.Expr) string {
	for {
		switch x := e.(type) {
		case *ast.Ident:
			return x.Name
		case *ast.SelectorExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.StarExpr:
			e = x.X
		case *ast.ParenExpr:
			e = x.X
		default:
			return ""
		}
	}
}
