package env

import (
	"context"
	"errors"
	"fmt"
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
	"github.com/flott-dev/flott/internal/vfs"
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
	TolerableFailures int
	Retention         Retention
	Incremental       bool   // checkpoints hold what has changed since earlier ones
	Dir               string // where checkpoints lie; "": in memory, kept by the job manager
	Savepoint         string // to start from; "": none
	AllowNonRestored  bool   // state of the savepoint that the program has no operator for is dropped
	Recovery          string // the folder in which a killed program finds its state; "": it begins afresh
	FS                vfs.FS // where these folders are; nil: on the machine's disks
}

// DefaultCheckpoints are the settings of a job that sets nothing.
func DefaultCheckpoints() Checkpoints {
	d := control.DefaultCheckpointConfig()
	return Checkpoints{Timeout: d.Timeout, MaxConcurrent: d.MaxConcurrent}
}

// config is what the coordinator gets, validated.
func (c *Checkpoints) config() (control.CheckpointConfig, error) {
	out := control.DefaultCheckpointConfig()
	out.Interval, out.Timeout, out.MinPause = c.Interval, c.Timeout, c.MinPause
	out.MaxConcurrent, out.TolerableFailures = c.MaxConcurrent, c.TolerableFailures
	out.Mode, out.Retention = c.Mode, c.Retention
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
	if err != nil {
		return out, fmt.Errorf("configure checkpoints: %w", err)
	}
	return out, nil
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
	release func()
}

// keeping prepares the keeping of the snapshots of a job, and the plan for what it goes on from.
func (e *Env) keeping(jg *plan.JobGraph, id, name string) (k keeping, err error) {
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
	k.opt = &jobmanager.CheckpointOptions{Config: cfg, FS: c.disk(), SavepointFS: c.disk(), Incremental: c.Incremental}
	switch {
	case c.Recovery != "":
		err = e.recover(&k, name)
	case c.Dir != "":
		var dir string
		dir, err = slashed(c.Dir)
		k.opt.Dir = path.Join(dir, id)
	default:
		k.opt.FS, k.opt.Dir = vfs.NewMem(), "/checkpoints"
	}
	if err == nil && c.Savepoint != "" && len(k.opt.Completed) == 0 {
		err = k.fromSavepoint(c.disk(), c.Savepoint)
	}
	if n := len(k.opt.Completed); err == nil && n > 0 {
		err = e.fit(jg, k.opt.Completed[n-1].Manifest)
	}
	if err != nil {
		k.release()
		return keeping{}, err
	}
	return k, nil
}

// fromSavepoint has the job start from a savepoint, or from a checkpoint that was retained.
func (k *keeping) fromSavepoint(disk vfs.FS, at string) error {
	dir, err := slashed(at)
	if err != nil {
		return err
	}
	m, err := checkpoint.Load(disk, dir)
	if err != nil {
		return fmt.Errorf("start from savepoint %s: %w", at, err)
	}
	k.opt.Completed = []jobmanager.Snapshot{{FS: disk, Manifest: m, Foreign: true}}
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

// refuse names an operator whose state can't be in a snapshot.
func refuse(jg *plan.JobGraph) error {
	for _, edge := range jg.Edges {
		if edge.Feedback {
			n := edge.To.Nodes[edge.Consumer].Node
			return fmt.Errorf("operator %q is the head of an iteration: elements in the loop are not part of snapshots, so that the job can take no checkpoints or savepoints; leave checkpointing off, or take the loop out", n.Title())
		}
	}
	for _, v := range jg.Vertices {
		for _, n := range v.Nodes {
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
	var ids []string
	for _, v := range jg.Vertices {
		for _, n := range v.Nodes {
			ids = append(ids, n.ID.String())
		}
	}
	if _, err := m.Match(ids, e.Settings.Checkpoints.AllowNonRestored); err != nil {
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

// TakeSavepoint takes a savepoint into a new folder under dir.
func (x *Execution) TakeSavepoint(ctx context.Context, dir string, drain, stop bool) (string, error) {
	if dir == "" {
		return "", errors.New("take a savepoint: name the folder under which it is to lie")
	}
	if x.refusal != nil {
		return "", fmt.Errorf("take a savepoint: %w", x.refusal)
	}
	target, err := slashed(dir)
	if err != nil {
		return "", err
	}
	kind := control.Savepoint
	switch {
	case drain:
		kind = control.DrainSavepoint
	case stop:
		kind = control.StopSavepoint
	}
	return x.Savepoint(ctx, target, kind)
}
