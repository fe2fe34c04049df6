package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// equivalentFile lists the conditions whose flip changes nothing that a test could see. Each has a line as survivors are
// printed, without the number of the line, and below it, behind a tab, the reason. Lines that begin with # are remarks.
const equivalentFile = "internal/lint/mutate/equivalent.txt"

// readEquivalent gives the keys of the list; a repository without one has none. Each must be the key of a condition, so that
// the list does not outlive the code.
func readEquivalent(root string, all []site) (map[string]bool, error) {
	text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(equivalentFile)))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	exists := map[string]bool{}
	for _, s := range all {
		exists[s.key()] = true
	}
	keys, last, reasoned := map[string]bool{}, "", true
	for i, line := range strings.Split(string(text), "\n") {
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
		case strings.HasPrefix(line, "\t"):
			reasoned = true
		case !reasoned:
			return nil, fmt.Errorf("%s:%d: no reason is given for %s", equivalentFile, i, last)
		case !exists[line]:
			return nil, fmt.Errorf("%s:%d: there is no such condition (any more): %s", equivalentFile, i+1, line)
		default:
			keys[line], last, reasoned = true, line, false
		}
	}
	if !reasoned {
		return nil, fmt.Errorf("%s: no reason is given for %s", equivalentFile, last)
	}
	return keys, nil
}

// survivors are those of all sites that survived according to a log.
func survivors(log string, all []site) ([]site, error) {
	text, err := os.ReadFile(log)
	if err != nil {
		return nil, err
	}
	line := regexp.MustCompile(`(?m)^ *\d+ SURVIVED +\S+ (\S+):\d+ (.*) \[.*\]$`)
	wanted := map[string]bool{}
	for _, m := range line.FindAllStringSubmatch(string(text), -1) {
		wanted[m[1]+" "+m[2]] = true
	}
	var out []site
	for _, s := range all {
		if wanted[s.key()] {
			out = append(out, s)
		}
	}
	return out, nil
}
