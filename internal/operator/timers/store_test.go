package timers

import (
	"container/heap"
	"iter"
	"math/rand/v2"

	"github.com/flott-dev/flott/statebackend"
)

// shelf is a store that keeps timers in a heap. It gives as many as it likes.
type shelf struct {
	statebackend.Store
	rnd   *rand.Rand
	ahead int64
	sets  []*shelfSet
	err   error // of all calls
}

type shelfSet struct {
	*shelf
	spec   statebackend.TimerSpec
	timers map[shelved]uint64 // hashes
	order  shelfOrder         // with some that are gone
	most   int                // timers that it ever had
}

// shelved is a timer as a value.
type shelved struct {
	at      int64
	key, ns string
}

func shelve(t *statebackend.Timer) shelved { return shelved{t.At, string(t.Key), string(t.Namespace)} }

func (x shelved) timer(hash uint64) *statebackend.Timer {
	return &statebackend.Timer{At: x.at, Key: []byte(x.key), Hash: hash, Namespace: []byte(x.ns)}
}

type shelfOrder []shelved

func (o shelfOrder) Len() int           { return len(o) }
func (o shelfOrder) Less(i, j int) bool { return o[i].at < o[j].at }
func (o shelfOrder) Swap(i, j int)      { o[i], o[j] = o[j], o[i] }
func (o *shelfOrder) Push(x any)        { *o = append(*o, x.(shelved)) }
func (o *shelfOrder) Pop() any {
	last := (*o)[len(*o)-1]
	*o = (*o)[:len(*o)-1]
	return last
}

func (s *shelf) Timers(spec statebackend.TimerSpec) (statebackend.Timers, error) {
	set := &shelfSet{shelf: s, spec: spec, timers: map[shelved]uint64{}}
	s.sets = append(s.sets, set)
	return set, s.err
}

func (s *shelfSet) Put(t *statebackend.Timer) error {
	x := shelve(t)
	if _, ok := s.timers[x]; !ok {
		heap.Push(&s.order, x)
	}
	s.timers[x] = t.Hash
	s.most = max(s.most, len(s.timers))
	return s.err
}

func (s *shelfSet) Delete(t *statebackend.Timer) error {
	delete(s.timers, shelve(t))
	return s.err
}

func (s *shelfSet) Take(most int, f func(*statebackend.Timer) error) (rest int64, more bool, err error) {
	for n := 1 + s.rnd.IntN(most); ; n-- {
		for len(s.order) > 0 {
			if _, ok := s.timers[s.order[0]]; ok {
				break
			}
			heap.Pop(&s.order)
		}
		if len(s.order) == 0 {
			return 0, false, s.err
		}
		if n == 0 {
			return s.order[0].at, true, s.err
		}
		x := heap.Pop(&s.order).(shelved)
		hash := s.timers[x]
		delete(s.timers, x)
		if err := f(x.timer(hash)); err != nil {
			return 0, false, err
		}
	}
}

func (s *shelfSet) Range(f func(*statebackend.Timer) error) error {
	for x, hash := range s.timers {
		if err := f(x.timer(hash)); err != nil {
			return err
		}
	}
	return s.err
}

func (s *shelfSet) AheadBytes() int64 { return s.ahead }

// all are the timers of a snapshot: those of the set and those that it is told of.
func (s *shelfSet) all() iter.Seq[shelved] {
	return func(yield func(shelved) bool) {
		for x := range s.timers {
			if !yield(x) {
				return
			}
		}
		ahead := s.spec.Ahead()
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
