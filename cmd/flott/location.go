package main

import (
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
)

// location is a folder or file that the user names: a path, or a URL with the scheme file, as package vfs takes it.
func location(arg string) (string, error) {
	if arg == "" {
		return "", fmt.Errorf("an empty path names nothing")
	}
	scheme, rest, ok := strings.Cut(arg, ":")
	switch {
	case ok && scheme == "file":
		u, err := url.Parse(arg)
		if err != nil {
			return "", fmt.Errorf("read the URL: %w", err)
		}
		if u.Path == "" || u.Host != "" && u.Host != "localhost" {
			return "", fmt.Errorf("%s names no file of this machine: write file:///folder", arg)
		}
		return u.Path, nil
	case ok && strings.HasPrefix(rest, "//") && len(scheme) > 1:
		return "", fmt.Errorf("%s: storage %q is not part of this program, which reads files: copy the snapshot's folder to this machine", arg, scheme)
	}
	return filepath.ToSlash(arg), nil
}
