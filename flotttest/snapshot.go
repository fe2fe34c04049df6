package flotttest

import (
	"context"
	"fmt"
	"slices"

	"github.com/flott-dev/flott/checkpoint"
	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/internal/vfs"
	"github.com/flott-dev/flott/statebackend"
)

// Snapshot is the state of a harness's operators at the moment at which it was taken: what the harness did afterwards is
// not in it. It may be restored several times, by Restore.
type Snapshot struct {
	id          int64
	seed        uint64
	subtask     int
	parallelism int
	operators   []*operatorSnapshot
	failed      error // of reading it
	read        bool
}

// operatorSnapshot is the state of one operator.
type operatorSnapshot struct {
	node        *node
	first, last int    // key groups
	coordinator []byte // of the source's enumerator
	state       operator.Snapshot
	written     checkpoint.State // what can be read again and again
}

// ID is the number of the snapshot: those of a harness are counted from 1, and go on after a restore.
func (s *Snapshot) ID() int64 { return s.id }

// Snapshot takes a snapshot as a checkpoint does: a barrier passes the operators, then their state is frozen.
func (c *Control) Snapshot() *Snapshot {
	c.t.Helper()
	s, err := c.TrySnapshot()
	c.check(err)
	return s
}

// TrySnapshot is Snapshot with the error of the operator.
func (c *Control) TrySnapshot() (*Snapshot, error) {
	c.checkpoints++
	s := &Snapshot{id: c.checkpoints, seed: c.seed, subtask: c.scope.Subtask, parallelism: c.scope.Parallelism}
	c.t.Cleanup(s.release)
	return s, c.guard(func() error {
		states, err := c.holdCoordinators(s.id)
		if err == nil {
			err = c.first().Mark(frame.Mark{Kind: frame.Barrier, Value: s.id})
		}
		if err != nil {
			return err
		}
		for _, n := range c.order {
			if err := s.add(c, n, states[n]); err != nil {
				return err
			}
		}
		return nil
	})
}

// first is the output from which a barrier comes.
func (c *Control) first() *operator.Output {
	if len(c.entries) == 0 {
		return c.order[0].op.Output("")
	}
	return &c.entries[0].out
}

func (s *Snapshot) add(c *Control, n *node, coordinator []byte) error {
	o := &operatorSnapshot{node: n, coordinator: coordinator, first: n.groups.First, last: n.groups.Last}
	o.state = operator.Snapshot{ID: s.id, Groups: n.rt.MaxParallelism}
	s.operators = append(s.operators, o)
	c.scope.At = n.rt
	if op, ok := n.op.(operator.Snapshotter); ok {
		if err := op.Snapshot(&o.state); err != nil {
			return fmt.Errorf("take snapshot %d: %w", s.id, err)
		}
	}
	return nil
}

// CompleteCheckpoint tells the operators that the checkpoint of that snapshot is complete: what was prepared for it is
// committed.
func (c *Control) CompleteCheckpoint(s *Snapshot) {
	c.t.Helper()
	c.check(c.guard(func() error {
		for _, n := range c.order {
			c.scope.At = n.rt
			if l, ok := n.op.(operator.CheckpointListener); ok {
				if err := l.CheckpointCompleted(s.id); err != nil {
					return fmt.Errorf("complete checkpoint %d: %w", s.id, err)
				}
			}
		}
		return nil
	}))
}

// Restore makes a harness begin with the state of a snapshot; for the rest it is new: the watermark is MinWatermark, the
// processing time 0 unless WithProcessingTime says otherwise, and there is no output. What WithSubtask sets may differ from
// what it was: give a snapshot of every old subtask then, and each new one takes its share.
func Restore(snapshots ...*Snapshot) Option {
	return func(c *config) { c.restored = append(c.restored, snapshots...) }
}

// load reads what was frozen, once. It may come long after the snapshot.
func (s *Snapshot) load() error {
	if s.read {
		return s.failed
	}
	s.read = true
	defer s.release()
	for _, o := range s.operators {
		if s.failed = o.load(); s.failed != nil {
			return s.failed
		}
	}
	return nil
}

func (o *operatorSnapshot) load() error {
	frozen := slices.Clone(o.state.Tables)
	for _, f := range o.state.Stores {
		frozen = append(frozen, f.Tables()...)
	}
	for _, t := range frozen {
		var rows []statebackend.Row
		for row, err := range t.Rows {
			if err != nil {
				return fmt.Errorf("read table %q of the snapshot: %w", t.Name, err)
			}
			rows = append(rows, cloneRow(row))
		}
		t.Batches = nil
		t.Rows = func(yield func(*statebackend.Row, error) bool) {
			for i := range rows {
				if !yield(&rows[i], nil) {
					return
				}
			}
		}
		o.written.Tables = append(o.written.Tables, t)
	}
	o.written.Lists = o.state.Lists
	return nil
}

func cloneRow(r *statebackend.Row) statebackend.Row {
	c := *r
	c.Key, c.Namespace, c.MapKey, c.Value = slices.Clone(r.Key), slices.Clone(r.Namespace), slices.Clone(r.MapKey), slices.Clone(r.Value)
	return c
}

// release gives back what the snapshot still holds.
func (s *Snapshot) release() {
	for _, o := range s.operators {
		o.state.Release()
		o.state.Stores = nil
	}
}

// restored is a checkpoint in memory, made of the snapshots of all old subtasks.
type restored struct {
	fs       vfs.FS
	manifest *checkpoint.Manifest
}

// assemble writes the snapshots of a configuration as a checkpoint is written; nil: there are none.
func (c *config) assemble() (*restored, error) {
	if len(c.restored) == 0 {
		return nil, nil
	}
	first := c.restored[0]
	if len(c.restored) != first.parallelism {
		return nil, fmt.Errorf("%d snapshots of an operator of parallelism %d: each subtask has one", len(c.restored), first.parallelism)
	}
	r := &restored{fs: vfs.NewMem(), manifest: &checkpoint.Manifest{Folder: "/snapshot", ID: first.id, HashSeed: first.seed}}
	if err := checkpoint.BeginSnapshot(r.fs, r.manifest.Folder); err != nil {
		return nil, err
	}
	for i, o := range first.operators {
		m := checkpoint.Operator{
			ID: o.node.rt.UID, Name: o.node.rt.Name, Parallelism: first.parallelism, MaxParallelism: o.state.Groups, Coordinator: o.coordinator,
		}
		for _, s := range c.restored {
			p, err := r.write(s, i)
			if err != nil {
				return nil, err
			}
			m.Parts = append(m.Parts, p)
		}
		slices.SortFunc(m.Parts, func(a, b *checkpoint.Part) int { return a.Subtask - b.Subtask })
		r.manifest.Operators = append(r.manifest.Operators, m)
	}
	return r, r.reread()
}

// reread takes the manifest through its encoding.
func (r *restored) reread() error {
	b, err := r.manifest.Encode()
	if err != nil {
		return err
	}
	m, err := checkpoint.Decode("the snapshot", b)
	if err != nil {
		return err
	}
	m.Folder = r.manifest.Folder
	r.manifest = m
	return nil
}

// write writes operator i of one subtask.
func (r *restored) write(s *Snapshot, i int) (*checkpoint.Part, error) {
	if err := s.load(); err != nil {
		return nil, err
	}
	o := s.operators[i]
	w := checkpoint.Writer{FS: r.fs, Folder: r.manifest.Folder}
	return w.Write(context.Background(), o.node.rt.UID, s.subtask, o.first, o.last, &o.written)
}

// operator is what an operator begins with.
func (r *restored) operator(rt *operator.Runtime) (*operator.Restored, error) {
	store, lists, err := r.manifest.Restore(r.fs, rt.UID, rt.Subtask, rt.Parallelism, rt.MaxParallelism)
	if err != nil || store == nil {
		return nil, err
	}
	return &operator.Restored{Checkpoint: r.manifest.ID, Store: store, Lists: lists}, nil
}
