package serde

import (
	"bytes"
	"reflect"
	"slices"
	"sync"
	"unsafe"
)

// mapping is the codec of map[K]V: 0 for nil, or 1 + the number of entries, and the entries in the order of their encoded
// keys, so that equal maps have equal encodings. Go has no way into a map but reflection, so that is what it uses, on
// memory that it keeps.
type mapping struct {
	typ      reflect.Type
	key, val codec
	scratch  sync.Pool // of *mapScratch
}

// mapScratch is the memory of one pass over a map.
type mapScratch struct {
	key, val reflect.Value // addressable
	buf      []byte
	entries  []mapEntry
}

// mapEntry says where an entry lies in the buffer.
type mapEntry struct{ key, val, end int }

const (
	errMapKey   = decodeError("a map has the same key twice")
	mapRoomHint = 4096 // entries that a decoder makes room for at once
)

func (m *mapping) least() int { return 1 }

func (m *mapping) at(v unsafe.Pointer) reflect.Value { return reflect.NewAt(m.typ, v).Elem() }

func (m *mapping) borrow() *mapScratch {
	if s, ok := m.scratch.Get().(*mapScratch); ok {
		return s
	}
	return &mapScratch{key: reflect.New(m.typ.Key()).Elem(), val: reflect.New(m.typ.Elem()).Elem()}
}

func (m *mapping) giveBack(s *mapScratch) {
	s.key.SetZero()
	s.val.SetZero()
	s.buf, s.entries = s.buf[:0], s.entries[:0]
	m.scratch.Put(s)
}

func (m *mapping) append(dst []byte, v unsafe.Pointer, depth int) ([]byte, error) {
	goMap := m.at(v)
	if goMap.IsNil() {
		return append(dst, 0), nil
	}
	if depth == 0 {
		return dst, errDepth
	}
	s := m.borrow()
	defer m.giveBack(s)
	k, x := s.key.Addr().UnsafePointer(), s.val.Addr().UnsafePointer()
	for it := goMap.MapRange(); it.Next(); {
		s.key.SetIterKey(it)
		s.val.SetIterValue(it)
		e := mapEntry{key: len(s.buf)}
		var err error
		if s.buf, err = m.key.append(s.buf, k, depth-1); err != nil {
			return dst, err
		}
		e.val = len(s.buf)
		if s.buf, err = m.val.append(s.buf, x, depth-1); err != nil {
			return dst, err
		}
		e.end = len(s.buf)
		s.entries = append(s.entries, e)
	}
	// The values decide among keys that are NaN.
	slices.SortFunc(s.entries, func(a, b mapEntry) int {
		if c := bytes.Compare(s.buf[a.key:a.val], s.buf[b.key:b.val]); c != 0 {
			return c
		}
		return bytes.Compare(s.buf[a.val:a.end], s.buf[b.val:b.end])
	})
	dst = appendUvarint(dst, uint64(len(s.entries))+1)
	for _, e := range s.entries {
		dst = append(dst, s.buf[e.key:e.end]...)
	}
	return dst, nil
}

func (m *mapping) read(src []byte, v unsafe.Pointer, depth int) (int, error) {
	goMap := m.at(v)
	count, pos, err := readUvarint(src)
	if err != nil {
		return pos, err
	}
	if count == 0 {
		goMap.SetZero()
		return pos, nil
	}
	if depth == 0 {
		return pos, errDepth
	}
	least := m.key.least() + m.val.least()
	if least == 0 && count > 2 {
		return pos, errMapKey
	}
	n, err := checkCount(count-1, least, len(src)-pos)
	if err != nil {
		return pos, err
	}
	goMap.Set(reflect.MakeMapWithSize(m.typ, min(n, mapRoomHint)))
	s := m.borrow()
	defer m.giveBack(s)
	for i := range n {
		s.key.SetZero()
		s.val.SetZero()
		used, err := m.key.read(src[pos:], s.key.Addr().UnsafePointer(), depth-1)
		pos += used
		if err != nil {
			return pos, err
		}
		used, err = m.val.read(src[pos:], s.val.Addr().UnsafePointer(), depth-1)
		pos += used
		if err != nil {
			return pos, err
		}
		goMap.SetMapIndex(s.key, s.val)
		if goMap.Len() != i+1 {
			return pos, errMapKey
		}
	}
	return pos, nil
}

func (m *mapping) equal(a, b unsafe.Pointer, depth int) bool {
	x, y := m.at(a), m.at(b)
	if x.IsNil() != y.IsNil() || x.Len() != y.Len() || depth == 0 {
		return false
	}
	s, o := m.borrow(), m.borrow()
	defer m.giveBack(s)
	defer m.giveBack(o)
	for it := x.MapRange(); it.Next(); {
		s.key.SetIterKey(it)
		s.val.SetIterValue(it)
		other := y.MapIndex(s.key)
		if !other.IsValid() {
			return false
		}
		o.val.Set(other)
		if !m.val.equal(s.val.Addr().UnsafePointer(), o.val.Addr().UnsafePointer(), depth-1) {
			return false
		}
	}
	return true
}

func (m *mapping) clone(dst, src unsafe.Pointer, depth int) error {
	from, to := m.at(src), m.at(dst)
	if from.IsNil() {
		to.SetZero()
		return nil
	}
	if depth == 0 {
		return errDepth
	}
	fresh := reflect.MakeMapWithSize(m.typ, from.Len())
	s, c := m.borrow(), m.borrow()
	defer m.giveBack(s)
	defer m.giveBack(c)
	for it := from.MapRange(); it.Next(); {
		s.key.SetIterKey(it)
		s.val.SetIterValue(it)
		c.key.SetZero()
		c.val.SetZero()
		if err := m.key.clone(c.key.Addr().UnsafePointer(), s.key.Addr().UnsafePointer(), depth-1); err != nil {
			return err
		}
		if err := m.val.clone(c.val.Addr().UnsafePointer(), s.val.Addr().UnsafePointer(), depth-1); err != nil {
			return err
		}
		fresh.SetMapIndex(c.key, c.val)
	}
	to.Set(fresh)
	return nil
}
