package checkpoint

import (
	"fmt"
	"iter"
	"slices"

	"github.com/flott-dev/flott/statebackend"
)

// FileReader reads the files of a state backend without a store: for tools that look into checkpoints. Packages of backends
// have one. It may be used by all goroutines.
type FileReader interface {
	// Formats are the formats (statebackend.FileSet) that it reads.
	Formats() []string
	// Rows gives the rows that files have of one table, of the key groups first to last, both inclusive: whole and in the
	// order of statebackend.FrozenTable. Hash need not be set. A table that the files don't have has no rows. It opens
	// what it needs when the iteration begins and closes it when it ends; the files are open as long.
	Rows(files *statebackend.FileSet, table statebackend.TableInfo, first, last int) iter.Seq2[*statebackend.Row, error]
}

// Files implements statebackend.RestoredFiles. It gives nothing to tools, for which the files are read.
func (r *restoredOperator) Files() []statebackend.RestoredFileSet {
	if r.offline {
		return nil
	}
	var all []statebackend.RestoredFileSet
	for _, p := range r.operator.Parts {
		if p.files == nil || !r.overlaps(p) {
			continue
		}
		set := statebackend.RestoredFileSet{
			FileSet:    p.files.as(r.fs, r.folder),
			FirstGroup: max(p.FirstGroup, r.groups.First), LastGroup: min(p.LastGroup, r.groups.Last),
		}
		for i := range p.Tables {
			if p.base(i).files {
				set.Tables = append(set.Tables, statebackend.FrozenTable{TableInfo: p.Tables[i], Changes: true, Rows: r.changesIn(p, i)})
			}
		}
		all = append(all, set)
	}
	return all
}

// files reads a table that lies in files of a backend past its changes.
func (t *tableReader) files(p *Part, table int, m *merger) error {
	i := slices.IndexFunc(t.r.readers, func(r FileReader) bool { return slices.Contains(r.Formats(), p.files.format) })
	if i < 0 {
		return fmt.Errorf("it lies in files of the format %q, which only its state backend reads: pass the backend's FileReader, "+
			"or take a savepoint, which has rows that everybody reads", p.files.format)
	}
	set := p.files.as(t.r.fs, t.r.folder)
	group, first, last := -1, max(p.FirstGroup, t.r.groups.First), min(p.LastGroup, t.r.groups.Last)
	for row, err := range t.r.readers[i].Rows(&set, p.Tables[table], first, last) {
		if err != nil {
			return err
		}
		if row.Group != group {
			if row.Group < group || row.Group < first || row.Group > last {
				return fmt.Errorf("the files of format %q gave a row of key group %d after group %d, of %d ... %d", p.files.format, row.Group, group, first, last)
			}
			group = row.Group
			if err := m.advance(group); err != nil {
				return err
			}
		}
		row.Hash = t.hasher.One(row.Key)
		give := t.yield
		if m.busy {
			give = m.row
		}
		if !give(row, nil) {
			return errEnough
		}
	}
	return nil
}
