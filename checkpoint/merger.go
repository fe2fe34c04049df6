package checkpoint

import (
	"bytes"

	"github.com/flott-dev/flott/statebackend"
)

// merger applies the changes of all layers to the rows of a whole table that pass through it. It holds the changes of one
// key group at a time.
type merger struct {
	t       *tableReader
	changes []*cursor // the later ones last
	list    bool      // a table of lists
	single  bool      // a table of values; of maps if neither
	group   int       // the present one, if it is open
	open    bool
	busy    bool // the present group has changes
	over    overlay
	// The list or map of which rows are passing, and what the changes say of it.
	key, namespace []byte
	passing        bool
	cell           *cell
	out            statebackend.Row
}

// advance ends the present key group, goes through those of which the whole table has nothing, and begins another one. Its
// changes are there when it returns.
func (m *merger) advance(group int) error {
	if err := m.end(); err != nil {
		return err
	}
	for len(m.changes) > 0 {
		next := lowest(m.changes)
		if next >= group {
			break
		}
		if err := m.begin(next); err != nil {
			return err
		}
		if err := m.end(); err != nil {
			return err
		}
	}
	return m.begin(group)
}

// begin reads the changes of a key group.
func (m *merger) begin(group int) error {
	m.group, m.open, m.busy, m.passing, m.cell = group, true, false, false, nil
	for _, c := range m.changes {
		for {
			b, ok, err := c.block(group)
			if err != nil {
				return err
			}
			if !ok {
				break
			}
			if !m.busy {
				m.busy = true
				m.over.reset()
			}
			b.payload = m.over.keep(b.payload)
			if err := m.t.block(c.reader, &b, &m.t.changes, m.change); err != nil {
				return err
			}
		}
	}
	if m.busy {
		m.over.seal()
	}
	return nil
}

// change notes a row of changes.
func (m *merger) change(row *statebackend.Row, _ error) bool {
	c := m.over.cell(row)
	switch {
	case m.single:
		m.over.set(c, row)
		return true
	case row.Deleted && (m.list || row.MapKey == nil):
		m.over.forget(c)
		c.drop()
		c.cleared = true
		return true
	case !m.list:
		m.over.entry(c, row)
		return true
	}
	if !row.Deleted {
		m.over.add(c, row)
	}
	return true
}

// row takes a row of the whole table and gives what has become of it. It is only called while the group is busy.
func (m *merger) row(row *statebackend.Row, _ error) bool {
	if m.single {
		if !m.over.has(row.Hash) {
			return m.t.yield(row, nil)
		}
		c := m.over.find(row)
		if c == nil {
			return m.t.yield(row, nil)
		}
		return m.rest(c)
	}
	if !m.passing || !bytes.Equal(m.key, row.Key) || !bytes.Equal(m.namespace, row.Namespace) {
		if !m.leave() {
			return false
		}
		m.passing = true
		m.key, m.namespace = append(m.key[:0], row.Key...), append(m.namespace[:0], row.Namespace...)
		m.cell = m.over.find(row)
	}
	switch {
	case m.cell == nil:
	case m.cell.cleared:
		return true
	case !m.list:
		if e := m.over.lookup(m.cell, row.MapKey); e != nil {
			if e.deleted || e.moved || e.given {
				return true
			}
			return m.give(m.cell, e)
		}
	}
	return m.t.yield(row, nil)
}

// leave gives what the changes add to the list or map whose rows have passed.
func (m *merger) leave() bool {
	c := m.cell
	m.cell = nil
	return c == nil || m.rest(c)
}

// rest gives the entries of a cell that were not given.
func (m *merger) rest(c *cell) bool {
	c.given = true
	for at := c.first; at >= 0; {
		e := &m.over.entries[at]
		at = e.next
		if !e.deleted && !e.given && !m.give(c, e) {
			return false
		}
	}
	return true
}

// give gives an entry, once.
func (m *merger) give(c *cell, e *entry) bool {
	e.given = true
	m.out = statebackend.Row{
		Group: m.group, Key: c.key, Hash: c.hash, Namespace: c.namespace, MapKey: e.mapKey, At: e.at, Value: e.value,
	}
	return m.t.yield(&m.out, nil)
}

// end gives what the changes of the group have beyond the whole table.
func (m *merger) end() error {
	if !m.open || !m.busy {
		m.open = false
		return nil
	}
	m.open, m.busy = false, false
	if !m.leave() {
		return errEnough
	}
	for i := range m.over.cells {
		if c := &m.over.cells[i]; !c.given && !m.rest(c) {
			return errEnough
		}
	}
	return nil
}
