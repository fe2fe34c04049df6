//go:build race

package main

import "github.com/flott-dev/flott/checkpoint"

// storages are left out where the race detector is in: their clients take minutes to build with it, and the tests that it is for
// bring a storage of their own.
func storages() []checkpoint.Opener { return nil }
