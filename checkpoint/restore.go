package checkpoint

import (
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/flott-dev/flott/internal/keygroup"
	"github.com/flott-dev/flott/internal/vfs"
	"github.com/flott-dev/flott/serde"
	"github.com/flott-dev/flott/statebackend"
)

// Restore gives what one operator of one subtask of a job begins with: the rows of its key groups and its items of each
// list, for the parallelism and max parallelism of the job that is restored. operator is an id (or a UID). restored is nil
// if the snapshot does not know the operator, which then begins empty.
//
// Rows are read when they are asked for, from the parts that overlap the subtask's key groups only, and each table may be
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
	r := &restoredOperator{fs: diskIfNil(f), folder: m.Folder, operator: o, seed: m.HashSeed, tables: map[string]int{}}
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
	r.groups, err = keygroup.RangeOfSubtask(maxParallelism, parallelism, subtask)
	return r, err
}

// restoredOperator is the state of one operator for some key groups. It implements statebackend.Restored.
type restoredOperator struct {
	fs       vfs.FS
	folder   string
	operator *Operator
	seed     uint64
	groups   keygroup.Range
	infos    []statebackend.TableInfo
	tables   map[string]int // by name: index in infos
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
	names := make([]string, len(r.infos))
	for i := range r.infos {
		names[i] = r.infos[i].Name
	}
	return names
}

// Table implements statebackend.Restored.
func (r *restoredOperator) Table(name string) (statebackend.FrozenTable, bool) {
	i, ok := r.tables[name]
	if !ok {
		return statebackend.FrozenTable{}, false
	}
	info := r.infos[i]
	return statebackend.FrozenTable{TableInfo: info, Rows: r.rows(info)}, true
}

// rows reads the rows of a table from one part after the other, which is the order of the key groups.
func (r *restoredOperator) rows(info statebackend.TableInfo) iter.Seq2[*statebackend.Row, error] {
	return func(yield func(*statebackend.Row, error) bool) {
		t := tableReader{r: r, yield: yield}
		var err error
		if t.layout, err = layoutOf(&info); err == nil {
			t.hasher = (&serde.Key{Width: uintptr(t.layout.key.width)}).Hasher(r.seed)
			err = t.read(info.Name)
		}
		if err != nil && !t.done {
			yield(nil, fmt.Errorf("read table %q of %s: %w", info.Name, r.operator.label(), err))
		}
	}
}

// tableReader reads the rows of one table.
type tableReader struct {
	r      *restoredOperator
	layout rowLayout
	hasher serde.Hasher
	row    statebackend.Row
	yield  func(*statebackend.Row, error) bool
	done   bool // the consumer has enough
}

func (t *tableReader) read(name string) error {
	for _, p := range t.r.operator.Parts {
		if p.FirstGroup > t.r.groups.Last || p.LastGroup < t.r.groups.First {
			continue
		}
		index := slices.IndexFunc(p.Tables, func(i statebackend.TableInfo) bool { return i.Name == name })
		if index < 0 {
			continue
		}
		for i := range p.chunks {
			if err := t.chunk(&p.chunks[i], index); err != nil || t.done {
				return err
			}
		}
	}
	return nil
}

// chunk reads the rows of the table in a chunk. It opens the chunk only if it has some.
func (t *tableReader) chunk(c *chunk, index int) (err error) {
	var reader *chunkReader
	defer func() {
		if reader != nil {
			err = errors.Join(err, reader.close())
		}
	}()
	at := int64(chunkHeader)
	for i := range c.sections {
		s := &c.sections[i]
		if s.index == index && s.overlaps(t.r.groups) {
			if reader == nil {
				if reader, err = openChunk(t.r.fs, t.r.folder, c); err != nil {
					return err
				}
			}
			err = reader.blocks(s, at, t.r.groups.First, t.r.groups.Last, func(b *block) (bool, error) {
				return t.block(reader, b)
			})
			if err != nil || t.done {
				return err
			}
		}
		at += s.bytes()
	}
	return nil
}

// overlaps says whether the section has rows of the groups.
func (s *section) overlaps(groups keygroup.Range) bool {
	return slices.ContainsFunc(s.groups, func(g groupBytes) bool { return groups.Contains(g.group) })
}

// block gives the rows of a block.
func (t *tableReader) block(reader *chunkReader, b *block) (more bool, err error) {
	row, rest := &t.row, b.payload
	row.Group = b.group
	for i := range b.rows {
		var ok bool
		if rest, ok = t.layout.read(rest, row, i == 0); !ok {
			return false, reader.damaged("row %d of the block at byte %d is cut or malformed", i+1, b.at)
		}
		row.Hash = t.hasher.One(row.Key)
		if !t.yield(row, nil) {
			t.done = true
			return false, nil
		}
	}
	if len(rest) > 0 {
		return false, reader.damaged("the block at byte %d has %d bytes behind its %d rows", b.at, len(rest), b.rows)
	}
	return true, nil
}
