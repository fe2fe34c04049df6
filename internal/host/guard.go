package host

import "sync"

// Guard lets subtasks of one process take turns with something that they share. Between Enter and Leave nothing waits:
// it is held for the moment of a change.
type Guard struct{ mu sync.Mutex }

// Enter begins a turn.
func (g *Guard) Enter() { g.mu.Lock() }

// Leave ends it.
func (g *Guard) Leave() { g.mu.Unlock() }
