package rest

import (
	"crypto/md5"
	"encoding/hex"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"

	"github.com/flott-dev/flott/internal/plan"
)

// ioMetrics are the counters of tasks. Bytes are not counted inside a process, which the flags tell.
type ioMetrics struct {
	ReadBytes             int64 `json:"read-bytes"`
	ReadBytesComplete     bool  `json:"read-bytes-complete"`
	WriteBytes            int64 `json:"write-bytes"`
	WriteBytesComplete    bool  `json:"write-bytes-complete"`
	ReadRecords           int64 `json:"read-records"`
	ReadRecordsComplete   bool  `json:"read-records-complete"`
	WriteRecords          int64 `json:"write-records"`
	WriteRecordsComplete  bool  `json:"write-records-complete"`
	AccumulatedBackpress  int64 `json:"accumulated-backpressured-time"`
	AccumulatedIdle       int64 `json:"accumulated-idle-time"`
	AccumulatedBusyMillis int64 `json:"accumulated-busy-time"`
}

func sumIO(subtasks []Subtask) ioMetrics {
	m := ioMetrics{ReadRecordsComplete: true, WriteRecordsComplete: true}
	for i := range subtasks {
		t := &subtasks[i]
		m.ReadRecords += t.RecordsIn
		m.WriteRecords += t.RecordsOut
		m.AccumulatedBackpress += t.Backpressured.Milliseconds()
		m.AccumulatedIdle += t.Idle.Milliseconds()
		m.AccumulatedBusyMillis += t.Busy.Milliseconds()
	}
	return m
}

// groupID is the id of a slot-sharing group, made from its name.
func groupID(name string) string {
	sum := md5.Sum([]byte(name))
	return hex.EncodeToString(sum[:])
}

// vertex is the vertex that the path names.
func vertex(job Job, r *http.Request) (*plan.ExecutionVertex, int, error) {
	id, err := pathID(r, "vertexid")
	if err != nil {
		return nil, 0, err
	}
	for i, v := range job.Facts().Graph.Vertices {
		if v.ID.String() == id {
			return v, i, nil
		}
	}
	return nil, 0, refuse(http.StatusNotFound, "JobVertex %s not found", id)
}

// subtask is the subtask that the path names.
func subtask(v *View, index int, r *http.Request) (*Subtask, int, error) {
	n, err := pathNumber(r, "subtaskindex")
	if err != nil {
		return nil, 0, err
	}
	subtasks := v.Vertices[index].Subtasks
	if n < 0 || n >= int64(len(subtasks)) {
		return nil, 0, refuse(http.StatusNotFound, "Invalid subtask index for vertex: there are %d and index %d was asked for", len(subtasks), n)
	}
	return &subtasks[n], int(n), nil
}

type vertexInfo struct {
	ID             string          `json:"id"`
	Name           string          `json:"name"`
	Parallelism    int             `json:"parallelism"`
	MaxParallelism int             `json:"maxParallelism"`
	Now            int64           `json:"now"`
	Subtasks       []subtaskInfo   `json:"subtasks"`
	Aggregated     aggregatedTasks `json:"aggregated"`
}

type subtaskInfo struct {
	Subtask        int              `json:"subtask"`
	Status         string           `json:"status"`
	Attempt        int              `json:"attempt"`
	Endpoint       string           `json:"endpoint"`
	Host           string           `json:"host"` // 1.x only
	StartTime      int64            `json:"start-time"`
	EndTime        int64            `json:"end-time"`
	Duration       int64            `json:"duration"`
	Metrics        ioMetrics        `json:"metrics"`
	TaskManager    string           `json:"taskmanager-id"`
	StatusDuration map[string]int64 `json:"status-duration"`
}

// aggregatedTasks tells how counters and times are spread over subtasks.
type aggregatedTasks struct {
	Metrics        map[string]map[string]int64 `json:"metrics"`
	StatusDuration map[string]map[string]int64 `json:"status-duration"`
}

func newSubtaskInfo(v *View, t *Subtask, n int) subtaskInfo {
	run := duration(t.Start, t.End, v.Now)
	return subtaskInfo{
		Subtask: n, Status: t.State, Attempt: v.Attempt, Endpoint: taskManagerPath, Host: taskManagerPath, StartTime: t.Start, EndTime: t.End,
		Duration: run, Metrics: sumIO([]Subtask{*t}), TaskManager: taskManagerID,
		StatusDuration: map[string]int64{"CREATED": -1, "SCHEDULED": -1, "DEPLOYING": -1, "INITIALIZING": -1, "RUNNING": run},
	}
}

func vertexDetails(job Job, r *http.Request) (any, error) {
	pv, index, err := vertex(job, r)
	if err != nil {
		return nil, err
	}
	v := job.View()
	out := vertexInfo{
		ID: pv.ID.String(), Name: pv.Name, Parallelism: pv.Parallelism, MaxParallelism: pv.MaxParallelism, Now: v.Now, Subtasks: []subtaskInfo{},
		Aggregated: aggregatedTasks{map[string]map[string]int64{}, map[string]map[string]int64{}},
	}
	columns, times := map[string][]int64{}, map[string][]int64{}
	for i := range v.Vertices[index].Subtasks {
		t := newSubtaskInfo(v, &v.Vertices[index].Subtasks[i], i)
		out.Subtasks = append(out.Subtasks, t)
		for name, x := range t.Metrics.columns() {
			columns[name] = append(columns[name], x)
		}
		for state, x := range t.StatusDuration {
			times[state] = append(times[state], x)
		}
	}
	for name, xs := range columns {
		out.Aggregated.Metrics[name] = spread(xs)
	}
	for state, xs := range times {
		out.Aggregated.StatusDuration[state] = spread(xs)
	}
	return out, nil
}

func (m *ioMetrics) columns() map[string]int64 {
	return map[string]int64{
		"read-bytes": m.ReadBytes, "write-bytes": m.WriteBytes, "read-records": m.ReadRecords, "write-records": m.WriteRecords,
		"accumulated-backpressured-time": m.AccumulatedBackpress, "accumulated-idle-time": m.AccumulatedIdle, "accumulated-busy-time": m.AccumulatedBusyMillis,
	}
}

// spread describes numbers.
func spread(xs []int64) map[string]int64 {
	slices.Sort(xs)
	sum := int64(0)
	for _, x := range xs {
		sum += x
	}
	at := func(q float64) int64 { return xs[max(0, int(math.Ceil(q*float64(len(xs))))-1)] }
	return map[string]int64{
		"min": xs[0], "max": xs[len(xs)-1], "avg": sum / int64(len(xs)), "sum": sum,
		"median": at(.5), "p25": at(.25), "p75": at(.75), "p95": at(.95),
	}
}

func subtaskDetails(job Job, r *http.Request) (any, error) {
	_, index, err := vertex(job, r)
	if err != nil {
		return nil, err
	}
	v := job.View()
	t, n, err := subtask(v, index, r)
	if err != nil {
		return nil, err
	}
	return newSubtaskInfo(v, t, n), nil
}

type subtaskTimesInfo struct {
	ID       string        `json:"id"`
	Name     string        `json:"name"`
	Now      int64         `json:"now"`
	Subtasks []subtaskTime `json:"subtasks"`
}

type subtaskTime struct {
	Subtask    int              `json:"subtask"`
	Endpoint   string           `json:"endpoint"`
	Duration   int64            `json:"duration"`
	Timestamps map[string]int64 `json:"timestamps"`
}

func subtaskTimes(job Job, r *http.Request) (any, error) {
	pv, index, err := vertex(job, r)
	if err != nil {
		return nil, err
	}
	v := job.View()
	out := subtaskTimesInfo{ID: pv.ID.String(), Name: pv.Name, Now: v.Now, Subtasks: []subtaskTime{}}
	for i := range v.Vertices[index].Subtasks {
		t := &v.Vertices[index].Subtasks[i]
		stamps := map[string]int64{}
		for _, s := range taskStates() {
			stamps[s] = 0
		}
		stamps["CREATED"] = max(0, v.Start)
		stamps["RUNNING"] = max(0, t.Start)
		if t.End >= 0 {
			stamps[t.State] = t.End
		}
		out.Subtasks = append(out.Subtasks, subtaskTime{i, taskManagerPath, duration(t.Start, t.End, v.Now), stamps})
	}
	return out, nil
}

func vertexWatermarks(job Job, r *http.Request) (any, error) {
	_, index, err := vertex(job, r)
	if err != nil {
		return nil, err
	}
	out := []metric{}
	for i, t := range job.View().Vertices[index].Subtasks {
		out = append(out, metric{fmt.Sprintf("%d.currentInputWatermark", i), text(strconv.FormatInt(t.Watermark, 10))})
	}
	return out, nil
}

type backpressureInfo struct {
	Status    string                `json:"status"`
	Level     string                `json:"backpressureLevel"`
	OldLevel  string                `json:"backpressure-level"`
	Timestamp int64                 `json:"end-timestamp"`
	Subtasks  []subtaskBackpressure `json:"subtasks"`
}

type subtaskBackpressure struct {
	Subtask  int     `json:"subtask"`
	Attempt  int     `json:"attempt-number"`
	Level    string  `json:"backpressureLevel"`
	OldLevel string  `json:"backpressure-level"`
	Ratio    float64 `json:"ratio"`
	Idle     float64 `json:"idleRatio"`
	Busy     float64 `json:"busyRatio"`
}

// vertexBackpressure answers with the shares of time that the subtasks have spent lately, as rates tell.
func vertexBackpressure(job Job, r *http.Request) (any, error) {
	_, index, err := vertex(job, r)
	if err != nil {
		return nil, err
	}
	v := job.View()
	out := backpressureInfo{Status: "ok", Timestamp: v.Now, Subtasks: []subtaskBackpressure{}}
	most := 0.0
	for i := range v.Vertices[index].Subtasks {
		t := &v.Vertices[index].Subtasks[i]
		back, idle, busy := t.Rates["backPressuredTimeMs"], t.Rates["idleTimeMs"], t.Rates["busyTimeMs"]
		s := subtaskBackpressure{Subtask: i, Attempt: v.Attempt}
		if all := back + idle + busy; all > 0 {
			s.Ratio, s.Idle, s.Busy = back/all, idle/all, busy/all
		}
		s.Level = backpressureLevel(s.Ratio)
		s.OldLevel = s.Level
		most = max(most, s.Ratio)
		out.Subtasks = append(out.Subtasks, s)
	}
	out.Level = backpressureLevel(most)
	out.OldLevel = out.Level
	return out, nil
}

func backpressureLevel(ratio float64) string {
	switch {
	case ratio <= 0.10:
		return "ok"
	case ratio <= 0.5:
		return "low"
	}
	return "high"
}
