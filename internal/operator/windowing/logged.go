package windowing

import (
	"errors"
	"unsafe"

	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/operator/windows"
	"github.com/flott-dev/flott/serde"
	"github.com/flott-dev/flott/statebackend"
)

// The tables of what windows hold beside their heads.
const (
	accumulatorsName = windows.AccumulatorsTable
	pendingName      = windows.PendingTable
)

// logged are contents that are folded into accumulators that must be decoded and encoded as a whole: maps, slices. So that
// a large one does not cost its size with every element, elements wait in a list and are folded together, once there are
// as many as the accumulator is large: what is decoded and encoded is then a constant per element. Nobody can tell, as
// elements are folded in order and before anyone looks.
type logged struct {
	chosen
	k       *windows.Incremental
	in      *frame.Type
	emit    func(w *view, acc unsafe.Pointer) error
	e       *engine
	heads   statebackend.Table
	accs    statebackend.Table
	pending statebackend.ListTable
	buf     buffer
	run     frame.Run
	reading bool   // what waits in run is being folded
	turn    int    // of which element
	least   uint32 // elements that may always wait
	slot    [1]unsafe.Pointer
	fresh   [1]bool
	acc     unsafe.Pointer // two accumulators on their way to and from the table
	other   unsafe.Pointer
	code    []byte // scratch
}

// head says what a window has: elements that wait, how many may, and an accumulator.
type head struct {
	Pending, Limit uint32
	Folded         bool
}

const (
	// leastBytes and leastCount bound what may wait however small the accumulator is.
	leastBytes, leastCount = 256, 16
	// bytesPerElement is how many bytes of an accumulator make one more element wait, and excess how many times its size
	// the elements may take: large elements wait in smaller numbers.
	bytesPerElement, excess = 16, 8
	mostPending             = 1 << 20
	// encodedBytes is a guess of what is behind the pointers of an element.
	encodedBytes = 64
)

func (c *logged) elementBytes() int {
	if n := int(c.in.Size); c.in.Handle.Layout == serde.Fixed {
		return max(n, 1)
	}
	return int(c.in.Size) + encodedBytes
}

// leastPending is how many elements may wait without an accumulator.
func (c *logged) leastPending() uint32 {
	return uint32(min(leastBytes/c.elementBytes(), leastCount))
}

// limit is how many elements may wait for an accumulator of so many bytes.
func (c *logged) limit(size int) uint32 {
	n := min(size/bytesPerElement, excess*size/c.elementBytes(), mostPending)
	return max(uint32(n), c.least)
}

func (c *logged) open(e *engine) (err error) {
	if e.merging != nil && c.k.Merge == nil {
		return errFold
	}
	c.e, c.typ = e, e.windows.namespace()
	c.acc = c.k.Accs.New(2)
	c.other = c.k.Accs.At(c.acc, 1)
	c.least = c.leastPending()
	c.buf.open(c.in)
	h, err := serde.Of[head]()
	if err != nil {
		return err
	}
	store := e.keys.Store()
	if c.heads, err = store.Table(statebackend.TableSpec{Name: contentsName, Value: h, Namespace: c.typ}); err != nil {
		return err
	}
	if c.accs, err = store.Table(statebackend.TableSpec{Name: accumulatorsName, Value: c.k.Acc, Namespace: c.typ}); err != nil {
		return err
	}
	c.pending, err = store.List(statebackend.TableSpec{Name: pendingName, Value: c.in.Handle, Namespace: c.typ, List: true})
	return err
}

var errFold = errors.New("windows that merge can't be folded: the accumulators of a fold can't be merged (use an aggregate)")

func (c *logged) choose(state *view) {
	if c.differs(state.b) {
		c.heads.SetNamespace(c.at)
		c.accs.SetNamespace(c.at)
		c.pending.SetNamespace(c.at)
	}
}

// head finds or makes the head of the key at hand.
func (c *logged) head(i int) (*head, bool, error) {
	if err := c.heads.Slots(i, i+1, c.slot[:], c.fresh[:]); err != nil {
		return nil, false, err
	}
	h := (*head)(c.slot[0])
	if c.fresh[0] {
		h.Limit = c.least
	}
	return h, c.fresh[0], nil
}

func (c *logged) add(_ int, r *frame.Run, i int) (bool, error) {
	h, fresh, err := c.head(i)
	if err != nil {
		return false, err
	}
	if h.Pending < h.Limit {
		h.Pending++
		return !fresh, c.pending.Append(i, r.At(i))
	}
	if err = c.read(i, h, c.acc); err == nil {
		c.k.Add(c.acc, fresh, r, i)
		err = c.write(i, h)
	}
	c.k.Accs.Zero(c.acc, 1)
	return !fresh, err
}

// read makes the accumulator of key i at acc, whose memory is zero: what was folded, and what waits.
func (c *logged) read(i int, h *head, acc unsafe.Pointer) error {
	if h.Folded {
		if _, err := c.accs.Load(i, acc); err != nil {
			return err
		}
	}
	if h.Pending == 0 {
		return nil
	}
	_, err := c.buf.load(c.pending, i)
	c.run = c.buf.col.Run()
	c.reading = true
	for k := 0; k < c.run.N && err == nil; k++ {
		c.turn = k
		c.k.Add(acc, k == 0 && !h.Folded, &c.run, k)
	}
	c.reading = false
	c.buf.reset()
	return err
}

// write makes c.acc the accumulator of key i; nothing waits any more.
func (c *logged) write(i int, h *head) (err error) {
	if h.Pending != 0 {
		if err := c.pending.Delete(i); err != nil {
			return err
		}
	}
	if c.code, err = c.k.Acc.Append(c.code[:0], c.acc); err != nil {
		return err
	}
	*h = head{Folded: true, Limit: c.limit(len(c.code))}
	if cap(c.code) > keptBytes {
		c.code = nil
	}
	return c.accs.Save(i, c.acc)
}

func (c *logged) fire(w *view) error {
	i := c.e.run.Index
	h := (*head)(c.heads.Find(i))
	if h == nil {
		return nil
	}
	err := c.read(i, h, c.acc)
	if err == nil {
		err = c.emit(w, c.acc)
	}
	c.k.Accs.Zero(c.acc, 1)
	return err
}

func (c *logged) clear() error {
	i := c.e.run.Index
	h := (*head)(c.heads.Find(i))
	if h == nil {
		return nil
	}
	if h.Folded {
		if err := c.accs.Delete(i); err != nil {
			return err
		}
	}
	if h.Pending != 0 {
		if err := c.pending.Delete(i); err != nil {
			return err
		}
	}
	return c.heads.Delete(i)
}

func (c *logged) merge(into *view, from *row) error {
	if from.n == 0 {
		c.choose(into)
		return nil
	}
	i := c.e.run.Index
	all, err := c.take(i, into, c.acc)
	for k := 0; k < from.n && err == nil; k++ {
		v := from.view(&c.e.windows, k)
		var found bool
		if found, err = c.take(i, &v, c.other); err == nil && found {
			if all {
				c.k.Merge(c.acc, c.other)
			} else {
				c.k.Accs.Move(c.acc, c.other, 1)
			}
			all = true
		}
		c.k.Accs.Zero(c.other, 1)
	}
	c.choose(into)
	if all && err == nil {
		var h *head
		if h, _, err = c.head(i); err == nil {
			err = c.write(i, h)
		}
	}
	c.k.Accs.Zero(c.acc, 1)
	return err
}

// take reads what a window holds and drops it.
func (c *logged) take(i int, state *view, acc unsafe.Pointer) (bool, error) {
	c.choose(state)
	h := (*head)(c.heads.Find(i))
	if h == nil {
		return false, nil
	}
	if err := c.read(i, h, acc); err != nil {
		return false, err
	}
	return true, c.clear()
}
