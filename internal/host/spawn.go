package host

import (
	"errors"
	"sync"
)

// ErrNoGoroutines is the panic of a Spawner that must not start goroutines.
var ErrNoGoroutines = errors.New("start a goroutine: the simulation can't schedule what runs outside of it")

// Spawner starts the goroutines that run user code beside a subtask (function sources, async functions) and waits for
// them at the end of the job. Safe for concurrent use.
type Spawner struct {
	group sync.WaitGroup
	// Refuse makes Go panic with ErrNoGoroutines: in the simulation all that happens is scheduled. Set before use.
	Refuse bool
}

// Go runs f on a goroutine of its own. A panic in f ends the process unless f recovers it.
func (s *Spawner) Go(f func()) {
	if s.Refuse {
		panic(ErrNoGoroutines)
	}
	s.group.Go(f)
}

// Wait returns when every f has returned.
func (s *Spawner) Wait() { s.group.Wait() }
