package slices

import "github.com/flott-dev/flott/internal/operator/windows"

// freeze adds what is in a column to a table of a snapshot.
func (m *columns) freeze(f *windows.Frozen, table int, c *column, p *windows.Part) {
	n := c.room
	if c.dense {
		p.Bits = c.bits
	} else {
		p.IDs = c.ids[:len(c.ids):len(c.ids)]
		n = len(c.ids)
	}
	p.Shadow = f.Shadow(&c.shadows, n, p.Holds, f.Accumulators(c.accs))
	c.shared = true
	f.Add(table, p)
}

// own makes bits or ids the column's alone: snapshots keep the old ones.
func (m *columns) own(c *column) error {
	if !c.shared {
		return nil
	}
	if c.shadows != nil {
		if err := c.shadows.Draw(8*int64(cap(c.bits)) + 4*int64(cap(c.ids))); err != nil {
			return err
		}
		if c.dense {
			c.bits = append(make([]uint64, 0, cap(c.bits)), c.bits...)
		} else {
			c.ids = append(make([]uint32, 0, cap(c.ids)), c.ids...)
		}
	}
	c.shared = false
	return nil
}

// leave is for accumulators that are about to move to another column: snapshots keep the old one, but not what is behind
// pointers.
func (m *columns) leave(c *column) error {
	if c.shadows == nil || !m.deep {
		return nil
	}
	return c.shadows.KeepAll()
}

// lend leaves a column to the snapshots that need it; false if none does.
func (m *columns) lend(c *column) bool {
	if c.shadows != nil {
		m.release(4 * int64(cap(c.table))) // nobody else knows of it
		c.table = nil
		if n := m.bytes(c); c.shadows.Lend(m.rt.Memory, n) {
			m.held -= n
			*c = column{}
			return true
		}
	}
	c.shared = false
	return false
}
