//go:build unix

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The walk-through of the guide is run, command by command, with a job that counts: at a free port instead of 8081, with the
// id and path that were printed last. The changed program has one more operator.
func TestWalkThroughOfTheGuideWorks(t *testing.T) {
	page, err := os.ReadFile("../../docs/guide/savepoints.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## From the command line\n")
	_, commands, _ := strings.Cut(section, "```sh\n")
	commands, _, found := strings.Cut(commands, "```")
	if !found || strings.Count(commands, "\n") < 8 {
		t.Fatalf("the walk-through is gone: %q", commands)
	}
	w := &walker{t: t, dir: t.TempDir()}
	if w.program, err = exec.LookPath("tally-job"); err != nil {
		t.Fatal(err)
	}
	defer w.cancel()
	for line := range strings.Lines(commands) {
		line, _, _ = strings.Cut(line, "#")
		w.step(strings.Fields(line))
	}
	if w.runs != 2 || w.id == "" || w.path == "" {
		t.Errorf("%d runs, job %q, savepoint %q", w.runs, w.id, w.path)
	}
	if _, err := os.Stat(w.path); err == nil {
		t.Errorf("%s is still there", w.path)
	}
	if left, err := filepath.Glob(filepath.Join(w.dir, "savepoints", "*", "_metadata")); err != nil || len(left) != 2 {
		t.Errorf("savepoints %q, %v", left, err)
	}
}

// walker runs the commands of a page.
type walker struct {
	t                     *testing.T
	dir, program          string
	id, path, at, printed string
	runs                  int
}

func (w *walker) step(words []string) {
	w.t.Helper()
	var args, last []string
	for i, word := range words[1:] {
		switch word {
		case "JOBID":
			word = w.id
		case "PATH":
			word = w.path
		case "./alarms":
			word = w.program
		case "./alarms2":
			word, last = w.program, []string{"-more"}
			if words[2] == "check" {
				last = []string{"--", "-more"}
			}
		}
		args = append(args, word)
		if i == 0 && word == "run" {
			args = append(args, "-D", "rest.port=0", "-log", "run.log")
			w.runs++
		}
	}
	if words[1] == "list" || words[1] == "stop" || words[1] == "savepoint" && words[2] == "JOBID" {
		args = append(args, "-m", w.at)
	}
	w.flott(append(args, last...)...)
	w.take(&w.id, `submitted with JobID (\w+)`)
	w.take(&w.at, `served at (\S+):`)
	w.take(&w.path, `Path: (\S+)`)
	if words[1] == "list" && !strings.Contains(w.printed, w.id+" : tallying (RUNNING)") {
		w.t.Errorf("the job is not listed: %s", w.printed)
	}
	if words[1] == "run" {
		w.count()
	}
}

// flott runs the command as a process.
func (w *walker) flott(args ...string) {
	w.t.Helper()
	cmd := exec.Command("flott", args...) // the test binary, see TestMain
	cmd.Dir = w.dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		w.t.Fatalf("flott %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	w.printed = string(out)
}

// take takes what was printed, if it was.
func (w *walker) take(to *string, pattern string) {
	if m := regexp.MustCompile(pattern).FindStringSubmatch(w.printed); m != nil {
		*to = m[1]
	}
}

// count waits until the job runs and has counted something.
func (w *walker) count() {
	w.t.Helper()
	job := "http://" + w.at + "/jobs/" + w.id
	err := answered(job, `"state":"RUNNING"`)
	if err == nil {
		err = answered(job+"/accumulators", `"name":"seen","type":"int64","value":"[1-9]`)
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *walker) cancel() {
	if w.t.Failed() && w.at != "" {
		_ = exec.Command("flott", "cancel", w.id, "-m", w.at).Run()
	}
}
