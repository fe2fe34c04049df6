package main

import (
	"flag"
	"io"
	"testing"

	"github.com/flott-dev/flott/internal/config"
)

func TestRecoveryFolderReachesTheProgram(t *testing.T) {
	f := flag.NewFlagSet("run", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	l := launchFlags(f)
	if err := f.Parse([]string{"-D", "execution.recovery.dir=old", "-recover", "state", "./program", "-recover"}); err != nil {
		t.Fatal(err)
	}
	layers, err := l.layers()
	if keys := config.Flatten(layers...); err != nil || keys["execution.recovery.dir"] != "state" || f.NArg() != 2 {
		t.Errorf("%v, %v, %v", keys, f.Args(), err)
	}
}
