package operatortest

import (
	"container/heap"
	"iter"
	"math/rand/v2"

	"github.com/flott-dev/flott/statebackend"
)

// TimerShelf is a store that keeps timers, and nothing else, in heaps. It gives as many at once as Rand says.
type TimerShelf struct {
	statebackend.Store
	Rand *rand.Rand
	// Ahead is what timers outside of it should take, in bytes.
	Ahead int64
	// Sets are those that were opened.
	Sets []*ShelvedTimers
	// Err, if set, is the error of all calls.
	Err error
}

// ShelvedTimers is a set of a TimerShelf.
type ShelvedTimers struct {
	shelf *TimerShelf
	Spec  statebackend.TimerSpec
	// Timers are those in the set, with the hashes of their keys; Most is how many it has ever had.
	Timers map[ShelvedTimer]uint64
	Most   int
	order  shelfOrder // with some that are gone
}

// ShelvedTimer is a timer as a value.
type ShelvedTimer struct {
	At             int64
	Key, Namespace string
}

func shelve(t *statebackend.Timer) ShelvedTimer {
	return ShelvedTimer{t.At, string(t.Key), string(t.Namespace)}
}

func (x ShelvedTimer) timer(hash uint64) *statebackend.Timer {
	return &statebackend.Timer{At: x.At, Key: []byte(x.Key), Hash: hash, Namespace: []byte(x.Namespace)}
}

// shelfOrder is a heap by time.
type shelfOrder []ShelvedTimer

func (o shelfOrder) Len() int           { return len(o) }
func (o shelfOrder) Less(i, j int) bool { return o[i].At < o[j].At }
func (o shelfOrder) Swap(i, j int)      { o[i], o[j] = o[j], o[i] }
func (o *shelfOrder) Push(x any)        { *o = append(*o, x.(ShelvedTimer)) }
func (o *shelfOrder) Pop() any {
	last := (*o)[len(*o)-1]
	*o = (*o)[:len(*o)-1]
	return last
}

// Timers implements statebackend.TimerStore.
func (s *TimerShelf) Timers(spec statebackend.TimerSpec) (statebackend.Timers, error) {
	set := &ShelvedTimers{shelf: s, Spec: spec, Timers: map[ShelvedTimer]uint64{}}
	s.Sets = append(s.Sets, set)
	return set, s.Err
}

// Put implements statebackend.Timers.
func (s *ShelvedTimers) Put(t *statebackend.Timer) error {
	x := shelve(t)
	if _, ok := s.Timers[x]; !ok {
		heap.Push(&s.order, x)
	}
	s.Timers[x] = t.Hash
	s.Most = max(s.Most, len(s.Timers))
	return s.shelf.Err
}

// Delete implements statebackend.Timers.
func (s *ShelvedTimers) Delete(t *statebackend.Timer) error {
	delete(s.Timers, shelve(t))
	return s.shelf.Err
}

// Take implements statebackend.Timers.
func (s *ShelvedTimers) Take(most int, f func(*statebackend.Timer) error) (rest int64, more bool, err error) {
	for n := 1 + s.shelf.Rand.IntN(most); ; n-- {
		for len(s.order) > 0 {
			if _, ok := s.Timers[s.order[0]]; ok {
				break
			}
			heap.Pop(&s.order)
		}
		if len(s.order) == 0 {
			return 0, false, s.shelf.Err
		}
		if n == 0 {
			return s.order[0].At, true, s.shelf.Err
		}
		x := heap.Pop(&s.order).(ShelvedTimer)
		hash := s.Timers[x]
		delete(s.Timers, x)
		if err := f(x.timer(hash)); err != nil {
			return 0, false, err
		}
	}
}

// Range implements statebackend.Timers.
func (s *ShelvedTimers) Range(f func(*statebackend.Timer) error) error {
	for x, hash := range s.Timers {
		if err := f(x.timer(hash)); err != nil {
			return err
		}
	}
	return s.shelf.Err
}

// AheadBytes implements statebackend.Timers.
func (s *ShelvedTimers) AheadBytes() int64 { return s.shelf.Ahead }

// All are the timers of a snapshot: those of the set and those that it is told of.
func (s *ShelvedTimers) All() iter.Seq[ShelvedTimer] {
	return func(yield func(ShelvedTimer) bool) {
		for x := range s.Timers {
			if !yield(x) {
				return
			}
		}
		ahead := s.Spec.Ahead()
		if ahead == nil {
			return
		}
		for t := range ahead {
			if !yield(shelve(t)) {
				return
			}
		}
	}
}
