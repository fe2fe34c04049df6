//go:build unix

package main

import "syscall"

// detached puts a process into a session of its own, so that the terminal's signals don't reach it.
func detached() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
