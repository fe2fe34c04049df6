package host

import (
	"sync"
	"sync/atomic"
)

// Mailbox carries work to a subtask from other goroutines (completions, commands). Post is safe for concurrent use; the
// subtask takes the letters between runs.
type Mailbox struct {
	waiter Waiter
	full   atomic.Bool
	mu     sync.Mutex
	mail   []func() error
}

// NewMailbox returns a mailbox whose letters wake w.
func NewMailbox(w Waiter) *Mailbox { return &Mailbox{waiter: w} }

// Post leaves a letter: the subtask calls f on its own goroutine, soon. Letters left after the subtask has ended are
// never opened.
func (m *Mailbox) Post(f func() error) {
	m.mu.Lock()
	m.mail = append(m.mail, f)
	m.full.Store(true)
	m.mu.Unlock()
	m.waiter.Wake()
}

// Take hands over all letters, oldest first; nil if there are none.
func (m *Mailbox) Take() []func() error {
	if !m.full.Load() {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	mail := m.mail
	m.mail = nil
	m.full.Store(false)
	return mail
}
