package taskmanager

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/flott-dev/flott/checkpoint"
	"github.com/flott-dev/flott/internal/clock"
	"github.com/flott-dev/flott/internal/control"
	"github.com/flott-dev/flott/internal/host"
	"github.com/flott-dev/flott/internal/keygroup"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/internal/plan"
	"github.com/flott-dev/flott/internal/task"
	"github.com/flott-dev/flott/internal/vfs"
	"github.com/flott-dev/flott/statebackend"
)

// Checkpoints is what the tasks of an attempt need to take part in snapshots. The functions may be called from any
// goroutine and must not wait.
type Checkpoints struct {
	Mode control.CheckpointMode
	// Unaligned lets checkpoints overtake the data in flight once AlignedTimeout has passed.
	Unaligned      bool
	AlignedTimeout time.Duration
	// Incremental lets checkpoints hold what has changed since earlier ones.
	Incremental bool
	// InlineBytes is the size up to which pieces of state go into the manifest; see checkpoint.Writer.
	InlineBytes int
	// Token tells the files of this attempt from those of others; see checkpoint.Writer.
	Token string
	// Direct writes files on the machine's disks; see checkpoint.Writer.
	Direct *checkpoint.DirectFiles
	// Final says that a last checkpoint follows the end of the input, with which sinks commit.
	Final bool
	// Place is where a snapshot that has been triggered is to be written; false if it is over.
	Place func(checkpoint int64) (f vfs.FS, folder string, ok bool)
	// Triggered is when a snapshot was triggered, in ns by the job's clock; false if it is over. nil: nobody knows.
	Triggered func(checkpoint int64) (at int64, ok bool)
	// Tell takes the tasks' acknowledgements and declines.
	Tell func(control.Event)
	// Lingers takes the word that a task has sent everything and waits for a checkpoint.
	Lingers func(vertex, subtask int)
}

// Restore is the snapshot that an attempt begins with.
type Restore struct {
	FS       vfs.FS
	Manifest *checkpoint.Manifest
}

// checkpoints is a task's side of them; nil if there are none.
func (b *builder) checkpoints(sub *Subtask) *task.Checkpoints {
	c := b.opt.Checkpoints
	if c == nil {
		return nil
	}
	ref := control.TaskRef{TaskID: control.TaskID{Vertex: sub.Vertex.Index, Subtask: sub.Index}, Attempt: b.attempt.Number}
	s := &scribe{c: c, sub: sub, ref: ref, job: b.job.Name, ctx: b.ctx, clock: b.opt.Clock, memory: b.opt.Memory, courtesy: courtesy{clock: b.opt.Clock}}
	sub.scribe = s
	return &task.Checkpoints{
		Mode: c.Mode, Final: c.Final, Freezing: s.freezing, Triggered: c.Triggered, Times: &sub.Barriers,
		Unaligned: b.unaligned(), AlignedTimeout: c.AlignedTimeout,
		Dropped: func(id int64) { s.layers.wrote(s.layers.take(id), "", nil) },
		Took: func(p *task.Part) {
			if b.opt.NoGoroutines {
				s.write(p)
				return
			}
			sub.writes.Go(func() { s.write(p) })
		},
		Declined: func(id int64, reason control.FailureReason, err error) {
			c.Tell(control.Declined{Job: b.job.Name, Task: ref, Checkpoint: id, Reason: reason, Err: err})
		},
		Lingers: func() { c.Lingers(sub.Vertex.Index, sub.Index) },
	}
}

// scribe writes a task's parts of snapshots, beside the task.
type scribe struct {
	c      *Checkpoints
	sub    *Subtask
	ref    control.TaskRef
	job    string
	ctx    context.Context
	clock  clock.Clock
	memory *host.Memory // nil: without limit

	layers   layers
	courtesy courtesy
}

// write writes a part and acknowledges it, or declines the checkpoint.
func (s *scribe) write(p *task.Part) {
	id, start := p.Barrier.ID, s.clock.Nanos()
	layer := s.layers.take(id)
	on, err := layer.below(s.ctx.Done())
	var w written
	if err == nil {
		err = s.parts(p, on, &w)
	} else {
		p.Release()
	}
	defer func() { s.layers.wrote(layer, w.folder, w.parts) }() // after the acknowledgement: a later one may name these files
	if err != nil {
		w.parts = nil
		s.c.Tell(control.Declined{Job: s.job, Task: s.ref, Checkpoint: id, Reason: control.ReasonDeclined, Err: err})
		return
	}
	m := p.Metrics
	m.Async = time.Duration(s.clock.Nanos() - start)
	for _, part := range w.parts {
		m.StateSize += part.Bytes()
		m.CheckpointedSize += part.WrittenBytes()
	}
	s.c.Tell(control.Acknowledged{
		Job: s.job, Task: s.ref, Checkpoint: id, New: w.own, Reused: w.earlier, Payload: EncodeParts(w.parts), Metrics: m,
	})
}

// written is what was written for a snapshot.
type written struct {
	folder       string
	parts        []*checkpoint.Part
	own, earlier []control.Handle // files: new ones, and those of earlier checkpoints
}

func (w *written) add(p *checkpoint.Part) {
	w.parts = append(w.parts, p)
	own, earlier := p.Files(w.folder)
	for _, file := range own {
		w.own = append(w.own, control.Handle(file))
	}
	for _, file := range earlier {
		w.earlier = append(w.earlier, control.Handle(file))
	}
}

// parts writes the states of all operators of the chain.
func (s *scribe) parts(p *task.Part, on *layer, to *written) (err error) {
	var f vfs.FS
	defer func() {
		if v := recover(); v != nil { // rows are made while they are read
			err = fmt.Errorf("panic: %v", v)
		}
		if err != nil {
			s.discard(f, to.own)
		}
	}()
	defer p.Release()
	f, folder, ok := s.c.Place(p.Barrier.ID)
	if !ok {
		return errors.New("write the snapshot: it was given up")
	}
	to.folder = folder
	if err := p.Seal(); err != nil {
		return err
	}
	w := checkpoint.Writer{FS: f, Folder: folder, Token: s.c.Token, InlineBytes: s.c.InlineBytes, Direct: s.c.Direct, Memory: s.memory}
	for i, state := range p.States {
		n := s.sub.Vertex.Nodes[i]
		groups := s.sub.groups[i]
		part, err := s.part(&w, i, groups, state, on)
		if err != nil {
			return fmt.Errorf("operator %q: %w", n.Node.Name, err)
		}
		to.add(part)
	}
	return nil
}

// part writes the state of one operator of the chain.
func (s *scribe) part(w *checkpoint.Writer, i int, groups keygroup.Range, state *operator.Snapshot, on *layer) (*checkpoint.Part, error) {
	st, err := stateOf(state)
	if err != nil {
		return nil, err
	}
	for t := range st.Tables {
		st.Tables[t].Rows = s.courtesy.rows(st.Tables[t].Rows)
		st.Tables[t].Batches = s.courtesy.batches(st.Tables[t].Batches)
	}
	if on != nil {
		st.Earlier, st.EarlierFolder = on.parts[i], on.folder
	}
	return w.Write(s.ctx, s.sub.Vertex.Nodes[i].ID.String(), s.ref.Subtask, groups.First, groups.Last, st)
}

// discard removes what was written of a part that is not whole. What stays is litter.
func (s *scribe) discard(f vfs.FS, handles []control.Handle) {
	for _, h := range handles {
		_ = f.Remove(string(h))
	}
}

// stateOf is an operator's state as the container takes it.
func stateOf(s *operator.Snapshot) (*checkpoint.State, error) {
	state := &checkpoint.State{Lists: s.Lists}
	for _, store := range s.Stores {
		if f, ok := store.(statebackend.FrozenFiles); ok && s.Freezing.Anchor {
			files, err := f.Files()
			if err != nil {
				return nil, fmt.Errorf("gather the files of the state backend: %w", err)
			}
			state.Files = append(state.Files, files)
		}
		state.Tables = append(state.Tables, store.Tables()...)
	}
	state.Tables = append(state.Tables, s.Tables...)
	return state, nil
}

// EncodeParts gives the bytes of a task's parts, one for each node of its chain.
func EncodeParts(parts []*checkpoint.Part) []byte {
	b := binary.AppendUvarint(nil, uint64(len(parts)))
	for _, p := range parts {
		e := p.Encode()
		b = binary.AppendUvarint(b, uint64(len(e)))
		b = append(b, e...)
	}
	return b
}

// DecodeParts reads the bytes that EncodeParts gave.
func DecodeParts(b []byte) ([]*checkpoint.Part, error) {
	next := func() (uint64, error) {
		n, used := binary.Uvarint(b)
		if used <= 0 || n > uint64(len(b)) {
			return 0, errors.New("decode the parts of a task: they are cut")
		}
		b = b[used:]
		return n, nil
	}
	n, err := next()
	if err != nil {
		return nil, err
	}
	var parts []*checkpoint.Part
	for range n {
		size, err := next()
		if err != nil {
			return nil, err
		}
		if size > uint64(len(b)) {
			return nil, errors.New("decode the parts of a task: they are cut")
		}
		p, err := checkpoint.DecodePart(b[:size])
		if err != nil {
			return nil, err
		}
		parts, b = append(parts, p), b[size:]
	}
	return parts, nil
}

// restored is what an operator begins with; nil without a snapshot, or if the snapshot does not know the operator.
func (r *Restore) restored(n *plan.ChainNode, subtask, parallelism int) (*operator.Restored, error) {
	if r == nil || r.Manifest.Operator(n.ID.String()) == nil {
		return nil, nil
	}
	store, lists, err := r.Manifest.Restore(r.FS, n.ID.String(), subtask, parallelism, n.MaxParallelism)
	if err != nil {
		return nil, err
	}
	return &operator.Restored{Checkpoint: r.Manifest.ID, Store: store, Lists: lists}, nil
}

// finished reports whether a subtask had finished before the snapshot. With another parallelism only a vertex all of whose
// subtasks had finished has.
func (r *Restore) finished(v *plan.Vertex, subtask int) bool {
	if r == nil {
		return false
	}
	for _, n := range v.Nodes {
		o := r.Manifest.Operator(n.ID.String())
		if o == nil {
			return false
		}
		own, others := false, len(o.Parts) == o.Parallelism
		for _, p := range o.Parts {
			own = own || p.Finished && p.Subtask == subtask && o.Parallelism == v.Parallelism
			others = others && p.Finished
		}
		if !own && !others {
			return false
		}
	}
	return true
}

// AllFinished reports whether all subtasks of a vertex had finished before the snapshot.
func (r *Restore) AllFinished(v *plan.Vertex) bool {
	for s := range v.Parallelism {
		if !r.finished(v, s) {
			return false
		}
	}
	return true
}

// Trigger has a task take a snapshot.
func (s *Subtask) Trigger(b control.Barrier) { s.Mailbox.Post(s.task.Trigger(b)) }

// Completed tells a task that a checkpoint is complete.
func (s *Subtask) Completed(id int64, kind control.SnapshotKind) {
	s.Mailbox.Post(s.task.Completed(id, kind))
}

// Aborted tells a task that a checkpoint will not be completed.
func (s *Subtask) Aborted(id int64, reason control.FailureReason) {
	if s.scribe != nil {
		s.scribe.layers.aborted(id) // at once: a barrier may overtake the letter
	}
	s.Mailbox.Post(s.task.Aborted(id, reason))
}

// Subtask finds a task of the attempt; nil if there is none.
func (a *Attempt) Subtask(id control.TaskID) *Subtask {
	for _, s := range a.Tasks {
		if s.Vertex.Index == id.Vertex && s.Index == id.Subtask {
			return s
		}
	}
	return nil
}
