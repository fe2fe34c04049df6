package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/flott-dev/flott/checkpoint"
)

// location is a folder or file that the user names: where it lies and its path there.
type location struct {
	fs   checkpoint.FS
	path string
	url  *url.URL // nil: it lies on this machine
}

// locate finds what the user names: a path, or a URL with the scheme file or that of a storage.
func (a *app) locate(arg string) (*location, error) {
	if arg == "" {
		return nil, errors.New("an empty path names nothing")
	}
	scheme, rest, ok := strings.Cut(arg, ":")
	scheme = strings.ToLower(scheme)
	opener := a.opener(scheme)
	switch {
	case ok && scheme == "file":
		u, err := url.Parse(arg)
		if err != nil {
			return nil, fmt.Errorf("read the URL: %w", err)
		}
		if u.Path == "" || u.Host != "" && u.Host != "localhost" {
			return nil, fmt.Errorf("%s names no file of this machine: write file:///folder", arg)
		}
		return &location{fs: a.fs, path: u.Path}, nil
	case !ok || len(scheme) < 2 || !strings.HasPrefix(rest, "//"):
		return &location{fs: a.fs, path: filepath.ToSlash(arg)}, nil
	case opener == nil && isMemory(scheme):
		return nil, fmt.Errorf("%s lies in the memory of a job's process: only that reaches it, as long as it runs; flott savepoint dispose -m HOST:PORT has it removed there, and flott savepoint JOBID DIR takes one into a folder", arg)
	case opener == nil:
		return nil, fmt.Errorf("%s: storage %q is not part of this program, which reads paths and the URLs of %s: copy the snapshot's folder there", arg, scheme, a.schemes())
	}
	u, err := url.Parse(arg)
	if err != nil {
		return nil, fmt.Errorf("read the URL: %w", err)
	}
	f, dir, err := opener.Open(context.Background(), u)
	if err != nil {
		return nil, err
	}
	return &location{fs: f, path: dir, url: u}, nil
}

// isMemory says whether URLs of a scheme name what lies in the memory of a job's process.
func isMemory(scheme string) bool { return scheme == "jobmanager" || scheme == "mem" }

// lostWithJob says whether a savepoint is gone when its job's process ends.
func lostWithJob(location string) bool {
	scheme, _, _ := strings.Cut(location, ":")
	return isMemory(scheme)
}

// opener opens the URLs of a scheme; nil: none does.
func (a *app) opener(scheme string) checkpoint.Opener {
	for _, o := range a.storages {
		if slices.Contains(o.Schemes(), scheme) {
			return o
		}
	}
	return nil
}

// schemes names those of the URLs that locate takes.
func (a *app) schemes() string {
	names := []string{"file"}
	for _, o := range a.storages {
		names = append(names, o.Schemes()...)
	}
	return strings.Join(names, ", ")
}

// name is what users know a folder or file of the location's file system by: all storages here name files by the paths of
// their URLs.
func (l *location) name(inner string) string {
	if l.url == nil {
		return inner
	}
	u := *l.url
	u.Path, u.RawPath = inner, ""
	return u.Redacted()
}

// explain adds to the errors of a storage what the user has named: they know paths within.
func (l *location) explain(err error) error {
	if err == nil || l.url == nil {
		return err
	}
	all := causes(err)
	for i := range all {
		all[i] = fmt.Errorf("%s: %w", l.url.Redacted(), all[i])
	}
	return errors.Join(all...)
}
