package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"
	"time"

	"github.com/flott-dev/flott/checkpoint"
	"github.com/flott-dev/flott/internal/vfs"
)

// What a process ends with.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

// app is one call of the program.
type app struct {
	stdout, stderr io.Writer
	fs             vfs.FS
	storages       []checkpoint.Opener // of URLs that name no file of this machine
	colour         bool
	build          string // what `flott version` prints

	environ  []string      // the environment's settings of the programs that it runs
	patience time.Duration // how long it waits for answers; 0: a minute

	out *bufio.Writer // what commands write to, over stdout
}

// usageError is a call that is wrong; its command's help says how to do it right.
type usageError struct {
	command string // "" for the program itself
	text    string
}

// Error says what is wrong.
func (e *usageError) Error() string { return e.text }

// run does what the arguments say and gives the exit code.
func (a *app) run(args []string) int {
	a.out = bufio.NewWriterSize(a.stdout, 64<<10)
	name, err := a.dispatch(args)
	if e := a.out.Flush(); e != nil && !errors.Is(err, e) {
		err = errors.Join(err, fmt.Errorf("write the output: %w", e))
	}
	if name != "" {
		name = " " + name
	}
	usage, wrong := errors.AsType[*usageError](err)
	switch {
	case err == nil:
		return exitOK
	case wrong && a.speaksFlink(usage.command):
		fmt.Fprintf(a.stdout, "%v\n\nRun 'flott %s' for how it is used.\n", err, strings.TrimSpace("help "+usage.command))
		return exitFailed
	case wrong:
		a.complain("flott%s: %v", name, err)
		a.complain("Run 'flott %s' for how it is used.", strings.TrimSpace("help "+usage.command))
		return exitUsage
	case errors.Is(err, syscall.EPIPE): // who read the output has seen enough
		return exitFailed
	}
	if a.speaksFlink(strings.TrimSpace(name)) {
		a.complain("\n------------------------------------------------------------\n The program finished with the following exception:\n\n%v", err)
		return exitFailed
	}
	for _, e := range causes(err) {
		a.complain("flott%s: %v", name, e)
	}
	return exitFailed
}

// speaksFlink says whether a command is one of Flink's, whose failures scripts know.
func (a *app) speaksFlink(name string) bool {
	for _, c := range commands() {
		if c.name == name {
			return c.flink
		}
	}
	return name == "" // what is no command at all
}

func (a *app) complain(format string, args ...any) {
	_, _ = fmt.Fprintf(a.stderr, format+"\n", args...) // there is nobody to tell if this fails
}

// dispatch finds the command and runs it; name is the command's, as far as it is known.
func (a *app) dispatch(args []string) (name string, err error) {
	if len(args) == 0 {
		return "", &usageError{text: "No action specified: " + validWords("")}
	}
	switch args[0] {
	case "-h", "-help", "--help":
		args = append([]string{"help"}, args[1:]...)
	case "-v", "-version", "--version":
		args = append([]string{"version"}, args[1:]...)
	}
	c, rest := find(args)
	if c != nil {
		return c.name, c.call(a, rest)
	}
	if !isGroup(args[0]) {
		return "", &usageError{text: fmt.Sprintf("%q is not a valid action: %s", args[0], validWords(""))}
	}
	group := args[0]
	switch {
	case len(args) == 1:
		return group, &usageError{group, "it needs another word: " + validWords(group)}
	case args[1] == "help" || args[1] == "-h" || args[1] == "-help" || args[1] == "--help":
		return group, a.help(append([]string{group}, args[2:]...))
	}
	return group, &usageError{group, fmt.Sprintf("%q is not a valid word after it: %s", args[1], validWords(group))}
}

// causes are the errors that one joins, a line each, if they are several. One that has several causes in one line, as those of
// object stores do, stays whole.
func causes(err error) []error {
	for e := err; e != nil; e = errors.Unwrap(e) {
		many, ok := e.(interface{ Unwrap() []error })
		if !ok || !isList(e, many.Unwrap()) {
			continue
		}
		var all []error
		for _, one := range many.Unwrap() {
			all = append(all, causes(one)...)
		}
		if len(all) > 1 {
			return all
		}
	}
	return []error{err}
}

// isList reports whether an error says what the parts say, a line each, and no more.
func isList(err error, parts []error) bool {
	lines := make([]string, len(parts))
	for i, part := range parts {
		lines[i] = part.Error()
	}
	return err.Error() == strings.Join(lines, "\n")
}
