package jobmanager

import (
	"errors"
	"testing"

	"github.com/flott-dev/flott/checkpoint"
	"github.com/flott-dev/flott/internal/control"
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
