package rest

import (
	"context"
	"time"

	"github.com/flott-dev/flott/internal/control"
	"github.com/flott-dev/flott/internal/plan"
)

// Job is what the endpoint asks of a job. All methods may be called from any goroutine, also after the job's end.
type Job interface {
	// Facts never change.
	Facts() *Facts
	// View is the job as it is now; the receiver keeps it.
	View() *View
	// Checkpoints is the history of its snapshots.
	Checkpoints() control.CheckpointOverview
	// Accumulators are its accumulators, merged over all subtasks.
	Accumulators() (map[string]any, error)
	// Done is closed when the job has ended.
	Done() <-chan struct{}
	// Cancel ends the job soon.
	Cancel()
	// TriggerCheckpoint takes a checkpoint and gives its number. Full says that it builds on no earlier one.
	TriggerCheckpoint(ctx context.Context, full bool) (int64, error)
	// TriggerSavepoint takes a savepoint into a new folder under dir and gives that folder.
	TriggerSavepoint(ctx context.Context, dir string) (string, error)
	// CancelWithSavepoint does the same and cancels the job once the savepoint is complete; no checkpoint comes between.
	CancelWithSavepoint(ctx context.Context, dir string) (string, error)
	// StopWithSavepoint takes a savepoint and ends the job with it; with drain the last watermark goes first.
	StopWithSavepoint(ctx context.Context, dir string, drain bool) (string, error)
}

// Facts are what never changes of a job.
type Facts struct {
	ID          string // 32 hex digits
	Name        string
	Graph       *plan.ExecutionGraph
	Parallelism int    // the default of its operators
	Restart     string // the restart strategy, for people
	Parameters  map[string]string
	// Configuration is what the job runs with, by key: what was configured, what the program has set, and defaults.
	Configuration map[string]string
	// Checkpoints is how the job takes snapshots; nil: it can't take any, and Unable says why.
	Checkpoints *Checkpointing
	Unable      string
	// SavepointDir is where savepoints lie if a request names no folder; "": it has to name one.
	SavepointDir string
}

// Checkpointing is how a job takes snapshots.
type Checkpointing struct {
	Config  control.CheckpointConfig
	Backend string // where state is
	Storage string // where checkpoints lie
	// Memory says that checkpoints lie in the job manager's memory, where nobody else finds them.
	Memory bool
}

// View is a job at one moment. Times are in ms since 1970.
type View struct {
	Status     string           // in Flink's words
	Now        int64            // the moment
	Start, End int64            // End: -1 as long as it runs
	Entered    map[string]int64 // when it last came into a state
	Attempt    int              // from 0
	Restarts   int
	// Failures are the last ones, newest first; Dropped says that there were more.
	Failures []Failure
	Dropped  bool
	Vertices []Vertex // as the plan has them
}

// Terminal says whether the job has ended.
func (v *View) Terminal() bool { return v.End >= 0 }

// Failure is one failed attempt.
type Failure struct {
	At      int64
	Attempt int
	Class   string // what kind of error the cause is
	Text    string // all of it
	Task    string // the subtask that failed, "name (1/4)"; "" if it was none
	Same    int    // how often the same failure has come in a row by then
	// SameRecord is how many of these the same record was named by; 0: none was.
	SameRecord int
}

// Vertex is a vertex at one moment.
type Vertex struct{ Subtasks []Subtask }

// Subtask is a subtask of the present attempt.
type Subtask struct {
	State                     string // in Flink's words
	Start, End                int64  // -1: not yet
	RecordsIn, RecordsOut     int64
	Idle, Backpressured, Busy time.Duration
	// Alignment is how long the last alignment of a checkpoint took, or the present one has taken; StartDelay is the time from
	// the trigger of a checkpoint to its barrier.
	Alignment, StartDelay time.Duration
	// Watermark is the event time of its inputs, or what a source has sent; math.MinInt64 before the first.
	Watermark int64
	// Operators are those of the chain, in its order.
	Operators []Operator
	// Rates say by how much per second counters have grown lately; the endpoint finds them out.
	Rates map[string]float64
}

// Operator is one operator in a subtask.
type Operator struct {
	Title   string
	Metrics map[string]any // by name: numbers, texts, readings of meters and histograms
}
