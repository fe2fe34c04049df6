package checkpoint

import (
	"fmt"
	"slices"
	"strings"

	"github.com/flott-dev/flott/internal/vfs"
	"github.com/flott-dev/flott/statebackend"
)

// TableSummary says what a table of an operator is and how much it holds in a snapshot.
type TableSummary struct {
	statebackend.TableInfo
	// Rows is the number of rows in all key groups: values, elements of lists, entries of maps. Rows in files of a state
	// backend are not known without it and not counted.
	Rows int64
	// Changes says how many of the rows are changes upon the whole table, which a reader does not see as rows.
	Changes int64
	// Bytes is what the rows take in the chunks.
	Bytes int64
	// InFiles says that subtasks have the whole table in files of a state backend (Operator.Files).
	InFiles bool
}

// Tables are the tables of the operator, in the order in which its subtasks name them.
func (o *Operator) Tables() []TableSummary {
	var all []TableSummary
	for _, p := range o.Parts {
		for i := range p.Tables {
			at := slices.IndexFunc(all, func(t TableSummary) bool { return t.Name == p.Tables[i].Name })
			if at < 0 {
				at = len(all)
				all = append(all, TableSummary{TableInfo: p.Tables[i]})
			}
			rows, changes, size := p.holds(i)
			all[at].Rows += rows
			all[at].Changes += changes
			all[at].Bytes += size
			all[at].InFiles = all[at].InFiles || p.base(i).files
		}
	}
	return all
}

// FileSummary says how much lies in files of a state backend, in its own format.
type FileSummary struct {
	// Format names the backend and the version of what it writes.
	Format string
	// Files is the number of files, Bytes their size.
	Files int
	Bytes int64
}

// Files are the files of state backends, by format in the order of the subtasks.
func (o *Operator) Files() []FileSummary {
	var all []FileSummary
	for _, p := range o.Parts {
		if p.files == nil {
			continue
		}
		at := slices.IndexFunc(all, func(s FileSummary) bool { return s.Format == p.files.format })
		if at < 0 {
			at = len(all)
			all = append(all, FileSummary{Format: p.files.format})
		}
		all[at].Files += len(p.files.files)
		all[at].Bytes += p.files.bytes()
	}
	return all
}

// ListSummary says what a list of an operator is and how much it holds in a snapshot.
type ListSummary struct {
	ListInfo
	// Bytes is what the items of all subtasks take in the chunks. ListInfo.Items is their number, of broadcast lists that of
	// all copies.
	Bytes int64
}

// Lists are the lists of the operator, in the order in which its subtasks name them.
func (o *Operator) Lists() []ListSummary {
	var all []ListSummary
	for _, p := range o.Parts {
		for i := range p.Lists {
			at := slices.IndexFunc(all, func(l ListSummary) bool { return l.Name == p.Lists[i].Name })
			if at < 0 {
				at = len(all)
				all = append(all, ListSummary{ListInfo: p.Lists[i]})
				all[at].Items = 0
			}
			items, _, size := p.holds(len(p.Tables) + i)
			all[at].Items += items
			all[at].Bytes += size
		}
	}
	return all
}

// holds gives the rows and bytes of a table or list of the part, and how many of the rows are changes.
func (p *Part) holds(place int) (rows, changes, size int64) {
	for i := range p.chunks {
		for j := range p.chunks[i].sections {
			s := &p.chunks[i].sections[j]
			if s.place != place {
				continue
			}
			rows += s.rows
			size += s.bytes()
			if place < len(p.Tables) && p.changes(place, p.chunks[i].layer) {
				changes += s.rows
			}
		}
	}
	return rows, changes, size
}

// Bytes is the size of all that the snapshot holds, chunks and files of backends, those in earlier checkpoints' folders
// included: what a restore may have to read.
func (m *Manifest) Bytes() int64 {
	n := int64(0)
	for i := range m.Operators {
		for _, p := range m.Operators[i].Parts {
			n += p.Bytes()
		}
	}
	return n
}

// Bytes is the size of all that the part holds, chunks and files of backends, those in earlier checkpoints' folders included.
func (p *Part) Bytes() int64 { return p.bytes(func(string) bool { return true }) }

// WrittenBytes is the part of Bytes that was written for this snapshot and not named again.
func (p *Part) WrittenBytes() int64 {
	return p.bytes(func(name string) bool { return !isEarlier(name) })
}

func (p *Part) bytes(counts func(name string) bool) int64 {
	n := int64(0)
	for i := range p.chunks {
		if c := &p.chunks[i]; counts(c.path) {
			n += c.size
		}
	}
	if p.files != nil {
		for i := range p.files.files {
			if f := &p.files.files[i]; counts(f.path) {
				n += f.size
			}
		}
	}
	return n
}

// Read gives all that the snapshot holds of an operator, given by id or UID: all rows of its tables, and its lists with the
// items of all subtasks (broadcast lists: of one). It is Restore for a single subtask, needs nothing of the program that took
// the snapshot, and is what tools call; AppendKeyJSON and AppendJSON show what rows and items hold. A nil file system is the
// machine's. Tables that lie in files of a backend need a reader for their format; without one their first row is an error
// that names the format.
func (m *Manifest) Read(f vfs.FS, operator string, readers ...FileReader) (statebackend.Restored, []List, error) {
	o := m.Operator(operator)
	if o == nil {
		return nil, nil, fmt.Errorf("snapshot %s has no operator %q, but %s", m.Folder, operator, m.operatorNames())
	}
	restored, lists, err := m.Restore(f, o.ID, 0, 1, o.MaxParallelism)
	if r, ok := restored.(*restoredOperator); ok {
		r.offline, r.readers = true, readers
		clear(r.inFiles)
	}
	return restored, lists, err
}

// operatorNames names the operators, for people.
func (m *Manifest) operatorNames() string {
	var names []string
	for i := range m.Operators {
		names = append(names, m.Operators[i].label())
	}
	if len(names) == 0 {
		return "none at all"
	}
	return strings.Join(names, ", ")
}

// Match compares the snapshot with the operators of a program, by ids. Operators of the program that the snapshot does not
// know begin empty. Operators of the snapshot with state that the program does not have are given as dropped, and are an
// error that names them unless allowNonRestored is set.
func (m *Manifest) Match(program []string, allowNonRestored bool) (dropped []*Operator, err error) {
	ids := make(map[string]bool, len(program))
	for _, id := range program {
		ids[id] = true
	}
	var names []string
	for i := range m.Operators {
		if o := &m.Operators[i]; !ids[o.ID] && o.HasState() {
			dropped = append(dropped, o)
			names = append(names, o.label())
		}
	}
	if len(dropped) == 0 || allowNonRestored {
		return dropped, nil
	}
	return dropped, fmt.Errorf("%v %d in %s has state that the program has no operator for: %s; give these operators the UIDs that they had, or allow non-restored state to drop it",
		m.Kind, m.ID, m.Folder, strings.Join(names, ", "))
}
