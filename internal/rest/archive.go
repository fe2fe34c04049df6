package rest

import (
	"context"
	"fmt"

	"github.com/flott-dev/flott/internal/control"
)

// archived is what stays of a job that has ended: it holds none of the job's state.
type archived struct {
	facts        *Facts
	view         *View
	checkpoints  control.CheckpointOverview
	accumulators map[string]any
	failed       error // to gather the accumulators
	done         chan struct{}
}

// archive copies what is asked of ended jobs.
func archive(job Job) *archived {
	a := &archived{facts: job.Facts(), view: job.View(), checkpoints: job.Checkpoints(), done: make(chan struct{})}
	a.accumulators, a.failed = job.Accumulators()
	close(a.done)
	return a
}

func (a *archived) Facts() *Facts                           { return a.facts }
func (a *archived) View() *View                             { return a.view }
func (a *archived) Checkpoints() control.CheckpointOverview { return a.checkpoints }
func (a *archived) Accumulators() (map[string]any, error)   { return a.accumulators, a.failed }
func (a *archived) Done() <-chan struct{}                   { return a.done }
func (a *archived) Cancel()                                 {}

func (a *archived) over() error {
	return fmt.Errorf("job %s has ended: it is %s", a.facts.ID, a.view.Status)
}

func (a *archived) TriggerCheckpoint(context.Context, bool) (int64, error) { return 0, a.over() }

func (a *archived) TriggerSavepoint(context.Context, string) (string, error) { return "", a.over() }

func (a *archived) CancelWithSavepoint(context.Context, string) (string, error) {
	return "", a.over()
}

func (a *archived) StopWithSavepoint(context.Context, string, bool) (string, error) {
	return "", a.over()
}
