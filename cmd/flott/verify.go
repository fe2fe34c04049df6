package main

import (
	"flag"
	"fmt"
)

func verifyCommand() command {
	return command{
		name: "savepoint verify", args: "PATH", operands: 1,
		summary: "read all of a savepoint or checkpoint and check it",
		details: `Every byte of every file is read and compared with the checksums that were
written. A damaged or missing file is named, and the exit code is 1.`,
		example: "flott savepoint verify savepoints/savepoint-1a2b3c-7",
		prepare: func(a *app, _ *flag.FlagSet) action {
			return func(args []string) error { return a.verify(args[0]) }
		},
	}
}

func (a *app) verify(at string) error {
	m, err := a.load(at)
	if err != nil {
		return err
	}
	if err := m.Verify(m.at.fs); err != nil {
		return m.at.explain(err)
	}
	fmt.Fprintf(a.out, "%s: %v %d of job %s, %s, %s beside the manifest: %s\n",
		shown(m.folder()), m.Kind, m.ID, shown(m.JobName), size(m.Bytes()), count(len(m.Files()), "file"), a.styled(green, "all as written"))
	return nil
}
