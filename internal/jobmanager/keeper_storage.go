package jobmanager

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"

	"github.com/flott-dev/flott/checkpoint"
	"github.com/flott-dev/flott/internal/control"
	"github.com/flott-dev/flott/internal/keygroup"
	"github.com/flott-dev/flott/internal/plan"
	"github.com/flott-dev/flott/internal/taskmanager"
	"github.com/flott-dev/flott/internal/vfs"
)

// checkpointVertices is a job as its checkpoints see it.
func checkpointVertices(g *plan.ExecutionGraph) []control.CheckpointVertex {
	out := make([]control.CheckpointVertex, len(g.Vertices))
	for i, v := range g.Vertices {
		c := control.CheckpointVertex{Name: v.Name, Parallelism: v.Parallelism, Roles: control.Acknowledges | control.Notified}
		if len(v.Inputs) == 0 {
			c.Roles |= control.Triggered
		}
		for gate, e := range v.Inputs {
			if e.Feedback {
				continue // no barrier comes on it
			}
			in := control.CheckpointInput{From: e.From.Index}
			for _, s := range v.Subtasks {
				in.Peers = append(in.Peers, s.Inputs[gate].Peers)
			}
			c.Inputs = append(c.Inputs, in)
		}
		out[i] = c
	}
	return out
}

// prepare makes the place of a snapshot and takes the state of the enumerators, who send nothing more to their readers
// until these have been triggered.
func (k *Keeper) prepare(a control.Prepare) {
	runs := slices.DeleteFunc(slices.Clone(k.runs), func(r *attemptRun) bool { return r == nil })
	release := func(checkpoint int64) {
		for _, r := range runs {
			r.enumerate.Release(checkpoint)
		}
	}
	now := k.clock.Nanos()
	k.work(func() func() {
		p, err := k.begin(a)
		if err == nil {
			p.triggered = now
			p.states, err = holdAll(runs, a.Checkpoint)
		}
		return func() {
			release(a.Checkpoint - 1) // those that were given up since
			if err != nil {
				k.step(control.PrepareFailed{Checkpoint: a.Checkpoint, Err: err})
			} else {
				k.mu.Lock()
				k.sites[a.Checkpoint] = p
				k.mu.Unlock()
				k.step(control.Prepared{Checkpoint: a.Checkpoint, Location: p.folder})
			}
			release(a.Checkpoint)
		}
	})
}

// holdAll takes the states of all enumerators.
func holdAll(runs []*attemptRun, checkpoint int64) (map[[2]int][]byte, error) {
	all := map[[2]int][]byte{}
	for _, r := range runs {
		states, err := r.enumerate.Hold(checkpoint)
		if err != nil {
			return nil, err
		}
		maps.Copy(all, states)
	}
	return all, nil
}

// begin makes the folder.
func (k *Keeper) begin(a control.Prepare) (p *site, err error) {
	if a.Kind == control.Checkpoint {
		p = &site{fs: k.opt.FS, storage: k.storage}
		p.folder, err = k.storage.Begin(a.Checkpoint)
		return p, err
	}
	p = &site{fs: k.opt.SavepointFS, folder: path.Join(a.Target, fmt.Sprintf("savepoint-%.6s-%d", k.id, a.Checkpoint))}
	if p.storage, err = checkpoint.OpenStorage(fenced{p.fs, &k.stores}, a.Target); err != nil {
		return nil, err
	}
	return p, checkpoint.BeginSnapshot(p.fs, p.folder)
}

// site is where a snapshot lies.
func (k *Keeper) site(id int64) *site {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.sites[id]
}

// forget drops what is known of a snapshot that does not exist, or no more.
func (k *Keeper) forget(id int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.sites, id)
}

// whereToWrite is for tasks.
func (k *Keeper) whereToWrite(id int64) (f vfs.FS, folder string, ok bool) {
	if p := k.site(id); p != nil {
		return p.fs, p.folder, true
	}
	return nil, "", false
}

// triggered is when a snapshot was, for tasks.
func (k *Keeper) triggered(id int64) (at int64, ok bool) {
	if p := k.site(id); p != nil {
		return p.triggered, true
	}
	return 0, false
}

// store writes the manifest.
func (k *Keeper) store(c *control.CompletedCheckpoint) {
	p := k.site(c.ID)
	u := &storeUnderWay{id: c.ID, until: k.clock.Nanos() + k.opt.Config.Timeout.Nanoseconds()}
	k.stores.begin(p.folder, u)
	k.timers[control.Timer{Kind: storeKind, Checkpoint: c.ID}] = u.until
	k.work(func() func() {
		m, err := k.manifest(c, p)
		if err == nil {
			_, err = p.storage.Complete(m)
		}
		if err == nil && k.opt.Last != "" && m.Kind == checkpoint.Savepoint {
			err = WriteLast(k.opt.FS, k.opt.Last, m.Folder)
		}
		return func() {
			k.stores.end(p.folder, u)
			delete(k.timers, control.Timer{Kind: storeKind, Checkpoint: c.ID})
			if err != nil {
				k.step(control.StoreFailed{Checkpoint: c.ID, Err: err})
				return
			}
			p.manifest = m
			k.step(control.Stored{Checkpoint: c.ID, Size: m.Size()})
		}
	})
}

// Over is what the last word of a job says that will not go on: a later process begins afresh.
const Over = "over"

// WriteLast writes the last word for a later process: the folder of a savepoint, which sinks commit with as they do with
// checkpoints, or Over. It is there after a crash.
func WriteLast(f vfs.FS, file, word string) error {
	err := vfs.WriteFile(f, file+".new", []byte(word+"\n"))
	if err == nil {
		err = f.Rename(file+".new", file)
	}
	if err == nil {
		err = f.SyncDir(path.Dir(file))
	}
	if err != nil {
		return fmt.Errorf("note what a later process goes on from: %w", err)
	}
	return nil
}

// manifest says what a snapshot holds.
func (k *Keeper) manifest(c *control.CompletedCheckpoint, p *site) (*checkpoint.Manifest, error) {
	m := &checkpoint.Manifest{
		Folder: p.folder, ID: c.ID, JobID: k.id, JobName: k.job.Name, Time: c.Timestamp, HashSeed: k.job.Seed,
	}
	if c.Kind != control.Checkpoint {
		m.Kind = checkpoint.Savepoint
	}
	first := make([]int, len(k.job.Graph.Vertices))
	for i, v := range k.job.Graph.Vertices {
		first[i] = len(m.Operators)
		for _, n := range v.Nodes {
			m.Operators = append(m.Operators, checkpoint.Operator{
				ID: n.ID.String(), UID: n.Node.UID, Name: n.Node.Name, Parallelism: v.Parallelism, MaxParallelism: n.MaxParallelism,
				Coordinator: p.states[[2]int{v.Index, n.Index}],
			})
		}
	}
	for i := range c.Tasks {
		t := &c.Tasks[i]
		operators := m.Operators[first[t.Task.Vertex]:][:len(k.job.Graph.Vertices[t.Task.Vertex].Nodes)]
		if err := addParts(operators, t); err != nil {
			return nil, fmt.Errorf("gather the parts of task %v: %w", t.Task, err)
		}
	}
	return m, nil
}

// addParts adds a task's parts to the operators of its chain.
func addParts(operators []checkpoint.Operator, t *control.TaskSnapshot) error {
	if t.Finished {
		for i := range operators {
			o := &operators[i]
			p := &checkpoint.Part{Subtask: t.Task.Subtask, Finished: true}
			p.FirstGroup, p.LastGroup = keygroup.RangeOf(o.MaxParallelism, o.Parallelism, p.Subtask)
			o.Parts = append(o.Parts, p)
		}
		return nil
	}
	parts, err := taskmanager.DecodeParts(t.Payload)
	if err != nil {
		return err
	}
	if len(parts) != len(operators) {
		return errors.New("they are not those of its chain")
	}
	for i, p := range parts {
		operators[i].Parts = append(operators[i].Parts, p)
	}
	return nil
}

// discard removes what nobody needs, one snapshot after the other: a file that two name goes with the second, which must not
// overtake the first. What can't be removed stays as litter.
func (k *Keeper) discard(a control.Discard) {
	storage := k.storage
	if p := k.site(a.Checkpoint); p != nil {
		storage = p.storage
	}
	if a.Location != "" {
		k.forget(a.Checkpoint)
	}
	files := make([]string, len(a.Handles))
	for i, h := range a.Handles {
		files[i] = string(h)
	}
	k.discards = append(k.discards, func() { _ = storage.Remove(a.Location, files) })
	if len(k.discards) == 1 {
		k.discardNext()
	}
}

func (k *Keeper) discardNext() {
	remove := k.discards[0]
	k.work(func() func() {
		remove()
		return func() {
			if k.discards = k.discards[1:]; len(k.discards) > 0 {
				k.discardNext()
			}
		}
	})
}
