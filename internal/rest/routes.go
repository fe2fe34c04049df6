package rest

import (
	"net/http"
	"strings"
)

// route is a path of the API.
type route struct {
	method, path string
	status       int // of an answer that works
	handle       handle
}

// routes are all paths, as rest_api names them but for the braces.
func (s *Server) routes() []route {
	const ok, accepted = http.StatusOK, http.StatusAccepted
	return []route{
		{"GET", "/config", ok, s.configuration},
		{"GET", "/overview", ok, s.overview},
		{"GET", "/jobs", ok, s.jobIDs},
		{"GET", "/jobs/overview", ok, s.jobsOverview},
		{"GET", "/jobs/metrics", ok, s.jobsMetrics},
		{"GET", "/jobs/{jobid}", ok, s.of(jobDetails)},
		{"PATCH", "/jobs/{jobid}", accepted, s.terminate},
		{"GET", "/jobs/{jobid}/yarn-cancel", accepted, s.cancel},
		{"GET", "/jobs/{jobid}/status", ok, s.of(jobStatus)},
		{"GET", "/jobs/{jobid}/plan", ok, s.of(jobPlan)},
		{"GET", "/jobs/{jobid}/config", ok, s.of(jobConfig)},
		{"GET", "/jobs/{jobid}/accumulators", ok, s.of(jobAccumulators)},
		{"GET", "/jobs/{jobid}/exceptions", ok, s.of(jobExceptions)},
		{"GET", "/jobs/{jobid}/execution-result", ok, s.of(executionResult)},
		{"GET", "/jobs/{jobid}/metrics", ok, s.of(jobMetrics)},
		{"GET", "/jobs/{jobid}/checkpoints", ok, s.of(checkpointing)},
		{"POST", "/jobs/{jobid}/checkpoints", accepted, s.triggerCheckpoint},
		{"GET", "/jobs/{jobid}/checkpoints/config", ok, s.of(checkpointConfig)},
		{"GET", "/jobs/{jobid}/checkpoints/details/{checkpointid}", ok, s.of(checkpointDetails)},
		{"GET", "/jobs/{jobid}/checkpoints/details/{checkpointid}/subtasks/{vertexid}", ok, s.of(checkpointSubtasks)},
		{"GET", "/jobs/{jobid}/checkpoints/{triggerid}", ok, s.result(checkpointKind)},
		{"POST", "/jobs/{jobid}/savepoints", accepted, s.triggerSavepoint},
		{"GET", "/jobs/{jobid}/savepoints/{triggerid}", ok, s.result(savepointKind)},
		{"POST", "/jobs/{jobid}/stop", accepted, s.stop},
		{"GET", "/jobs/{jobid}/vertices/{vertexid}", ok, s.of(vertexDetails)},
		{"GET", "/jobs/{jobid}/vertices/{vertexid}/backpressure", ok, s.of(vertexBackpressure)},
		{"GET", "/jobs/{jobid}/vertices/{vertexid}/metrics", ok, s.of(vertexMetrics)},
		{"GET", "/jobs/{jobid}/vertices/{vertexid}/subtasks/metrics", ok, s.of(subtasksMetrics)},
		{"GET", "/jobs/{jobid}/vertices/{vertexid}/subtasks/{subtaskindex}", ok, s.of(subtaskDetails)},
		{"GET", "/jobs/{jobid}/vertices/{vertexid}/subtasks/{subtaskindex}/metrics", ok, s.of(subtaskMetrics)},
		{"GET", "/jobs/{jobid}/vertices/{vertexid}/subtasktimes", ok, s.of(subtaskTimes)},
		{"GET", "/jobs/{jobid}/vertices/{vertexid}/watermarks", ok, s.of(vertexWatermarks)},
		{"POST", "/savepoint-disposal", ok, s.dispose},
		{"GET", "/savepoint-disposal/{triggerid}", ok, s.result(disposalKind)},
		{"GET", "/jobmanager/config", ok, s.jobManagerConfig},
		{"GET", "/jobmanager/metrics", ok, s.jobManagerMetrics},
		{"GET", "/taskmanagers", ok, s.taskManagers},
		{"GET", "/taskmanagers/metrics", ok, s.taskManagersMetrics},
		{"GET", "/taskmanagers/{taskmanagerid}", ok, s.taskManagerDetails},
		{"GET", "/taskmanagers/{taskmanagerid}/metrics", ok, s.taskManagerMetrics},
	}
}

// handler serves every path, bare and under /v1.
func (s *Server) handler() http.Handler {
	mux := http.NewServeMux()
	methods := map[string]bool{}
	for _, r := range s.routes() {
		methods[r.method] = true
		for _, prefix := range []string{"", "/v1"} {
			mux.HandleFunc(r.method+" "+prefix+r.path, s.answer(r.status, r.handle))
		}
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		var allowed []string
		for _, m := range []string{"DELETE", "GET", "PATCH", "POST", "PUT"} {
			probe := *r
			probe.Method = m
			if _, pattern := mux.Handler(&probe); methods[m] && pattern != "/" {
				allowed = append(allowed, m)
			}
		}
		if len(allowed) == 0 {
			fail(w, refuse(http.StatusNotFound, "Not found: %s", r.RequestURI))
			return
		}
		w.Header().Set("Allow", strings.Join(allowed, ", "))
		fail(w, refuse(http.StatusMethodNotAllowed, "%s is not allowed at %s: use %s", r.Method, r.URL.Path, strings.Join(allowed, " or ")))
	})
	return mux
}

// of is a path below a job.
func (s *Server) of(f func(job Job, r *http.Request) (any, error)) handle {
	return func(r *http.Request) (any, error) {
		job, err := s.job(r)
		if err != nil {
			return nil, err
		}
		return f(job, r)
	}
}

// job is the one that the path names.
func (s *Server) job(r *http.Request) (Job, error) {
	id, err := pathID(r, "jobid")
	if err != nil {
		return nil, err
	}
	job := s.find(id)
	if job == nil {
		return nil, refuse(http.StatusNotFound, "Job %s not found", id)
	}
	return job, nil
}
