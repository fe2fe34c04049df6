package lint

import (
	"fmt"
	"go/ast"
	"go/token"
	"path"
	"strings"
	"unicode"
)

// Names checks identifiers against the house's manner: no Impl, Factory, Manager, Util or Base, no Get before a noun, and
// no package called after nothing. JobManager and TaskManager are the field's terms and stay.
func Names(t *Tree) []Finding {
	var out []Finding
	for _, p := range t.Packages {
		switch base := path.Base(p.Path); base {
		case "util", "utils", "common", "base", "impl", "helper", "helpers", "misc", "types", "shared", "lib":
			out = append(out, Finding{p.Path, "package " + base + ": a name that says nothing attracts everything"})
		}
		for _, f := range p.source() {
			for _, name := range exportedNames(f.AST) {
				if why := badName(name.ident.Name, name.method); why != "" {
					out = append(out, Finding{t.pos(name.ident.Pos()), fmt.Sprintf("%s: %s", name.ident.Name, why)})
				}
			}
		}
	}
	return out
}

type declared struct {
	ident  *ast.Ident
	method bool
}

// exportedNames lists the exported identifiers that a file declares: at package level, as methods, fields and methods of
// interfaces.
func exportedNames(f *ast.File) []declared {
	var out []declared
	add := func(method bool, idents ...*ast.Ident) {
		for _, id := range idents {
			if id.IsExported() {
				out = append(out, declared{id, method})
			}
		}
	}
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			add(d.Recv != nil, d.Name)
		case *ast.GenDecl:
			if d.Tok == token.IMPORT {
				continue
			}
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.ValueSpec:
					add(false, s.Names...)
				case *ast.TypeSpec:
					add(false, s.Name)
					switch typ := s.Type.(type) {
					case *ast.StructType:
						for _, field := range typ.Fields.List {
							add(false, field.Names...)
						}
					case *ast.InterfaceType:
						for _, m := range typ.Methods.List {
							add(true, m.Names...)
						}
					}
				}
			}
		}
	}
	return out
}

func badName(name string, method bool) string {
	words := camelWords(name)
	if words[0] == "Get" && (len(words) > 1 || !method) {
		return "accessors have no Get; a method named exactly Get is a verb"
	}
	for i, w := range words {
		switch w {
		case "Impl", "Factory", "Util", "Utils", "Base":
			return w + " names nothing"
		case "Manager":
			if i == 0 || words[i-1] != "Job" && words[i-1] != "Task" {
				return "Manager says nothing, except of jobs and tasks"
			}
		}
	}
	return ""
}

// camelWords splits an identifier at its capitals: JobManagerID gives Job, Manager, ID.
func camelWords(name string) []string {
	var words []string
	var word strings.Builder
	runes := []rune(name)
	for i, r := range runes {
		begins := unicode.IsUpper(r) && i > 0 &&
			(!unicode.IsUpper(runes[i-1]) || i+1 < len(runes) && unicode.IsLower(runes[i+1]))
		if begins || r == '_' {
			words = append(words, word.String())
			word.Reset()
		}
		if r != '_' {
			word.WriteRune(r)
		}
	}
	return append(words, word.String())
}
