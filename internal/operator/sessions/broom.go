package sessions

import (
	"unsafe"

	"github.com/flott-dev/flott/serde"
)

const (
	// idlePerSession is how many keys without a session may be kept for each one, sweepSlack how many in any case. Keeping
	// them is what makes closing and opening sessions cheap: a key that is swept must be inserted into the table again.
	idlePerSession = 4
	sweepSlack     = 32 << 10
	// sweepBatch is the number of keys that are taken out of the table together.
	sweepBatch = 256
)

// broom goes round the nodes, and takes out keys without a session while there are too many of them.
type broom struct {
	slack int
	hand  int // the node to look at next
	ids   []uint32
	keys  unsafe.Pointer // of ids
}

// excess is how many keys without a session there are too many.
func (o *driver) excess() int { return o.idle - idlePerSession*o.live - o.broom.slack }

// sweep does a step that keeps up with n new keys without a session.
func (o *driver) sweep(n int) error {
	for looks := 8*n + sweepBatch; looks > 0 && o.excess() > 0; {
		looks -= o.gather(looks)
		if err := o.forget(); err != nil {
			return err
		}
	}
	return nil
}

// gather collects keys to sweep. It looks at so many nodes at the most, and says at how many.
func (o *driver) gather(looks int) int {
	b := &o.broom
	if b.keys == nil {
		b.ids, b.keys = make([]uint32, 0, sweepBatch), o.k.Keys.New(sweepBatch)
	}
	looked, want := 0, min(o.excess(), sweepBatch)
	looks = min(looks, o.used-1) // once round: no node twice
	for ; looked < looks && len(b.ids) < want; looked++ {
		if b.hand++; b.hand >= o.used {
			b.hand = 1
		}
		if s := &o.nodes[b.hand]; s.empty() && s.newer != freeNode {
			o.k.Keys.Move(o.k.Keys.At(b.keys, len(b.ids)), o.keys.at(uint32(b.hand)), 1)
			b.ids = append(b.ids, uint32(b.hand))
		}
	}
	return looked
}

// forget takes the keys that were collected out of the table.
func (o *driver) forget() error {
	b := &o.broom
	if err := o.keyer.name(serde.Column{P: b.keys, N: len(b.ids), Stride: o.k.Keys.Size}); err != nil {
		return err
	}
	// All are there; finding them together is faster than one by one, and Delete finds them in the cache.
	if err := o.keyer.table.Slots(0, len(b.ids), o.keyer.latest, o.keyer.fresh); err != nil {
		return err
	}
	for i, id := range b.ids {
		if err := o.keyer.table.Delete(i); err != nil {
			return err
		}
		if err := o.release(id); err != nil {
			return err
		}
	}
	o.idle -= len(b.ids)
	o.k.Keys.Zero(b.keys, len(b.ids))
	b.ids = b.ids[:0]
	return nil
}
