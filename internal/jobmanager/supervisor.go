package jobmanager

import (
	"context"
	"log/slog"
	"math"
	"sync"
	"time"

	"github.com/flott-dev/flott/internal/control"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/internal/taskmanager"
)

// supervisor runs the regions of a job: what is told by their attempts, each on a goroutine of its own, it takes in order to
// the failover machine, and does what that answers.
type supervisor struct {
	job     *Job
	ctx     context.Context
	machine *control.Failover
	runs    []*regionRun         // by region: the present attempt
	restore *taskmanager.Restore // what first attempts begin with

	mu      sync.Mutex
	letters []func()
	wake    chan struct{}
}

func newSupervisor(ctx context.Context, j *Job) *supervisor {
	return &supervisor{
		job: j, ctx: ctx, machine: control.NewFailover(j.restarts.Strategy, len(j.regions)),
		runs: make([]*regionRun, len(j.regions)), wake: make(chan struct{}, 1),
	}
}

// post leaves a letter, from any goroutine.
func (s *supervisor) post(f func()) {
	s.mu.Lock()
	s.letters = append(s.letters, f)
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

func (s *supervisor) take() []func() {
	s.mu.Lock()
	defer s.mu.Unlock()
	letters := s.letters
	s.letters = nil
	return letters
}

// run runs all regions to the job's end.
func (s *supervisor) run() error {
	s.do(s.machine.Start())
	done := s.ctx.Done()
	for s.machine.Phase() != control.JobOver {
		timer, due := s.timer()
		select {
		case <-s.wake:
			for _, letter := range s.take() {
				letter()
			}
		case <-timer:
			s.do(s.machine.Due(due))
		case <-done:
			done = nil
			s.do(s.machine.Cancel(canceled(s.ctx)))
		}
	}
	return s.machine.Err()
}

// timer fires when the next attempt is due. The job's clock may be one that moves by hand: what counts is the time until then.
func (s *supervisor) timer() (<-chan time.Time, int64) {
	due := s.machine.Next()
	if due == math.MaxInt64 {
		return nil, due
	}
	return time.After(time.Duration(due-s.now()) * time.Millisecond), due
}

func (s *supervisor) now() int64 { return s.job.opt.Clock.Millis() }

// do shows what the job does now, and does what the machine wants.
func (s *supervisor) do(actions []control.FailoverAction) {
	s.show()
	for _, a := range actions {
		switch a := a.(type) {
		case control.StartRegion:
			r := newRegionRun(s, s.job.regions[a.Region], a.Attempt, a.Cause)
			s.runs[a.Region] = r
			go r.run()
		case control.StopRegion:
			r := s.runs[a.Region]
			if k := s.job.keeper; k != nil {
				k.failing(r.region.index, a.Err) // before its tasks give up what they have to do with checkpoints
			}
			r.stop(a.Err)
		}
	}
}

// show makes the machine's phase the job's status. A job that is being cancelled never says anything else.
func (s *supervisor) show() {
	j := s.job
	j.mu.Lock()
	defer j.mu.Unlock()
	j.record.Restarts = s.machine.Restarts()
	if j.status == Cancelling {
		return
	}
	switch s.machine.Phase() {
	case control.JobRunning:
		j.enter(Running)
	case control.JobRestarting:
		j.enter(Restarting)
	case control.JobEnding:
		if s.machine.Failing() {
			j.enter(Failing)
		} else {
			j.enter(Cancelling)
		}
	}
}

// deployed takes the word that the tasks of an attempt run.
func (s *supervisor) deployed(r *regionRun) {
	s.post(func() {
		s.machine.Deployed(r.region.index, r.number)
		s.show()
	})
}

// finished takes the word that all tasks of an attempt have finished.
func (s *supervisor) finished(r *regionRun) {
	s.post(func() { s.machine.Finished(r.region.index, r.number) })
}

// failed takes the first failure of an attempt.
func (s *supervisor) failed(r *regionRun, err error) {
	s.post(func() {
		s.job.failed(r.number, err)
		s.do(s.machine.Failed(s.now(), r.region.index, r.number, err))
		s.warn(err)
	})
}

// warn tells people about a failure that no caller gets to know, as the job goes on. One that comes again and again, as a record
// does that can't be processed, is told after 1, 2, 4, 8 ... times; each record that is named is told at least once.
func (s *supervisor) warn(err error) {
	if p := s.machine.Phase(); p == control.JobEnding || p == control.JobOver {
		return // Wait tells
	}
	j := s.job
	j.mu.Lock()
	same, restarts := j.repeats, j.record.Restarts
	j.mu.Unlock()
	if !same.news() {
		return
	}
	text, stack := operator.WithoutStack(err)
	slog.Warn("a job is restarted after a failure", "job", j.job.Name, "restarts", restarts, "same failure in a row", same.times, "same record in a row", same.records, "error", text)
	if stack != "" {
		slog.Debug("the stack of the panic that a job is restarted after", "job", j.job.Name, "restarts", restarts, "stack", stack)
	}
}

// failedAll takes a failure that is nobody's.
func (s *supervisor) failedAll(err error) {
	s.post(func() {
		if s.ctx.Err() != nil { // cancelled tasks can't take part in checkpoints
			return
		}
		actions := s.machine.FailedAll(s.now(), err)
		if len(actions) > 0 {
			s.job.failed(s.latest(), err)
		}
		s.do(actions)
		if len(actions) > 0 {
			s.warn(err)
		}
	})
}

// latest is the greatest number of an attempt.
func (s *supervisor) latest() int {
	n := 0
	for _, r := range s.runs {
		n = max(n, r.number)
	}
	return n
}

// stopped takes the word that a savepoint that stops the job is complete.
func (s *supervisor) stopped() { s.post(s.machine.Stopped) }

// over takes the end of an attempt.
func (s *supervisor) over(r *regionRun, err error, stuck bool) {
	s.post(func() { s.do(s.machine.Over(s.now(), r.region.index, r.number, err, stuck)) })
}
