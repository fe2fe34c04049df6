package main

import (
	"fmt"
	"runtime/debug"
)

// version prints what Flink's command prints, so that scripts which look for it find it.
func (a *app) version() error {
	_, err := fmt.Fprintln(a.out, a.build)
	return err
}

// buildText tells the version and commit that this program was built from, as far as the go command knew them.
func buildText() string {
	version, commit, suffix := "unknown", "unknown", ""
	if info, ok := debug.ReadBuildInfo(); ok {
		version = info.Main.Version
		for _, s := range info.Settings {
			switch {
			case s.Key == "vcs.revision":
				commit = s.Value
			case s.Key == "vcs.modified" && s.Value == "true":
				suffix = " (modified)"
			}
		}
	}
	return fmt.Sprintf("Version: %s, Commit ID: %s%s", version, commit, suffix)
}
