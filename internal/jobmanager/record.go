package jobmanager

import (
	"maps"
	"slices"
	"time"

	"github.com/flott-dev/flott/internal/taskmanager"
)

// KeptFailures is how many failures of a job are remembered, as many as Flink remembers.
const KeptFailures = 16

// Record is what is remembered of a job's life. It is the receiver's own.
type Record struct {
	// Start is when the job was submitted, End when it ended; zero as long as it runs.
	Start, End time.Time
	// Entered says when the job last came into a state.
	Entered map[Status]time.Time
	// Failures are the last failures, newest first: those that a restart followed and the one that ended the job.
	Failures []Failure
	// Dropped says that there were more failures than are kept.
	Dropped bool
	// Restarts counts the failures that a restart has followed, or follows.
	Restarts int
	// Ended are the tasks, in their present attempts, that have ended, by vertex and subtask.
	Ended map[[2]int]TaskEnd
}

// Failure is an attempt that failed.
type Failure struct {
	Attempt int
	At      time.Time
	Err     error
	// Same is how often the same failure has come in a row, this time included: the same operator and subtask failed for the
	// same reason.
	Same int
	// SameRecord is how many of these named the same record, too, this time included; 0: it names none.
	SameRecord int
}

// TaskEnd is how a task ended.
type TaskEnd struct {
	At       time.Time
	Canceled bool  // it was told to end
	Err      error // nil: it has finished, or was told to end
}

// Record is what is remembered of the job so far.
func (j *Job) Record() Record {
	j.mu.Lock()
	defer j.mu.Unlock()
	r := j.record
	r.Start, r.End = j.start, j.end
	r.Entered, r.Ended, r.Failures = maps.Clone(r.Entered), maps.Clone(r.Ended), slices.Clone(r.Failures)
	return r
}

// enter notes a new state. The caller holds the lock, or is alone with the job.
func (j *Job) enter(s Status) {
	if j.record.Entered == nil {
		j.record.Entered = map[Status]time.Time{}
	}
	if j.status != s || s == Created {
		j.record.Entered[s] = time.Now()
	}
	j.status = s
}

// failed notes that an attempt failed.
func (j *Job) failed(attempt int, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	r := &j.record
	j.repeats.note(err)
	r.Failures = slices.Insert(r.Failures, 0, Failure{Attempt: attempt, At: time.Now(), Err: err, Same: j.repeats.times, SameRecord: j.repeats.records})
	if len(r.Failures) > KeptFailures {
		r.Failures, r.Dropped = r.Failures[:KeptFailures], true
	}
}

// begun forgets how the tasks of a region's former attempts ended. The caller holds the lock.
func (j *Job) begun(r *region) {
	if j.record.Ended == nil {
		j.record.Ended = map[[2]int]TaskEnd{}
	}
	for _, id := range r.tasks() {
		delete(j.record.Ended, [2]int{id.Vertex, id.Subtask})
	}
}

// taskEnded notes how a task of the present attempt ended; canceled says that it was told to.
func (j *Job) taskEnded(e taskmanager.Ended, canceled bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	end := TaskEnd{At: time.Now(), Canceled: e.Err != nil && canceled}
	if !end.Canceled {
		end.Err = e.Err
	}
	j.record.Ended[[2]int{e.Vertex, e.Subtask}] = end
}
