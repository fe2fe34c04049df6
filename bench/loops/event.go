// Package loops holds hand-written, single-purpose loops for the workloads that Flott is measured by: the yardstick in
// "half as fast as a hand-written loop". A loop does the work on data that already lies in memory (the word count also
// reads its files) and returns a checksum that every right answer must equal. The package imports nothing of Flott; only
// the program bench calls it.
package loops

import (
	"cmp"
	"slices"
)

// Event is the element of every numeric workload: three words.
type Event struct {
	Key uint64
	TS  int64 // event time, ms
	Val int64
}

// Events are n elements with uniformly random keys below keys (spread by 7919), value 1, and rate elements per second of
// event time. The same arguments give the same events.
func Events(n, keys, rate int) []Event { return EventsFrom(n, keys, rate, 0) }

// EventsFrom is Events with keys of another sequence.
func EventsFrom(n, keys, rate int, seed uint64) []Event {
	es := make([]Event, n)
	x := uint64(88172645463325252) + seed
	for i := range es {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		es[i] = Event{Key: x % uint64(keys) * Spread, TS: int64(i) * 1000 / int64(rate), Val: 1}
	}
	return es
}

// Disorder makes every tenth event of es, which are in order of time, come up to by ms later than it should.
func Disorder(es []Event, by int64) []Event {
	type late struct {
		Event
		at int64
	}
	ls := make([]late, len(es))
	x := uint64(88172645463325252)
	for i, e := range es {
		ls[i] = late{e, e.TS}
		if i%10 == 0 {
			x ^= x << 13
			x ^= x >> 7
			x ^= x << 17
			ls[i].at += int64(x % uint64(by+1))
		}
	}
	slices.SortStableFunc(ls, func(a, b late) int { return cmp.Compare(a.at, b.at) })
	out := make([]Event, len(es))
	for i := range ls {
		out[i] = ls[i].Event
	}
	return out
}

// Spread is the distance of two keys.
const Spread = 7919

// Record is an element of five words, one of them a string's address: more than Go passes in registers.
type Record struct {
	ID     uint64
	User   uint64
	TS     int64 // event time, ms
	Amount int64
	Item   string // begins with a digit
}

// Records are n elements with ids from 0 on.
func Records(n int) []Record {
	items := [...]string{"0-bolt", "1-nut", "2-washer", "3-rivet", "4-screw", "5-anchor", "6-nail"}
	rs := make([]Record, n)
	for i, e := range Events(n, 1000, 1000) {
		rs[i] = Record{ID: uint64(i), User: e.Key, TS: e.TS, Amount: e.Val, Item: items[e.Key%uint64(len(items))]}
	}
	return rs
}
