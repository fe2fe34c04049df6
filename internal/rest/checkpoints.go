package rest

import (
	"math"
	"net/http"
	"slices"

	"github.com/flott-dev/flott/internal/control"
)

type checkpointingInfo struct {
	Counts  checkpointCounts  `json:"counts"`
	Summary checkpointSummary `json:"summary"`
	Latest  latestCheckpoints `json:"latest"`
	History []checkpointInfo  `json:"history"`
}

type checkpointCounts struct {
	Restored   int64 `json:"restored"`
	Total      int64 `json:"total"`
	InProgress int64 `json:"in_progress"`
	Completed  int64 `json:"completed"`
	Failed     int64 `json:"failed"`
}

type checkpointSummary struct {
	CheckpointedSize stats `json:"checkpointed_size"`
	StateSize        stats `json:"state_size"`
	Duration         stats `json:"end_to_end_duration"`
	Buffered         stats `json:"alignment_buffered"`
	Processed        stats `json:"processed_data"`
	Persisted        stats `json:"persisted_data"`
}

// stats describe numbers.
type stats struct {
	Min  int64   `json:"min"`
	Max  int64   `json:"max"`
	Avg  int64   `json:"avg"`
	P50  float64 `json:"p50"`
	P90  float64 `json:"p90"`
	P95  float64 `json:"p95"`
	P99  float64 `json:"p99"`
	P999 float64 `json:"p999"`
}

func newStats(d control.Distribution) stats {
	return stats{d.Min, d.Max, int64(d.Mean), float64(d.P50), float64(d.P90), float64(d.P95), float64(d.P99), float64(d.P999)}
}

// statsOf describes a few numbers.
func statsOf(xs []int64) stats {
	if len(xs) == 0 {
		return stats{}
	}
	slices.Sort(xs)
	sum := int64(0)
	for _, x := range xs {
		sum += x
	}
	at := func(q float64) float64 { return float64(xs[max(0, int(math.Ceil(q*float64(len(xs))))-1)]) }
	return stats{xs[0], xs[len(xs)-1], sum / int64(len(xs)), at(.5), at(.9), at(.95), at(.99), at(.999)}
}

type latestCheckpoints struct {
	Completed *checkpointInfo `json:"completed"`
	Savepoint *checkpointInfo `json:"savepoint"`
	Failed    *checkpointInfo `json:"failed"`
	Restored  *restoredInfo   `json:"restored"`
}

type restoredInfo struct {
	ID           int64   `json:"id"`
	Timestamp    int64   `json:"restore_timestamp"`
	IsSavepoint  bool    `json:"is_savepoint"`
	ExternalPath *string `json:"external_path"`
}

// checkpointNumbers are the numbers that a snapshot and a vertex's part of it have alike.
type checkpointNumbers struct {
	ID               int64  `json:"id"`
	Status           string `json:"status"`
	LatestAck        int64  `json:"latest_ack_timestamp"`
	CheckpointedSize int64  `json:"checkpointed_size"`
	StateSize        int64  `json:"state_size"`
	Duration         int64  `json:"end_to_end_duration"`
	Buffered         int64  `json:"alignment_buffered"`
	Processed        int64  `json:"processed_data"`
	Persisted        int64  `json:"persisted_data"`
	Subtasks         int    `json:"num_subtasks"`
	Acknowledged     int    `json:"num_acknowledged_subtasks"`
}

type checkpointInfo struct {
	Class string `json:"className"`
	checkpointNumbers
	IsSavepoint bool                         `json:"is_savepoint"`
	Format      *string                      `json:"savepointFormat"`
	Trigger     int64                        `json:"trigger_timestamp"`
	Type        string                       `json:"checkpoint_type"`
	Tasks       map[string]checkpointNumbers `json:"tasks"`
	// Of complete ones.
	ExternalPath *string `json:"external_path,omitempty"`
	Discarded    *bool   `json:"discarded,omitempty"`
	// Of failed ones.
	FailureTime *int64  `json:"failure_timestamp,omitempty"`
	FailureText *string `json:"failure_message,omitempty"`
}

// notAddressable is the path of a checkpoint that only its job can find.
const notAddressable = "<checkpoint-not-externally-addressable>"

func externalPath(f *Facts, kind control.SnapshotKind, location string) *string {
	if kind == control.Checkpoint && f.Checkpoints.Memory {
		location = notAddressable
	}
	return &location
}

func newCheckpointInfo(f *Facts, s *control.CheckpointStatistics, tasks bool) *checkpointInfo {
	if s == nil {
		return nil
	}
	c := &checkpointInfo{
		Class: map[control.CheckpointStatus]string{
			control.CheckpointInProgress: "in_progress", control.CheckpointCompleted: "completed", control.CheckpointFailed: "failed",
		}[s.Status],
		checkpointNumbers: checkpointNumbers{
			ID: s.ID, Status: s.Status.String(), LatestAck: orNone(s.LatestAck), CheckpointedSize: s.CheckpointedSize, StateSize: s.StateSize,
			Duration: s.Duration.Milliseconds(), Processed: s.Processed, Persisted: s.Persisted, Subtasks: s.Subtasks, Acknowledged: s.Acknowledged,
		},
		IsSavepoint: s.Kind != control.Checkpoint, Trigger: s.Trigger, Type: checkpointType(s), Tasks: map[string]checkpointNumbers{},
	}
	if c.IsSavepoint {
		format := canonical
		c.Format = &format
	}
	switch s.Status {
	case control.CheckpointCompleted:
		c.ExternalPath, c.Discarded = externalPath(f, s.Kind, s.Location), &s.Discarded
	case control.CheckpointFailed:
		c.FailureTime, c.FailureText = &s.Failed, &s.Failure
	}
	if tasks {
		for i := range s.Vertices {
			c.Tasks[f.Graph.Vertices[s.Vertices[i].Vertex].ID.String()] = vertexNumbers(s, &s.Vertices[i])
		}
	}
	return c
}

// orNone is a time, -1 for none.
func orNone(ms int64) int64 {
	if ms == 0 {
		return -1
	}
	return ms
}

func checkpointType(s *control.CheckpointStatistics) string {
	switch {
	case s.Kind.Stops():
		return "SYNC_SAVEPOINT"
	case s.Kind == control.Savepoint:
		return "SAVEPOINT"
	case s.Unaligned:
		return "UNALIGNED_CHECKPOINT"
	}
	return "CHECKPOINT"
}

func vertexNumbers(s *control.CheckpointStatistics, v *control.VertexCheckpointStatistics) checkpointNumbers {
	n := checkpointNumbers{ID: s.ID, Status: s.Status.String(), LatestAck: -1, Subtasks: len(v.Subtasks)}
	for i := range v.Subtasks {
		t := &v.Subtasks[i]
		if !t.Acknowledged {
			continue
		}
		n.Acknowledged++
		n.LatestAck = max(n.LatestAck, t.Ack)
		n.Duration = max(n.Duration, t.Duration.Milliseconds())
		n.CheckpointedSize += t.CheckpointedSize
		n.StateSize += t.StateSize
		n.Processed += t.Processed
		n.Persisted += t.Persisted
	}
	if s.Status == control.CheckpointInProgress && n.Acknowledged == n.Subtasks {
		n.Status = control.CheckpointCompleted.String()
	}
	return n
}

// able refuses jobs that take no snapshots.
func able(job Job) error {
	if f := job.Facts(); f.Checkpoints == nil {
		return refuse(http.StatusNotFound, "Checkpointing is not enabled for job %s: %s", f.ID, f.Unable)
	}
	return nil
}

func checkpointing(job Job, _ *http.Request) (any, error) {
	if err := able(job); err != nil {
		return nil, err
	}
	f, o := job.Facts(), job.Checkpoints()
	out := checkpointingInfo{
		Counts: checkpointCounts{o.Counts.Restored, o.Counts.Triggered, o.Counts.InProgress, o.Counts.Completed, o.Counts.Failed},
		Summary: checkpointSummary{
			CheckpointedSize: newStats(o.Summary.CheckpointedSize), StateSize: newStats(o.Summary.StateSize), Duration: newStats(o.Summary.Duration),
			Processed: newStats(o.Summary.Processed), Persisted: newStats(o.Summary.Persisted),
		},
		Latest: latestCheckpoints{
			Completed: newCheckpointInfo(f, latestOf(&o), true), Savepoint: newCheckpointInfo(f, o.LatestSavepoint, true), Failed: newCheckpointInfo(f, o.LatestFailed, true),
		},
		History: []checkpointInfo{},
	}
	if r := o.LatestRestored; r != nil {
		out.Latest.Restored = &restoredInfo{r.ID, r.Timestamp, r.Kind != control.Checkpoint, externalPath(f, r.Kind, r.Location)}
	}
	for i := range o.History {
		out.History = append(out.History, *newCheckpointInfo(f, &o.History[i], false))
	}
	return out, nil
}

// latestOf is the latest complete checkpoint; Flink keeps savepoints apart.
func latestOf(o *control.CheckpointOverview) *control.CheckpointStatistics {
	if c := o.LatestCompleted; c == nil || c.Kind == control.Checkpoint {
		return c
	}
	for i := range o.History {
		if s := &o.History[i]; s.Kind == control.Checkpoint && s.Status == control.CheckpointCompleted {
			return s
		}
	}
	return nil
}

type checkpointConfigInfo struct {
	Mode             string                `json:"mode"`
	Interval         int64                 `json:"interval"`
	Timeout          int64                 `json:"timeout"`
	MinPause         int64                 `json:"min_pause"`
	MaxConcurrent    int64                 `json:"max_concurrent"`
	Externalization  externalizationConfig `json:"externalization"`
	Backend          string                `json:"state_backend"`
	Storage          string                `json:"checkpoint_storage"`
	Unaligned        bool                  `json:"unaligned_checkpoints"`
	Tolerable        int                   `json:"tolerable_failed_checkpoints"`
	AlignedTimeout   int64                 `json:"aligned_checkpoint_timeout"`
	AfterTasksFinish bool                  `json:"checkpoints_after_tasks_finish"`
	Changelog        bool                  `json:"state_changelog_enabled"`
	ChangelogStorage *string               `json:"changelog_storage"`
	Materialization  int64                 `json:"changelog_periodic_materialization_interval"`
}

type externalizationConfig struct {
	Enabled              bool `json:"enabled"`
	DeleteOnCancellation bool `json:"delete_on_cancellation"`
}

// never is the interval of a job that takes no periodic checkpoints.
const never = math.MaxInt64

func checkpointConfig(job Job, _ *http.Request) (any, error) {
	if err := able(job); err != nil {
		return nil, err
	}
	k := job.Facts().Checkpoints
	c := &k.Config
	out := checkpointConfigInfo{
		Mode: "EXACTLY_ONCE", Interval: c.Interval.Milliseconds(), Timeout: c.Timeout.Milliseconds(), MinPause: c.MinPause.Milliseconds(),
		MaxConcurrent: int64(c.MaxConcurrent), Backend: k.Backend, Storage: k.Storage, Unaligned: c.Unaligned, Tolerable: c.TolerableFailures,
		AlignedTimeout: c.AlignedTimeout.Milliseconds(), AfterTasksFinish: c.AfterTasksFinish,
		Externalization: externalizationConfig{c.Retention != control.NeverRetained, c.Retention != control.RetainOnCancellation},
	}
	if c.Mode == control.AtLeastOnce {
		out.Mode = "AT_LEAST_ONCE"
	}
	if c.Interval == 0 {
		out.Interval = never
	}
	return out, nil
}

// findCheckpoint is the snapshot that the path names.
func findCheckpoint(job Job, r *http.Request) (*control.CheckpointStatistics, error) {
	id, err := pathNumber(r, "checkpointid")
	if err == nil {
		err = able(job)
	}
	if err != nil {
		return nil, err
	}
	o := job.Checkpoints()
	for i := range o.History {
		if o.History[i].ID == id {
			return &o.History[i], nil
		}
	}
	for _, s := range []*control.CheckpointStatistics{o.LatestCompleted, o.LatestSavepoint, o.LatestFailed} {
		if s != nil && s.ID == id {
			return s, nil
		}
	}
	return nil, refuse(http.StatusNotFound, "Could not find checkpointing statistics for checkpoint %d.", id)
}

func checkpointDetails(job Job, r *http.Request) (any, error) {
	s, err := findCheckpoint(job, r)
	if err != nil {
		return nil, err
	}
	return newCheckpointInfo(job.Facts(), s, true), nil
}

type checkpointSubtasksInfo struct {
	checkpointNumbers
	Summary  subtasksSummary     `json:"summary"`
	Subtasks []checkpointSubtask `json:"subtasks"`
}

type subtasksSummary struct {
	CheckpointedSize stats          `json:"checkpointed_size"`
	StateSize        stats          `json:"state_size"`
	Duration         stats          `json:"end_to_end_duration"`
	Checkpoint       workSummary    `json:"checkpoint_duration"`
	Alignment        alignedSummary `json:"alignment"`
	StartDelay       stats          `json:"start_delay"`
}

type workSummary struct {
	Sync  stats `json:"sync"`
	Async stats `json:"async"`
}

type alignedSummary struct {
	Buffered  stats `json:"buffered"`
	Processed stats `json:"processed"`
	Persisted stats `json:"persisted"`
	Duration  stats `json:"duration"`
}

type checkpointSubtask struct {
	Class  string `json:"className"`
	Index  int    `json:"index"`
	Status string `json:"status"`
	*completedSubtask
}

type completedSubtask struct {
	Ack              int64            `json:"ack_timestamp"`
	Duration         int64            `json:"end_to_end_duration"`
	CheckpointedSize int64            `json:"checkpointed_size"`
	StateSize        int64            `json:"state_size"`
	Checkpoint       subtaskWork      `json:"checkpoint"`
	Alignment        subtaskAlignment `json:"alignment"`
	StartDelay       int64            `json:"start_delay"`
	Unaligned        bool             `json:"unaligned_checkpoint"`
	Aborted          bool             `json:"aborted"`
}

type subtaskWork struct {
	Sync  int64 `json:"sync"`
	Async int64 `json:"async"`
}

type subtaskAlignment struct {
	Buffered  int64 `json:"buffered"`
	Processed int64 `json:"processed"`
	Persisted int64 `json:"persisted"`
	Duration  int64 `json:"duration"`
}

func checkpointSubtasks(job Job, r *http.Request) (any, error) {
	s, err := findCheckpoint(job, r)
	if err != nil {
		return nil, err
	}
	pv, index, err := vertex(job, r)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(s.Vertices, func(v control.VertexCheckpointStatistics) bool { return v.Vertex == index })
	if i < 0 {
		return nil, refuse(http.StatusNotFound, "There is no checkpoint statistics for task %s.", pv.ID)
	}
	v := &s.Vertices[i]
	out := checkpointSubtasksInfo{checkpointNumbers: vertexNumbers(s, v), Subtasks: []checkpointSubtask{}}
	for n := range v.Subtasks {
		out.Subtasks = append(out.Subtasks, newCheckpointSubtask(n, &v.Subtasks[n]))
	}
	out.Summary = summarize(out.Subtasks)
	return out, nil
}

func newCheckpointSubtask(n int, t *control.SubtaskCheckpointStatistics) checkpointSubtask {
	if !t.Acknowledged {
		return checkpointSubtask{Class: "pending", Index: n, Status: "pending_or_failed"}
	}
	return checkpointSubtask{Class: "completed", Index: n, Status: "completed", completedSubtask: &completedSubtask{
		Ack: t.Ack, Duration: t.Duration.Milliseconds(), CheckpointedSize: t.CheckpointedSize, StateSize: t.StateSize,
		Checkpoint: subtaskWork{t.Sync.Milliseconds(), t.Async.Milliseconds()},
		Alignment:  subtaskAlignment{Processed: t.Processed, Persisted: t.Persisted, Duration: t.Alignment.Milliseconds()},
		StartDelay: t.StartDelay.Milliseconds(), Unaligned: t.Unaligned,
	}}
}

func summarize(subtasks []checkpointSubtask) subtasksSummary {
	column := func(f func(*completedSubtask) int64) stats {
		var xs []int64
		for _, t := range subtasks {
			if t.completedSubtask != nil {
				xs = append(xs, f(t.completedSubtask))
			}
		}
		return statsOf(xs)
	}
	return subtasksSummary{
		CheckpointedSize: column(func(t *completedSubtask) int64 { return t.CheckpointedSize }),
		StateSize:        column(func(t *completedSubtask) int64 { return t.StateSize }),
		Duration:         column(func(t *completedSubtask) int64 { return t.Duration }),
		Checkpoint: workSummary{
			Sync:  column(func(t *completedSubtask) int64 { return t.Checkpoint.Sync }),
			Async: column(func(t *completedSubtask) int64 { return t.Checkpoint.Async }),
		},
		Alignment: alignedSummary{
			Buffered:  column(func(t *completedSubtask) int64 { return t.Alignment.Buffered }),
			Processed: column(func(t *completedSubtask) int64 { return t.Alignment.Processed }),
			Persisted: column(func(t *completedSubtask) int64 { return t.Alignment.Persisted }),
			Duration:  column(func(t *completedSubtask) int64 { return t.Alignment.Duration }),
		},
		StartDelay: column(func(t *completedSubtask) int64 { return t.StartDelay }),
	}
}
