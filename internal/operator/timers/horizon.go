package timers

import (
	"fmt"
	"math"
	"slices"

	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/statebackend"
)

// horizon divides the timers of a queue between memory and a store behind it. Those before it are in memory, all of them;
// of others most are in the store, and some may still be in memory. So timers in memory may fire until time reaches the
// horizon. Then the earliest timers of the store come in, and it moves on. If memory has too many, it moves back, and those
// behind it go to the store, some with each timer that is registered.
type horizon struct {
	set statebackend.Timers // nil: there is no store behind
	far bool                // the store may have timers; false: all are in memory
	at  int64               // no timer in the store is before it
	// split says that some timers of time at have come in and others may be in the store.
	split  bool
	bytes  int64 // what timers in memory should take
	least  int64 // what bytes does not sink below
	cost   int64 // what one takes, about
	lap    bool  // records are being looked through for those that are behind the horizon
	next   uint32
	latest int64 // of the timers that came in
	taken  int
	take   func(t *statebackend.Timer) error // bound once: a method value would be allocated at each use
	timer  statebackend.Timer
}

const (
	// shedStep is how many records are looked at for each timer that is registered while there are too many.
	shedStep = 64
	// samples is how many timers the horizon is chosen by.
	samples = 64
	// besides is what a timer takes beside its record: places in index and wheel.
	besides = 32
)

// behind gives a queue a store. What the store has comes in when it is needed.
func (q *queue) behind(set statebackend.Timers) {
	h := &q.horizon
	h.set, h.bytes, h.cost = set, set.AheadBytes(), int64(q.slab.stride)+besides
	h.least, h.far, h.at, h.take = h.bytes/64, true, math.MinInt64, q.takeIn
}

// beyond says whether a timer is to be looked for in the store as well.
func (h *horizon) beyond(at int64) bool { return h.far && at >= h.at }

// full says that there are too many timers in memory.
func (q *queue) full() bool {
	return q.horizon.set != nil && int64(q.live)*q.horizon.cost+q.arena.used > q.horizon.bytes
}

// registerFar sets a timer behind the horizon.
func (q *queue) registerFar(key []byte, hash uint64, namespace []byte, at int64) error {
	h := &q.horizon
	h.timer = statebackend.Timer{At: at, Key: key, Hash: hash, Namespace: namespace}
	if at == h.at && h.split {
		// It is about to fire. The store may have it, and would have to begin anew with that time if it were to keep it.
		q.register(key, hash, namespace, at)
		return h.set.Delete(&h.timer)
	}
	if _, _, ok := q.find(tagOf(hash, namespace, at), key, hash, namespace, at); ok {
		return nil
	}
	return h.set.Put(&h.timer)
}

// removeFar takes back a timer behind the horizon, which is not in memory.
func (q *queue) removeFar(key []byte, hash uint64, namespace []byte, at int64) error {
	q.horizon.timer = statebackend.Timer{At: at, Key: key, Hash: hash, Namespace: namespace}
	return q.horizon.set.Delete(&q.horizon.timer)
}

// refill brings the earliest timers of the store in and moves the horizon behind them.
func (q *queue) refill() error {
	h := &q.horizon
	h.taken = 0
	rest, more, err := h.set.Take(int(max(1, h.bytes/h.cost/4)), h.take)
	if err != nil {
		return err
	}
	if more && h.taken == 0 {
		return fmt.Errorf("the state backend has timers from %d on and gives none", rest)
	}
	h.far, h.at, h.split = more, rest, more && rest == h.latest
	return nil
}

func (q *queue) takeIn(t *statebackend.Timer) error {
	h := &q.horizon
	if h.taken++; h.taken == 1 || t.At > h.latest {
		h.latest = t.At
	}
	q.register(t.Key, t.Hash, t.Namespace, t.At)
	return nil
}

// shed sends some timers to the store.
func (q *queue) shed() error {
	h := &q.horizon
	if !h.lap && !q.retreat() {
		return nil
	}
	for range shedStep {
		if h.next == q.slab.used {
			h.lap = false
			return nil
		}
		id := h.next
		h.next++
		r := q.slab.at(id)
		if r.gen&1 == 0 || r.at < h.at || r.at == h.at && h.split {
			continue
		}
		key, ns := q.payload(r)
		h.timer = statebackend.Timer{At: r.at, Key: key, Hash: r.hash, Namespace: ns}
		if err := h.set.Put(&h.timer); err != nil {
			return err
		}
		q.discard(id, r)
	}
	h.lap = 2*int64(q.live)*h.cost > h.bytes
	return nil
}

// retreat moves the horizon back so that about half of the timers in memory are behind it, and begins to look for those. It
// does not move before what is firing: false if there is nothing to be had.
func (q *queue) retreat() bool {
	var buf [samples]int64
	times := buf[:0]
	for i := range uint32(samples) {
		id := uint32(uint64(i) * uint64(q.slab.used) / samples)
		if r := q.slab.at(id); r.gen&1 == 1 {
			times = append(times, r.at)
		}
	}
	if len(times) == 0 {
		return false
	}
	slices.Sort(times)
	to := times[len(times)/2]
	if to == times[0] { // rather the few that come after them than all
		later := slices.IndexFunc(times, func(at int64) bool { return at > to })
		to = times[max(later, 0)]
	}
	if q.firing {
		now := unordered(q.wheel.base)
		if now == math.MaxInt64 {
			return false
		}
		to = max(to, now+1)
	}
	h := &q.horizon
	if !h.far || to < h.at {
		h.far, h.at, h.split = true, to, false
	}
	h.lap, h.next = true, 0
	return true
}

// waits says whether timers of the store come before those in memory, up to a time.
func (q *queue) waits(upTo int64) bool {
	h := &q.horizon
	if !h.far || h.at > upTo {
		return false
	}
	at, ok := q.bound()
	return !ok || at > h.at
}

// earliest is a time that no timer is before; ok is false if there is none.
func (q *queue) earliest() (at int64, ok bool) {
	at, ok = q.bound()
	if h := &q.horizon; h.far && (!ok || h.at < at) {
		return h.at, true
	}
	return at, ok
}

// eachFar calls f for every timer of the store.
func (s *Service) eachFar(d process.Domain, f Fire) error {
	h := &s.queues[d].horizon
	if !h.far {
		return nil
	}
	return h.set.Range(func(t *statebackend.Timer) error { return f(t.Key, t.Hash, t.Namespace, t.At) })
}
