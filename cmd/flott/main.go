// Command flott is Flott's command line: it runs programs, watches and controls their jobs, and looks at, checks and reads
// checkpoints and savepoints. It owns the words of the commands and the shape of what they print; jobs it reaches by their
// REST endpoint, and what a snapshot is, package checkpoint knows. It never writes into a snapshot and needs nothing of the
// programs whose state it shows.
//
//	flott help
//
// lists the commands. A command that works ends with 0, one that fails or finds damage with 1, one that was called wrongly
// with 2. Results go to the standard output, all else to the standard error. Commands that Flink has too (run, info, list, stop,
// cancel, savepoint, checkpoint) print what Flink's print, in its lines: a wrong call is told on the standard output and ends
// with 1.
package main

import (
	"os"

	"github.com/flott-dev/flott/internal/vfs"
)

func main() {
	a := &app{stdout: os.Stdout, stderr: os.Stderr, fs: vfs.OS{}, storages: storages(), colour: wantsColour(os.Stdout, os.Getenv), build: buildText()}
	os.Exit(a.run(os.Args[1:]))
}
