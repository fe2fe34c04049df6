package control

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// Failover decides what follows the failures of a job. The job's vertices fall into failover regions, between which nothing
// flows, so that a failure restarts one region while the others go on. It is a pure step machine like the others of this
// package: its owner hands it what happened and does the actions that it answers. The attempts of a region are numbered from 0,
// and one begins only when the one before is over.
//
// One restart strategy serves all regions: each failure counts, in whichever region.
type Failover struct {
	restart Restart
	regions []failoverRegion
	stopped bool  // a savepoint that stops the job is complete
	ending  error // nothing is started any more, because of this
	failed  bool  // the job has failed for good
	stuck   bool  // user code is, which err tells
	tries   int   // how often the strategy has restarted anything
	err     error // the job's, once it is over
	actions []FailoverAction
}

type failoverRegion struct {
	phase   regionPhase
	attempt int
	due     int64 // ms, of the next attempt
	cause   error // of the next attempt: why the last one failed
}

type regionPhase uint8

const (
	regionStarting regionPhase = iota // the attempt is being restored and deployed
	regionRunning
	regionClosing // all tasks have finished, what they had started ends
	regionFailing // the attempt has failed and is about to end; another one follows
	regionWaiting // for the time of the next attempt
	regionOver    // no other attempt follows
)

// FailoverAction is what a Failover wants done: a StopRegion or StartRegion.
type FailoverAction interface{ failover() }

// StartRegion asks for an attempt of a region, from the latest checkpoint. Deployed says that its tasks run, Over that it has
// ended, which comes in any case.
type StartRegion struct {
	Region, Attempt int
	Cause           error // why the attempt before failed; nil at the first
}

// StopRegion asks for the end of the region's present attempt because of Err.
type StopRegion struct {
	Region int
	Err    error
}

func (StartRegion) failover() {}
func (StopRegion) failover()  {}

// JobPhase is what a job does as far as failures are concerned.
type JobPhase uint8

const (
	// JobStarting: the tasks of some first attempt do not run yet.
	JobStarting JobPhase = iota
	// JobRunning: all tasks run, or have finished.
	JobRunning
	// JobRestarting: a region has failed, and runs no more or not yet again.
	JobRestarting
	// JobEnding: it has failed for good, or was cancelled.
	JobEnding
	// JobOver: nothing runs any more.
	JobOver
)

// NewFailover returns the machine of a job with so many regions, at least 1.
func NewFailover(restart Restart, regions int) *Failover {
	return &Failover{restart: restart, regions: make([]failoverRegion, regions)}
}

// Start starts the first attempts. The actions of this and all other methods are lent until the next call.
func (f *Failover) Start() []FailoverAction {
	f.begin()
	for i := range f.regions {
		f.do(StartRegion{Region: i})
	}
	return f.actions
}

func (f *Failover) begin() { f.actions = f.actions[:0] }

func (f *Failover) do(a FailoverAction) { f.actions = append(f.actions, a) }

// present finds a region if the attempt is its present one, which is not over.
func (f *Failover) present(region, attempt int) *failoverRegion {
	r := &f.regions[region]
	if r.attempt != attempt || r.phase == regionWaiting || r.phase == regionOver {
		return nil
	}
	return r
}

// Deployed takes the word that the tasks of an attempt run.
func (f *Failover) Deployed(region, attempt int) {
	if r := f.present(region, attempt); r != nil && r.phase == regionStarting {
		r.phase = regionRunning
	}
}

// Finished takes the word that all tasks of an attempt have finished. What is left of it can fail, but nothing that is nobody's
// failure concerns it any more.
func (f *Failover) Finished(region, attempt int) {
	if r := f.present(region, attempt); r != nil && (r.phase == regionStarting || r.phase == regionRunning) {
		r.phase = regionClosing
	}
}

// Failed takes the first failure of an attempt, at now (ms). Its consequences may be told as well.
func (f *Failover) Failed(now int64, region, attempt int, err error) []FailoverAction {
	f.begin()
	r := f.present(region, attempt)
	switch {
	case r == nil || r.phase == regionFailing || f.ending != nil:
	case f.stopped:
		f.failAll(now, err)
	default:
		if due, again := f.decide(now, err); again {
			f.fail(region, due, err)
		}
	}
	return f.actions
}

// FailedAll takes a failure that is nobody's: that of a checkpoint too many. It counts once.
func (f *Failover) FailedAll(now int64, err error) []FailoverAction {
	f.begin()
	if f.ending == nil && f.works() {
		f.failAll(now, err)
	}
	return f.actions
}

// works reports whether an attempt is under way that has not failed.
func (f *Failover) works() bool {
	for i := range f.regions {
		if p := f.regions[i].phase; p == regionStarting || p == regionRunning {
			return true
		}
	}
	return false
}

// Stopped takes the word that a savepoint that stops the job is complete, before any task hears of it. Regions end with it: if
// one fails instead, all begin again from the savepoint, since a job is never half stopped.
func (f *Failover) Stopped() { f.stopped = true }

// permanent says whether a failure is one that every attempt would meet again: an error with a method Permanent says so.
func permanent(err error) bool {
	var p interface{ Permanent() bool }
	return errors.As(err, &p) && p.Permanent()
}

// decide asks the strategy, and ends the job if it has had enough, or if no attempt can do better.
func (f *Failover) decide(now int64, err error) (due int64, again bool) {
	again, delay := f.restart.Failed(now)
	if !again || permanent(err) {
		f.failed = true
		f.end(err)
		return 0, false
	}
	f.tries++
	// Rounded up: a strategy's delay is the least.
	return now + int64((delay+time.Millisecond-1)/time.Millisecond), true
}

func (f *Failover) failAll(now int64, err error) {
	due, again := f.decide(now, err)
	if !again {
		return
	}
	for i := range f.regions {
		switch r := &f.regions[i]; {
		case r.phase == regionStarting || r.phase == regionRunning:
			f.fail(i, due, err)
		case r.phase == regionClosing && f.stopped:
			r.phase, r.due, r.cause = regionFailing, due, err
		case r.phase == regionOver && f.stopped:
			r.phase, r.due, r.cause = regionWaiting, due, err
		}
	}
	f.stopped = false
	f.startDue(now)
}

// fail ends an attempt that another one is to follow.
func (f *Failover) fail(region int, due int64, err error) {
	r := &f.regions[region]
	r.phase, r.due, r.cause = regionFailing, due, err
	f.do(StopRegion{Region: region, Err: err})
}

// Over takes the end of an attempt: all of its tasks have ended, and whatever they had started. err is what went wrong, which
// need not have been told before; nil: it has finished. If stuck, user code is still at work in spite of the end of its context:
// the job can't go on.
func (f *Failover) Over(now int64, region, attempt int, err error, stuck bool) []FailoverAction {
	f.begin()
	r := f.present(region, attempt)
	if r == nil {
		return f.actions
	}
	failing := r.phase == regionFailing
	r.phase = regionOver
	switch {
	case stuck:
		if !f.stuck { // its cause is what the job would end with otherwise
			f.stuck, f.failed, f.err = true, true, err
		}
		f.end(err)
	case f.ending != nil:
		if failing && !f.failed {
			err = f.unstarted(r)
		}
		f.blame(err)
	case failing:
		r.phase = regionWaiting
	case err == nil:
	case f.stopped:
		f.failAll(now, err) // this region with all others that are over
	default:
		if due, again := f.decide(now, err); again {
			r.phase, r.due, r.cause = regionWaiting, due, err
		}
	}
	f.startDue(now)
	return f.actions
}

// blame makes err the job's if it has none.
func (f *Failover) blame(err error) {
	if f.err == nil {
		f.err = err
	}
}

// unstarted is the end of a region that was to be restarted and is not.
func (f *Failover) unstarted(r *failoverRegion) error {
	return fmt.Errorf("%w, before a restart after: %w", f.ending, r.cause)
}

// end ends the job. What runs is stopped, what waits is not started.
func (f *Failover) end(err error) {
	if f.failed {
		f.blame(err)
	}
	if f.ending != nil {
		return
	}
	f.ending = err
	for i := range f.regions {
		switch r := &f.regions[i]; r.phase {
		case regionStarting, regionRunning, regionClosing, regionFailing:
			f.do(StopRegion{Region: i, Err: err})
		case regionWaiting:
			r.phase = regionOver
			f.blame(f.unstarted(r))
		}
	}
}

// Cancel ends the job because of err. It is over when its attempts are; if all of them happen to finish, so has the job.
func (f *Failover) Cancel(err error) []FailoverAction {
	f.begin()
	f.end(err)
	return f.actions
}

// Due starts what is to be started by now (ms).
func (f *Failover) Due(now int64) []FailoverAction {
	f.begin()
	f.startDue(now)
	return f.actions
}

func (f *Failover) startDue(now int64) {
	if f.ending != nil {
		return
	}
	for i := range f.regions {
		if r := &f.regions[i]; r.phase == regionWaiting && r.due <= now {
			r.phase, r.attempt = regionStarting, r.attempt+1
			f.do(StartRegion{Region: i, Attempt: r.attempt, Cause: r.cause})
		}
	}
}

// Next is when Due is to be called, in ms; math.MaxInt64: not because of the time.
func (f *Failover) Next() int64 {
	next := int64(math.MaxInt64)
	for i := range f.regions {
		if r := &f.regions[i]; r.phase == regionWaiting {
			next = min(next, r.due)
		}
	}
	return next
}

// Phase is what the job does.
func (f *Failover) Phase() JobPhase {
	over, restarting, starting := true, false, false
	for i := range f.regions {
		r := &f.regions[i]
		over = over && r.phase == regionOver
		starting = starting || r.phase == regionStarting && r.attempt == 0
		restarting = restarting || r.phase == regionFailing || r.phase == regionWaiting || r.phase == regionStarting && r.attempt > 0
	}
	switch {
	case over:
		return JobOver
	case f.ending != nil:
		return JobEnding
	case restarting:
		return JobRestarting
	case starting:
		return JobStarting
	}
	return JobRunning
}

// Failing reports whether the job ends because it has failed for good.
func (f *Failover) Failing() bool { return f.failed }

// Restarts counts the failures that a restart has followed, or follows.
func (f *Failover) Restarts() int { return f.tries }

// Err is why the job is over; nil if it has finished.
func (f *Failover) Err() error {
	if f.Phase() != JobOver {
		return errors.New("the job is not over")
	}
	return f.err
}
