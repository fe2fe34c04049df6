package env

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"time"

	"github.com/flott-dev/flott/checkpoint"
	"github.com/flott-dev/flott/internal/control"
	"github.com/flott-dev/flott/internal/graph"
	"github.com/flott-dev/flott/internal/jobmanager"
	"github.com/flott-dev/flott/internal/keygroup"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/internal/plan"
	"github.com/flott-dev/flott/internal/task"
	"github.com/flott-dev/flott/internal/taskmanager"
	"github.com/flott-dev/flott/internal/vfs"
	"github.com/flott-dev/flott/statebackend"
)

// CheckpointMode and Retention are the coordinator's words for what a checkpoint promises and which outlive their job.
type (
	CheckpointMode = control.CheckpointMode
	Retention      = control.Retention
)

// The modes and retentions.
const (
	ExactlyOnce          = control.ExactlyOnce
	AtLeastOnce          = control.AtLeastOnce
	NeverRetained        = control.NeverRetained
	RetainOnFailure      = control.RetainOnFailure
	RetainOnCancellation = control.RetainOnCancellation
)

// CheckpointHistory, CheckpointStatistics, CheckpointStatus and RestoredCheckpoint are what is remembered of a job's
// snapshots.
type (
	CheckpointHistory    = control.CheckpointOverview
	CheckpointStatistics = control.CheckpointStatistics
	CheckpointStatus     = control.CheckpointStatus
	RestoredCheckpoint   = control.RestoredCheckpoint
)

// The statuses of checkpoints.
const (
	CheckpointInProgress = control.CheckpointInProgress
	CheckpointCompleted  = control.CheckpointCompleted
	CheckpointFailed     = control.CheckpointFailed
)

// Checkpoints are the settings of a job's snapshots.
type Checkpoints struct {
	Interval          time.Duration // 0: checkpoints are not enabled
	Enabled           bool
	Mode              CheckpointMode
	Timeout           time.Duration // default 10 min
	MinPause          time.Duration
	MaxConcurrent     int // default 1
	Unaligned         bool
	AlignedTimeout    time.Duration // before a checkpoint becomes unaligned; 0: it begins so
	TolerableFailures int
	Retention         Retention
	Incremental       bool // checkpoints hold what has changed since earlier ones
	Retained          int  // completed ones that are kept; default 1
	AfterTasksFinish  bool // default true
	PreferCheckpoint  bool // a restart passes over newer savepoints
	History           int  // how many the statistics remember; default 10
	InlineBytes       int  // smaller pieces of state go into the manifest; 0: the container's default, negative: none
	Storage           Storage
	Dir               string // folder or URL where checkpoints lie; "": in memory, kept by the job manager
	SavepointDir      string // folder or URL of savepoints that are taken without one; "": there is none
	NoSavepointDir    error  // why there must be one; nil: there need not be
	MemoryLimit       int64  // of what a subtask of an operator may add to a snapshot in memory; default DefaultMemoryLimit
	Savepoint         string // to start from; "": none
	Claim             bool   // it becomes the job's, who removes it
	AllowNonRestored  bool   // state of the savepoint that the program has no operator for is dropped
	Local             LocalRecovery
	Recovery          string // the folder in which a killed program finds its state; "": it begins afresh
	FS                vfs.FS // where these folders are; nil: on the machine's disks
}

// Storage is where checkpoints lie.
type Storage uint8

const (
	// StorageByDir: in the folder if there is one, else in memory. The default.
	StorageByDir Storage = iota
	// InMemory: in the job manager's memory.
	InMemory
	// InFiles: in the folder, which must be set.
	InFiles
)

// DefaultCheckpoints are the settings of a job that sets nothing.
func DefaultCheckpoints() Checkpoints {
	d := control.DefaultCheckpointConfig()
	return Checkpoints{
		Timeout: d.Timeout, MaxConcurrent: d.MaxConcurrent, Retained: d.Retained, AfterTasksFinish: d.AfterTasksFinish,
		History: d.History, MemoryLimit: DefaultMemoryLimit,
	}
}

// config is what the coordinator gets, validated.
func (c *Checkpoints) config() (control.CheckpointConfig, error) {
	out := control.DefaultCheckpointConfig()
	out.Interval, out.Timeout, out.MinPause = c.Interval, c.Timeout, c.MinPause
	out.MaxConcurrent, out.TolerableFailures = c.MaxConcurrent, c.TolerableFailures
	out.Mode, out.Retention = c.Mode, c.Retention
	out.Retained, out.AfterTasksFinish, out.PreferCheckpoint, out.History = c.Retained, c.AfterTasksFinish, c.PreferCheckpoint, c.History
	out.Unaligned, out.AlignedTimeout = c.Unaligned, c.AlignedTimeout
	if c.Recovery != "" {
		out.Retention = max(out.Retention, RetainOnFailure) // a program that failed for good is started again, too
	}
	err := out.Validate()
	if c.Enabled && c.Interval <= 0 {
		err = errors.Join(fmt.Errorf("execution.checkpointing.interval: %v is not positive: choose %v or more, or don't enable checkpoints", c.Interval, control.MinCheckpointTime), err)
	}
	if c.Recovery != "" && !c.Enabled {
		err = errors.Join(errors.New("recovery needs checkpoints to go on from: call EnableCheckpointing"), err)
	}
	if c.Recovery != "" && c.Dir != "" {
		err = errors.Join(fmt.Errorf("checkpoints lie in the recovery folder %s: set no checkpoint storage beside it", c.Recovery), err)
	}
	if c.Storage == InFiles && c.Dir == "" && c.Recovery == "" {
		err = errors.Join(errors.New("checkpoints are to lie in files, and no folder is set: set execution.checkpointing.dir, or call SetCheckpointStorage"), err)
	}
	if c.SavepointDir == "" {
		err = errors.Join(err, c.NoSavepointDir)
	}
	if err = errors.Join(err, c.Local.validate()); err != nil {
		return out, fmt.Errorf("configure checkpoints: %w", err)
	}
	return out, nil
}

// inMemory says whether checkpoints lie in the job manager's memory.
func (c *Checkpoints) inMemory() bool {
	return c.Recovery == "" && (c.Dir == "" || c.Storage == InMemory)
}

// inline is the size up to which pieces of state go into the manifest. What is more than memory takes of a subtask must not: only
// files are counted there.
func (c *Checkpoints) inline() int {
	n := c.InlineBytes
	if n == 0 {
		n = checkpoint.DefaultInlineBytes
	}
	return int(min(int64(n), c.MemoryLimit))
}

// disk is where folders are.
func (c *Checkpoints) disk() vfs.FS {
	if c.FS != nil {
		return c.FS
	}
	return vfs.OS{}
}

// keeping is how a job keeps its snapshots; release ends it if the job is not started.
type keeping struct {
	opt     *jobmanager.CheckpointOptions // nil: it takes none
	refusal error                         // why
	places  *places                       // nil if it takes none
	backend statebackend.Backend
	release func()
}

// keeping prepares the keeping of the snapshots of a job, and the plan for what it goes on from.
func (e *Env) keeping(ctx context.Context, jg *plan.JobGraph, id, name string) (k keeping, err error) {
	k.release = func() {}
	c := &e.Settings.Checkpoints
	if k.refusal = refuse(jg); k.refusal != nil {
		if c.Enabled || c.Savepoint != "" || c.Recovery != "" {
			return k, k.refusal
		}
		return k, nil
	}
	cfg, err := c.config()
	if err != nil {
		return k, err
	}
	k.places = e.places()
	places := k.places
	k.opt = &jobmanager.CheckpointOptions{Config: cfg, FS: places, SavepointFS: places, Incremental: c.Incremental, InlineBytes: c.inline(), Token: id[:min(12, len(id))]}
	switch {
	case c.Recovery != "":
		err = e.recover(ctx, &k, name)
	case c.inMemory():
		e.remembered++
		k.opt.Dir, err = places.name(ctx, fmt.Sprintf("%s/%d-%s", memoryCheckpoints, e.remembered, id))
	default:
		var dir string
		if dir, err = places.name(ctx, c.Dir); err == nil {
			k.opt.Dir = path.Join(dir, id)
			_, err = e.copyLocally(&k) // the folder is new
		}
	}
	if err == nil && c.Savepoint != "" && len(k.opt.Completed) == 0 {
		err = k.fromSavepoint(ctx, places, c)
	}
	if from := begins(k.opt); err == nil && from != nil {
		err = e.fit(jg, from.Manifest)
	}
	if err != nil {
		k.release()
		return keeping{}, err
	}
	return k, nil
}

// begins is the snapshot that the job begins with, nil if there is none: the one that its coordinator will choose.
func begins(o *jobmanager.CheckpointOptions) *jobmanager.Snapshot {
	n := len(o.Completed)
	if n == 0 {
		return nil
	}
	if o.Config.PreferCheckpoint {
		for i := range slices.Backward(o.Completed) {
			if s := &o.Completed[i]; s.Manifest.Kind == checkpoint.Checkpoint {
				return s
			}
		}
	}
	return &o.Completed[n-1]
}

// after closes the stores that no task has taken when the job is over.
func (k *keeping) after(pre *taskmanager.Preloaded) {
	if pre == nil {
		return
	}
	released := k.opt.Released
	k.opt.Released = func() {
		_ = pre.Close() // memory alone
		if released != nil {
			released()
		}
	}
}

// fromSavepoint has the job start from a savepoint, or from a checkpoint that was retained. One that it claims is a checkpoint of
// its own from then on.
func (k *keeping) fromSavepoint(ctx context.Context, places *places, c *Checkpoints) error {
	dir, err := places.name(ctx, c.Savepoint)
	if err != nil {
		return err
	}
	m, err := checkpoint.Load(places, dir)
	if scheme, _, ok := places.split(c.Savepoint); ok && errors.Is(err, fs.ErrNotExist) && (scheme == memoryScheme || scheme == "mem") {
		err = fmt.Errorf("it is not in the memory of this process: savepoints there are lost with the process that took them: %w", err)
	}
	if err != nil {
		return fmt.Errorf("start from savepoint %s: %w", c.Savepoint, err)
	}
	if c.Claim {
		m.Kind = checkpoint.Checkpoint
	}
	k.opt.Completed = []jobmanager.Snapshot{{FS: places, Manifest: m, Foreign: !c.Claim}}
	return nil
}

// intact refuses a snapshot that is damaged before a task begins with it and does something that can't be undone.
func intact(s *jobmanager.Snapshot) error {
	if err := s.Manifest.Verify(s.FS); err != nil {
		return fmt.Errorf("restore the job: %w\nnothing of it is used: start from another snapshot; flott savepoint list shows those that are whole", err)
	}
	return nil
}

// slashed is a path of the machine, absolute, as package vfs takes it.
func slashed(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("find the folder %s: %w", dir, err)
	}
	return filepath.ToSlash(abs), nil
}

// refuse names an operator whose state can't be in a snapshot, or whose way of reading lets none be taken.
func refuse(jg *plan.JobGraph) error {
	for _, v := range jg.Vertices {
		for _, n := range v.Nodes {
			if len(n.Node.Inputs) > 1 {
				if s, ok := n.Node.New().(operator.Selector); ok && s.Selects() {
					return fmt.Errorf("operator %q: %w", n.Node.Title(), task.SelectingError{})
				}
			}
			if !n.Node.Stateful && !n.Node.Keyed() {
				continue
			}
			if _, ok := n.Node.New().(operator.Snapshotter); !ok {
				return fmt.Errorf("operator %q keeps state that can't be part of snapshots, so that the job can take no checkpoints or savepoints; leave checkpointing off, or take the operator out", n.Node.Title())
			}
		}
	}
	return nil
}

// fit makes the plan one that can go on from a snapshot: with its hash seed and, where the program sets none, its max
// parallelism.
func (e *Env) fit(jg *plan.JobGraph, m *checkpoint.Manifest) error {
	if _, err := m.Match(ids(jg), e.Settings.Checkpoints.AllowNonRestored); err != nil {
		return fmt.Errorf("restore the job: %w", err)
	}
	jg.Graph.HashSeed = m.HashSeed
	var errs []error
	for _, v := range jg.Vertices {
		for _, n := range v.Nodes {
			if err := e.fitNode(v, n, m.Operator(n.ID.String())); err != nil {
				errs = append(errs, err)
			}
		}
	}
	for _, edge := range jg.Edges {
		edge.MaxParallelism = edge.To.Head().MaxParallelism
	}
	return errors.Join(errs...)
}

func (e *Env) fitNode(v *plan.Vertex, n *plan.ChainNode, o *checkpoint.Operator) error {
	if o == nil || n.MaxParallelism == o.MaxParallelism {
		return nil
	}
	keyed := slices.ContainsFunc(o.Parts, func(p *checkpoint.Part) bool { return len(p.Tables) > 0 })
	set := n.Node.MaxParallelism != graph.Unset || e.Settings.MaxParallelism != graph.Unset
	switch {
	case set && keyed:
		return fmt.Errorf("restore operator %q: its keyed state was saved with max parallelism %d and the program sets %d: it can't change; set it to %d, or set none",
			n.Node.Title(), o.MaxParallelism, n.MaxParallelism, o.MaxParallelism)
	case set:
		return nil
	}
	if err := keygroup.Validate(o.MaxParallelism, v.Parallelism); err != nil {
		if keyed {
			return fmt.Errorf("restore operator %q: its keyed state was saved with max parallelism %d and the program's parallelism is %d: set %d at most",
				n.Node.Title(), o.MaxParallelism, v.Parallelism, o.MaxParallelism)
		}
		return nil
	}
	n.MaxParallelism = o.MaxParallelism
	v.MaxParallelism = min(v.MaxParallelism, n.MaxParallelism)
	return nil
}

// TakeSavepoint takes a savepoint into a new folder under dir, a path or URL; "": under the job's default.
func (x *Execution) TakeSavepoint(ctx context.Context, dir string, drain, stop bool) (string, error) {
	if dir == "" {
		dir = x.savepoints
	}
	if dir == "" {
		return "", errors.New("take a savepoint: name the folder under which it is to lie, or set execution.checkpointing.savepoint-dir")
	}
	if x.refusal != nil {
		return "", fmt.Errorf("take a savepoint: %w", x.refusal)
	}
	target, err := x.places.name(ctx, dir)
	if err != nil {
		return "", fmt.Errorf("take a savepoint: %w", err)
	}
	kind := control.Savepoint
	switch {
	case drain:
		kind = control.DrainSavepoint
	case stop:
		kind = control.StopSavepoint
	}
	folder, err := x.Savepoint(ctx, target, kind)
	if folder != "" {
		folder = locationOf(folder)
	}
	return folder, err
}

// Checkpoints is the history of the job's snapshots; their locations are paths and URLs.
func (x *Execution) Checkpoints() CheckpointHistory {
	o := x.Job.Checkpoints()
	for _, s := range []*CheckpointStatistics{o.LatestCompleted, o.LatestSavepoint, o.LatestFailed} {
		if s != nil {
			s.Location = locationOf(s.Location)
		}
	}
	if o.LatestRestored != nil {
		o.LatestRestored.Location = locationOf(o.LatestRestored.Location)
	}
	for i := range o.History {
		o.History[i].Location = locationOf(o.History[i].Location)
	}
	return o
}
