package pebble

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"

	"github.com/flott-dev/flott/serde"
	"github.com/flott-dev/flott/statebackend"
)

// shape says how the rows of a table lie in the tree: all that is needed to read them without the types of the program.
type shape struct {
	kind       kind
	key        int // bytes of a key; 0: they have a length before them
	namespace  int // the same of namespaces
	namespaced bool
	dated      bool
	spaces     [3]uint16 // the parts of the tree that it has; the last one in use holds the entries
}

// kind is what a table is.
type kind uint8

const (
	values kind = 1 + iota
	lists
	maps
	keptRows // rows of a table that the program does not open, as appendRow gives them
	timerRows
)

// spacesOf is how many parts of the tree a table has.
func (k kind) spacesOf() int {
	switch k {
	case lists:
		return 2
	case maps:
		return 3
	}
	return 1
}

func shapeOf(s *statebackend.TableSpec, key *serde.Key) shape {
	sh := shape{kind: values, key: int(key.Width), dated: s.TTL != nil}
	if s.List {
		sh.kind = lists
	} else if s.MapKey != nil {
		sh.kind = maps
	}
	if s.Namespace != nil {
		sh.namespaced, sh.namespace = true, int(s.Namespace.Width)
	}
	return sh
}

// like says whether the rows of two tables lie alike, apart from where.
func (sh shape) like(o shape) bool {
	sh.spaces, o.spaces = [3]uint16{}, [3]uint16{}
	return sh == o
}

// used are the parts of the tree that it has.
func (sh *shape) used() []uint16 { return sh.spaces[:sh.kind.spacesOf()] }

// rest is the part of the tree that holds the entries.
func (sh *shape) entries() uint16 { return sh.spaces[sh.kind.spacesOf()-1] }

var errRow = errors.New("a row of the disk store is damaged")

// cut cuts a canonical key of a width (0: any) from the front of b.
func cut(width int, b []byte) (canonical, rest []byte, err error) {
	if width == 0 {
		size, at := binary.Uvarint(b)
		if at <= 0 || size > uint64(len(b)-at) {
			return nil, nil, errRow
		}
		width, b = int(size), b[at:]
	}
	if len(b) < width {
		return nil, nil, errRow
	}
	return b[:width:width], b[width:], nil
}

// parse takes a key of a row apart.
func (sh *shape) parse(key []byte, r *statebackend.Row) error {
	if len(key) < headBytes {
		return errRow
	}
	r.Group = int(binary.BigEndian.Uint16(key[spaceBytes:]))
	rest := key[headBytes:]
	if sh.kind == timerRows {
		if len(rest) < timeBytes {
			return errRow
		}
		rest = rest[timeBytes:]
	}
	var err error
	if r.Key, rest, err = cut(sh.key, rest); err == nil && sh.namespaced {
		r.Namespace, _, err = cut(sh.namespace, rest)
	}
	return err
}

// reading is a way from rows of the tree to rows of a snapshot.
type reading struct {
	shape
	ttl         *statebackend.TTL
	now         int64
	hash        func(key []byte) uint64 // nil: Hash is not set
	first, last int                     // key groups
	scan        func(from, to []byte, f func(key, value []byte) (bool, error)) error
	wrap        func(error) error
}

// rows gives the rows of a snapshot.
func (g *reading) rows() iter.Seq2[*statebackend.Row, error] {
	return func(yield func(*statebackend.Row, error) bool) {
		var r statebackend.Row
		space := g.entries()
		from, to := groupBounds(space, g.first, g.last)
		if g.kind == keptRows {
			from, to = bounds(space)
		}
		err := g.scan(from, to, func(key, value []byte) (bool, error) { return g.row(key, value, &r, yield) })
		if err != nil {
			yield(nil, g.wrap(err))
		}
	}
}

func (g *reading) expired(at int64) bool { return g.dated && g.ttl != nil && g.ttl.Expired(at, g.now) }

// row gives what a row of the tree stands for.
func (g *reading) row(key, value []byte, r *statebackend.Row, yield func(*statebackend.Row, error) bool) (more bool, err error) {
	if g.kind == keptRows {
		if err := readRow(value, r); err != nil {
			return false, err
		}
		if !g.namespaced {
			r.Namespace = nil
		}
		if r.Group < g.first || r.Group > g.last {
			return true, nil
		}
		return yield(r, nil), nil
	}
	if err := g.parse(key, r); err != nil {
		return false, err
	}
	if g.hash != nil {
		r.Hash = g.hash(r.Key)
	}
	switch g.kind {
	case lists:
		return g.elements(value, r, yield)
	case timerRows:
		r.MapKey = binary.LittleEndian.AppendUint64(r.MapKey[:0], uint64(timeOf(key)))
	case maps:
		if len(value) < tailBytes {
			return false, errRow
		}
		t := readTail(value)
		if int(t.key) > len(value)-tailBytes {
			return false, errRow
		}
		r.At, r.MapKey, r.Value = t.at, mapKey(value, &t), mapValue(value, &t)
	default:
		r.Value = value
		if g.dated {
			if len(value) < stampBytes {
				return false, errRow
			}
			r.Value = value[:len(value)-stampBytes]
			r.At = int64(binary.LittleEndian.Uint64(value[len(r.Value):]))
		}
	}
	return g.expired(r.At) || yield(r, nil), nil
}

// elements gives the elements of a block of a list.
func (g *reading) elements(block []byte, r *statebackend.Row, yield func(*statebackend.Row, error) bool) (more bool, err error) {
	for c := (cursor{rest: block, dated: g.dated}); c.next(); {
		if r.At, r.Value = c.at, c.value; g.expired(c.at) {
			continue
		}
		if !yield(r, nil) {
			return false, nil
		}
	}
	return true, nil
}

// groupBounds are the first key of key groups of a space and the first after them.
func groupBounds(space uint16, first, last int) (from, to []byte) {
	from = binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(nil, space), uint16(first))
	if last >= 1<<16-1 {
		_, to = bounds(space)
		return from, to
	}
	return from, binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(nil, space), uint16(last+1))
}

// together gives the rows of several parts of a table, which have other key groups each, key group by key group.
func together(parts []iter.Seq2[*statebackend.Row, error]) iter.Seq2[*statebackend.Row, error] {
	if len(parts) == 1 {
		return parts[0]
	}
	return func(yield func(*statebackend.Row, error) bool) {
		type head struct {
			row  *statebackend.Row
			next func() (*statebackend.Row, error, bool)
		}
		var heads []head
		for _, part := range parts {
			next, stop := iter.Pull2(part)
			defer stop()
			row, err, ok := next()
			if err != nil {
				yield(nil, err)
				return
			}
			if ok {
				heads = append(heads, head{row, next})
			}
		}
		for len(heads) > 0 {
			least := 0
			for i := range heads {
				if heads[i].row.Group < heads[least].row.Group {
					least = i
				}
			}
			for group := heads[least].row.Group; heads[least].row.Group == group; {
				if !yield(heads[least].row, nil) {
					return
				}
				row, err, ok := heads[least].next()
				if err != nil {
					yield(nil, err)
					return
				}
				if !ok {
					heads = append(heads[:least], heads[least+1:]...)
					break
				}
				heads[least].row = row
			}
		}
	}
}

func (k kind) String() string {
	switch k {
	case values:
		return "value"
	case lists:
		return "list"
	case maps:
		return "map"
	case keptRows:
		return "kept"
	case timerRows:
		return "timers"
	}
	return fmt.Sprint("kind ", uint8(k))
}
