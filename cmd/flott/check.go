package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/flott-dev/flott/internal/env"
)

func checkCommand() command {
	return command{
		name: "savepoint check", args: "PROGRAM -s PATH [-n] [-p N] [-D KEY=VALUE]... [-c CONF] [-json] [-- ARGUMENTS]", summary: "find out whether a program could start from a savepoint", operands: -1,
		details: `The program runs up to its first Execute, which looks at the savepoint and ends
it: no job is started. For each operator it is told whether its state fits. The
exit code is 0 if the job could start.`,
		example: "flott savepoint check ./alarms -s savepoints/savepoint-1a2b3c-0123456789ab",
		prepare: func(a *app, f *flag.FlagSet) action {
			l := launchFlags(f)
			asJSON := f.Bool("json", false, "print JSON instead of text")
			return func(args []string) error {
				if len(args) == 0 {
					return &usageError{"savepoint check", "PROGRAM is missing"}
				}
				l.keys["execution.check"] = "true"
				p, err := a.program("savepoint check", l, args)
				if err != nil {
					return err
				}
				defer p.forget()
				return a.check(p, *asJSON)
			}
		},
	}
}

// errNotStartable ends a check that has found problems, which are printed.
const errNotStartable = checkError("the job can't start")

// checkError is an error that is a constant.
type checkError string

// Error is the text.
func (e checkError) Error() string { return string(e) }

// check runs a program dry and shows its report.
func (a *app) check(p *program, asJSON bool) error {
	var printed bytes.Buffer
	err := p.start(&printed, a.stderr)
	if err == nil {
		err = <-p.wait()
	}
	r, known := findReport(printed.Bytes())
	if !known {
		if err == nil {
			err = errors.New("the program doesn't contain a Flott job: it ended without calling Execute")
		}
		return fmt.Errorf("%w\n%s", err, strings.TrimRight(printed.String(), "\n"))
	}
	if asJSON {
		err = a.printJSON(r)
	} else {
		err = a.showReport(r)
	}
	if err == nil && !r.Startable {
		err = errNotStartable
	}
	return err
}

// findReport finds the report at the end of what a program has printed.
func findReport(printed []byte) (*env.CheckReport, bool) {
	for at := len(printed); at >= 0; {
		at = bytes.LastIndexByte(printed[:at], '{')
		if at < 0 {
			return nil, false
		}
		var r env.CheckReport
		if (at == 0 || printed[at-1] == '\n') && json.Unmarshal(printed[at:], &r) == nil {
			return &r, true
		}
	}
	return nil, false
}

// showReport prints a report for people.
func (a *app) showReport(r *env.CheckReport) error {
	verdict := a.styled(green, "can start")
	if !r.Startable {
		verdict = a.styled(red, "can't start")
	}
	fmt.Fprintf(a.out, "Job %s %s", shown(r.Job), verdict)
	if r.Savepoint != "" {
		fmt.Fprintf(a.out, " from %s", shown(r.Savepoint))
	}
	fmt.Fprintln(a.out)
	if len(r.Operators) > 0 {
		w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
		fmt.Fprint(w, "OPERATOR\tUID\tID\tSTATE\n")
		for _, o := range r.Operators {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", shown(o.Name), orDash(o.UID), o.ID, o.State)
		}
		if err := w.Flush(); err != nil {
			return err
		}
	}
	for _, o := range r.Operators {
		if o.Problem != "" {
			fmt.Fprintf(a.out, "%s: %s\n", shown(o.Name), o.Problem)
		}
	}
	for _, problem := range r.Problems {
		fmt.Fprintln(a.out, problem)
	}
	for _, warning := range r.Warnings {
		fmt.Fprintf(a.out, "warning: %s\n", warning)
	}
	return nil
}
