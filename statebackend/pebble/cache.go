package pebble

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unsafe"

	"github.com/cockroachdb/pebble/v2"

	"github.com/flott-dev/flott/statebackend"
)

// cache holds rows of the tree, those that have been changed and not been written among them. Rows go only in trim, which
// is called where nobody holds a row: at the beginning of a table's methods and between the steps of long ones.
type cache struct {
	store    *store
	rows     map[string]*row
	clock    []*row // all rows, in the order in which the hand looks at them
	hand     int
	dirty    []*row // among others that were dirty once
	victims  []*row
	bytes    int64 // of all rows
	limit    int64
	reserved int64 // of the budget, at least bytes
}

// row is a row of the tree, or the knowledge that there is none.
type row struct {
	key   string
	value []byte // begins at an address that is a multiple of 8
	owner *ledger
	lent  uint64 // the owner's epoch in which its address was given away
	live  bool   // the row exists
	dirty bool   // the tree must be told
	known bool   // the tree may have a row of this key
	used  bool   // since the hand was here
}

const (
	// rowBytes is about what a row takes beside its key and value: itself, its place in the map and in the clock.
	rowBytes = int64(unsafe.Sizeof(row{})) + 56
	// reserveStep is how much the cache draws on the budget at once.
	reserveStep = 64 << 10
)

func newCache(s *store, limit int64) *cache {
	return &cache{store: s, rows: map[string]*row{}, limit: limit}
}

func (r *row) cost() int64 { return rowBytes + int64(len(r.key)+cap(r.value)) }

// pinned says whether somebody may write through the address of the row.
func (r *row) pinned() bool { return r.lent == r.owner.epoch }

// get gives the row of a key, read from the tree if need be. It is live if there is one.
func (c *cache) get(l *ledger, key []byte) (*row, error) {
	if r := c.rows[string(key)]; r != nil {
		r.used = true
		return r, nil
	}
	r := &row{key: string(key), owner: l}
	value, closer, err := c.store.tree.Get(key)
	switch {
	case err == nil:
		r.live, r.known = true, true
		r.value = append(aligned(len(value)), value...)
		err = closer.Close()
	case errors.Is(err, pebble.ErrNotFound):
		err = nil
	}
	if err != nil {
		return nil, l.wrap("read", err)
	}
	return r, c.add(r)
}

// fresh makes the row of a key that the tree has never had.
func (c *cache) fresh(l *ledger, key []byte) (*row, error) {
	r := &row{key: string(key), owner: l}
	return r, c.add(r)
}

// add puts a row into the cache.
func (c *cache) add(r *row) error {
	n := r.cost()
	if err := c.grow(r.owner, n); err != nil {
		return err
	}
	c.rows[r.key] = r
	c.clock = append(c.clock, r)
	return nil
}

// grow takes note of n bytes more, or less.
func (c *cache) grow(l *ledger, n int64) error {
	if err := c.reserve(n); err != nil {
		return fmt.Errorf("operator %q: state %q: %w", c.store.Operator, l.s.Name, err)
	}
	c.bytes += n
	l.held += n
	return nil
}

// reserve sees to it that n bytes more are the cache's.
func (c *cache) reserve(n int64) error {
	need := c.bytes + n - c.reserved
	if need <= 0 {
		return nil
	}
	need = (need + reserveStep - 1) / reserveStep * reserveStep
	if m := c.store.Memory; m != nil {
		if err := m.Reserve(need); err != nil {
			return fmt.Errorf("%w: the cache holds %d bytes and needs %d more: give the process more memory, "+
				"or the backend a smaller cache: %w", statebackend.ErrOutOfMemory, c.reserved, need, err)
		}
	}
	c.reserved += need
	return nil
}

// relax gives back what is not needed any more.
func (c *cache) relax() {
	spare := (c.reserved - c.bytes) / reserveStep * reserveStep
	if spare > max(4*reserveStep, c.limit/4) {
		c.giveBack(spare - reserveStep)
	}
}

func (c *cache) giveBack(n int64) {
	c.reserved -= n
	if m := c.store.Memory; m != nil && n > 0 {
		m.Release(n)
	}
}

// touch says that a row is about to be another one.
func (c *cache) touch(r *row) {
	if !r.dirty {
		r.dirty = true
		c.dirty = append(c.dirty, r)
	}
}

// put makes a value of n bytes, which the caller writes, the value of a row.
func (c *cache) put(r *row, n int) ([]byte, error) {
	if cap(r.value) < n || cap(r.value) > 4*(n+16) {
		value := aligned(n)
		if err := c.grow(r.owner, int64(cap(value)-cap(r.value))); err != nil {
			return nil, err
		}
		r.value = value
	}
	r.value, r.live = r.value[:n], true
	c.touch(r)
	return r.value, nil
}

// drop makes a row one that does not exist.
func (c *cache) drop(r *row) {
	c.bytes -= int64(cap(r.value))
	r.owner.held -= int64(cap(r.value))
	r.value, r.live, r.lent = nil, false, 0
	c.touch(r)
}

// trim evicts rows until there is room for n bytes more in the limit and in the budget.
func (c *cache) trim(n int) error {
	if c.store.failed != nil {
		return c.store.failed
	}
	if c.bytes+int64(n) > c.limit {
		return c.evict(c.limit - c.limit/16 - int64(n))
	}
	need := int64(n) + reserveStep/2
	if c.bytes+need <= c.reserved || c.reserve(need) == nil {
		return nil
	}
	return c.evict(min(c.reserved-need, c.reserved-c.reserved/16))
}

// evict drops rows that have not been used for long until the cache holds target bytes or has nothing to give.
func (c *cache) evict(target int64) error {
	c.victims = c.victims[:0]
	for looks := 2 * len(c.clock); looks > 0 && c.bytes > target; looks-- {
		if c.hand >= len(c.clock) {
			c.hand = 0
		}
		r := c.clock[c.hand]
		if r.used || r.pinned() {
			r.used = false
			c.hand++
			continue
		}
		last := len(c.clock) - 1
		c.clock[c.hand] = c.clock[last]
		c.clock[last] = nil
		c.clock = c.clock[:last]
		delete(c.rows, r.key)
		c.bytes -= r.cost()
		r.owner.held -= r.cost()
		if r.dirty {
			c.victims = append(c.victims, r)
		}
	}
	err := c.write(c.victims)
	clear(c.victims)
	if len(c.dirty) > 2*len(c.clock)+1024 {
		c.dirty = slices.DeleteFunc(c.dirty, func(r *row) bool { return !r.dirty })
	}
	c.store.fail(err)
	return err
}

// flush writes all that has been changed. Rows whose addresses are in use stay dirty.
func (c *cache) flush() error {
	if c.store.failed != nil {
		return c.store.failed
	}
	c.dirty = slices.DeleteFunc(c.dirty, func(r *row) bool { return !r.dirty })
	err := c.write(c.dirty)
	n := 0
	for _, r := range c.dirty {
		if r.dirty = r.pinned(); r.dirty {
			c.dirty[n] = r
			n++
		}
	}
	clear(c.dirty[n:])
	c.dirty = c.dirty[:n]
	c.store.fail(err)
	return err
}

// write tells the tree of rows, in the order of their keys.
func (c *cache) write(rows []*row) error {
	if len(rows) == 0 {
		return nil
	}
	slices.SortFunc(rows, func(a, b *row) int { return strings.Compare(a.key, b.key) })
	b := c.store.tree.NewBatch()
	for _, r := range rows {
		var err error
		key := unsafe.Slice(unsafe.StringData(r.key), len(r.key))
		switch {
		case r.live:
			err = b.Set(key, r.value, nil)
		case r.known:
			err = b.Delete(key, nil)
		}
		r.known, r.dirty = r.live, false
		if err == nil && b.Len() > batchBytes {
			if err = b.Commit(pebble.NoSync); err == nil {
				err = b.Close()
				b = c.store.tree.NewBatch()
			}
		}
		if err != nil {
			return errors.Join(c.errWrite(err), b.Close())
		}
	}
	if err := b.Commit(pebble.NoSync); err != nil {
		return errors.Join(c.errWrite(err), b.Close())
	}
	return b.Close()
}

func (c *cache) errWrite(err error) error {
	return fmt.Errorf("operator %q: write state to disk: %w", c.store.Operator, err)
}

func (c *cache) close() {
	c.giveBack(c.reserved)
	*c = cache{store: c.store, limit: c.limit}
}

// aligned makes room for n bytes, as a slice of length 0 that begins at a multiple of 8.
func aligned(n int) []byte {
	words := make([]uint64, max(1, (n+7)/8))
	return unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), 8*len(words))[:0]
}
