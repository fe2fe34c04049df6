package pebble

import (
	"cmp"
	"encoding/binary"
	"errors"
	"math"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"github.com/flott-dev/flott/statebackend"
)

// picked is the earliest timers, as they are being looked for: group by group, each up to a time that sinks as more are found
// than are wanted.
type picked struct {
	rows  []pick
	data  []byte // keys of rows
	most  int
	seen  int
	limit int64 // nothing of this time or a later one is wanted
	open  bool  // there is no limit
	cut   bool  // some were found and left; the rest is in order then
	rest  int64 // the earliest time of those that were left
	more  bool  // some were left
}

// pick is a timer: the key of its row is data[from:to]. Rows are found in the order of their keys, so that of two of one time
// the one that was found first comes first.
type pick struct {
	at       int64
	n        int // found as the n-th
	from, to int
}

func (p *picked) key(x pick) []byte { return p.data[x.from:x.to] }

// begin begins a pass over all groups, for timers between two times.
func (p *picked) begin(from int64, span uint64) {
	p.limit, p.open = later(from, span)
	p.cut, p.more = false, false
}

// later is a time some time after another; open says that it would be after the end of time.
func later(at int64, span uint64) (limit int64, open bool) {
	if span >= uint64(math.MaxInt64)-uint64(at) {
		return math.MaxInt64, true
	}
	return at + int64(span), false
}

func (p *picked) wants(at int64) bool { return p.open || at < p.limit }

// leave notes that a timer was left.
func (p *picked) leave(at int64) {
	if !p.more || at < p.rest {
		p.rest, p.more = at, true
	}
}

// add takes a timer, and drops the latest when there are twice as many as wanted.
func (p *picked) add(key []byte, at int64) {
	p.rows = append(p.rows, pick{at: at, n: p.seen, from: len(p.data), to: len(p.data) + len(key)})
	p.data = append(p.data, key...)
	if p.seen++; len(p.rows) >= 2*p.most {
		p.prune()
	}
}

// prune drops the latest timers if there are more than wanted.
func (p *picked) prune() {
	if len(p.rows) <= p.most {
		return
	}
	slices.SortFunc(p.rows, func(a, b pick) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.n, b.n)) })
	p.leave(p.rows[p.most].at)
	p.rows = p.rows[:p.most]
	p.limit, p.open, p.cut = p.rows[p.most-1].at, false, true
	var kept []byte
	for i := range p.rows {
		x := &p.rows[i]
		key := p.key(*x)
		x.from = len(kept)
		kept = append(kept, key...)
		x.to = len(kept)
	}
	p.data = kept
}

// Take implements statebackend.Timers.
func (t *timerSet) Take(most int, f func(x *statebackend.Timer) error) (rest int64, more bool, err error) {
	if err := t.flush(); err != nil || !t.some {
		return 0, false, err
	}
	groups := t.store.LastGroup - t.store.FirstGroup + 1
	p := &t.found
	*p = picked{rows: p.rows[:0], data: p.data[:0], most: min(most, max(leastTake, groupTake*groups))}
	if err := t.pick(); err != nil {
		return 0, false, t.wrap("read", err)
	}
	for _, x := range p.rows {
		if err := t.remove(p.key(x)); err != nil {
			return 0, false, err
		}
	}
	t.some = p.more
	var timer statebackend.Timer
	for _, x := range p.rows {
		if err := t.parse(p.key(x), &timer); err != nil {
			return 0, false, t.wrap("read", err)
		}
		if err := f(&timer); err != nil {
			return 0, false, err
		}
	}
	return p.rest, p.more, nil
}

// pick finds the earliest timers and moves the front behind them.
func (t *timerSet) pick() (err error) {
	from, to := bounds(t.shape.spaces[0])
	it, err := t.store.tree.NewIter(&pebble.IterOptions{LowerBound: from, UpperBound: to})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	p, front, span := &t.found, t.front, t.span
	for {
		p.begin(front.at, span)
		if err := t.pass(it, &front); err != nil {
			return err
		}
		p.prune()
		if !p.more || len(p.rows) > p.most/4 {
			break
		}
		front, span = position{at: p.rest}, min(span, math.MaxUint64/4)*4
	}
	t.advance(span)
	return nil
}

// pass goes through the key groups once, from a position to the limit.
func (t *timerSet) pass(it *pebble.Iterator, from *position) error {
	p, group := &t.found, -1
	valid := it.SeekGE(t.start(from, t.store.FirstGroup))
	for valid {
		key := it.Key()
		if g := groupOf(key); g != group { // groups between have no rows
			group = g
			if start := t.start(from, g); string(key) < string(start) {
				valid = it.SeekGE(start)
				continue
			}
		}
		at := timeOf(key)
		if p.wants(at) {
			p.add(key, at)
			valid = it.Next()
			continue
		}
		p.leave(at)
		if group == t.store.LastGroup {
			break
		}
		valid = it.SeekGE(t.start(from, group+1))
	}
	return it.Error()
}

func groupOf(key []byte) int { return int(binary.BigEndian.Uint16(key[spaceBytes:])) }

// start is the first key of a group that is not before a position, in the set's scratch.
func (t *timerSet) start(from *position, group int) []byte {
	at := ordered(from.at)
	if from.last != nil && group <= groupOf(from.last) {
		switch {
		case group == groupOf(from.last):
			t.key = append(append(t.key[:0], from.last...), 0)
			return t.key
		case at == math.MaxUint64:
			group++
			at = 0
		default:
			at++
		}
	}
	t.key = binary.BigEndian.AppendUint16(t.key[:0], t.shape.spaces[0])
	t.key = binary.BigEndian.AppendUint16(t.key, uint16(group))
	t.key = binary.BigEndian.AppendUint64(t.key, at)
	return t.key
}

// advance moves the front behind what was picked, and learns from it how far to look the next time.
func (t *timerSet) advance(span uint64) {
	p := &t.found
	switch n := len(p.rows); {
	case p.cut:
		t.front = position{at: p.rows[n-1].at, last: slices.Clone(p.key(p.rows[n-1]))}
	case p.more:
		t.front = position{at: p.limit}
	default:
		t.front = position{at: math.MaxInt64}
	}
	if !p.more {
		return // how far the last ones are apart says nothing
	}
	least := t.front.at
	for i := range p.rows {
		least = min(least, p.rows[i].at)
	}
	if len(p.rows) > 0 {
		per := float64(uint64(t.front.at)-uint64(least)) / float64(len(p.rows))
		span = uint64(min(max(per*float64(p.most)/2, 1), 1<<62))
	}
	t.span = span
}

// remove deletes a row that was picked.
func (t *timerSet) remove(key []byte) error { return t.write(key, deleteRow) }

func deleteRow(b *pebble.Batch, key, _ []byte, o *pebble.WriteOptions) error { return b.Delete(key, o) }
