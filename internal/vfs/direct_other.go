//go:build !linux || !(amd64 || arm64 || loong64 || ppc64le || riscv64)

package vfs

import "errors"

// NewDirectWriter fails with errors.ErrUnsupported: what it needs is on Linux only.
func NewDirectWriter() (DirectWriter, error) { return nil, errors.ErrUnsupported }
