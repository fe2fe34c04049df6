package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/flott-dev/flott/internal/env"
)

func infoCommand() command {
	return command{
		name: "info", args: "[-p N] [-D KEY=VALUE]... [-c CONF] PROGRAM [ARGUMENTS]", summary: "print the plan of a program's first job", flink: true, operands: -1, before: true,
		details: `The program runs up to its first Execute, which writes the plan as JSON and ends
it: no job is started.`,
		example: "flott info -p 4 ./wordcount",
		prepare: func(a *app, f *flag.FlagSet) action {
			l := launchFlags(f)
			return func(args []string) error {
				p, err := a.program("info", l, args)
				if err != nil {
					return err
				}
				defer p.forget()
				return a.info(p)
			}
		},
	}
}

// info prints the plan of a program.
func (a *app) info(p *program) error {
	file := filepath.Join(p.folder, "plan")
	p.env = append(p.env, env.PlanVariable+"="+file)
	var printed bytes.Buffer
	err := p.start(&lockedWriter{w: &printed}, a.stderr)
	if err == nil {
		err = <-p.wait()
	}
	plan, err2 := os.ReadFile(file)
	switch {
	case err != nil:
		return fmt.Errorf("%w\n%s", err, strings.TrimRight(printed.String(), "\n"))
	case err2 != nil:
		return errors.New("the program doesn't contain a Flott job: it ended without calling Execute")
	}
	a.headline("Execution Plan")
	fmt.Fprintln(a.out, strings.TrimRight(string(plan), "\n"))
	fmt.Fprintln(a.out, strings.Repeat("-", lineWidth))
	fmt.Fprint(a.out, "\nNo description provided.\n")
	return nil
}
