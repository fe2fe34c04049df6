package jobmanager

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flott-dev/flott/internal/control"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/internal/task"
)

func TestJobGoesThroughItsStates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProgram(t)
		var over atomic.Bool
		p.source("source", 2, hooks{poll: func(rt *operator.Runtime) (operator.Status, error) {
			if over.Load() {
				return operator.Done, nil
			}
			return operator.Nothing, nil
		}})
		j := p.submit(t.Context(), control.NoRestart{})
		if s := j.Status(); s != Created && s != Running {
			t.Errorf("a submitted job is %s", s)
		}
		synctest.Wait()
		if j.Status() != Running || number(j) != 0 || len(j.Tasks()) != 2 {
			t.Errorf("%s, attempt %d", j.Status(), number(j))
		}
		time.Sleep(time.Minute)
		if j.Duration() != time.Minute {
			t.Errorf("has run for %v, want 1m", j.Duration())
		}
		select {
		case <-j.Done():
			t.Error("done before its end")
		default:
		}
		over.Store(true)
		for _, s := range j.Tasks() {
			s.Mailbox.Post(func() error { return nil })
		}
		ends(t, "source", j, Finished)
		time.Sleep(time.Hour)
		if j.Duration() != time.Minute {
			t.Errorf("%v after the end: its time must stand", j.Duration())
		}
		if j.Cancel(); j.Status() != Finished {
			t.Errorf("cancelled after its end it is %s", j.Status())
		}
	})
}

func TestFirstFailureEndsTheOtherTasks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProgram(t)
		var closed atomic.Int64
		var log journal
		p.source("patient", 3, hooks{poll: hang, close: func(*operator.Runtime) error { closed.Add(1); return nil }})
		p.source("dutiful", 1, hooks{poll: func(rt *operator.Runtime) (operator.Status, error) {
			<-rt.Ctx.Done() // user code that waits gives up with its context's error
			return operator.Done, rt.Ctx.Err()
		}})
		p.source("failing", 1, hooks{poll: func(*operator.Runtime) (operator.Status, error) { return operator.Done, errBoom }})
		var j *Job
		submitted := make(chan struct{})
		p.source("late", 1, hooks{poll: hang, close: func(*operator.Runtime) error {
			<-submitted
			log.note("%s", j.Status())
			return errors.New("failed while closing")
		}})
		j = p.submit(t.Context(), control.NoRestart{})
		close(submitted)
		ends(t, "failing", j, Failed, errBoom)
		var e *task.Error
		if !errors.As(j.Err(), &e) || e.Operator != "failing" || closed.Load() != 3 {
			t.Errorf("%v; %d of 3 were closed", j.Err(), closed.Load())
		}
		if got := log.read(); !slices.Equal(got, []string{"FAILING"}) {
			t.Errorf("while the others end the job is %s", got)
		}
	})
}

func TestCancelledJobTellsWhy(t *testing.T) {
	why := errors.New("why")
	for name, cancel := range map[string]func(j *Job, stop context.CancelCauseFunc){
		"by its handle":   func(j *Job, _ context.CancelCauseFunc) { j.Cancel() },
		"by its context":  func(_ *Job, stop context.CancelCauseFunc) { stop(why) },
		"more than once":  func(j *Job, stop context.CancelCauseFunc) { j.Cancel(); j.Cancel(); stop(why) },
		"before it began": nil,
	} {
		inBubble(t, name, func(t *testing.T) {
			ctx, stop := context.WithCancelCause(context.Background())
			defer stop(nil)
			p := newProgram(t)
			var j *Job
			var log journal
			submitted := make(chan struct{})
			p.source("hanging", 2, hooks{poll: hang})
			p.source("watching", 1, hooks{poll: func(rt *operator.Runtime) (operator.Status, error) {
				<-rt.Ctx.Done()
				<-submitted
				log.note("%s", j.Status())
				return operator.Done, rt.Ctx.Err()
			}})
			if cancel == nil {
				stop(why)
			}
			j = p.submit(ctx, &control.FixedDelay{Attempts: 5})
			close(submitted)
			synctest.Wait()
			if cancel != nil {
				cancel(j, stop)
			}
			ends(t, name, j, Canceled, ErrCanceled)
			if name == "by its handle" && !slices.Equal(log.read(), []string{"CANCELLING"}) {
				t.Errorf("while it is being cancelled it is %s", log.read())
			}
			if name == "by its context" && !errors.Is(j.Err(), why) {
				t.Errorf("%v does not say why", j.Err())
			}
		})
	}
}

// A job all of whose tasks noticed the cancellation, or ended well, before the job manager did has not finished.
func TestCancelledJobNeverFinishes(t *testing.T) {
	for range 50 {
		inBubble(t, "", func(t *testing.T) {
			ctx, stop := context.WithCancel(context.Background())
			p := newProgram(t)
			p.source("quick", 2, hooks{poll: func(rt *operator.Runtime) (operator.Status, error) {
				stop()
				return operator.Done, rt.Ctx.Err()
			}})
			ends(t, "quick", p.submit(ctx, control.NoRestart{}), Canceled, ErrCanceled, context.Canceled)
		})
	}
}

// User code that gives up with context.Canceled though nobody cancelled the job has failed.
func TestOwnCancellationIsAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProgram(t)
		p.source("confused", 1, hooks{poll: func(*operator.Runtime) (operator.Status, error) { return operator.Done, context.Canceled }})
		j := p.run()
		ends(t, "confused", j, Failed, context.Canceled)
		if errors.Is(j.Err(), ErrCanceled) {
			t.Errorf("%v says that the job was cancelled", j.Err())
		}
	})
}

// Attempts share nothing but the job; the strategy says how many there are and when.
func TestEachAttemptBeginsAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProgram(t)
		var log journal
		start := time.Now()
		n := p.source("flaky", 1, hooks{poll: func(rt *operator.Runtime) (operator.Status, error) {
			log.note("attempt %d at %v", rt.Attempt, time.Since(start))
			if rt.Attempt < 2 {
				return operator.Done, fmt.Errorf("attempt %d: %w", rt.Attempt, errBoom)
			}
			return operator.Done, nil
		}})
		n.NewCoordinator = func() operator.Coordinator {
			return &fake{start: func(operator.CoordinatorContext) error { log.note("coordinator"); return nil }}
		}
		n.Prepare = func(parallelism int) error { log.note("prepare for %d", parallelism); return nil }
		j := p.submit(t.Context(), &control.FixedDelay{Attempts: 2, Delay: time.Second})
		for i := range 2 {
			time.Sleep(500 * time.Millisecond)
			if j.Status() != Restarting || number(j) != i {
				t.Errorf("between two attempts the job is %s in attempt %d", j.Status(), number(j))
			}
			time.Sleep(500 * time.Millisecond)
			synctest.Wait()
		}
		ends(t, "flaky", j, Finished)
		if number(j) != 2 {
			t.Errorf("the last attempt has the number %d", number(j))
		}
		lines := log.read()
		if lines[0] != "prepare for 1" {
			t.Errorf("began with %q", lines[0])
		}
		slices.Sort(lines)
		want := []string{"attempt 0 at 0s", "attempt 1 at 1s", "attempt 2 at 2s", "coordinator", "coordinator", "coordinator", "prepare for 1"}
		if !slices.Equal(lines, want) {
			t.Errorf("got %q, want %q", lines, want)
		}
	})
}

func TestLastFailureIsTheJobs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProgram(t)
		p.source("failing", 1, hooks{poll: func(rt *operator.Runtime) (operator.Status, error) {
			return operator.Done, fmt.Errorf("attempt %d: %w", rt.Attempt, errBoom)
		}})
		j := p.submit(t.Context(), &control.FixedDelay{Attempts: 2})
		ends(t, "failing", j, Failed, errBoom)
		if !strings.Contains(j.Err().Error(), "attempt 2") {
			t.Errorf("ended with %v", j.Err())
		}
	})
}

func TestCancelEndsTheWaitForARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProgram(t)
		attempts := 0
		p.source("failing", 1, hooks{poll: func(*operator.Runtime) (operator.Status, error) { attempts++; return operator.Done, errBoom }})
		j := p.submit(t.Context(), &control.FixedDelay{Attempts: 3, Delay: time.Hour})
		start := time.Now()
		after(time.Minute, j.Cancel)
		ends(t, "failing", j, Canceled, ErrCanceled, errBoom)
		if attempts != 1 || time.Since(start) != time.Minute {
			t.Errorf("%d attempts, ended after %v", attempts, time.Since(start))
		}
	})
}

// A cancelled job is never said to restart or to run again.
func TestCancellingIsNotForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProgram(t)
		p.source("failing", 1, hooks{poll: func(*operator.Runtime) (operator.Status, error) { return operator.Done, errBoom }})
		var j *Job
		cancelling := &strategy{}
		ready := make(chan struct{})
		cancelling.failed = func() (bool, time.Duration) {
			<-ready
			j.Cancel() // between the failure and the restart
			return true, 0
		}
		j = p.submit(t.Context(), cancelling)
		close(ready)
		ends(t, "failing", j, Canceled, ErrCanceled)
		if s := j.Status(); s != Canceled {
			t.Errorf("it is %s", s)
		}
	})
}

// strategy is a restart strategy of the test.
type strategy struct {
	failed func() (bool, time.Duration)
}

func (s *strategy) Failed(int64) (bool, time.Duration) { return s.failed() }

func (*strategy) Validate() error { return nil }

// A target that can't be prepared is not written to, and not in a second attempt either.
func TestJobThatCannotBePreparedIsNotStarted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProgram(t)
		started := false
		open := func(*operator.Runtime) error { started = true; return nil }
		asked := 0
		p.source("fine", 1, hooks{open: open}).Prepare = func(int) error { asked++; return nil }
		p.source("full", 1, hooks{open: open}).Prepare = func(int) error { asked++; return errBoom }
		p.source("never asked", 1, hooks{open: open}).Prepare = func(int) error { asked++; return nil }
		j := p.submit(t.Context(), &control.FixedDelay{Attempts: 5})
		ends(t, "full", j, Failed, errBoom)
		if started || asked != 2 || !strings.Contains(j.Err().Error(), `prepare operator "full"`) {
			t.Errorf("started %v, asked %d, %v", started, asked, j.Err())
		}
		if j.Tasks() != nil {
			t.Error("there was an attempt")
		}
	})
}

// An attempt that can't be built is a failure: nothing of it is left.
func TestJobThatCannotBeDeployedFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProgram(t)
		n := p.source("broken", 1, hooks{})
		n.New = func() operator.Operator { return struct{ operator.Operator }{&unit{}} } // no source
		closed := false
		n.NewCoordinator = func() operator.Coordinator {
			return &fake{start: func(operator.CoordinatorContext) error { closed = true; return nil }}
		}
		j := p.run()
		<-j.Done()
		if j.Status() != Failed || !strings.Contains(j.Err().Error(), "build subtask 1 of Source: broken") || closed {
			t.Errorf("%s, %v", j.Status(), j.Err())
		}
	})
}

func TestUserCodeThatIgnoresItsEndIsNamed(t *testing.T) {
	for name, c := range map[string]struct {
		stuck func(p *program, release chan struct{})
		names string
	}{
		"subtask": {func(p *program, release chan struct{}) {
			p.source("deaf", 2, hooks{poll: func(rt *operator.Runtime) (operator.Status, error) {
				if rt.Subtask == 1 {
					<-release
				}
				return operator.Nothing, nil
			}})
		}, `"Source: deaf" subtask 2`},
		"goroutine": {func(p *program, release chan struct{}) {
			p.source("deaf", 1, hooks{poll: hang, open: func(rt *operator.Runtime) error {
				rt.Spawn.Go(func() { <-release })
				return nil
			}})
		}, "a goroutine of a source or async function"},
		"coordinator": {func(p *program, release chan struct{}) {
			p.source("deaf", 1, hooks{poll: hang}).NewCoordinator = func() operator.Coordinator {
				return &fake{start: func(operator.CoordinatorContext) error { <-release; return nil }}
			}
		}, `the coordinator of "deaf"`},
		"coordinator's work": {func(p *program, release chan struct{}) {
			p.source("deaf", 1, hooks{poll: hang}).NewCoordinator = func() operator.Coordinator {
				return &fake{start: func(ctx operator.CoordinatorContext) error {
					ctx.Do(0, func(context.Context) error { <-release; return nil }, nil)
					return nil
				}}
			}
		}, `the coordinator of "deaf"`},
	} {
		inBubble(t, name, func(t *testing.T) {
			p := newProgram(t)
			release := make(chan struct{})
			c.stuck(p, release)
			j := p.submit(t.Context(), &control.FixedDelay{Attempts: 5})
			after(time.Minute, j.Cancel)
			start := time.Now()
			<-j.Done()
			var stuck *StuckError
			if !errors.As(j.Err(), &stuck) || !errors.Is(j.Err(), ErrCanceled) || time.Since(start) != time.Minute+CancelTimeout {
				t.Fatalf("%s: after %v: %.300v", name, time.Since(start), j.Err())
			}
			if !slices.Equal(stuck.Tasks, []string{c.names}) || !strings.Contains(stuck.Error(), c.names) || len(stuck.Stack) == 0 || stuck.After != CancelTimeout {
				t.Errorf("%s: named are %q, want %q", name, stuck.Tasks, c.names)
			}
			close(release)
		})
	}
}

// User code that needs less than the timeout is waited for.
func TestSlowEndIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProgram(t)
		p.source("slow", 1, hooks{poll: hang, close: func(*operator.Runtime) error { time.Sleep(CancelTimeout - 1); return nil }, open: func(rt *operator.Runtime) error {
			rt.Spawn.Go(func() { <-rt.Ctx.Done(); time.Sleep(CancelTimeout + time.Second) })
			return nil
		}})
		j := p.submit(t.Context(), control.NoRestart{})
		synctest.Wait()
		j.Cancel()
		ends(t, "slow", j, Canceled, ErrCanceled)
	})
}

// A job whose tasks have all ended well waits for their goroutines, too, and tells if they don't end.
func TestGoroutineThatOutlivesAGoodEndIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProgram(t)
		release := make(chan struct{})
		p.source("deaf", 1, hooks{open: func(rt *operator.Runtime) error {
			rt.Spawn.Go(func() { <-release })
			return nil
		}})
		j := p.run()
		var stuck *StuckError
		if !errors.As(j.Err(), &stuck) || stuck.Cause != nil || !strings.Contains(stuck.Error(), "after: the end of all tasks\n") {
			t.Errorf("got %.300v", j.Err())
		}
		close(release)
	})
}
