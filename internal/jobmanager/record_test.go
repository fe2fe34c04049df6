package jobmanager

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/flott-dev/flott/checkpoint"
	"github.com/flott-dev/flott/internal/control"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/internal/task"
	"github.com/flott-dev/flott/internal/vfs"
)

func TestRecordKeepsTheLastFailuresNewestFirst(t *testing.T) {
	j := &Job{}
	j.enter(Created)
	for i := range KeptFailures + 2 {
		j.failed(i, errors.New("boom"))
		j.enter(Restarting)
		j.enter(Running)
	}
	r := j.Record()
	if len(r.Failures) != KeptFailures || !r.Dropped || r.Failures[0].Attempt != KeptFailures+1 {
		t.Errorf("%d failures, dropped %v, first of attempt %d", len(r.Failures), r.Dropped, r.Failures[0].Attempt)
	}
	for _, s := range []Status{Created, Restarting, Running} {
		if r.Entered[s].IsZero() {
			t.Errorf("it never came into %s", s)
		}
	}
	r.Failures[0].Attempt = -1
	delete(r.Entered, Created)
	if again := j.Record(); again.Failures[0].Attempt == -1 || again.Entered[Created].IsZero() {
		t.Error("the record is not the receiver's own")
	}
}

func TestTriggeredCheckpointIsTakenOrRefused(t *testing.T) {
	inBubble(t, "", func(t *testing.T) {
		p := newProgram(t)
		p.source("hanging", 1, hooks{poll: hang})
		opt := everyTen(vfs.NewMem())
		opt.Config.Interval = 0
		j := p.keep(control.NoRestart{}, opt)
		id, err := j.TriggerCheckpoint(t.Context(), true)
		if c := j.Checkpoints(); err != nil || id != 1 || c.LatestCompleted == nil || c.LatestCompleted.ID != id || c.LatestCompleted.Kind != control.Checkpoint {
			t.Errorf("checkpoint %d, %v: %+v", id, err, c.Counts)
		}
		j.Cancel()
		<-j.Done()
		if _, err := j.TriggerCheckpoint(t.Context(), false); !errors.Is(err, errEnded) {
			t.Errorf("after the end: %v", err)
		}
		if _, err := (&Job{}).TriggerCheckpoint(t.Context(), false); !errors.Is(err, errNoCheckpoints) {
			t.Errorf("without a keeper: %v", err)
		}
	})
}

func TestCancelWithSavepointEndsTheJobOnceItIsComplete(t *testing.T) {
	inBubble(t, "", func(t *testing.T) {
		f := &full{FS: vfs.NewMem()}
		p := newProgram(t)
		p.source("hanging", 1, hooks{poll: hang})
		opt := everyTen(f)
		opt.Config.TolerableFailures = control.Unlimited
		j := p.keep(control.NoRestart{}, opt)
		f.no.Store(true)
		if _, err := j.CancelWithSavepoint(t.Context(), "/savepoints"); err == nil || j.Status() != Running && j.Status() != Created {
			t.Errorf("a savepoint that can't be: %v, the job is %s", err, j.Status())
		}
		f.no.Store(false)
		folder, err := j.CancelWithSavepoint(t.Context(), "/savepoints")
		if err != nil || j.Status() != Canceled {
			t.Fatalf("%q, %v, the job is %s", folder, err, j.Status())
		}
		if m, err := checkpoint.Load(f, folder); err != nil || m.Kind != checkpoint.Savepoint {
			t.Errorf("%v, %v", m, err)
		}
		if _, err := (&Job{}).CancelWithSavepoint(t.Context(), "/savepoints"); !errors.Is(err, errNoSnapshots) {
			t.Errorf("without a keeper: %v", err)
		}
	})
}

// The error of a job that gave up names operator, subtask and cause, and tells how often the same came (a poison record).
func TestPoisonRecordIsToldFromOtherFailures(t *testing.T) {
	for name, c := range map[string]struct {
		poll func(rt *operator.Runtime) error
		same int
		want string
	}{
		"the same error": {func(*operator.Runtime) error { return errBoom }, 4, `restarted 3 times, and the same failure came 4 times in a row: operator "poisoned" (`},
		"the same panic": {func(*operator.Runtime) error { panic("poison") }, 4, `the same failure came 4 times in a row: operator "poisoned" (`},
		"another at last": {func(rt *operator.Runtime) error {
			if rt.Attempt == 3 {
				return errBoom
			}
			return errors.New("first")
		}, 1, `the job was restarted 3 times and failed again: operator "poisoned" (`},
		"two of them": {func(rt *operator.Runtime) error { return fmt.Errorf("%d: %w", rt.Attempt/2, errBoom) }, 2, `restarted 3 times, and the same failure came 2 times in a row: `},
	} {
		inBubble(t, name, func(t *testing.T) {
			p := newProgram(t)
			p.source("calm", 1, hooks{poll: hang})
			p.source("poisoned", 2, hooks{poll: func(rt *operator.Runtime) (operator.Status, error) {
				if rt.Subtask == 0 {
					return operator.Nothing, nil
				}
				return operator.Done, c.poll(rt)
			}})
			j := p.submit(t.Context(), &control.FixedDelay{Attempts: 3, Delay: time.Second})
			<-j.Done()
			var gave *GaveUpError
			var at *task.Error
			if !errors.As(j.Err(), &gave) || gave.Restarts != 3 || gave.Same != c.same || !errors.As(j.Err(), &at) || at.Subtask != 1 {
				t.Fatalf("%#v: %.300v", gave, j.Err())
			}
			if text := j.Err().Error(); !strings.Contains(text, c.want) || !strings.Contains(text, "subtask 2: ") {
				t.Errorf("%.300s, want %s", text, c.want)
			}
			if f := j.Record().Failures; len(f) != 4 || f[0].Same != c.same || f[3].Same != 1 {
				t.Errorf("recorded %+v", f)
			}
		})
	}
}
