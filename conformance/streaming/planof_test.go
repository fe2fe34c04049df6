package streaming_test

import (
	"errors"
	"testing"

	"github.com/flott-dev/flott/internal/env"
	"github.com/flott-dev/flott/internal/plan"
	"github.com/flott-dev/flott/stream"
)

var errPlanned = errors.New("planned, not run")

// tryPlan is the plan of a program; the error is what Execute would say.
func tryPlan(t *testing.T, build func(e *stream.Env)) (*plan.JobGraph, error) {
	t.Helper()
	var jg *plan.JobGraph
	e := stream.NewEnv(func(s *env.Settings) {
		s.Launch = func(p *plan.JobGraph) error {
			jg = p
			return errPlanned
		}
	})
	build(e)
	if _, err := e.Execute(t.Context(), "job"); !errors.Is(err, errPlanned) {
		return nil, err
	}
	return jg, nil
}

func planOf(t *testing.T, build func(e *stream.Env)) *plan.JobGraph {
	t.Helper()
	jg, err := tryPlan(t, build)
	if err != nil {
		t.Fatal(err)
	}
	return jg
}
