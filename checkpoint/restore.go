package checkpoint

import (
	"fmt"

	"github.com/flott-dev/flott/internal/keygroup"
	"github.com/flott-dev/flott/internal/vfs"
	"github.com/flott-dev/flott/serde"
	"github.com/flott-dev/flott/statebackend"
)

// Restore gives what one operator of one subtask of a job begins with: the rows of its key groups and its items of each
// list, for the parallelism and max parallelism of the job that is restored. operator is an id (or a UID). restored is nil
// if the snapshot does not know the operator, which then begins empty.
//
// Tables are whole, however many layers they lie in. Those that lie in files of a backend are given as files: restored is a
// statebackend.RestoredFiles. Rows are read when they are asked for, from the parts that overlap the subtask's key groups only, and each table may be
// read several times, by one goroutine at a time. Lists are read here; those that have no items for the subtask are among
// them, without items. Another max parallelism than the snapshot's is an error for operators with tables, as the keys would
// belong to other key groups. A nil file system is the machine's.
func (m *Manifest) Restore(f vfs.FS, operator string, subtask, parallelism, maxParallelism int) (restored statebackend.Restored, lists []List, err error) {
	o := m.Operator(operator)
	if o == nil {
		return nil, nil, nil
	}
	r, err := m.restore(f, o, subtask, parallelism, maxParallelism)
	if err == nil {
		lists, err = r.lists(subtask, parallelism)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("restore %s, subtask %d of %d, from %v %d in %s: %w", o.label(), subtask, parallelism, m.Kind, m.ID, m.Folder, err)
	}
	return r, lists, nil
}

// label names an operator for people.
func (o *Operator) label() string {
	if o.UID != "" {
		return fmt.Sprintf("operator %q (UID %q)", o.Name, o.UID)
	}
	return fmt.Sprintf("operator %q (id %s)", o.Name, o.ID)
}

func (m *Manifest) restore(f vfs.FS, o *Operator, subtask, parallelism, maxParallelism int) (*restoredOperator, error) {
	r := &restoredOperator{fs: diskIfNil(f), folder: m.Folder, operator: o, seed: m.HashSeed, tables: map[string]int{}, inFiles: map[string]bool{}}
	for _, p := range o.Parts {
		if err := r.add(p); err != nil {
			return nil, err
		}
	}
	if len(r.infos) > 0 && maxParallelism != o.MaxParallelism {
		return nil, fmt.Errorf("its keyed state has a max parallelism of %d, the program says %d: it can't change; set it to %d in the program",
			o.MaxParallelism, maxParallelism, o.MaxParallelism)
	}
	var err error
	if r.groups, err = keygroup.RangeOfSubtask(maxParallelism, parallelism, subtask); err != nil {
		return nil, err
	}
	r.findFiles()
	return r, nil
}

// restoredOperator is the state of one operator for some key groups. It implements statebackend.RestoredFiles.
type restoredOperator struct {
	fs       vfs.FS
	folder   string
	operator *Operator
	seed     uint64
	groups   keygroup.Range
	infos    []statebackend.TableInfo
	tables   map[string]int  // by name: index in infos
	inFiles  map[string]bool // tables that lie in files of backends, and nowhere else
	offline  bool            // files of backends are read as rows
	readers  []FileReader    // for that
	audit    *Audit          // takes note of what is read; nil: nobody does
}

// add notes the tables of a part, which all parts that have them must agree on.
func (r *restoredOperator) add(p *Part) error {
	for i := range p.Tables {
		t := &p.Tables[i]
		at, ok := r.tables[t.Name]
		if !ok {
			r.tables[t.Name] = len(r.infos)
			r.infos = append(r.infos, *t)
			continue
		}
		if !sameTable(&r.infos[at], t) {
			return fmt.Errorf("its subtasks do not agree on what table %q is: subtask %d differs from those before", t.Name, p.Subtask)
		}
	}
	return nil
}

func sameTable(a, b *statebackend.TableInfo) bool {
	if (a.TTL == nil) != (b.TTL == nil) || a.TTL != nil && *a.TTL != *b.TTL {
		return false
	}
	return a.Kind == b.Kind && sameSchema(a.Key, b.Key) && sameSchema(a.Value, b.Value) &&
		sameSchema(a.MapKey, b.MapKey) && sameSchema(a.Namespace, b.Namespace)
}

func sameSchema(a, b *serde.Schema) bool {
	if a == nil || b == nil || a == b {
		return a == b
	}
	return a.String() == b.String()
}

// Tables implements statebackend.Restored.
func (r *restoredOperator) Tables() []string {
	var names []string
	for i := range r.infos {
		if !r.inFiles[r.infos[i].Name] {
			names = append(names, r.infos[i].Name)
		}
	}
	return names
}

// Table implements statebackend.Restored.
func (r *restoredOperator) Table(name string) (statebackend.FrozenTable, bool) {
	i, ok := r.tables[name]
	if !ok || r.inFiles[name] {
		return statebackend.FrozenTable{}, false
	}
	info := r.infos[i]
	return statebackend.FrozenTable{TableInfo: info, Rows: r.rows(info)}, true
}

// overlaps says whether a part may have rows of the key groups.
func (r *restoredOperator) overlaps(p *Part) bool {
	return p.FirstGroup <= r.groups.Last && p.LastGroup >= r.groups.First
}

// findFiles notes the tables that lie in files only.
func (r *restoredOperator) findFiles() {
	if r.offline {
		return
	}
	rows := map[string]bool{}
	for _, p := range r.operator.Parts {
		for i := range p.Tables {
			if name := p.Tables[i].Name; p.base(i).files {
				r.inFiles[name] = true
			} else if r.overlaps(p) {
				rows[name] = true
			}
		}
	}
	for name := range rows {
		delete(r.inFiles, name)
	}
}
