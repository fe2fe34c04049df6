package file

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/flott-dev/flott/internal/vfs"
)

// located is a file that a source reads.
type located struct {
	path     string
	size     int64
	modified int64 // ns since 1970, for comparison only
	regular  bool
}

// finder looks for the files of a source.
type finder struct {
	*settings
	found []located
}

// find lists the files in the order of their paths.
func (s *settings) find() ([]located, error) {
	f := finder{settings: s}
	for _, p := range s.paths {
		before := len(f.found)
		if err := f.add(p); err != nil {
			return nil, fmt.Errorf("list %s: %w", p, err)
		}
		if len(f.found) == before && s.watch == 0 && hasMeta(p) {
			return nil, fmt.Errorf("list %s: %w", p, ErrNoMatch)
		}
	}
	slices.SortFunc(f.found, func(a, b located) int { return strings.Compare(a.path, b.path) })
	f.found = slices.CompactFunc(f.found, func(a, b located) bool { return a.path == b.path })
	return f.found, nil
}

func (f *finder) add(p string) error {
	if p == "-" {
		f.found = append(f.found, located{path: vfs.Stdin})
		return nil
	}
	p = path.Clean(p)
	info, err := f.fs.Stat(p)
	switch {
	case err == nil && info.IsDir():
		return f.folder(p)
	case err == nil:
		f.file(p, info)
		return nil
	case hasMeta(p) && errors.Is(err, fs.ErrNotExist):
		root, rest := ".", p
		if path.IsAbs(p) {
			root, rest = "/", strings.TrimLeft(p, "/")
		}
		return f.glob(root, strings.Split(rest, "/"))
	}
	return err
}

func (f *finder) file(p string, info fs.FileInfo) {
	if f.filter == nil || f.filter(p, info) {
		f.found = append(f.found, located{p, info.Size(), info.ModTime().UnixNano(), info.Mode().IsRegular()})
	}
}

// goesInto tells whether a folder that was come upon, and not named, is wanted. One that is gone again is not.
func (f *finder) goesInto(name string, info func() (fs.FileInfo, error)) (bool, error) {
	if f.folders == nil {
		return true, nil
	}
	i, err := info()
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && f.folders(name, i), err
}

// folder adds the files in a folder.
func (f *finder) folder(p string) error {
	entries, err := f.fs.ReadDir(p)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if f.skips(e.Name(), "") {
			continue
		}
		name := path.Join(p, e.Name())
		if e.IsDir() {
			if err := f.inner(name, e); err != nil {
				return err
			}
			continue
		}
		if err := f.entry(name, false); err != nil {
			return err
		}
	}
	return nil
}

// inner adds the files of a folder in a folder, if they are wanted.
func (f *finder) inner(name string, e fs.DirEntry) error {
	if !f.recursive {
		return nil
	}
	if into, err := f.goesInto(name, e.Info); !into {
		return err
	}
	return f.folder(name)
}

// entry adds what was listed under name, if it is a file, or a folder and those are wanted. What is gone again is left
// out, and so is what would block for ever: pipes and devices are read only if named.
func (f *finder) entry(name string, folders bool) error {
	info, err := f.fs.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode().IsRegular():
		f.file(name, info)
	case info.IsDir() && folders:
		if into, err := f.goesInto(name, func() (fs.FileInfo, error) { return info, nil }); !into {
			return err
		}
		return f.folder(name)
	}
	return nil
}

// skips tells whether a listed name is hidden and the pattern does not ask for such names.
func (f *finder) skips(name, pattern string) bool {
	c := name[0]
	return (c == '.' || c == '_') && !f.hidden && !strings.HasPrefix(pattern, name[:1])
}

// glob adds what the rest of a pattern matches below dir.
func (f *finder) glob(dir string, pattern []string) error {
	first, rest := pattern[0], pattern[1:]
	if !hasMeta(first) {
		name := path.Join(dir, first)
		if len(rest) > 0 {
			return f.glob(name, rest)
		}
		return f.entry(name, true)
	}
	entries, err := f.fs.ReadDir(dir)
	if err != nil {
		return f.unlisted(dir, err)
	}
	if first == "**" {
		return f.below(dir, entries, rest)
	}
	return f.match(dir, entries, pattern)
}

// match adds what a pattern, whose first part is one of names, matches among the entries of dir and below.
func (f *finder) match(dir string, entries []fs.DirEntry, pattern []string) (err error) {
	first, rest := pattern[0], pattern[1:]
	for _, e := range entries {
		if ok, _ := path.Match(first, e.Name()); !ok || f.skips(e.Name(), first) {
			continue
		}
		name := path.Join(dir, e.Name())
		switch {
		case len(rest) == 0:
			err = f.entry(name, true)
		case e.IsDir() || e.Type()&fs.ModeSymlink != 0:
			err = f.through(name, e, rest)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// through matches the rest of a pattern in a folder that its first part has matched, if what is in there is wanted.
func (f *finder) through(name string, e fs.DirEntry, rest []string) error {
	info := e.Info
	if !e.IsDir() {
		info = func() (fs.FileInfo, error) { return f.fs.Stat(name) } // of what the link leads to
	}
	if into, err := f.goesInto(name, info); !into {
		return err
	}
	return f.glob(name, rest)
}

// below matches the rest of a pattern behind ** in dir and in every folder below it.
func (f *finder) below(dir string, entries []fs.DirEntry, rest []string) error {
	if len(rest) == 0 {
		rest = []string{"*"}
	}
	var err error
	if hasMeta(rest[0]) && rest[0] != "**" {
		err = f.match(dir, entries, rest)
	} else {
		err = f.glob(dir, rest)
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.IsDir() && !f.skips(e.Name(), "") {
			if err := f.through(path.Join(dir, e.Name()), e, append([]string{"**"}, rest...)); err != nil {
				return err
			}
		}
	}
	return nil
}

// unlisted decides about a folder on the way of a pattern that can't be listed: one that is not there matches nothing.
func (f *finder) unlisted(dir string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if info, serr := f.fs.Stat(dir); serr == nil && !info.IsDir() {
		return nil
	}
	return err
}

func hasMeta(p string) bool { return strings.ContainsAny(p, `*?[\`) }

// checkPattern reports a pattern that can never match.
func checkPattern(p string) error {
	if p == "" {
		return errors.New("empty path")
	}
	if _, err := path.Match(p, ""); err != nil {
		return fmt.Errorf("pattern %q: %w", p, err)
	}
	return nil
}
