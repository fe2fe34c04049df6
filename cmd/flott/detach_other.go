//go:build !unix

package main

import "syscall"

// detached is how a process is started that outlives this one.
func detached() *syscall.SysProcAttr { return nil }
