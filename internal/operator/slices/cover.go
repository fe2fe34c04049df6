package slices

import (
	"unsafe"

	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/operator/windows"
)

// cover keeps what overlapping windows have in common: for every id the accumulator of the window that fired last. Its
// slices are those of the shelf that this window covers; the driver adds younger ones and evicts the oldest as it goes from
// window to window.
type cover interface {
	// add takes in a slice that is younger than all others.
	add(s *slice) error
	// evict takes out the slice at place i of the shelf, the oldest.
	evict(i int) error
	// amend follows the slice at place i of the shelf: element e of r was added to its accumulator of id; fresh says that it
	// had none.
	amend(i int, id uint32, fresh bool, r *frame.Run, e int) error
	// emit emits the results of the window.
	emit() error
	// remove forgets an id, which is still in the slices; adopt takes it in from them again.
	remove(id uint32) error
	adopt(id uint32) error
	// clear forgets all slices.
	clear()
}

// sums are the accumulators of whole windows by id, and copies on their way there.
type sums struct {
	*columns
	copier
	k      *windows.Incremental
	cursor cursor
	lent   unsafe.Pointer // a batch of copies
	ramp   []uint32       // 0, 1, 2 ...
	// of a batch, by whether the id has an accumulator already
	newIDs, newAt, oldIDs, oldAt []uint32
}

func newSums(m *columns, k *windows.Incremental, most int) sums {
	c := sums{columns: m, copier: copier{k.Acc, &k.Accs}, k: k, cursor: newCursor(most)}
	c.lent = k.Accs.New(batch + 64)
	c.ramp = make([]uint32, batch+64)
	for i := range c.ramp {
		c.ramp[i] = uint32(i)
	}
	for _, list := range []*[]uint32{&c.newIDs, &c.newAt, &c.oldIDs, &c.oldAt} {
		*list = make([]uint32, batch+64)
	}
	return c
}

// reach makes room for all ids in a column by id.
func (c *sums) reach(sum *column, limit int) error {
	if sum.room == 0 {
		var err error
		*sum, err = c.columns.make(limit, true)
		return err
	}
	return c.grow(sum, limit)
}

// sort tells the ids of the cursor's batch apart by whether they are in a column by id.
func (c *sums) sort(sum *column) (newIDs, newAt, oldIDs, oldAt []uint32) {
	n, o := 0, 0
	at := c.cursor.at
	for i, id := range c.cursor.ids {
		c.newIDs[n], c.newAt[n] = id, at[i]
		c.oldIDs[o], c.oldAt[o] = id, at[i]
		there := int(sum.bits[id>>6] >> (id & 63) & 1)
		o += there
		n += 1 - there
	}
	return c.newIDs[:n], c.newAt[:n], c.oldIDs[:o], c.oldAt[:o]
}

// merge merges the cursor's batch of a slice's accumulators into a column by id, which has room, behind what is there.
func (c *sums) merge(sum *column, s *slice) error {
	ids := c.cursor.ids
	if c.k.Plain {
		c.k.MergeColumn(sum.accs, s.accs, ids, c.cursor.at)
	} else {
		newIDs, newAt, oldIDs, oldAt := c.sort(sum)
		if err := c.copier.column(sum.accs, newIDs, s.accs, newAt); err != nil {
			return err
		}
		if err := c.copies(sum.accs, oldIDs, s.accs, oldAt); err != nil {
			return err
		}
	}
	for _, id := range ids {
		sum.bits[id>>6] |= 1 << (id & 63)
	}
	return nil
}

// copies merges copies of the accumulators from[i] of other into those of accs.
func (c *sums) copies(accs unsafe.Pointer, into []uint32, other unsafe.Pointer, from []uint32) error {
	if c.k.Plain {
		c.k.MergeColumn(accs, other, into, from)
		return nil
	}
	if err := c.copier.column(c.lent, c.ramp[:len(from)], other, from); err != nil {
		return err
	}
	c.k.MergeColumn(accs, c.lent, into, c.ramp[:len(into)])
	if c.acc.Pointers {
		c.mem.Zero(c.lent, len(into))
	}
	return nil
}

// mergeOne merges a copy of the accumulator at other into that at acc, or makes it one.
func (c *sums) mergeOne(acc unsafe.Pointer, there bool, other unsafe.Pointer) error {
	if !there {
		return c.one(acc, other)
	}
	if err := c.one(c.lent, other); err != nil {
		return err
	}
	c.k.Merge(acc, c.lent)
	c.mem.Zero(c.lent, 1)
	return nil
}
