package stream

import (
	"context"
	"fmt"

	"github.com/flott-dev/flott/internal/env"
)

// RESTOption is a setting of WithREST.
type RESTOption func(*env.REST)

// AllowRemote lets the endpoint listen at an address that other machines reach. It has no authentication: everybody who
// reaches it can stop jobs and delete savepoints.
func AllowRemote() RESTOption {
	return func(r *env.REST) { r.Remote = true }
}

// WithREST serves Flink's REST API, by which the flott command and others watch and control jobs, at an address "host:port",
// for example "127.0.0.1:8081". The port may be a range ("8081-8090") or several ("8081,0"): the first that is free is taken,
// and 0 is any. A host that is not on loopback is refused without AllowRemote. By default nothing is served.
//
// The endpoint listens while a job of the environment runs. When one has ended, Execute and Job.Wait return after clients
// have fetched the results of what they had asked for, 5 seconds later at most. Jobs that have ended stay listed as long as
// another one runs.
func WithREST(address string, opts ...RESTOption) Option {
	return func(s *env.Settings) {
		s.REST.ListenAt(address)
		for _, o := range opts {
			o(&s.REST)
		}
	}
}

// WebInterfaceURL is where the job is served by REST, "http://127.0.0.1:8081"; "" without WithREST.
func (j *Job) WebInterfaceURL() string {
	if address := j.x.Address(); address != "" {
		return "http://" + address
	}
	return ""
}

// TriggerCheckpoint takes a checkpoint now and gives its number when it is complete. Full says that it holds the whole state,
// also where checkpoints are incremental. When ctx ends, the call returns and the checkpoint may still be completed.
func (j *Job) TriggerCheckpoint(ctx context.Context, full bool) (int64, error) {
	id, err := j.x.TakeCheckpoint(ctx, full)
	if err != nil {
		return 0, fmt.Errorf("job %q: %w", j.Name(), err)
	}
	return id, nil
}
