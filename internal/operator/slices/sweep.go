package slices

import (
	"math"
	"math/bits"
)

// manyKeys is the number of keys from which on it is worth looking for those that are gone.
const manyKeys = 4096

// remember notes the ids of a slice that goes.
func (o *driver) remember(c *column) {
	if o.keys.table == nil {
		return
	}
	o.last = c.n
	if words := (o.keys.limit + 63) / 64; len(o.recent) < words {
		o.recent = append(o.recent, make([]uint64, words-len(o.recent))...)
	}
	clear(o.recent)
	o.keep(o.recent, c)
}

// keep sets the bits of the ids in a column.
func (o *driver) keep(live []uint64, c *column) {
	if c.dense {
		for i, word := range c.bits[:min(len(live), len(c.bits))] {
			live[i] |= word
		}
		return
	}
	for _, id := range c.ids {
		if id != none {
			live[id>>6] |= 1 << (id & 63)
		}
	}
}

// needSweep looks, now and then, whether most ids can't be in use any more: then a sweep is due even if no new key comes.
func (o *driver) needSweep() {
	if o.drops <= len(o.shelf.list) || o.keys.used() < manyKeys || o.passed >= math.MaxInt64-1 { // the end is near
		return
	}
	o.drops = 0
	held := o.last
	for _, s := range o.shelf.list {
		held += s.n
	}
	for _, e := range o.hidden {
		for _, s := range e.shelf.list {
			held += s.n
		}
		for _, x := range e.shelf.wholes {
			held += x.n
		}
	}
	for _, x := range o.shelf.wholes {
		held += x.n
	}
	if o.tangles != nil {
		held += len(o.tangles.list)
	}
	if o.keys.used() > 2*held+manyKeys {
		o.sweeps = 0
	}
}

// sweep looks for the ids that are in no slice, and forgets their keys if they are more than the others.
func (o *driver) sweep() error {
	o.live = append(o.live[:0], o.recent...)
	o.live = append(o.live, make([]uint64, max(0, (o.keys.limit+63)/64-len(o.live)))...)
	o.keepAll(&o.shelf, o.tangles)
	for i := range o.hidden {
		o.keepAll(&o.hidden[i].shelf, o.hidden[i].tangles)
	}
	live := 0
	for _, word := range o.live {
		live += bits.OnesCount64(word)
	}
	o.sweeps = 2*live + manyKeys
	if o.keys.used() < o.sweeps {
		return nil
	}
	if t := o.tangles; t != nil {
		t.reset(o.live)
	}
	return o.keys.sweep(o.live)
}

func (o *driver) keepAll(h *shelf, t *tangles) {
	for _, s := range h.list {
		o.keep(o.live, &s.column)
	}
	for _, x := range h.wholes {
		o.keep(o.live, &x.column)
	}
	if t != nil {
		for _, x := range t.list {
			o.live[x.id>>6] |= 1 << (x.id & 63)
		}
	}
}
