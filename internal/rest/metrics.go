package rest

import (
	"fmt"
	"maps"
	"math"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/flott-dev/flott/internal/control"
	"github.com/flott-dev/flott/process"
)

// metric is a metric with its value, or a name alone.
type metric struct {
	ID    string  `json:"id"`
	Value *string `json:"value,omitempty"`
}

func text(s string) *string { return &s }

// values are metrics by name.
type values map[string]any

// add puts a metric under its name; readings of meters and histograms become what REST has of them.
func (v values) add(name string, value any) {
	switch r := value.(type) {
	case nil:
	case process.MeterReading:
		v[name] = r.Rate
	case process.HistogramReading:
		for _, part := range []struct {
			name  string
			value any
		}{
			{"count", r.Count},
			{"min", r.Min},
			{"max", r.Max},
			{"mean", r.Mean},
			{"stddev", r.StdDev},
			{"median", r.P50},
			{"p75", r.P75},
			{"p90", r.P90},
			{"p95", r.P95},
			{"p98", r.P98},
			{"p99", r.P99},
			{"p999", r.P999},
		} {
			v[name+"_"+part.name] = part.value
		}
	default:
		v[name] = value
	}
}

// query answers a request for metrics: all names, or those asked for with their values; what is not there is left out.
func (v values) query(r *http.Request) []metric {
	out := []metric{}
	asked := queryList(r, "get")
	if len(asked) == 0 {
		for _, name := range slices.Sorted(maps.Keys(v)) {
			out = append(out, metric{ID: name})
		}
	}
	for _, name := range asked {
		if value, ok := v[name]; ok {
			out = append(out, metric{name, text(valueText(value))})
		}
	}
	return out
}

func valueText(v any) string {
	if f, ok := v.(float64); ok {
		return strconv.FormatFloat(f, 'g', -1, 64)
	}
	return fmt.Sprint(v)
}

// number is a metric's value as a number, if it is one.
func number(v any) (float64, bool) {
	switch v := reflect.ValueOf(v); {
	case v.CanInt():
		return float64(v.Int()), true
	case v.CanUint():
		return float64(v.Uint()), true
	case v.CanFloat():
		return v.Float(), true
	}
	return 0, false
}

// aggregated is a metric over several places; only what was asked for is in it.
type aggregated struct {
	ID   string   `json:"id"`
	Min  *float64 `json:"min,omitempty"`
	Max  *float64 `json:"max,omitempty"`
	Avg  *float64 `json:"avg,omitempty"`
	Sum  *float64 `json:"sum,omitempty"`
	Skew *float64 `json:"skew,omitempty"`
}

// aggregate answers a request for metrics over several places.
func aggregate(r *http.Request, places []values) (any, error) {
	aggs := queryList(r, "agg")
	for i, a := range aggs {
		aggs[i] = strings.ToLower(a)
		if !slices.Contains([]string{"min", "max", "avg", "sum", "skew"}, aggs[i]) {
			return nil, refuse(http.StatusBadRequest, "agg %q is none of min, max, avg, sum, skew", a)
		}
	}
	if len(aggs) == 0 {
		aggs = []string{"min", "max", "avg", "sum", "skew"}
	}
	out := []aggregated{}
	asked := queryList(r, "get")
	if len(asked) == 0 {
		names := map[string]bool{}
		for _, v := range places {
			for name, value := range v {
				if _, ok := number(value); ok {
					names[name] = true
				}
			}
		}
		for _, name := range slices.Sorted(maps.Keys(names)) {
			out = append(out, aggregated{ID: name})
		}
	}
	for _, name := range asked {
		var xs []float64
		for _, v := range places {
			if x, ok := number(v[name]); ok && !math.IsNaN(x) && !math.IsInf(x, 0) {
				xs = append(xs, x)
			}
		}
		if len(xs) > 0 {
			out = append(out, newAggregated(name, xs, aggs))
		}
	}
	return out, nil
}

func newAggregated(name string, xs []float64, aggs []string) aggregated {
	sum, deviation := 0.0, 0.0
	for _, x := range xs {
		sum += x
	}
	avg := sum / float64(len(xs))
	for _, x := range xs {
		deviation += math.Abs(x - avg)
	}
	skew := 0.0
	if avg != 0 {
		skew = min(100, math.Abs(deviation/float64(len(xs))/avg*100))
	}
	all := map[string]float64{"min": slices.Min(xs), "max": slices.Max(xs), "avg": avg, "sum": sum, "skew": skew}
	a := aggregated{ID: name}
	for agg, to := range map[string]**float64{"min": &a.Min, "max": &a.Max, "avg": &a.Avg, "sum": &a.Sum, "skew": &a.Skew} {
		if slices.Contains(aggs, agg) {
			value := all[agg]
			*to = &value
		}
	}
	return a
}

// metricName is an operator's title as a part of a metric's name.
func metricName(title string) string {
	return strings.Map(func(r rune) rune {
		if r == '_' || r == '-' || r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' {
			return r
		}
		return '_'
	}, title)
}

// taskValues are the metrics of a subtask, those of its operators by "name.metric".
func taskValues(t *Subtask) values {
	v := values{
		"numRecordsIn": t.RecordsIn, "numRecordsOut": t.RecordsOut, "currentInputWatermark": t.Watermark,
		"checkpointAlignmentTime": t.Alignment.Nanoseconds(), "checkpointStartDelayNanos": t.StartDelay.Nanoseconds(),
		"accumulateIdleTimeMs": t.Idle.Milliseconds(), "accumulateBackPressuredTimeMs": t.Backpressured.Milliseconds(), "accumulateBusyTimeMs": t.Busy.Milliseconds(),
	}
	for _, o := range t.Operators {
		for name, value := range o.Metrics {
			v.add(metricName(o.Title)+"."+name, value)
		}
	}
	for name, rate := range t.Rates {
		v[name+"PerSecond"] = rate
	}
	return v
}

func vertexMetrics(job Job, r *http.Request) (any, error) {
	_, index, err := vertex(job, r)
	if err != nil {
		return nil, err
	}
	all := values{}
	subtasks := job.View().Vertices[index].Subtasks
	for i := range subtasks {
		for name, value := range taskValues(&subtasks[i]) {
			all[fmt.Sprintf("%d.%s", i, name)] = value
		}
	}
	return all.query(r), nil
}

func subtaskMetrics(job Job, r *http.Request) (any, error) {
	_, index, err := vertex(job, r)
	if err != nil {
		return nil, err
	}
	t, _, err := subtask(job.View(), index, r)
	if err != nil {
		return nil, err
	}
	return taskValues(t).query(r), nil
}

func subtasksMetrics(job Job, r *http.Request) (any, error) {
	_, index, err := vertex(job, r)
	if err != nil {
		return nil, err
	}
	subtasks := job.View().Vertices[index].Subtasks
	chosen, err := chooseSubtasks(queryList(r, "subtasks"), len(subtasks))
	if err != nil {
		return nil, err
	}
	var places []values
	for _, i := range chosen {
		places = append(places, taskValues(&subtasks[i]))
	}
	return aggregate(r, places)
}

// chooseSubtasks reads numbers and ranges (0-3) of subtasks; none are all.
func chooseSubtasks(asked []string, n int) ([]int, error) {
	var chosen []int
	if len(asked) == 0 {
		asked = []string{fmt.Sprintf("0-%d", n-1)}
	}
	for _, part := range asked {
		first, last, ranged := strings.Cut(part, "-")
		if !ranged {
			last = first
		}
		from, err := strconv.Atoi(first)
		to, err2 := strconv.Atoi(last)
		if err != nil || err2 != nil {
			return nil, refuse(http.StatusBadRequest, "subtasks %q is neither a number nor a range", part)
		}
		for i := max(from, 0); i <= to && i < n; i++ {
			chosen = append(chosen, i)
		}
	}
	return chosen, nil
}

// jobValues are the metrics of a job under Flink's names.
func jobValues(job Job) values {
	view := job.View()
	now := view.Now
	v := values{"numRestarts": view.Restarts, "fullRestarts": view.Restarts, "uptime": int64(0), "downtime": int64(0)}
	for state, status := range map[string]string{
		"running": "RUNNING", "failing": "FAILING", "restarting": "RESTARTING", "created": "CREATED", "cancelling": "CANCELLING",
	} {
		in, ms := 0, int64(0)
		if view.Status == status {
			in, ms = 1, max(0, now-view.Entered[status])
		}
		v[state+"State"], v[state+"Time"] = in, ms
	}
	switch view.Status {
	case "RUNNING":
		v["uptime"] = v["runningTime"]
	case "FAILING", "RESTARTING":
		v["downtime"] = max(0, now-max(view.Entered["FAILING"], view.Entered["RESTARTING"]))
	}
	if job.Facts().Checkpoints != nil {
		v.checkpoints(job)
	}
	return v
}

func (v values) checkpoints(job Job) {
	o := job.Checkpoints()
	v["totalNumberOfCheckpoints"] = o.Counts.Triggered
	v["numberOfInProgressCheckpoints"] = o.Counts.InProgress
	v["numberOfCompletedCheckpoints"] = o.Counts.Completed
	v["numberOfFailedCheckpoints"] = o.Counts.Failed
	v["lastCheckpointRestoreTimestamp"] = int64(-1)
	if o.LatestRestored != nil {
		v["lastCheckpointRestoreTimestamp"] = o.LatestRestored.Timestamp
	}
	c := o.LatestCompleted
	if c == nil {
		c = &control.CheckpointStatistics{Duration: -1e6, CheckpointedSize: -1, StateSize: -1, MetadataSize: -1, LatestAck: -1, ID: -1, Location: "n/a"}
	} else if c.Kind == control.Checkpoint && job.Facts().Checkpoints.Memory {
		v["lastCheckpointExternalPath"] = notAddressable
	}
	if v["lastCheckpointExternalPath"] == nil {
		v["lastCheckpointExternalPath"] = c.Location
	}
	v["lastCheckpointDuration"] = c.Duration.Milliseconds()
	v["lastCheckpointSize"] = c.CheckpointedSize
	v["lastCheckpointFullSize"] = c.StateSize
	v["lastCheckpointMetadataSize"] = c.MetadataSize
	v["lastCompletedCheckpointId"] = c.ID
	v["lastCheckpointCompletedTimestamp"] = c.LatestAck
}

func jobMetrics(job Job, r *http.Request) (any, error) { return jobValues(job).query(r), nil }

func (s *Server) jobsMetrics(r *http.Request) (any, error) {
	asked := queryList(r, "jobs")
	for _, id := range asked {
		if !isID(id) {
			return nil, refuse(http.StatusBadRequest, "jobs: %q is not 32 hex digits in lower case", id)
		}
	}
	var places []values
	for _, job := range s.list() {
		if len(asked) == 0 || slices.Contains(asked, job.Facts().ID) {
			places = append(places, jobValues(job))
		}
	}
	return aggregate(r, places)
}
