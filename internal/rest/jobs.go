package rest

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/flott-dev/flott/internal/plan"
)

// jobTypes are Flink's words for what all jobs here are.
const (
	streaming        = "STREAMING"
	defaultScheduler = "Default"
)

type jobIDs struct {
	Jobs []jobIDStatus `json:"jobs"`
}

type jobIDStatus struct {
	ID     string `json:"id"`
	Status string `json:"status"`
}

func (s *Server) jobIDs(*http.Request) (any, error) {
	out := jobIDs{Jobs: []jobIDStatus{}}
	for _, j := range s.list() {
		out.Jobs = append(out.Jobs, jobIDStatus{j.Facts().ID, j.View().Status})
	}
	return out, nil
}

type jobsOverview struct {
	Jobs []jobOverview `json:"jobs"`
}

type jobOverview struct {
	JID              string         `json:"jid"`
	Name             string         `json:"name"`
	State            string         `json:"state"`
	StartTime        int64          `json:"start-time"`
	EndTime          int64          `json:"end-time"`
	Duration         int64          `json:"duration"`
	LastModification int64          `json:"last-modification"`
	Tasks            map[string]int `json:"tasks"`
	JobType          string         `json:"jobType"`
	PendingOperators int            `json:"pending-operators"`
	SchedulerType    string         `json:"schedulerType"`
}

func (s *Server) jobsOverview(*http.Request) (any, error) {
	out := jobsOverview{Jobs: []jobOverview{}}
	now := s.opt.Clock.Millis()
	for _, j := range s.list() {
		f, v := j.Facts(), j.View()
		o := jobOverview{
			JID: f.ID, Name: f.Name, State: v.Status, StartTime: v.Start, EndTime: v.End, Duration: duration(v.Start, v.End, now),
			LastModification: v.Start, Tasks: map[string]int{"total": 0}, JobType: streaming, SchedulerType: defaultScheduler,
		}
		for _, at := range v.Entered {
			o.LastModification = max(o.LastModification, at)
		}
		for state, n := range countStates(v.Vertices) {
			o.Tasks[strings.ToLower(state)] = n
			o.Tasks["total"] += n
		}
		out.Jobs = append(out.Jobs, o)
	}
	return out, nil
}

// taskStates are the states of a task in the order of Flink's answers.
func taskStates() []string {
	return []string{"CREATED", "SCHEDULED", "DEPLOYING", "RUNNING", "FINISHED", "CANCELING", "CANCELED", "FAILED", "RECONCILING", "INITIALIZING"}
}

// jobStates are the states of a job.
func jobStates() []string {
	return []string{"INITIALIZING", "CREATED", "RUNNING", "FAILING", "FAILED", "CANCELLING", "CANCELED", "FINISHED", "RESTARTING", "SUSPENDED", "RECONCILING"}
}

// countStates counts subtasks by state, all states named.
func countStates(vertices []Vertex) map[string]int {
	n := map[string]int{}
	for _, s := range taskStates() {
		n[s] = 0
	}
	for _, v := range vertices {
		for i := range v.Subtasks {
			n[v.Subtasks[i].State]++
		}
	}
	return n
}

// fold is the state of a vertex, from those of its subtasks.
func fold(v Vertex) string {
	n := countStates([]Vertex{v})
	for _, s := range []string{"FAILED", "CANCELING", "CANCELED", "INITIALIZING", "RUNNING"} {
		if n[s] > 0 {
			return s
		}
	}
	switch n["FINISHED"] {
	case 0:
		return "CREATED"
	case len(v.Subtasks):
		return "FINISHED"
	}
	return "RUNNING"
}

// duration is a time from start to end or, if there is no end yet, to now; -1 without a start.
func duration(start, end, now int64) int64 {
	switch {
	case start < 0:
		return -1
	case end < 0:
		end = now
	}
	return max(0, end-start)
}

// vertexSpan is when the first subtask began and, if all have ended, when the last did.
func vertexSpan(v Vertex) (start, end int64) {
	start, end = -1, -1
	running := false
	for i := range v.Subtasks {
		t := &v.Subtasks[i]
		if t.Start >= 0 && (start < 0 || t.Start < start) {
			start = t.Start
		}
		end = max(end, t.End)
		running = running || t.End < 0
	}
	if running {
		end = -1
	}
	return start, end
}

type jobDetailsInfo struct {
	JID              string           `json:"jid"`
	Name             string           `json:"name"`
	IsStoppable      bool             `json:"isStoppable"`
	State            string           `json:"state"`
	JobType          string           `json:"job-type"`
	SchedulerType    string           `json:"schedulerType"`
	StartTime        int64            `json:"start-time"`
	EndTime          int64            `json:"end-time"`
	Duration         int64            `json:"duration"`
	MaxParallelism   int              `json:"maxParallelism"`
	Now              int64            `json:"now"`
	Timestamps       map[string]int64 `json:"timestamps"`
	Vertices         []jobVertex      `json:"vertices"`
	StatusCounts     map[string]int   `json:"status-counts"`
	Plan             plan.Plan        `json:"plan"`
	PendingOperators int              `json:"pending-operators"`
}

type jobVertex struct {
	ID             string         `json:"id"`
	SlotSharing    string         `json:"slotSharingGroupId"`
	Name           string         `json:"name"`
	MaxParallelism int            `json:"maxParallelism"`
	Parallelism    int            `json:"parallelism"`
	Status         string         `json:"status"`
	StartTime      int64          `json:"start-time"`
	EndTime        int64          `json:"end-time"`
	Duration       int64          `json:"duration"`
	Tasks          map[string]int `json:"tasks"`
	Metrics        ioMetrics      `json:"metrics"`
}

func jobDetails(job Job, _ *http.Request) (any, error) {
	f, v := job.Facts(), job.View()
	now := v.Now
	out := jobDetailsInfo{
		JID: f.ID, Name: f.Name, State: v.Status, JobType: streaming, SchedulerType: defaultScheduler, StartTime: v.Start, EndTime: v.End,
		Duration: duration(v.Start, v.End, now), MaxParallelism: f.Graph.Job.Graph.MaxParallelism, Now: now,
		Timestamps: map[string]int64{}, StatusCounts: map[string]int{}, Plan: f.Graph.Job.Plan(f.ID), Vertices: []jobVertex{},
	}
	for _, s := range jobStates() {
		out.Timestamps[s] = v.Entered[s] // 0: never
	}
	for _, s := range taskStates() {
		out.StatusCounts[s] = 0
	}
	for i, pv := range f.Graph.Vertices {
		vertex := v.Vertices[i]
		start, end := vertexSpan(vertex)
		jv := jobVertex{
			ID: pv.ID.String(), SlotSharing: groupID(pv.SlotGroup), Name: pv.Name, MaxParallelism: pv.MaxParallelism, Parallelism: pv.Parallelism,
			Status: fold(vertex), StartTime: start, EndTime: end, Duration: duration(start, end, now), Tasks: countStates([]Vertex{vertex}),
			Metrics: sumIO(vertex.Subtasks),
		}
		out.StatusCounts[jv.Status]++
		out.Vertices = append(out.Vertices, jv)
	}
	return out, nil
}

type statusInfo struct {
	Status string `json:"status"`
}

func jobStatus(job Job, _ *http.Request) (any, error) { return statusInfo{job.View().Status}, nil }

type planInfo struct {
	Plan plan.Plan `json:"plan"`
}

func jobPlan(job Job, _ *http.Request) (any, error) {
	f := job.Facts()
	return planInfo{f.Graph.Job.Plan(f.ID)}, nil
}

type configInfo struct {
	JID       string          `json:"jid"`
	Name      string          `json:"name"`
	Execution executionConfig `json:"execution-config"`
}

type executionConfig struct {
	Mode        string            `json:"execution-mode"` // 1.x only
	Restart     string            `json:"restart-strategy"`
	Parallelism int               `json:"job-parallelism"`
	ObjectReuse bool              `json:"object-reuse-mode"`
	User        map[string]string `json:"user-config"`
}

func jobConfig(job Job, _ *http.Request) (any, error) {
	f := job.Facts()
	return configInfo{f.ID, f.Name, executionConfig{"PIPELINED", f.Restart, f.Parallelism, true, masked(f.Parameters)}}, nil
}

type accumulatorsInfo struct {
	Job        []string          `json:"job-accumulators"`
	User       []accumulator     `json:"user-task-accumulators"`
	Serialized map[string]string `json:"serialized-user-task-accumulators"`
}

type accumulator struct {
	Name  string `json:"name"`
	Type  string `json:"type"`
	Value string `json:"value"`
}

func jobAccumulators(job Job, r *http.Request) (any, error) {
	if text := r.URL.Query().Get("includeSerializedValue"); text != "" {
		if _, err := strconv.ParseBool(text); err != nil {
			return nil, refuse(http.StatusBadRequest, "includeSerializedValue is true or false, not %q", text)
		}
	}
	values, err := job.Accumulators()
	if err != nil {
		return nil, err
	}
	out := accumulatorsInfo{Job: []string{}, User: []accumulator{}, Serialized: map[string]string{}}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		out.User = append(out.User, accumulator{name, fmt.Sprintf("%T", values[name]), fmt.Sprint(values[name])})
	}
	return out, nil
}

type exceptionsInfo struct {
	History exceptionHistory `json:"exceptionHistory"`
	// The rest is what 1.x answered.
	Root      *string         `json:"root-exception"`
	Timestamp *int64          `json:"timestamp"`
	All       []taskException `json:"all-exceptions"`
	Truncated bool            `json:"truncated"`
}

type exceptionHistory struct {
	Entries   []exceptionEntry `json:"entries"`
	Truncated bool             `json:"truncated"`
}

type exceptionEntry struct {
	Name        string            `json:"exceptionName"`
	Stack       string            `json:"stacktrace"`
	Timestamp   int64             `json:"timestamp"`
	Labels      map[string]string `json:"failureLabels"`
	Task        *string           `json:"taskName"`
	Endpoint    *string           `json:"endpoint"`
	TaskManager *string           `json:"taskManagerId"`
	Concurrent  []exceptionEntry  `json:"concurrentExceptions,omitempty"`
}

type taskException struct {
	Exception string `json:"exception"`
	Task      string `json:"task"`
	Location  string `json:"location"`
	Timestamp int64  `json:"timestamp"`
}

// repeatedLabel labels a failure that came several times in a row with how often, sameRecordLabel one of which several named the
// same record with how many: what a record does that can't be processed.
const (
	repeatedLabel   = "repeated"
	sameRecordLabel = "same-record"
)

// shownExceptions is how many are answered if the client does not say.
const shownExceptions = 20

func jobExceptions(job Job, r *http.Request) (any, error) {
	most := shownExceptions
	if text := r.URL.Query().Get("maxExceptions"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 {
			return nil, refuse(http.StatusBadRequest, "maxExceptions is a number from 0, not %q", text)
		}
		most = n
	}
	v := job.View()
	failures := v.Failures
	out := exceptionsInfo{History: exceptionHistory{Entries: []exceptionEntry{}, Truncated: v.Dropped}, All: []taskException{}}
	if len(failures) > 0 {
		out.Root, out.Timestamp = &failures[0].Text, &failures[0].At
	}
	if len(failures) > most {
		failures, out.History.Truncated = failures[:most], true
	}
	for i := range failures {
		f := &failures[i]
		e := exceptionEntry{Name: f.Class, Stack: f.Text, Timestamp: f.At, Labels: map[string]string{}}
		if f.Same > 1 {
			e.Labels[repeatedLabel] = strconv.Itoa(f.Same)
		}
		if f.SameRecord > 1 {
			e.Labels[sameRecordLabel] = strconv.Itoa(f.SameRecord)
		}
		if f.Task != "" {
			id, place := taskManagerID, taskManagerPath
			e.Task, e.Endpoint, e.TaskManager = &f.Task, &place, &id
			out.All = append(out.All, taskException{f.Text, f.Task, taskManagerPath, f.At})
		}
		out.History.Entries = append(out.History.Entries, e)
	}
	out.Truncated = out.History.Truncated
	return out, nil
}

type resultInfo struct {
	Status queueStatus `json:"status"`
	Result *jobResult  `json:"job-execution-result"`
}

type queueStatus struct {
	ID string `json:"id"`
}

// The states of asynchronous operations.
const (
	inProgress = "IN_PROGRESS"
	completed  = "COMPLETED"
)

type jobResult struct {
	ID           string            `json:"id"`
	Name         string            `json:"name"`
	Status       string            `json:"application-status"`
	Accumulators map[string]string `json:"accumulator-results"`
	NetRuntime   int64             `json:"net-runtime"`
	StartTime    int64             `json:"start-time"`
	EndTime      int64             `json:"end-time"`
	Failure      *throwable        `json:"failure-cause,omitempty"`
}

func executionResult(job Job, _ *http.Request) (any, error) {
	v := job.View()
	if !v.Terminal() {
		return resultInfo{Status: queueStatus{inProgress}}, nil
	}
	f := job.Facts()
	r := &jobResult{
		ID: f.ID, Name: f.Name, Status: map[string]string{"FINISHED": "SUCCEEDED", "FAILED": "FAILED", "CANCELED": "CANCELED"}[v.Status],
		Accumulators: map[string]string{}, NetRuntime: duration(v.Start, v.End, 0), StartTime: v.Start, EndTime: v.End,
	}
	if v.Status == "FAILED" && len(v.Failures) > 0 {
		r.Failure = newThrowable(v.Failures[0].Class, v.Failures[0].Text)
	}
	if r.Status == "" {
		r.Status = "UNKNOWN"
	}
	return resultInfo{Status: queueStatus{completed}, Result: r}, nil
}
