package env

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/flott-dev/flott/checkpoint"
	"github.com/flott-dev/flott/internal/clock"
	"github.com/flott-dev/flott/internal/host"
	"github.com/flott-dev/flott/internal/jobmanager"
	"github.com/flott-dev/flott/internal/plan"
	"github.com/flott-dev/flott/internal/taskmanager"
	"github.com/flott-dev/flott/statebackend"
)

// takeUp finds out, before anything runs, whether the job can go on from its snapshot: whether its operators can take up their
// state (see taskmanager.Fit), and whether the snapshot is undamaged. State in memory is filled meanwhile, so that the
// snapshot is read once; what else is wrong with that is left to the tasks, which say it as ever.
func (e *Env) takeUp(ctx context.Context, job *taskmanager.Job, opt taskmanager.Options, k *jobmanager.CheckpointOptions) (*taskmanager.Preloaded, error) {
	if k == nil || len(k.Completed) == 0 {
		return nil, nil
	}
	from := begins(k)
	fits, err := tryState(ctx, job, &opt, from)
	if err != nil {
		return nil, cmp.Or(intact(from), err)
	}
	audit := from.Manifest.Audit(from.FS)
	pre, err := taskmanager.Preload(ctx, job, opt, fits, audit)
	if err != nil {
		return nil, intact(from)
	}
	if err := audit.Verify(); err != nil {
		return nil, errors.Join(fmt.Errorf("restore the job: %w", err), pre.Close())
	}
	return pre, nil
}

// tryState finds out whether operators can take up their state.
func tryState(ctx context.Context, job *taskmanager.Job, opt *taskmanager.Options, from *jobmanager.Snapshot) ([]taskmanager.Fitting, error) {
	opt.Threads = host.Goroutines{Clock: opt.Clock}
	opt.Restore = &taskmanager.Restore{FS: from.FS, Manifest: from.Manifest}
	trial := *opt
	trial.Restore = &taskmanager.Restore{FS: from.FS, Manifest: from.Manifest.WithoutFiles()}
	var fits []taskmanager.Fitting
	err := readable(from.Manifest, job.Graph.Job, opt.Backend)
	if err == nil {
		fits, err = taskmanager.Fit(ctx, job, trial)
	}
	errs := []error{err}
	for _, f := range fits {
		errs = append(errs, f.Err)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("the program can't go on from %v %d in %s: %w", from.Manifest.Kind, from.Manifest.ID, locationOf(from.Manifest.Folder), err)
	}
	return fits, nil
}

// readable refuses state in files of another state backend than the job's: only rows go from one to another.
func readable(m *checkpoint.Manifest, jg *plan.JobGraph, b statebackend.Backend) error {
	var errs []error
	for _, id := range ids(jg) {
		o := m.Operator(id)
		if o == nil {
			continue
		}
		for _, f := range o.Files() {
			if name, _, _ := strings.Cut(f.Format, "/"); name != b.Name() {
				errs = append(errs, fmt.Errorf("operator %q: its state is in files of the format %q, which the state backend %s does not read: start with the backend that wrote them (state.backend.type), or from a savepoint, which every backend reads",
					o.Name, f.Format, b.Name()))
			}
		}
	}
	return errors.Join(errs...)
}

// CheckReport is what a dry run prints: whether the job could start, from the savepoint if one is named.
type CheckReport struct {
	Job       string            `json:"job"`
	Savepoint string            `json:"savepoint,omitempty"`
	Startable bool              `json:"startable"`
	Operators []CheckedOperator `json:"operators,omitempty"`
	// Problems are those of no single operator.
	Problems []string `json:"problems,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
}

// CheckedOperator is an operator of the program, or one of the savepoint that the program does not have.
type CheckedOperator struct {
	ID   string `json:"id"`
	UID  string `json:"uid,omitempty"`
	Name string `json:"name"`
	// State is "none": neither has any; "new": the savepoint has none for it; "fits"; "untried": a source or sink, which can't be
	// tried without consequences, or any if a problem of the whole job comes first; "refused": it can't be taken up, Problem says why; "unclaimed": the program has no such
	// operator.
	State   string `json:"state"`
	Problem string `json:"problem,omitempty"`
}

// check is a dry run of the job: it prints a report as JSON and ends the process, with code 0 if the job could start.
func (e *Env) check(ctx context.Context, jg *plan.JobGraph, name string, mistakes error) {
	r := CheckReport{Job: name, Savepoint: e.Settings.Checkpoints.Savepoint, Warnings: e.Warnings()}
	if mistakes != nil {
		r.problem(mistakes)
	} else {
		e.checkJob(ctx, &r, jg, name)
	}
	r.Startable = len(r.Problems) == 0
	for _, o := range r.Operators {
		r.Startable = r.Startable && o.Problem == ""
	}
	code := 0
	if !r.Startable {
		code = 1
	}
	if err := r.print(e.stdout); err != nil {
		code = 1
	}
	e.exit(code)
}

func (r *CheckReport) problem(err error) { r.Problems = append(r.Problems, err.Error()) }

func (r *CheckReport) print(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(r)
}

// checkJob finds what keeps the job from starting.
func (e *Env) checkJob(ctx context.Context, r *CheckReport, jg *plan.JobGraph, name string) {
	c := &e.Settings.Checkpoints
	if _, err := c.config(); err != nil {
		r.problem(err)
	}
	if err := refuse(jg); err != nil && (c.Enabled || c.Savepoint != "" || c.Recovery != "") {
		r.problem(err)
	}
	backend, err := e.backend()
	if err != nil {
		r.problem(err)
	}
	k := keeping{opt: &jobmanager.CheckpointOptions{}}
	if c.Savepoint == "" || err != nil {
		r.list(jg, nil, nil)
		return
	}
	if err := k.fromSavepoint(ctx, e.places(), c); err != nil {
		r.problem(err)
		return
	}
	m := k.opt.Completed[0].Manifest
	if err := m.Verify(k.opt.Completed[0].FS); err != nil { // as the start does: a file of the right size may be damaged
		r.problem(err)
		return
	}
	e.checkState(ctx, r, jg, name, taskmanager.Options{
		Clock: clock.NewSystem(), Memory: e.memory(), Backend: backend, Isolated: e.Settings.Isolated,
		Restore: &taskmanager.Restore{FS: k.opt.Completed[0].FS, Manifest: m},
	})
}

// checkState finds what keeps the job from going on from a snapshot.
func (e *Env) checkState(ctx context.Context, r *CheckReport, jg *plan.JobGraph, name string, opt taskmanager.Options) {
	m := opt.Restore.Manifest
	opt.Threads = host.Goroutines{Clock: opt.Clock}
	allowed := e.Settings.Checkpoints.AllowNonRestored
	e.Settings.Checkpoints.AllowNonRestored = true // what is unclaimed is listed, operator by operator
	err := e.fit(jg, m)
	if err == nil {
		err = readable(m, jg, opt.Backend)
	}
	opt.Restore.Manifest = m.WithoutFiles()
	var fittings []taskmanager.Fitting
	if err == nil {
		fittings, err = taskmanager.Fit(ctx, e.job(jg, name), opt)
	}
	if err != nil {
		r.problem(err)
	}
	r.list(jg, m, fittings)
	dropped, _ := m.Match(ids(jg), true)
	for _, o := range dropped {
		c := CheckedOperator{ID: o.ID, UID: o.UID, Name: o.Name, State: "unclaimed"}
		if !allowed {
			c.Problem = "the savepoint has state that the program has no operator for: give the operator the UID that it had, or allow non-restored state to drop it"
		}
		r.Operators = append(r.Operators, c)
	}
}

// list lists the operators of the program.
func (r *CheckReport) list(jg *plan.JobGraph, m *checkpoint.Manifest, fittings []taskmanager.Fitting) {
	tried := map[string]taskmanager.Fitting{}
	for _, f := range fittings {
		tried[f.Node.ID.String()] = f
	}
	for _, v := range jg.Vertices {
		for _, n := range v.Nodes {
			c := CheckedOperator{ID: n.ID.String(), UID: n.Node.UID, Name: n.Node.Name, State: "none"}
			f, has := tried[c.ID]
			switch {
			case f.Err != nil:
				c.State, c.Problem = "refused", f.Err.Error()
			case f.Tried:
				c.State = "fits"
			case has:
				c.State = "untried"
			case m != nil && m.Operator(c.ID) != nil && m.Operator(c.ID).HasState():
				c.State = "untried" // a problem of the whole job came first
			case m != nil && (n.Node.Stateful || n.Node.Keyed()):
				c.State = "new"
			}
			r.Operators = append(r.Operators, c)
		}
	}
}

// ids are the identities of a job's operators.
func ids(jg *plan.JobGraph) []string {
	var ids []string
	for _, v := range jg.Vertices {
		for _, n := range v.Nodes {
			ids = append(ids, n.ID.String())
		}
	}
	return ids
}
