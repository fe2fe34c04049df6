package lint

import (
	"bytes"
	"fmt"
	"io/fs"
	"regexp"
	"strings"
)

// MachinePaths looks, in the named files of any kind, for paths of one developer's machine. The needles are assembled
// here so that this file does not find itself.
func MachinePaths(fsys fs.FS, files []string) ([]Finding, error) {
	needles := [][]byte{[]byte("/" + "work/"), []byte("/" + "root/")}
	var out []Finding
	for _, name := range files {
		src, err := fs.ReadFile(fsys, name)
		if err != nil {
			return nil, err
		}
		for _, needle := range needles {
			if at := bytes.Index(src, needle); at >= 0 {
				line := 1 + bytes.Count(src[:at], []byte("\n"))
				out = append(out, Finding{fmt.Sprintf("%s:%d", name, line), "names a path of one machine: " + string(needle)})
			}
		}
	}
	return out, nil
}

// Promises looks for comments that put work off: what is not done belongs into the tracker, where someone sees it.
func Promises(t *Tree) []Finding {
	promise := regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|XX` + `X|HA` + `CK)\b`)
	var out []Finding
	for _, p := range t.Packages {
		for _, f := range p.Files {
			for _, group := range f.AST.Comments {
				for _, c := range group.List {
					if word := promise.FindString(c.Text); word != "" {
						out = append(out, Finding{t.pos(c.Pos()), "comment says " + word})
					}
				}
			}
		}
	}
	return out
}

// Dependencies checks that every module that a go.mod requires directly has its line, with the reason, in
// docs/dependencies.md. mods maps the path of each go.mod to its text.
func Dependencies(mods map[string]string, doc string) []Finding {
	var out []Finding
	for file, mod := range mods {
		for _, module := range directRequirements(mod) {
			if !strings.Contains(doc, "`"+module+"`") {
				out = append(out, Finding{file, "docs/dependencies.md does not say why we depend on " + module})
			}
		}
	}
	return out
}

// directRequirements lists the modules of a go.mod's require lines that are not marked as indirect.
func directRequirements(mod string) []string {
	var out []string
	inside := false
	for line := range strings.Lines(mod) {
		line = strings.TrimSpace(line)
		switch {
		case line == "require (":
			inside = true
			continue
		case line == ")":
			inside = false
			continue
		}
		rest, single := strings.CutPrefix(line, "require ")
		if !inside && !single {
			continue
		}
		if fields := strings.Fields(rest); len(fields) >= 2 && !strings.HasSuffix(line, "// indirect") {
			out = append(out, fields[0])
		}
	}
	return out
}
