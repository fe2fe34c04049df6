package taskmanager

import (
	"context"
	"fmt"
	"iter"

	"github.com/flott-dev/flott/internal/exchange"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/internal/plan"
	"github.com/flott-dev/flott/internal/task"
	"github.com/flott-dev/flott/statebackend"
)

// Fitting tells whether an operator can take up the state that a snapshot has for it.
type Fitting struct {
	Node *plan.ChainNode
	// Tried says that it was opened. Sources and sinks are not, as opening them has consequences: a sink commits what it had
	// prepared.
	Tried bool
	// Err is why it can't.
	Err error

	opened *opened // its store; nil: it has none that can be filled beforehand
}

// Fit tries, before anything runs, whether the operators of a job can take up the state of opt.Restore: it opens one of each,
// which calls the user's constructors, with the tables that the snapshot has but without their rows, and closes it again. It
// gives the operators that the snapshot has state for, in the order of the plan.
func Fit(ctx context.Context, job *Job, opt Options) ([]Fitting, error) {
	opt.Checkpoints = nil
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	b := &builder{
		job: job, opt: opt, attempt: &Attempt{cancel: cancel}, ctx: ctx, channels: map[channelKey]*exchange.Channel{},
		toJob: func(int, int, int, []byte) {},
	}
	var last *opened
	b.opened = func(o statebackend.Options, s statebackend.Store) statebackend.Store {
		if last = watch(o, s); last != nil {
			return last
		}
		return s
	}
	var all []Fitting
	for _, v := range job.Graph.Vertices {
		if err := b.build(v, v.Subtasks[0]); err != nil {
			return nil, err
		}
		sub := b.attempt.Tasks[len(b.attempt.Tasks)-1]
		for i, n := range v.Nodes {
			o := opt.Restore.Manifest.Operator(n.ID.String())
			if o == nil || !o.HasState() {
				continue
			}
			f := Fitting{Node: n}
			op, rt := sub.Operators()[i], sub.Runtimes()[i]
			if rt.Restored != nil && len(op.Inputs()) > 0 && op.Output("") != nil {
				last = nil
				f.Tried, f.Err = true, try(op, rt)
				f.opened = last
			}
			if f.Err != nil {
				f.Err = &task.Error{Operator: n.Node.Name, UID: n.ID.String(), GivenUID: n.Node.UID, Subtask: 0, Cause: fmt.Errorf("open the operator: %w", f.Err)}
			}
			all = append(all, f)
		}
	}
	cancel()
	b.attempt.spawn.Wait()
	return all, nil
}

// try opens and closes an operator with state that has no rows.
func try(op operator.Operator, rt *operator.Runtime) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = operator.Recovered(v)
		}
	}()
	restored := *rt.Restored
	if restored.Store != nil {
		restored.Store = withoutRows{restored.Store}
	}
	rt.Restored = &restored
	rt.At = rt
	err = op.Open(rt)
	if e := op.Close(); err == nil {
		err = e
	}
	return err
}

// withoutRows are the tables of a snapshot, empty.
type withoutRows struct{ of statebackend.Restored }

// Table implements statebackend.Restored.
func (w withoutRows) Table(name string) (statebackend.FrozenTable, bool) {
	t, ok := w.of.Table(name)
	t.Rows = iter.Seq2[*statebackend.Row, error](func(func(*statebackend.Row, error) bool) {})
	return t, ok
}

// Tables implements statebackend.Restored.
func (w withoutRows) Tables() []string { return w.of.Tables() }
