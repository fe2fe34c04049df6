package guide

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Every piece of Go in the guide is a piece of a file that is compiled and run: its lines stand there one after the other,
// however they are indented.
func TestSnippetsOfTheGuideAreCodeThatRuns(t *testing.T) {
	code := normalized(t, "../../examples", "../../stream", "../../state", "../../process", "../../watermark", "../../flotttest", "../../agg", "../../window", "../../connector")
	pages, err := filepath.Glob("../../docs/guide/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatalf("no pages of the guide: %v", err)
	}
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for i, part := range strings.Split(string(text), "```go\n")[1:] {
			snippet, _, closed := strings.Cut(part, "```")
			if !closed {
				t.Errorf("%s: piece of code %d has no end", page, i+1)
			}
			if !strings.Contains(code, normalize(snippet)) {
				t.Errorf("%s: piece of code %d is in no file that runs:\n%s", page, i+1, snippet)
			}
		}
	}
}

// Links between pages, and to files of the repository, lead somewhere.
func TestLinksOfTheGuideLeadSomewhere(t *testing.T) {
	pages, err := filepath.Glob("../../docs/guide/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		var prose strings.Builder
		for i, part := range strings.Split(string(text), "`") {
			if i%2 == 0 { // the others are code: ``` makes two empty ones
				prose.WriteString(part)
			}
		}
		for _, part := range strings.Split(prose.String(), "](")[1:] {
			link, _, _ := strings.Cut(part, ")")
			target, anchor, _ := strings.Cut(link, "#")
			if strings.Contains(target, "://") {
				continue
			}
			file := page
			if target != "" {
				file = filepath.Join(filepath.Dir(page), target)
			}
			text, err := os.ReadFile(file)
			if info, e := os.Stat(file); e == nil && info.IsDir() {
				err = nil
			}
			if err != nil {
				t.Errorf("%s: %v", page, err)
			}
			if anchor != "" && !slices.Contains(anchors(string(text)), anchor) {
				t.Errorf("%s: %s has no heading for %q", page, file, link)
			}
		}
	}
}

// anchors are the names by which a page's headings are linked to.
func anchors(page string) (names []string) {
	for line := range strings.Lines(page) {
		if title, ok := strings.CutPrefix(strings.TrimLeft(line, "#"), " "); ok && strings.HasPrefix(line, "#") {
			names = append(names, strings.ReplaceAll(strings.ToLower(strings.TrimSpace(title)), " ", "-"))
		}
	}
	return names
}

// normalized is the text of all tests and programs below the folders.
func normalized(t *testing.T, folders ...string) string {
	t.Helper()
	var all strings.Builder
	for _, folder := range folders {
		err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") {
				return err
			}
			if !strings.HasSuffix(path, "_test.go") && !strings.Contains(path, "examples") {
				return nil
			}
			text, err := os.ReadFile(path)
			all.WriteString(normalize(string(text)))
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return all.String()
}

func normalize(code string) string {
	var b strings.Builder
	for line := range strings.Lines(code) {
		if line = strings.TrimSpace(line); line != "" {
			b.WriteString(line + "\n")
		}
	}
	return b.String()
}
