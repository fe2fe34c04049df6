package control

import (
	"math"
	"slices"
	"time"
)

// CheckpointStatus is how far a checkpoint is.
type CheckpointStatus uint8

const (
	// CheckpointInProgress: it has begun and not ended.
	CheckpointInProgress CheckpointStatus = iota
	// CheckpointCompleted: it can be restored, or could until it was discarded.
	CheckpointCompleted
	// CheckpointFailed: it was aborted.
	CheckpointFailed
)

// String is REST's word for the status.
func (s CheckpointStatus) String() string {
	return [...]string{"IN_PROGRESS", "COMPLETED", "FAILED"}[s]
}

// CheckpointStatistics are the numbers of one checkpoint or savepoint. Sums are over the subtasks that have acknowledged.
type CheckpointStatistics struct {
	ID               int64
	Kind             SnapshotKind
	Status           CheckpointStatus
	Unaligned        bool          // at one subtask at least
	Trigger          int64         // ms since 1970
	LatestAck        int64         // ms since 1970; 0: none has come
	Duration         time.Duration // from the trigger to the latest acknowledgement, or to the failure
	CheckpointedSize int64
	StateSize        int64
	MetadataSize     int64 // of the manifest; 0: it is not complete
	Processed        int64
	Persisted        int64
	Subtasks         int // that take part
	Acknowledged     int // of them
	Location         string
	Discarded        bool
	Failed           int64 // ms since 1970; 0: it has not
	Reason           FailureReason
	Failure          string // more about it
	Vertices         []VertexCheckpointStatistics
}

// VertexCheckpointStatistics are the numbers of a vertex's subtasks.
type VertexCheckpointStatistics struct {
	Vertex   int
	Name     string
	Subtasks []SubtaskCheckpointStatistics
}

// SubtaskCheckpointStatistics are the numbers of one subtask.
type SubtaskCheckpointStatistics struct {
	Acknowledged bool
	Finished     bool          // it had finished before
	Ack          int64         // ms since 1970
	Duration     time.Duration // from the trigger to the acknowledgement
	TaskMetrics
}

// CheckpointCounts count a job's checkpoints and savepoints.
type CheckpointCounts struct {
	Triggered, InProgress, Completed, Failed, Restored int64
}

// RestoredCheckpoint says what a job was restored from.
type RestoredCheckpoint struct {
	ID        int64
	Kind      SnapshotKind
	Timestamp int64 // ms since 1970, of the restore
	Location  string
}

// CheckpointOverview is all that is remembered of a job's checkpoints. It is the receiver's own.
type CheckpointOverview struct {
	Counts  CheckpointCounts
	Summary CheckpointSummary
	// Latest of their kind; nil if there is none.
	LatestCompleted, LatestSavepoint, LatestFailed *CheckpointStatistics
	LatestRestored                                 *RestoredCheckpoint
	// History has those in progress and the last that have ended, newest first.
	History []CheckpointStatistics
}

// CheckpointSummary tells how the numbers of completed checkpoints are distributed. Durations are in ms, sizes in bytes.
type CheckpointSummary struct {
	Duration, CheckpointedSize, StateSize, Processed, Persisted Distribution
}

// Distribution describes a set of numbers: minimum, maximum and mean of all, quantiles of the last 1000.
type Distribution struct {
	Count, Min, Max          int64
	Mean                     float64
	P50, P90, P95, P99, P999 int64
}

// distribution gathers a Distribution.
type distribution struct {
	count, min, max int64
	sum             float64
	last            []int64 // a ring
}

const distributionWindow = 1000

func (d *distribution) add(x int64) {
	if d.count == 0 {
		d.min, d.max = x, x
	}
	d.min, d.max = min(d.min, x), max(d.max, x)
	d.sum += float64(x)
	if len(d.last) < distributionWindow {
		d.last = append(d.last, x)
	} else {
		d.last[d.count%distributionWindow] = x
	}
	d.count++
}

func (d *distribution) describe() Distribution {
	if d.count == 0 {
		return Distribution{}
	}
	sorted := slices.Sorted(slices.Values(d.last))
	quantile := func(q float64) int64 {
		return sorted[max(0, int(math.Ceil(q*float64(len(sorted))))-1)]
	}
	return Distribution{
		Count: d.count, Min: d.min, Max: d.max, Mean: d.sum / float64(d.count),
		P50: quantile(.5), P90: quantile(.9), P95: quantile(.95), P99: quantile(.99), P999: quantile(.999),
	}
}

// checkpointHistory gathers a CheckpointOverview.
type checkpointHistory struct {
	keep                                                        int
	counts                                                      CheckpointCounts
	duration, checkpointedSize, stateSize, processed, persisted distribution
	completed, savepoint, failed                                *CheckpointStatistics
	restored                                                    *RestoredCheckpoint
	running                                                     map[int64]*CheckpointStatistics
	ended                                                       []*CheckpointStatistics // from the oldest
}

// begin notes that a snapshot has begun.
func (h *checkpointHistory) begin(p *pendingCheckpoint) {
	h.counts.Triggered++
	h.counts.InProgress++
	h.running[p.id] = &CheckpointStatistics{ID: p.id, Kind: p.kind, Trigger: p.timestamp}
}

// trigger notes who takes part.
func (h *checkpointHistory) trigger(p *pendingCheckpoint, tasks *checkpointTasks) {
	s := h.running[p.id]
	s.Location = p.location
	s.Vertices = make([]VertexCheckpointStatistics, 0, len(tasks.vertices))
	for v := range tasks.vertices {
		vertex := &tasks.vertices[v]
		if vertex.Roles&Acknowledges == 0 {
			continue
		}
		vs := VertexCheckpointStatistics{Vertex: v, Name: vertex.Name, Subtasks: make([]SubtaskCheckpointStatistics, vertex.Parallelism)}
		for i := range vs.Subtasks {
			if p.parts[tasks.first[v]+i].part.Finished {
				vs.Subtasks[i] = SubtaskCheckpointStatistics{Acknowledged: true, Finished: true, Ack: p.timestamp}
				s.Acknowledged++
			}
		}
		s.Subtasks += vertex.Parallelism
		s.Vertices = append(s.Vertices, vs)
	}
}

// acknowledge notes a subtask's part.
func (h *checkpointHistory) acknowledge(p *pendingCheckpoint, id TaskID, m TaskMetrics, finished bool, at Instant) {
	s := h.running[p.id]
	i := slices.IndexFunc(s.Vertices, func(v VertexCheckpointStatistics) bool { return v.Vertex == id.Vertex })
	if m.FirstBarrier != 0 {
		m.StartDelay = time.Duration(m.FirstBarrier - p.started)
	}
	m = m.clamped()
	s.Vertices[i].Subtasks[id.Subtask] = SubtaskCheckpointStatistics{
		Acknowledged: true, Finished: finished, Ack: max(p.timestamp, at.Wall), Duration: p.elapsed(at), TaskMetrics: m,
	}
	s.Acknowledged++
	s.LatestAck = max(s.LatestAck, p.timestamp, at.Wall)
	s.Duration = max(s.Duration, p.elapsed(at))
	s.CheckpointedSize += m.CheckpointedSize
	s.StateSize += m.StateSize
	s.Processed += m.Processed
	s.Persisted += m.Persisted
	s.Unaligned = s.Unaligned || m.Unaligned
}

// complete notes that a snapshot is complete, with a manifest of that size.
func (h *checkpointHistory) complete(c *CompletedCheckpoint, size int64) {
	s := h.end(c.ID)
	s.Status, s.Location, s.MetadataSize = CheckpointCompleted, c.Location, max(0, size)
	h.counts.Completed++
	h.completed = s
	if c.Kind != Checkpoint {
		h.savepoint = s
	}
	h.duration.add(s.Duration.Milliseconds())
	h.checkpointedSize.add(s.CheckpointedSize)
	h.stateSize.add(s.StateSize)
	h.processed.add(s.Processed)
	h.persisted.add(s.Persisted)
}

// fail notes that a snapshot was aborted.
func (h *checkpointHistory) fail(p *pendingCheckpoint, reason FailureReason, err error, at Instant) {
	s := h.end(p.id)
	s.Status, s.Reason, s.Failure = CheckpointFailed, reason, reason.Text()
	if err != nil {
		s.Failure += ": " + err.Error()
	}
	s.Failed, s.Duration = max(p.timestamp, at.Wall), p.elapsed(at)
	h.counts.Failed++
	h.failed = s
}

func (h *checkpointHistory) end(id int64) *CheckpointStatistics {
	s := h.running[id]
	delete(h.running, id)
	h.counts.InProgress--
	h.ended = append(h.ended, s)
	if len(h.ended) > h.keep {
		h.ended = slices.Delete(h.ended, 0, len(h.ended)-h.keep)
	}
	return s
}

// discard notes that a completed snapshot is gone.
func (h *checkpointHistory) discard(id int64) {
	for _, s := range h.ended {
		if s.ID == id {
			s.Discarded = true
		}
	}
	for _, s := range []*CheckpointStatistics{h.completed, h.savepoint} { // which may have left the list
		if s != nil && s.ID == id {
			s.Discarded = true
		}
	}
}

func (h *checkpointHistory) restore(c *CompletedCheckpoint, at Instant) {
	h.counts.Restored++
	h.restored = &RestoredCheckpoint{ID: c.ID, Kind: c.Kind, Timestamp: at.Wall, Location: c.Location}
}

// overview copies all that others may keep.
func (h *checkpointHistory) overview() CheckpointOverview {
	o := CheckpointOverview{
		Counts: h.counts,
		Summary: CheckpointSummary{
			Duration: h.duration.describe(), CheckpointedSize: h.checkpointedSize.describe(), StateSize: h.stateSize.describe(),
			Processed: h.processed.describe(), Persisted: h.persisted.describe(),
		},
		LatestCompleted: h.completed.clone(), LatestSavepoint: h.savepoint.clone(), LatestFailed: h.failed.clone(),
	}
	if h.restored != nil {
		restored := *h.restored
		o.LatestRestored = &restored
	}
	for _, s := range h.running {
		o.History = append(o.History, *s.clone())
	}
	for _, s := range h.ended {
		o.History = append(o.History, *s.clone())
	}
	slices.SortFunc(o.History, func(a, b CheckpointStatistics) int { return int(b.ID - a.ID) })
	return o
}

func (s *CheckpointStatistics) clone() *CheckpointStatistics {
	if s == nil {
		return nil
	}
	c := *s
	c.Vertices = slices.Clone(s.Vertices)
	for i := range c.Vertices {
		c.Vertices[i].Subtasks = slices.Clone(c.Vertices[i].Subtasks)
	}
	return &c
}

// clamped has no negative numbers: a clock was moved, or a task counts wrongly.
func (m TaskMetrics) clamped() TaskMetrics {
	m.CheckpointedSize, m.StateSize = max(0, m.CheckpointedSize), max(0, m.StateSize)
	m.Processed, m.Persisted = max(0, m.Processed), max(0, m.Persisted)
	m.Alignment, m.StartDelay = max(0, m.Alignment), max(0, m.StartDelay)
	m.Sync, m.Async = max(0, m.Sync), max(0, m.Async)
	return m
}

// elapsed is the time since the trigger.
func (p *pendingCheckpoint) elapsed(at Instant) time.Duration {
	return time.Duration(max(0, at.Mono-p.started))
}
