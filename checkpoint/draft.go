package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"

	"github.com/flott-dev/flott/internal/keygroup"
	"github.com/flott-dev/flott/internal/vfs"
	"github.com/flott-dev/flott/statebackend"
)

// The defaults of a Draft made from nothing: those of jobs.
const (
	// DefaultHashSeed is the seed of key hashes.
	DefaultHashSeed = 0x9E3779B97F4A7C15
	// DefaultMaxParallelism is the max parallelism of an operator, as long as its job's parallelism is at most 85.
	DefaultMaxParallelism = 128
)

// Draft is a savepoint in the making, from nothing (NewDraft), so that a job may begin with state that it did not make itself,
// or from another snapshot (Snapshot.Draft), some of which is changed. Write makes a savepoint of it. One goroutine at a time
// may use it.
type Draft struct {
	// ID is the number of the savepoint: the checkpoints of a job that begins with it are counted on from there.
	ID int64
	// JobID and JobName say whose savepoint it is; a job that begins with it may have others.
	JobID, JobName string
	// Time is when the state was taken, in ms since 1970.
	Time int64
	// HashSeed is the seed of key hashes.
	HashSeed uint64

	from      *Snapshot // nil: from nothing
	operators []*DraftOperator
}

// NewDraft makes a draft without operators.
func NewDraft(jobName string) *Draft {
	return &Draft{ID: 1, JobName: jobName, HashSeed: DefaultHashSeed}
}

// Draft makes a draft with all that the snapshot holds. What is not changed stays as it is, byte for byte; it is read when the
// draft is written.
func (s *Snapshot) Draft() *Draft {
	d := &Draft{ID: s.ID, JobID: s.JobID, JobName: s.JobName, Time: s.Time, HashSeed: s.HashSeed, from: s}
	for i := range s.Operators {
		o := &s.Operators[i]
		d.operators = append(d.operators, &DraftOperator{
			Name: o.Name, MaxParallelism: o.MaxParallelism, id: o.ID, uid: o.UID, draft: d, kept: o, states: map[string]*draftState{},
		})
	}
	return d
}

// Operator gives the operator with a UID (or id). One that the draft does not have is added, with that UID.
func (d *Draft) Operator(uid string) *DraftOperator {
	if i := d.find(uid); i >= 0 {
		return d.operators[i]
	}
	o := &DraftOperator{Name: uid, MaxParallelism: DefaultMaxParallelism, draft: d, states: map[string]*draftState{}}
	o.SetUID(uid)
	d.operators = append(d.operators, o)
	return o
}

// Remove takes an operator, given by UID or id, out of the draft. It is no error if there is none.
func (d *Draft) Remove(uid string) {
	if i := d.find(uid); i >= 0 {
		d.operators = slices.Delete(d.operators, i, i+1)
	}
}

func (d *Draft) find(name string) int {
	for _, same := range []func(*DraftOperator) bool{
		func(o *DraftOperator) bool { return o.id == name }, func(o *DraftOperator) bool { return name != "" && o.uid == name },
	} {
		if i := slices.IndexFunc(d.operators, same); i >= 0 {
			return i
		}
	}
	return -1
}

// Write writes the draft as a savepoint into a folder, which must not hold a snapshot. When it returns, the savepoint is on
// disk and survives a crash; after an error, and when ctx ends, there is none. A nil file system is the machine's.
func (d *Draft) Write(ctx context.Context, f FS, folder string) (err error) {
	f, folder = diskIfNil(f), path.Clean(folder)
	if d.from != nil && d.HashSeed != d.from.HashSeed {
		return errors.New("write savepoint: the hash seed of a snapshot can't change")
	}
	if err := BeginSnapshot(f, folder); err != nil {
		return err
	}
	m := &Manifest{
		Folder: folder, ID: d.ID, Kind: Savepoint, JobID: d.JobID, JobName: d.JobName, Time: d.Time, HashSeed: d.HashSeed,
	}
	storage := &Storage{fs: f, dir: path.Dir(folder), complete: map[string][]string{}, named: map[string]int{}}
	defer func() {
		if err != nil {
			_ = storage.Remove(folder, m.Files())
		}
	}()
	for _, o := range d.operators {
		m.Operators = append(m.Operators, Operator{
			ID: o.id, UID: o.uid, Name: o.Name, Parallelism: 1, MaxParallelism: o.MaxParallelism,
		})
		if err := o.write(ctx, f, folder, &m.Operators[len(m.Operators)-1]); err != nil {
			return fmt.Errorf("write savepoint %s: operator %q: %w", folder, o.Name, err)
		}
	}
	_, err = storage.Complete(m)
	return err
}

// write writes the parts of an operator.
func (o *DraftOperator) write(ctx context.Context, f vfs.FS, folder string, to *Operator) error {
	if o.kept != nil {
		to.Parallelism, to.Coordinator = o.kept.Parallelism, o.kept.Coordinator
	}
	if err := keygroup.Validate(to.MaxParallelism, to.Parallelism); err != nil {
		return err
	}
	if err := o.sort(); err != nil {
		return err
	}
	w := &Writer{FS: f, Folder: folder}
	for subtask := range to.Parallelism {
		var old *Part
		if o.kept != nil {
			if i := slices.IndexFunc(o.kept.Parts, func(p *Part) bool { return p.Subtask == subtask }); i >= 0 {
				old = o.kept.Parts[i]
			}
		}
		first, last := keygroup.RangeOf(to.MaxParallelism, to.Parallelism, subtask)
		state, err := o.state(old, subtask, keygroup.Range{First: first, Last: last})
		if err != nil {
			return err
		}
		if old != nil && old.Finished && len(state.Tables)+len(state.Lists) == 0 {
			to.Parts = append(to.Parts, &Part{Subtask: subtask, Finished: true, FirstGroup: first, LastGroup: last})
			continue
		}
		p, err := w.Write(ctx, to.ID, subtask, first, last, state)
		if err != nil {
			return err
		}
		to.Parts = append(to.Parts, p)
	}
	return nil
}

// state is what a subtask has.
func (o *DraftOperator) state(old *Part, subtask int, groups keygroup.Range) (*State, error) {
	state := &State{}
	if old != nil {
		r := o.restored(groups)
		for i := range old.Tables {
			if t := &old.Tables[i]; !o.changed(t.Name) && o.MaxParallelism == o.kept.MaxParallelism {
				state.Tables = append(state.Tables, statebackend.FrozenTable{TableInfo: *t, Rows: r.rows(*t)})
			}
		}
		for i := range old.Lists {
			l := &old.Lists[i]
			if o.changed(l.Name) {
				continue
			}
			items, err := r.items(nil, itemRange{part: old, index: i, to: l.Items})
			if err != nil {
				return nil, fmt.Errorf("list %q: %w", l.Name, err)
			}
			state.Lists = append(state.Lists, List{Name: l.Name, Mode: l.Mode, Schema: l.Schema, Items: items})
		}
	}
	for _, name := range o.order {
		switch s := o.states[name]; {
		case s == nil:
		case s.list != nil:
			if subtask == 0 || s.list.Mode == Broadcast {
				state.Lists = append(state.Lists, *s.list)
			}
		default:
			state.Tables = append(state.Tables, statebackend.FrozenTable{TableInfo: s.info, Rows: s.rows(groups)})
		}
	}
	return state, nil
}

// restored reads the operator as it was.
func (o *DraftOperator) restored(groups keygroup.Range) *restoredOperator {
	from := o.draft.from
	return &restoredOperator{
		fs: diskIfNil(from.FS), folder: from.Folder, operator: o.kept, seed: from.HashSeed, groups: groups, offline: true, readers: from.Readers,
	}
}

// sort puts the rows of all states in the order of their key groups. With another max parallelism tables that were to be kept
// are read, as their rows belong to other groups.
func (o *DraftOperator) sort() error {
	if o.kept != nil && o.MaxParallelism != o.kept.MaxParallelism {
		for _, t := range o.kept.Tables() {
			if o.changed(t.Name) {
				continue
			}
			s := &draftState{info: t.TableInfo}
			all := o.restored(keygroup.Range{Last: o.kept.MaxParallelism - 1})
			if err := s.take(all.rows(t.TableInfo)); err != nil {
				return err
			}
			o.set(t.Name, s)
		}
	}
	for _, name := range o.order {
		if s := o.states[name]; s != nil && s.list == nil {
			if err := s.sort(o.draft.HashSeed, o.MaxParallelism); err != nil {
				return fmt.Errorf("state %q: %w", name, err)
			}
		}
	}
	return nil
}
