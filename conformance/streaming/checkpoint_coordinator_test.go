package streaming_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/flott-dev/flott/conformance"
	"github.com/flott-dev/flott/internal/control"
)

type coordinatorCase struct {
	conformance.Head
	Kind             string            `json:"kind"`
	Config           coordinatorConfig `json:"config"`
	Steps            []json.RawMessage `json:"steps"`
	Tolerable        int               `json:"tolerable"`
	ExpectFailures   int               `json:"expect_job_failures"`
	Retain           int               `json:"retain"`
	PreferCheckpoint bool              `json:"prefer_checkpoint"`
	Completed        []struct {
		ID        int64 `json:"id"`
		Savepoint bool  `json:"savepoint"`
	} `json:"completed"`
	Field       string          `json:"field"`
	Value       json.RawMessage `json:"value"`
	ExpectValid *bool           `json:"expect_valid"`
	Expect      json.RawMessage `json:"expect"`
}

type coordinatorConfig struct {
	Trigger       []string `json:"tasks_to_trigger"`
	Ack           []string `json:"tasks_to_ack"`
	Notify        []string `json:"tasks_to_notify"`
	MaxConcurrent any      `json:"max_concurrent"`
	MinPause      int64    `json:"min_pause_ms"`
	Interval      int64    `json:"interval_ms"`
	Retained      int      `json:"retained"`
}

type coordinatorStep struct {
	Trigger        string `json:"trigger"`
	ExpectID       *int64 `json:"expect_id"`
	ExpectRejected bool   `json:"expect_rejected"`
	Ack            *struct {
		Task       string `json:"task"`
		Checkpoint int64  `json:"checkpoint"`
		State      string `json:"state"`
		Job        string `json:"job"`
	} `json:"ack"`
	Decline *struct {
		Task       string `json:"task"`
		Checkpoint int64  `json:"checkpoint"`
	} `json:"decline"`
	Timeout      *int64 `json:"timeout"`
	SetTaskState *struct {
		Tasks []string `json:"tasks"`
		State string   `json:"state"`
	} `json:"set_task_state"`
	StartScheduler bool               `json:"start_scheduler"`
	PeriodicTick   bool               `json:"periodic_tick"`
	Shutdown       string             `json:"shutdown"`
	Expect         *coordinatorExpect `json:"expect"`
}

type coordinatorExpect struct {
	Pending        *[]int64            `json:"pending"`
	PendingAtLeast *int                `json:"pending_at_least"`
	Completed      *[]int64            `json:"completed"`
	Acked          map[string][]string `json:"acked"`
	Triggered      map[string][]string `json:"triggered"`
	TriggeredTotal *int                `json:"triggered_total"`
	TimeoutTimers  *int                `json:"timeout_timers"`
	Discarded      *[]int64            `json:"discarded"`
	StateDiscarded *[]string           `json:"state_discarded"`
	Notified       map[string][]int64  `json:"notified"`
	SavepointDone  map[string]bool     `json:"savepoint_done"`
}

func TestCheckpointCoordinatorVectors(t *testing.T) {
	s := conformance.Suite{
		Folder: "streaming", Family: "checkpoint_coordinator", Rewrite: *rewrite, Rules: coordinatorRules(),
		Runners: map[string]conformance.Runner{},
	}
	for kind, run := range map[string]func(*testing.T, *coordinatorCase){
		"coordinator": runCoordinator, "failure_manager": runFailureCount, "store": runStore,
		"latest_for_recovery": runLatestForRecovery, "config": runConfig, "config_default": runConfigDefault,
	} {
		s.Runners[kind] = func(t *testing.T, c conformance.Case) {
			var v coordinatorCase
			c.Decode(t, &v)
			run(t, &v)
		}
	}
	s.Run(t)
}

// bench makes a coordinator of the vector's configuration. The vectors speak of Flink before checkpoints went on after the
// end of tasks.
func (c *coordinatorConfig) bench(t *testing.T) *checkpointBench {
	t.Helper()
	cfg := control.DefaultCheckpointConfig()
	cfg.Interval, cfg.MinPause = time.Duration(c.Interval)*time.Millisecond, time.Duration(c.MinPause)*time.Millisecond
	cfg.Retained, cfg.AfterTasksFinish = c.Retained, false
	switch n := c.MaxConcurrent.(type) {
	case float64:
		cfg.MaxConcurrent = int(n)
	case string:
		equal(t, "max_concurrent", n, "unlimited")
		cfg.MaxConcurrent = control.Unlimited
	}
	var vertices []control.CheckpointVertex
	for _, name := range slices.Concat(c.Trigger, c.Ack, c.Notify) {
		if slices.ContainsFunc(vertices, func(v control.CheckpointVertex) bool { return v.Name == name }) {
			continue
		}
		v := control.CheckpointVertex{Name: name, Parallelism: 1}
		for role, names := range map[control.Role][]string{control.Triggered: c.Trigger, control.Acknowledges: c.Ack, control.Notified: c.Notify} {
			if slices.Contains(names, name) {
				v.Roles |= role
			}
		}
		vertices = append(vertices, v)
	}
	return newCheckpointBenchOf(t, cfg, vertices)
}

func runCoordinator(t *testing.T, c *coordinatorCase) {
	b := c.Config.bench(t)
	for i, raw := range c.Steps {
		var s coordinatorStep
		conformance.Strict(t, raw, &s)
		s.run(t, b)
		if s.Expect != nil {
			s.Expect.check(t, b, i)
		}
		if t.Failed() {
			t.Fatalf("step %d: %s", i, raw)
		}
	}
}

func (s *coordinatorStep) run(t *testing.T, b *checkpointBench) {
	switch {
	case s.Trigger != "":
		id := b.trigger(word(t, map[string]control.SnapshotKind{"checkpoint": control.Checkpoint, "savepoint": control.Savepoint}, s.Trigger))
		if s.ExpectID != nil {
			equal(t, "id", id, *s.ExpectID)
		}
		equal(t, "rejected", id == 0, s.ExpectRejected)
	case s.Ack != nil:
		ack := control.Acknowledged{Job: "job", Task: b.task(s.Ack.Task), Checkpoint: s.Ack.Checkpoint}
		state := s.Ack.State
		if s.Ack.Job != "" {
			ack.Job = s.Ack.Job
		} else if state == "" {
			state = fmt.Sprintf("%d/%s", s.Ack.Checkpoint, s.Ack.Task)
		}
		if state != "" {
			ack.New = []control.Handle{control.Handle(state)}
		}
		b.step(ack)
	case s.Decline != nil:
		b.decline(s.Decline.Task, s.Decline.Checkpoint)
	case s.Timeout != nil:
		if !b.fire(control.Timer{Kind: control.TimeoutTimer, Checkpoint: *s.Timeout}) {
			t.Errorf("checkpoint %d has no timer", *s.Timeout)
		}
	case s.SetTaskState != nil:
		state := word(t, map[string]control.TaskState{
			"not_started": control.TaskCreated, "created": control.TaskCreated, "running": control.TaskRunning, "finished": control.TaskFinished,
		}, s.SetTaskState.State)
		for _, task := range s.SetTaskState.Tasks {
			b.state(task, state)
		}
	case s.StartScheduler:
		b.step(control.StartScheduler{})
	case s.PeriodicTick:
		b.tick()
	case s.Shutdown != "":
		b.step(control.ShutDown{End: word(t, jobEnds(), s.Shutdown)})
	case s.Expect == nil:
		t.Error("the step says nothing")
	}
}

func jobEnds() map[string]control.JobEnd {
	return map[string]control.JobEnd{
		"finished": control.JobFinished, "canceled": control.JobCanceled, "cancelled": control.JobCanceled,
		"failed": control.JobFailed, "suspended": control.JobSuspended,
	}
}

func (e *coordinatorExpect) check(t *testing.T, b *checkpointBench, step int) {
	t.Helper()
	sameIDs(t, "pending", b.c.Pending(), e.Pending)
	sameIDs(t, "completed", b.completed(), e.Completed)
	sameIDs(t, "discarded", b.failed(), e.Discarded)
	if e.PendingAtLeast != nil && len(b.c.Pending()) < *e.PendingAtLeast {
		t.Errorf("pending are %v, want %d at least", b.c.Pending(), *e.PendingAtLeast)
	}
	for id, want := range e.Acked {
		var tasks []control.TaskRef
		for _, id := range b.c.Acknowledged(idOf(t, id)) {
			tasks = append(tasks, control.TaskRef{TaskID: id})
		}
		b.sameTasks(t, "acknowledged "+id, tasks, want)
	}
	for id, want := range e.Triggered {
		b.sameTasks(t, "triggered "+id, b.triggered[idOf(t, id)], want)
	}
	if e.TriggeredTotal != nil {
		equal(t, "trigger messages", b.messages, *e.TriggeredTotal)
	}
	if e.TimeoutTimers != nil {
		equal(t, "timeout timers", b.timeouts(), *e.TimeoutTimers)
	}
	if e.StateDiscarded != nil {
		var got []string
		for _, h := range b.discarded {
			got = append(got, string(h))
		}
		compare(t, step, "state discarded", got, *e.StateDiscarded, true)
	}
	for task, want := range e.Notified {
		sameIDs(t, "notified "+task, b.complete[b.task(task).TaskID], &want)
	}
	for id, want := range e.SavepointDone {
		done := slices.ContainsFunc(b.ended, func(e control.Ended) bool {
			return e.Checkpoint == idOf(t, id) && e.Kind == control.Savepoint && e.Err == nil
		})
		equal(t, "savepoint done "+id, done, want)
	}
}

func sameIDs(t *testing.T, what string, got []int64, want *[]int64) {
	t.Helper()
	if want != nil && !slices.Equal(got, *want) {
		t.Errorf("%s: %v, want %v", what, got, *want)
	}
}

func (b *checkpointBench) sameTasks(t *testing.T, what string, got []control.TaskRef, want []string) {
	t.Helper()
	var names []string
	for _, task := range got {
		names = append(names, b.names[task.Vertex])
	}
	slices.Sort(names)
	want = slices.Sorted(slices.Values(want))
	if !slices.Equal(names, want) {
		t.Errorf("%s: %q, want %q", what, names, want)
	}
}

func idOf(t *testing.T, s string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func runFailureCount(t *testing.T, c *coordinatorCase) {
	f := control.FailureCount{Tolerable: c.Tolerable}
	failures := 0
	for _, raw := range c.Steps {
		var s struct {
			Failure    string `json:"failure"`
			Checkpoint int64  `json:"checkpoint"`
			Success    *int64 `json:"success"`
		}
		conformance.Strict(t, raw, &s)
		if s.Success != nil {
			f.Succeeded()
			continue
		}
		if f.Failed(failureReason(t, s.Failure), s.Checkpoint) {
			failures++
		}
	}
	equal(t, "failures of the job", failures, c.ExpectFailures)
}

// failureReason is the reason of that word.
func failureReason(t *testing.T, word string) control.FailureReason {
	t.Helper()
	for r := control.ReasonNone; r < math.MaxUint8; r++ {
		if r.String() == word {
			return r
		}
	}
	t.Fatalf("the reason %q is unknown", word)
	return control.ReasonNone
}

func runStore(t *testing.T, c *coordinatorCase) {
	store, err := control.NewCompletedStore(c.Retain)
	if err != nil && c.Retain > 0 {
		t.Fatal(err)
	}
	var discarded []int64
	drop := func(dropped []*control.CompletedCheckpoint) {
		for _, c := range dropped {
			discarded = append(discarded, c.ID)
		}
	}
	for _, raw := range c.Steps {
		var s struct {
			Create        json.RawMessage `json:"create"`
			ExpectError   any             `json:"expect_error"`
			Add           *int64          `json:"add"`
			Shutdown      string          `json:"shutdown"`
			Retained      *[]int64        `json:"expect_retained"`
			Latest        json.RawMessage `json:"expect_latest"`
			DiscardedLast *int64          `json:"expect_discarded_last"`
			Discarded     *[]int64        `json:"expect_discarded"`
		}
		conformance.Strict(t, raw, &s)
		switch {
		case s.Create != nil:
			retain := c.Retain
			if n, err := strconv.Atoi(string(s.Create)); err == nil {
				retain = n
			}
			_, err := control.NewCompletedStore(retain)
			equal(t, "fails", err != nil, s.ExpectError != nil && s.ExpectError != false)
		case s.Add != nil:
			drop(store.Add(&control.CompletedCheckpoint{ID: *s.Add}))
		case s.Shutdown != "":
			drop(store.ShutDown(word(t, jobEnds(), s.Shutdown)))
		}
		var ids []int64
		if store != nil {
			for _, c := range store.All() {
				ids = append(ids, c.ID)
			}
		}
		sameIDs(t, "retained", ids, s.Retained)
		sameIDs(t, "discarded", discarded, s.Discarded)
		if s.DiscardedLast != nil && (len(discarded) == 0 || discarded[len(discarded)-1] != *s.DiscardedLast) {
			t.Errorf("discarded are %v, want %d last", discarded, *s.DiscardedLast)
		}
		if s.Latest != nil {
			got := "null"
			if latest := store.Latest(false); latest != nil {
				got = fmt.Sprint(latest.ID)
			}
			equal(t, "latest", got, string(s.Latest))
		}
	}
}

func runLatestForRecovery(t *testing.T, c *coordinatorCase) {
	store, err := control.NewCompletedStore(max(1, len(c.Completed)))
	if err != nil {
		t.Fatal(err)
	}
	for _, done := range c.Completed {
		kind := control.Checkpoint
		if done.Savepoint {
			kind = control.Savepoint
		}
		store.Add(&control.CompletedCheckpoint{ID: done.ID, Kind: kind})
	}
	equal(t, "latest", fmt.Sprint(store.Latest(c.PreferCheckpoint).ID), string(c.Expect))
}

func runConfig(t *testing.T, c *coordinatorCase) {
	cfg := control.DefaultCheckpointConfig()
	n, err := strconv.ParseInt(string(c.Value), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	switch c.Field {
	case "interval_ms":
		cfg.Interval = time.Duration(n) * time.Millisecond
	case "timeout_ms":
		cfg.Timeout = time.Duration(n) * time.Millisecond
	case "min_pause_ms":
		cfg.MinPause = time.Duration(n) * time.Millisecond
	case "max_concurrent":
		cfg.MaxConcurrent = int(n)
	case "tolerable_failures":
		cfg.TolerableFailures = int(n)
	case "retained":
		cfg.Retained = int(n)
	default:
		t.Fatalf("the field %q is unknown", c.Field)
	}
	if err := cfg.Validate(); (err == nil) != *c.ExpectValid {
		t.Errorf("%s = %d: %v", c.Field, n, err)
	}
}

func runConfigDefault(t *testing.T, c *coordinatorCase) {
	cfg := control.DefaultCheckpointConfig()
	got := word(t, map[string]any{
		"timeout_ms": cfg.Timeout.Milliseconds(), "min_pause_ms": cfg.MinPause.Milliseconds(), "max_concurrent": cfg.MaxConcurrent,
		"tolerable_failures": cfg.TolerableFailures, "fail_on_checkpoint_errors": cfg.FailsOnErrors(), "retained": cfg.Retained,
		"mode": cfg.Mode.String(), "prefer_checkpoint_for_recovery": cfg.PreferCheckpoint, "prefer_checkpoint": cfg.PreferCheckpoint,
		"unaligned": cfg.Unaligned,
	}, c.Field)
	equal(t, c.Field, conformance.Text(got), conformance.Canonical(c.Expect))
}

var errStorage = errors.New("no space left")
