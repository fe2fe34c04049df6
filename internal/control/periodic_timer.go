package control

// periodicTimer decides when the next periodic checkpoint is due: on a grid of the interval from the start of the
// scheduler on. One that can't begin at its time begins as soon as it can; those that are missed meanwhile are dropped.
// Times are monotonic, in ns.
type periodicTimer struct {
	interval, pause int64
	on              bool
	due             bool
	grid            int64 // the next time on the grid
	free            int64 // when the pause after the last checkpoint is over
	waited          bool  // a checkpoint has ended, so that there is a pause
	set             int64 // what the timer is set to
	armed           bool
}

func (p *periodicTimer) start(now int64) {
	if p.interval > 0 && !p.on {
		p.on, p.due = true, false
		p.grid = now + p.interval
	}
}

// stop reports whether the timer is set and must be cancelled.
func (p *periodicTimer) stop() (cancel bool) {
	cancel = p.armed
	p.on, p.due, p.armed = false, false, false
	return cancel
}

// restart begins a new grid.
func (p *periodicTimer) restart(now int64) {
	if p.on {
		p.due = false
		p.grid = now + p.interval
	}
}

// fired takes a timer; false if periodic checkpoints are stopped.
func (p *periodicTimer) fired(now int64) bool {
	p.armed = false
	if !p.on {
		return false
	}
	if now >= p.grid {
		p.due = true
		p.grid += (now-p.grid)/p.interval*p.interval + p.interval
	}
	return true
}

// take reports whether a checkpoint is to begin, which is then no longer due.
func (p *periodicTimer) take(now int64) bool {
	if !p.due || p.waited && now < p.free {
		return false
	}
	p.due = false
	return true
}

// ended notes that a checkpoint has ended.
func (p *periodicTimer) ended(now int64) {
	p.free, p.waited = now+p.pause, true
}

// schedule says when the timer must fire, if that is news: at the end of the pause if nothing else is waited for, else on
// the grid.
func (p *periodicTimer) schedule(free bool) (at int64, set bool) {
	if !p.on {
		return 0, false
	}
	at = p.grid
	if p.due && free && p.waited {
		at = min(at, p.free)
	}
	if p.armed && p.set == at {
		return 0, false
	}
	p.armed, p.set = true, at
	return at, true
}
