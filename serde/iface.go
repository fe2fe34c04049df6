package serde

import (
	"encoding/binary"
	"fmt"
	"reflect"
	"strings"
	"unsafe"
)

// iface is how Go lays out an interface value without methods: a word for the type and a word that is the value, if that
// is a single pointer, or points to it. Looking at it directly tells the type of an element without reflection.
type iface struct{ typ, data unsafe.Pointer }

func (e iface) value() any { return *(*any)(unsafe.Pointer(&e)) }

func typeWord(x any) unsafe.Pointer { return (*iface)(unsafe.Pointer(&x)).typ }

// ifaces is the codec of an interface type with a closed set of types: 0 for nil, or 1 + the position of the type, and
// the value.
type ifaces struct {
	name    string
	members []member
	typeOf  func(v unsafe.Pointer) unsafe.Pointer // the type word of the interface value at v
	store   func(v unsafe.Pointer, e iface)       // makes the interface value at v
}

// member is one type of the set.
type member struct {
	typ   reflect.Type
	word  unsafe.Pointer
	inner bool // the interface's data word is the value
	codec codec
}

func (s *ifaces) add(prototype any) error {
	if prototype == nil {
		return fmt.Errorf("serde: set of %s: a prototype is nil", s.name)
	}
	t := reflect.TypeOf(prototype)
	word := typeWord(prototype)
	for i := range s.members {
		if s.members[i].word == word {
			return fmt.Errorf("serde: set of %s: %s is in it twice", s.name, t)
		}
	}
	// The zero value of a type that is its own data word is a nil pointer; any other has an address.
	zero := reflect.Zero(t).Interface()
	inner := (*iface)(unsafe.Pointer(&zero)).data == nil
	s.members = append(s.members, member{typ: t, word: word, inner: inner})
	return nil
}

// copy copies the set for one compilation, which fills in the codecs.
func (s *ifaces) copy() *ifaces {
	c := *s
	c.members = append([]member(nil), s.members...)
	return &c
}

func (s *ifaces) least() int { return 1 }

// find gives the position of the type of the interface value at v; -1 for nil.
func (s *ifaces) find(v unsafe.Pointer) (int, error) {
	word := s.typeOf(v)
	if word == nil {
		return -1, nil
	}
	for i := range s.members {
		if s.members[i].word == word {
			return i, nil
		}
	}
	names := make([]string, len(s.members))
	for i := range s.members {
		names[i] = s.members[i].typ.String()
	}
	t := reflect.TypeOf(iface{typ: word}.value())
	return 0, fmt.Errorf("a value of type %s is outside the set of %s: %s", t, s.name, strings.Join(names, ", "))
}

// at gives the address of the value that the interface at v holds.
func (m *member) at(v unsafe.Pointer) unsafe.Pointer {
	data := unsafe.Add(v, unsafe.Sizeof(uintptr(0)))
	if m.inner {
		return data
	}
	return *(*unsafe.Pointer)(data)
}

// make puts a zero value of the member into the interface at v and gives its address.
func (s *ifaces) make(m *member, v unsafe.Pointer) unsafe.Pointer {
	e := iface{typ: m.word}
	if !m.inner {
		e.data = reflect.New(m.typ).UnsafePointer()
	}
	s.store(v, e)
	return m.at(v)
}

func (s *ifaces) append(dst []byte, v unsafe.Pointer, depth int) ([]byte, error) {
	if depth == 0 {
		return dst, errDepth
	}
	i, err := s.find(v)
	if err != nil {
		return dst, err
	}
	dst = binary.AppendUvarint(dst, uint64(i+1))
	if i < 0 {
		return dst, nil
	}
	m := &s.members[i]
	return m.codec.append(dst, m.at(v), depth-1)
}

func (s *ifaces) read(src []byte, v unsafe.Pointer, depth int) (int, error) {
	if depth == 0 {
		return 0, errDepth
	}
	tag, used, err := readUvarint(src)
	if err != nil {
		return used, err
	}
	if tag == 0 {
		s.store(v, iface{})
		return used, nil
	}
	if tag > uint64(len(s.members)) {
		return used, fmt.Errorf("type %d of the set of %s, which has %d", tag, s.name, len(s.members))
	}
	m := &s.members[tag-1]
	if len(src)-used < m.codec.least() {
		return used, errTruncated
	}
	n, err := m.codec.read(src[used:], s.make(m, v), depth-1)
	return used + n, err
}

func (s *ifaces) equal(a, b unsafe.Pointer, depth int) bool {
	i, err := s.find(a)
	if err != nil {
		return false
	}
	j, err := s.find(b)
	if err != nil || i != j || depth == 0 {
		return false
	}
	if i < 0 {
		return true
	}
	m := &s.members[i]
	return m.codec.equal(m.at(a), m.at(b), depth-1)
}

func (s *ifaces) clone(dst, src unsafe.Pointer, depth int) error {
	if depth == 0 {
		return errDepth
	}
	i, err := s.find(src)
	if err != nil {
		return err
	}
	if i < 0 {
		s.store(dst, iface{})
		return nil
	}
	m := &s.members[i]
	return m.codec.clone(s.make(m, dst), m.at(src), depth-1)
}
