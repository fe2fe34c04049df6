package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/flott-dev/flott/internal/vfs"
)

var rewrite = flag.Bool("rewrite", false, "rewrite the scripts' expected output")

// call runs the program in this process.
func call(args ...string) (stdout, stderr string, code int) {
	var out, errs bytes.Buffer
	a := &app{stdout: &out, stderr: &errs, fs: vfs.OS{}, build: "Version: v1.2.3, Commit ID: 0123456"}
	code = a.run(args)
	return out.String(), errs.String(), code
}

// TestScripts runs the transcripts of testdata in a fresh folder with the same snapshots. A line that begins with "$ " is a
// command; what follows is what it answers: its output, the lines of its standard error with "! " in front, and its exit
// code in brackets unless it is 0. Lines that begin with "# " are comments. Beside flott there are three commands: change,
// cut and remove, which damage the one file that a pattern names.
func TestScripts(t *testing.T) {
	scripts, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(scripts) == 0 {
		t.Fatalf("scripts %q, %v", scripts, err)
	}
	for _, script := range scripts {
		t.Run(strings.TrimSuffix(filepath.Base(script), ".txt"), func(t *testing.T) {
			file, err := filepath.Abs(script)
			if err != nil {
				t.Fatal(err)
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			t.Chdir(t.TempDir())
			takeAll(t, false)
			got := replay(t, string(want), true)
			if *rewrite {
				if err := os.WriteFile(file, []byte(got), 0o666); err != nil {
					t.Fatal(err)
				}
				return
			}
			compare(t, string(want), got)
		})
	}
}

// replay runs the commands of a script and gives the script as it should be, with marks for all that is no output or as a
// terminal shows it.
func replay(t *testing.T, script string, marks bool) string {
	t.Helper()
	var b strings.Builder
	for line := range strings.Lines(script) {
		switch {
		case strings.HasPrefix(line, "# "):
			b.WriteString(line)
		case strings.HasPrefix(line, "$ "):
			b.WriteString(line)
			b.WriteString(step(t, words(line[2:]), marks))
		}
	}
	return b.String()
}

// words splits a command line; single quotes keep spaces.
func words(line string) []string {
	var out []string
	for i, part := range strings.Split(strings.TrimSpace(line), "'") {
		if i%2 == 1 {
			out = append(out, part)
		} else {
			out = append(out, strings.Fields(part)...)
		}
	}
	return out
}

// step runs a command and gives what stands below it.
func step(t *testing.T, words []string, marks bool) string {
	t.Helper()
	if words[0] != "flott" {
		harm(t, words[0], words[1])
		return ""
	}
	stdout, stderr, code := call(words[1:]...)
	if !marks {
		return stdout + stderr
	}
	for line := range strings.Lines(stderr) {
		stdout += "! " + line
	}
	if code != 0 {
		stdout += fmt.Sprintf("[exit %d]\n", code)
	}
	return stdout
}

// harm damages a file.
func harm(t *testing.T, how, pattern string) {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) != 1 {
		t.Fatalf("%s: files %q, %v", pattern, files, err)
	}
	b, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	switch how {
	case "change":
		b[len(b)/2] ^= 1
	case "cut":
		b = b[:len(b)/2]
	case "remove":
		if err := os.Remove(files[0]); err != nil {
			t.Fatal(err)
		}
		return
	default:
		t.Fatalf("unknown command %q", how)
	}
	if err := os.WriteFile(files[0], b, 0o666); err != nil {
		t.Fatal(err)
	}
}

// compare reports the first line that differs.
func compare(t *testing.T, want, got string) {
	t.Helper()
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range max(len(w), len(g)) {
		line := func(lines []string) string {
			if i < len(lines) {
				return lines[i]
			}
			return "(the end)"
		}
		if line(w) != line(g) {
			t.Fatalf("line %d:\n got %s\nwant %s\n(go test -run TestScripts -rewrite rewrites the scripts; look at the difference)", i+1, line(g), line(w))
		}
	}
}
