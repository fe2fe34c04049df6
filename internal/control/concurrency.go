package control

// concurrency says how many checkpoints may be pending at a time. A task at which the barrier of a newer checkpoint is first
// gives the older one up. At a short interval under load each would so be overtaken by the next, and none be completed: so
// after that there is one at a time, and one more with each that is completed, up to the maximum.
type concurrency struct {
	limit int
	now   int
	// passed is the newest checkpoint that was overtaken. Older ones don't count any more: those who owe them their parts may
	// have met a newer barrier without a word, so that they end only by their timeout.
	passed int64
}

func newConcurrency(limit int) concurrency { return concurrency{limit: limit, now: limit} }

// overtaken notes that a task has given a checkpoint up for a newer one.
func (c *concurrency) overtaken(checkpoint int64) {
	c.now, c.passed = 1, max(c.passed, checkpoint)
}

// completed notes that a snapshot is complete.
func (c *concurrency) completed() {
	if c.now < c.limit {
		c.now++
	}
}

// full reports whether no more checkpoint may begin beside those that are pending.
func (c *concurrency) full(pending []*pendingCheckpoint) bool {
	abreast := 0
	for _, p := range pending {
		if p.id > c.passed {
			abreast++
		}
	}
	return len(pending) >= c.limit || abreast >= c.now
}
