package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/flott-dev/flott/checkpoint"
)

func listCommand() command {
	return command{
		name: "savepoint list", args: "DIR [-json]", operands: 1,
		summary: "list the checkpoints and savepoints in a folder",
		details: `DIR is searched up to four folders deep. Of each snapshot the manifest is read
and its files are looked at: a missing or cut file is seen. Only
flott savepoint verify reads every byte.`,
		example: "flott savepoint list savepoints\nflott savepoint list -json checkpoints | jq -r '.[] | select(.status == \"complete\").folder'",
		prepare: func(a *app, f *flag.FlagSet) action {
			asJSON := f.Bool("json", false, "print JSON instead of text")
			return func(args []string) error { return a.list(args[0], *asJSON) }
		},
	}
}

// searchDepth is how deep a folder is searched: job folder, checkpoint folder and two more.
const searchDepth = 4

// entry is a snapshot that was found. Without a manifest that can be read only Folder, Status and Reason are known, and of
// checkpoints the number.
type entry struct {
	ID         *int64 `json:"id"`
	Kind       string `json:"kind,omitempty"`
	Time       string `json:"time,omitempty"`
	TimeMillis int64  `json:"timeMillis,omitempty"`
	JobID      string `json:"jobId,omitempty"`
	JobName    string `json:"jobName,omitempty"`
	Bytes      int64  `json:"bytes,omitempty"`
	Folder     string `json:"folder"`
	// Status is "complete", "damaged", or "unreadable" for a newer format or a disk that fails.
	Status string `json:"status"`
	Reason string `json:"reason,omitempty"`
}

// catalogue is what lies in a folder.
type catalogue struct {
	*app
	at      *location
	entries []entry
	failed  []error // folders that could not be searched
}

func (a *app) list(arg string, asJSON bool) error {
	at, err := a.locate(arg)
	if err != nil {
		return err
	}
	c := &catalogue{app: a, at: at, entries: []entry{}}
	c.search(path.Clean(at.path), searchDepth)
	slices.SortStableFunc(c.entries, func(a, b entry) int {
		return cmp.Or(cmp.Compare(path.Dir(a.Folder), path.Dir(b.Folder)), cmp.Compare(a.number(), b.number()), cmp.Compare(a.Folder, b.Folder))
	})
	switch {
	case asJSON:
		err = a.printJSON(c.entries)
	case len(c.entries) > 0:
		err = c.print()
	case len(c.failed) == 0:
		_, err = fmt.Fprintf(a.out, "There are no checkpoints or savepoints in %s.\n", shown(at.name(at.path)))
	}
	return errors.Join(append(c.failed, err)...)
}

// search finds the snapshots in a folder. Folders of snapshots hold no others.
func (c *catalogue) search(dir string, depth int) {
	entries, err := c.at.fs.ReadDir(dir)
	if err != nil {
		c.failed = append(c.failed, fmt.Errorf("list %s: %w", c.at.name(dir), err))
		return
	}
	if slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == checkpoint.ManifestName && !e.IsDir() }) {
		c.entries = append(c.entries, c.look(dir))
		return
	}
	for _, e := range entries {
		if e.IsDir() && depth > 0 {
			c.search(path.Join(dir, e.Name()), depth-1)
		}
	}
}

// look reads a manifest and looks at its files.
func (c *catalogue) look(dir string) entry {
	e := entry{Folder: c.at.name(dir), Status: "complete"}
	if digits, ok := strings.CutPrefix(path.Base(dir), "chk-"); ok {
		if id, err := strconv.ParseInt(digits, 10, 64); err == nil {
			e.ID = &id
		}
	}
	m, err := checkpoint.Load(c.at.fs, dir)
	if err == nil {
		if e.ID != nil && *e.ID != m.ID && m.Kind == checkpoint.Checkpoint {
			err = &checkpoint.DamagedError{File: path.Join(dir, checkpoint.ManifestName), Reason: fmt.Sprintf("it is that of checkpoint %d", m.ID)}
		} else {
			err = m.Probe(c.at.fs)
		}
		id := m.ID
		e.ID, e.Kind, e.Time, e.TimeMillis, e.Bytes = &id, m.Kind.String(), instant(m.Time), m.Time, m.Bytes()
		e.JobID, e.JobName = m.JobID, m.JobName
	}
	if err != nil {
		first := causes(err)[0]
		e.Status, e.Reason = "unreadable", first.Error()
		if d, ok := errors.AsType[*checkpoint.DamagedError](first); ok {
			e.Status, e.Reason = "damaged", fmt.Sprintf("%s: %s", c.at.name(d.File), d.Reason)
		}
	}
	return e
}

// number is the entry's for sorting.
func (e *entry) number() int64 {
	if e.ID == nil {
		return -1
	}
	return *e.ID
}

// print writes the entries for people. The status comes last, as its style has no width.
func (c *catalogue) print() error {
	w := tabwriter.NewWriter(c.out, 0, 0, 2, ' ', 0)
	fmt.Fprint(w, "ID\tKIND\tTIME\tSIZE\tJOB\tFOLDER\tSTATUS\n")
	for i := range c.entries {
		e := &c.entries[i]
		id, bytes := "-", "-"
		if e.ID != nil {
			id = strconv.FormatInt(*e.ID, 10)
		}
		if e.Kind != "" {
			bytes = size(e.Bytes)
		}
		status := c.styled(green, e.Status)
		if e.Status != "complete" {
			status = c.styled(red, e.Status) + ": " + e.Reason
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", id, orDash(e.Kind), orDash(e.Time), bytes, orDash(e.JobName), shown(e.Folder), status)
	}
	return w.Flush()
}
