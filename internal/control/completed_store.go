package control

import "fmt"

// Handle names bytes that were stored for a snapshot. They were written once, by one attempt of one task for one
// checkpoint, so that a handle is never used again for other bytes; a chunk named by its contents needs its checkpoint's
// id in the name as well, or its discarding could meet its writing.
type Handle string

// TaskSnapshot is a task's part of a snapshot.
type TaskSnapshot struct {
	Task TaskID
	// Finished: the task had finished before; there is nothing to restore.
	Finished bool
	// New are handles that were written for this snapshot, Reused those of earlier checkpoints that it builds on.
	New, Reused []Handle
	// Payload is what the manifest says of the part.
	Payload []byte
}

// CompletedCheckpoint is a checkpoint or savepoint that can be restored. It is immutable.
type CompletedCheckpoint struct {
	ID        int64
	Kind      SnapshotKind
	Timestamp int64 // ms since 1970, of its trigger
	Location  string
	Retention Retention
	// Foreign snapshots were restored and belong to somebody else.
	Foreign bool
	// Prepared is what was stored before any task was triggered: the state of the coordinators of sources.
	Prepared TaskSnapshot
	Tasks    []TaskSnapshot // in the order of their ids
}

// Kept reports whether the snapshot is somebody's property: it is never discarded by its job.
func (c *CompletedCheckpoint) Kept() bool { return c.Foreign || c.Kind != Checkpoint }

// CompletedStore holds the snapshots that a job can recover from.
type CompletedStore struct {
	retain int
	all    []*CompletedCheckpoint // in the order of their completion
}

// NewCompletedStore returns a store that keeps so many snapshots, at least 1.
func NewCompletedStore(retain int) (*CompletedStore, error) {
	if retain < 1 {
		return nil, fmt.Errorf("retain %d completed checkpoints: at least 1 is needed to recover from", retain)
	}
	return &CompletedStore{retain: retain}, nil
}

// All are the snapshots in the order of their completion.
func (s *CompletedStore) All() []*CompletedCheckpoint { return s.all }

// Latest is the snapshot to recover from: the one with the largest id, since sinks have committed all that it covers; nil
// if there is none. With preferCheckpoint, savepoints are taken only if there is no checkpoint.
func (s *CompletedStore) Latest(preferCheckpoint bool) *CompletedCheckpoint {
	if preferCheckpoint {
		if c := s.latest(func(c *CompletedCheckpoint) bool { return c.Kind == Checkpoint }); c != nil {
			return c
		}
	}
	return s.latest(func(*CompletedCheckpoint) bool { return true })
}

func (s *CompletedStore) latest(fits func(*CompletedCheckpoint) bool) *CompletedCheckpoint {
	var best *CompletedCheckpoint
	for _, c := range s.all {
		if fits(c) && (best == nil || c.ID > best.ID) {
			best = c
		}
	}
	return best
}

// Add takes a completed snapshot and returns those that it replaces, from the oldest. The latest one stays, and so does the
// latest checkpoint beside newer savepoints, because incremental checkpoints build on it.
func (s *CompletedStore) Add(c *CompletedCheckpoint) (dropped []*CompletedCheckpoint) {
	s.all = append(s.all, c)
	latest := s.Latest(false)
	base := s.latest(func(c *CompletedCheckpoint) bool { return !c.Kept() })
	for len(s.all) > s.retain {
		oldest := -1
		for i, c := range s.all {
			if c != latest && c != base && (oldest < 0 || c.ID < s.all[oldest].ID) {
				oldest = i
			}
		}
		if oldest < 0 {
			break
		}
		dropped = append(dropped, s.all[oldest])
		s.all = append(s.all[:oldest], s.all[oldest+1:]...)
	}
	return dropped
}

// ShutDown empties the store because the job has ended. It returns those that go with the job: all that are neither
// somebody's property nor retained.
func (s *CompletedStore) ShutDown(end JobEnd) (dropped []*CompletedCheckpoint) {
	for _, c := range s.all {
		if !c.Kept() && !c.Retention.Keeps(end) {
			dropped = append(dropped, c)
		}
	}
	s.all = nil
	return dropped
}
