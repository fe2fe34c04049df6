package control

// FailureCount decides when failed checkpoints fail the job: when more than Tolerable have failed since the last success,
// or since it last said so. A checkpoint counts once, however often it is reported.
//
// Flink 1.11 counts declined checkpoints only. Later versions count those as well that expired, could not be prepared or
// could not be stored: a full disk would otherwise never be noticed. This type does as they do.
type FailureCount struct {
	// Tolerable is how many may fail; Unlimited: all.
	Tolerable int
	counted   map[int64]bool
	failures  int
}

// Failed takes the failure of a checkpoint, id -1 if it had none yet. It reports whether the job must fail.
func (f *FailureCount) Failed(reason FailureReason, id int64) (fail bool) {
	if !reason.counts(id) || f.counted[id] {
		return false
	}
	if f.counted == nil {
		f.counted = map[int64]bool{}
	}
	f.counted[id] = true
	f.failures++
	if f.failures <= f.Tolerable {
		return false
	}
	f.reset()
	return true
}

// Succeeded takes the success of a checkpoint.
func (f *FailureCount) Succeeded() { f.reset() }

func (f *FailureCount) reset() {
	f.failures = 0
	clear(f.counted)
}
