package host

import "sync"

// Spawner starts the goroutines that run user code beside a subtask (function sources, async functions) and waits for
// them at the end of the job. Safe for concurrent use.
type Spawner struct{ group sync.WaitGroup }

// Go runs f on a goroutine of its own. A panic in f ends the process unless f recovers it.
func (s *Spawner) Go(f func()) { s.group.Go(f) }

// Wait returns when every f has returned.
func (s *Spawner) Wait() { s.group.Wait() }
