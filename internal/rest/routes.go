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
	all := []route{
		{"GET", "/config", ok, s.configuration},
		{"GET", "/overview", ok, s.overview},
		{"GET", "/jobs", ok, s.jobIDs},
		{"GET", "/jobs/overview", ok, s.jobsOverview},
		{"GET", "/jobs/metrics", ok, s.jobsMetrics},
		{"PATCH", "/jobs/{jobid}", accepted, s.terminate},
		{"GET", "/jobs/{jobid}/yarn-cancel", accepted, s.cancel},
		{"POST", "/jobs/{jobid}/checkpoints", accepted, s.triggerCheckpoint},
		{"GET", "/jobs/{jobid}/checkpoints/{triggerid}", ok, s.result(checkpointKind)},
		{"POST", "/jobs/{jobid}/savepoints", accepted, s.triggerSavepoint},
		{"GET", "/jobs/{jobid}/savepoints/{triggerid}", ok, s.result(savepointKind)},
		{"POST", "/jobs/{jobid}/stop", accepted, s.stop},
		{"POST", "/savepoint-disposal", ok, s.dispose},
		{"GET", "/savepoint-disposal/{triggerid}", ok, s.result(disposalKind)},
		{"GET", "/jobmanager/config", ok, s.jobManagerConfig},
		{"GET", "/jobmanager/metrics", ok, s.jobManagerMetrics},
		{"GET", "/taskmanagers", ok, s.taskManagers},
		{"GET", "/taskmanagers/metrics", ok, s.taskManagersMetrics},
		{"GET", "/taskmanagers/{taskmanagerid}", ok, s.taskManagerDetails},
		{"GET", "/taskmanagers/{taskmanagerid}/metrics", ok, s.taskManagerMetrics},
	}
	for path, look := range looks() {
		all = append(all, route{"GET", "/jobs/{jobid}" + path, ok, s.of(look)})
	}
	return all
}

// look answers what a job is asked.
type look func(job Job, r *http.Request) (any, error)

// looks are the paths below a job that only look at it.
func looks() map[string]look {
	const (
		details = "/checkpoints/details/{checkpointid}"
		vertex  = "/vertices/{vertexid}"
		subtask = vertex + "/subtasks/{subtaskindex}"
	)
	return map[string]look{
		"":                               jobDetails,
		"/status":                        jobStatus,
		"/plan":                          jobPlan,
		"/config":                        jobConfig,
		"/jobmanager/config":             configurationOf,
		"/accumulators":                  jobAccumulators,
		"/exceptions":                    jobExceptions,
		"/execution-result":              executionResult,
		"/metrics":                       jobMetrics,
		"/checkpoints":                   checkpointing,
		"/checkpoints/config":            checkpointConfig,
		details:                          checkpointDetails,
		details + "/subtasks/{vertexid}": checkpointSubtasks,
		vertex:                           vertexDetails,
		vertex + "/backpressure":         vertexBackpressure,
		vertex + "/metrics":              vertexMetrics,
		vertex + "/subtasks/metrics":     subtasksMetrics,
		vertex + "/subtasktimes":         subtaskTimes,
		vertex + "/watermarks":           vertexWatermarks,
		subtask:                          subtaskDetails,
		subtask + "/metrics":             subtaskMetrics,
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
func (s *Server) of(f look) handle {
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
