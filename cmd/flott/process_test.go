//go:build unix

package main

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// asProgram tells the test binary to be the program.
const asProgram = "FLOTT_AS_PROGRAM"

// start makes the program a process.
func start(t *testing.T, args ...string) (cmd *exec.Cmd, stderr *bytes.Buffer) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd, stderr = exec.CommandContext(t.Context(), self, args...), &bytes.Buffer{}
	cmd.Env = append(os.Environ(), asProgram+"=1")
	cmd.Stderr = stderr
	return cmd, stderr
}

// A reader that goes away, as head does, ends the program as it ends any other: by the signal, without a word.
func TestReaderThatGoesAwayEndsTheProgram(t *testing.T) {
	cmd, stderr := start(t, "savepoint", "dump", many(t), "-operator", "many")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReaderSize(out, 16).ReadString('\n')
	if err != nil || !strings.HasPrefix(line, `{"state":"n","key":"key `) {
		t.Errorf("first line %q, %v", line, err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	err = cmd.Wait()
	state, ok := cmd.ProcessState.Sys().(syscall.WaitStatus)
	if !ok || !state.Signaled() || state.Signal() != syscall.SIGPIPE || stderr.Len() > 0 {
		t.Errorf("it ended with %v: %s", err, stderr)
	}
}

func TestExitCodesOfTheProcess(t *testing.T) {
	whole := many(t)
	for _, c := range []struct {
		args     []string
		code     int
		out, err string
	}{
		{[]string{"savepoint", "verify", whole}, 0, "all as written", ""},
		{[]string{"--version"}, 0, "Version: ", ""},
		{[]string{"savepoint", "verify", whole + "/nothing"}, 1, "", "no snapshot was completed there"},
		{[]string{"savepoint", "verify"}, 2, "", "PATH is missing"},
	} {
		cmd, stderr := start(t, c.args...)
		out, err := cmd.Output()
		if code := cmd.ProcessState.ExitCode(); code != c.code || !strings.Contains(string(out), c.out) || !strings.Contains(stderr.String(), c.err) {
			t.Errorf("%q: exit %d, %v, %s%s", c.args, code, err, out, stderr)
		}
		if c.err == "" && stderr.Len() > 0 || c.out == "" && len(out) > 0 || strings.Contains(string(out), "\x1b") {
			t.Errorf("%q: %s%s", c.args, out, stderr)
		}
	}
}
