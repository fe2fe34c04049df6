package rest

import (
	"context"
	"fmt"
	"net/http"

	"github.com/flott-dev/flott/checkpoint"
)

// terminate cancels a job; the mode "stop" of old clients has gone.
func (s *Server) terminate(r *http.Request) (any, error) {
	switch mode := r.URL.Query().Get("mode"); mode {
	case "", "cancel", "CANCEL":
		return s.cancel(r)
	case "stop", "STOP":
		return nil, refuse(http.StatusPermanentRedirect, "The termination mode \"stop\" has been removed: stop the job with POST /jobs/%s/stop", r.PathValue("jobid"))
	default:
		return nil, refuse(http.StatusBadRequest, "mode %q is unknown: it is cancel", mode)
	}
}

func (s *Server) cancel(r *http.Request) (any, error) {
	job, err := s.job(r)
	if err == nil {
		err = alive(job)
	}
	if err != nil {
		return nil, err
	}
	job.Cancel()
	return struct{}{}, nil
}

// alive refuses jobs that have ended.
func alive(job Job) error {
	if v := job.View(); v.Terminal() {
		return refuse(http.StatusConflict, "Job %s has ended: it is %s", job.Facts().ID, v.Status)
	}
	return nil
}

type triggerResponse struct {
	Request string `json:"request-id"`
}

type asyncInfo struct {
	Status    queueStatus `json:"status"`
	Operation any         `json:"operation"`
}

// result is the path where an operation of that kind is looked for.
func (s *Server) result(kind string) handle {
	return func(r *http.Request) (any, error) {
		key := operationKey{kind: kind}
		var err error
		if kind != disposalKind {
			if key.job, err = pathID(r, "jobid"); err != nil {
				return nil, err
			}
		}
		if key.trigger, err = pathID(r, "triggerid"); err != nil {
			return nil, err
		}
		result, known := s.ops.find(key)
		switch {
		case !known:
			return nil, refuse(http.StatusNotFound, "Operation not found under key: %s of job %q", key.trigger, key.job)
		case result == nil:
			return asyncInfo{Status: queueStatus{inProgress}}, nil
		}
		return asyncInfo{queueStatus{completed}, result}, nil
	}
}

// start starts an operation of a job and answers with its number: the client's if it gave one.
func (s *Server) start(kind, job string, trigger *string, f func() any) (any, error) {
	key := operationKey{kind, job, newTrigger()}
	if trigger != nil {
		if !isID(*trigger) {
			return nil, refuse(http.StatusBadRequest, "Request did not match expected format: triggerId %q is not 32 hex digits in lower case", *trigger)
		}
		key.trigger = *trigger
	}
	s.ops.start(key, f)
	return triggerResponse{key.trigger}, nil
}

// known says whether a client asks again for what it has asked for.
func (s *Server) known(kind, job string, trigger *string) bool {
	return trigger != nil && s.ops.has(operationKey{kind, job, *trigger})
}

type savepointInfo struct {
	Location *string    `json:"location,omitempty"`
	Failure  *throwable `json:"failure-cause,omitempty"`
}

func newSavepointInfo(location string, err error) savepointInfo {
	if err != nil {
		return savepointInfo{Failure: throwableOf(err)}
	}
	return savepointInfo{Location: &location}
}

// canonical and native are the formats of savepoints that clients may ask for; all are written as rows, which every backend
// reads: the canonical one.
const (
	canonical = "CANONICAL"
	native    = "NATIVE"
)

func checkFormat(format *string) error {
	if format == nil || *format == canonical || *format == native {
		return nil
	}
	return refuse(http.StatusBadRequest, "Request did not match expected format: formatType %q is neither %s nor %s", *format, canonical, native)
}

// savepointJob is the job of a request for a savepoint and the folder under which that is to lie.
func (s *Server) savepointJob(r *http.Request, kind string, dir, format, trigger *string) (Job, string, error) {
	job, err := s.job(r)
	if err == nil {
		err = checkFormat(format)
	}
	if err != nil {
		return nil, "", err
	}
	f := job.Facts()
	if s.known(kind, f.ID, trigger) {
		return job, "", nil
	}
	if err := alive(job); err != nil {
		return nil, "", err
	}
	if f.Checkpoints == nil {
		return nil, "", refuse(http.StatusBadRequest, "Job %s can take no savepoint: %s", f.ID, f.Unable)
	}
	target := f.SavepointDir
	if dir != nil && *dir != "" {
		target = *dir
	}
	if target == "" {
		return nil, "", refuse(http.StatusBadRequest, "Config key [execution.checkpointing.savepoint-dir] is not set: the request must name a target directory")
	}
	return job, target, nil
}

func (s *Server) triggerSavepoint(r *http.Request) (any, error) {
	var q struct {
		Dir     *string `json:"target-directory"`
		Cancel  bool    `json:"cancel-job"`
		Format  *string `json:"formatType"`
		Trigger *string `json:"triggerId"`
	}
	if err := body(r, &q, "cancel-job"); err != nil {
		return nil, err
	}
	job, dir, err := s.savepointJob(r, savepointKind, q.Dir, q.Format, q.Trigger)
	if err != nil {
		return nil, err
	}
	return s.start(savepointKind, job.Facts().ID, q.Trigger, func() any {
		if q.Cancel {
			return newSavepointInfo(job.CancelWithSavepoint(context.Background(), dir))
		}
		return newSavepointInfo(job.TriggerSavepoint(context.Background(), dir))
	})
}

func (s *Server) stop(r *http.Request) (any, error) {
	var q struct {
		Dir     *string `json:"targetDirectory"`
		Drain   bool    `json:"drain"`
		Format  *string `json:"formatType"`
		Trigger *string `json:"triggerId"`
	}
	if err := body(r, &q, "drain"); err != nil {
		return nil, err
	}
	job, dir, err := s.savepointJob(r, savepointKind, q.Dir, q.Format, q.Trigger)
	if err != nil {
		return nil, err
	}
	return s.start(savepointKind, job.Facts().ID, q.Trigger, func() any {
		return newSavepointInfo(job.StopWithSavepoint(context.Background(), dir, q.Drain))
	})
}

type checkpointResult struct {
	ID      *int64     `json:"checkpointId,omitempty"`
	Failure *throwable `json:"failureCause,omitempty"`
}

func (s *Server) triggerCheckpoint(r *http.Request) (any, error) {
	var q struct {
		Type    *string `json:"checkpointType"`
		Trigger *string `json:"triggerId"`
	}
	if err := body(r, &q); err != nil {
		return nil, err
	}
	full := false
	if q.Type != nil {
		switch *q.Type {
		case "CONFIGURED", "INCREMENTAL":
		case "FULL":
			full = true
		default:
			return nil, refuse(http.StatusBadRequest, "Request did not match expected format: checkpointType %q is none of CONFIGURED, FULL, INCREMENTAL", *q.Type)
		}
	}
	job, err := s.job(r)
	if err != nil {
		return nil, err
	}
	f := job.Facts()
	if !s.known(checkpointKind, f.ID, q.Trigger) {
		if err := alive(job); err != nil {
			return nil, err
		}
		if f.Checkpoints == nil {
			return nil, refuse(http.StatusBadRequest, "Job %s can take no checkpoint: %s", f.ID, f.Unable)
		}
	}
	return s.start(checkpointKind, f.ID, q.Trigger, func() any {
		id, err := job.TriggerCheckpoint(context.Background(), full)
		if err != nil {
			return checkpointResult{Failure: throwableOf(err)}
		}
		return checkpointResult{ID: &id}
	})
}

type disposalResult struct {
	Failure *throwable `json:"failure-cause,omitempty"`
}

// dispose removes a savepoint.
func (s *Server) dispose(r *http.Request) (any, error) {
	var q struct {
		Path *string `json:"savepoint-path"`
	}
	if err := body(r, &q); err != nil {
		return nil, err
	}
	if q.Path == nil || *q.Path == "" {
		return nil, refuse(http.StatusBadRequest, "Field savepoint-path must not be omitted or be null.")
	}
	return s.start(disposalKind, "", nil, func() any {
		if err := s.disposeOf(*q.Path); err != nil {
			return disposalResult{Failure: throwableOf(err)}
		}
		return disposalResult{}
	})
}

func (s *Server) disposeOf(savepoint string) error {
	f, dir, err := s.opt.Disk(savepoint)
	if err != nil {
		return fmt.Errorf("dispose of savepoint %s: %w", savepoint, err)
	}
	return checkpoint.Dispose(f, dir)
}
