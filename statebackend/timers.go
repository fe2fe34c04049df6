package statebackend

import (
	"errors"
	"iter"

	"github.com/flott-dev/flott/serde"
)

// TimerKind is the kind of tables of timers in snapshots (TableInfo.Kind). A row is a timer: its map key is the time, an
// int64 in canonical form, and it has no value.
const TimerKind = "timers"

// TimerStore is implemented by stores that keep timers, so that an operator may have more of them than fit into memory.
// Timers of stores that don't are held in memory by the engine, all of them.
type TimerStore interface {
	Store
	// Timers opens a set of timers, once per name, with those that Options.Restored has under the name: as rows of TimerKind
	// or in files of the backend. Names are shared with tables. Timers that nobody has opened by the first Freeze are dropped.
	Timers(spec TimerSpec) (Timers, error)
}

// TimerSpec declares a set of timers.
type TimerSpec struct {
	// Name is that of its table in snapshots.
	Name string
	// Namespace, if set, is the type of the namespaces of timers (windows).
	Namespace *serde.Key
	// Ahead, if set, gives the timers that were taken out of the set and have not fired yet, or were never put into it:
	// snapshots have them with those of the set. Freeze calls it on the goroutine of the subtask; what it returns is read
	// later, perhaps on another one and at most once, and gives the timers of the moment of the call. nil: there are none.
	Ahead func() iter.Seq[*Timer]
}

// Check reports what makes a spec unusable.
func (s *TimerSpec) Check() error {
	if s.Name == "" {
		return errors.New("timers without a name")
	}
	return nil
}

// Timer is a timer of a key.
type Timer struct {
	// At is its time in ms.
	At int64
	// Key is the canonical key, Hash its hash with Options.Seed.
	Key  []byte
	Hash uint64
	// Namespace is the canonical namespace; nil or empty for timers without.
	Namespace []byte
}

// Timers is a set of timers in the order of their times. It may be written without being read: that a timer is put that is
// there already, or deleted that is not, is no error and is not told. All calls come from the subtask's goroutine; calls
// keep nothing of the timer that they get. After an error the store can't be used.
type Timers interface {
	// Put adds a timer.
	Put(t *Timer) error
	// Delete takes a timer away.
	Delete(t *Timer) error
	// Take takes the earliest timers out of the set, at least one if there is one and at most so many (at least 1), and calls
	// f for each, in any order. The timer is valid during the call; f may not call the set. Of timers of one time it may take
	// some and leave others. rest is the earliest time of those that are left; more is false if none is.
	Take(most int, f func(t *Timer) error) (rest int64, more bool, err error)
	// Range calls f for each timer, in any order, until it returns an error, which is then Range's. It changes nothing.
	Range(f func(t *Timer) error) error
	// AheadBytes is how much memory timers should take that the user of the set holds outside of it.
	AheadBytes() int64
}
