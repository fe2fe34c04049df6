package serde

import (
	"fmt"
	"reflect"
)

// compiler turns one type, and the types inside it, into codecs.
type compiler struct {
	*settings
	root reflect.Type
	subs map[reflect.Type]*later // pointers, slices, maps and interfaces that were met
}

func newCompiler(t reflect.Type, s *settings) *compiler {
	return &compiler{settings: s, root: t, subs: map[reflect.Type]*later{}}
}

func compileHandle(t reflect.Type, s *settings) (*Handle, error) {
	c := newCompiler(t, s)
	cd, err := c.codecOf(t, "")
	if err != nil {
		return nil, err
	}
	h := &Handle{Type: t, Name: t.String(), codec: cd, schema: c.schema(t, nil), settings: s}
	h.place()
	return h, nil
}

// refuse makes the error for the value at path.
func (c *compiler) refuse(path, format string, args ...any) error {
	reason := fmt.Sprintf(format, args...)
	if path == "" {
		return fmt.Errorf("serde: type %s: %s", c.root, reason)
	}
	return fmt.Errorf("serde: type %s: field %s: %s", c.root, path, reason)
}

func joinPath(path, field string) string {
	if path == "" {
		return field
	}
	return path + "." + field
}

// maxSpread bounds the steps that an array adds to a program; longer ones have a loop of their own.
const maxSpread = 32

// codecOf compiles the type t, which lies at path inside the root.
func (c *compiler) codecOf(t reflect.Type, path string) (codec, error) {
	leaves, err := c.leaves(nil, t, 0, path)
	if err != nil {
		return nil, err
	}
	if len(leaves) == 1 && leaves[0].op == opSub && leaves[0].off == 0 {
		return leaves[0].sub, nil
	}
	return newProgram(leaves), nil
}

// leaves appends the steps that encode the value of type t at offset off.
func (c *compiler) leaves(list []step, t reflect.Type, off uintptr, path string) ([]step, error) {
	size := t.Size()
	how, err := c.manner(t, path)
	if err != nil {
		return nil, err
	}
	switch how {
	case byUser, byMarshaler, byProto:
		return append(list, step{op: opSub, off: off, sub: c.framedOf(t, how)}), nil
	case byTime:
		return append(list, step{op: opSub, off: off, sub: instant{}}), nil
	case byReference:
		sub, err := c.reference(t, path)
		return append(list, step{op: opSub, off: off, sub: sub}), err
	}
	switch t.Kind() {
	case reflect.Bool:
		return append(list, step{op: opBool, unit: 1, off: off, n: 1}), nil
	case reflect.Int, reflect.Uint, reflect.Uintptr:
		if size < 8 {
			return append(list, step{op: opSub, off: off, sub: word{signed: t.Kind() == reflect.Int}}), nil
		}
	case reflect.Float32, reflect.Complex64:
		return append(list, step{op: opFloat32, unit: 4, off: off, n: size}), nil
	case reflect.Float64, reflect.Complex128:
		return append(list, step{op: opFloat64, unit: 8, off: off, n: size}), nil
	case reflect.String:
		return append(list, step{op: opString, off: off}), nil
	case reflect.Array:
		return c.arrayLeaves(list, t, off, path)
	case reflect.Struct:
		return c.structLeaves(list, t, off, path)
	}
	return append(list, step{op: opRaw, unit: uint8(size), off: off, n: size}), nil
}

func (c *compiler) structLeaves(list []step, t reflect.Type, off uintptr, path string) ([]step, error) {
	var err error
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Name == "_" {
			continue
		}
		if list, err = c.leaves(list, f.Type, off+f.Offset, joinPath(path, f.Name)); err != nil {
			return nil, err
		}
	}
	return list, nil
}

func (c *compiler) arrayLeaves(list []step, t reflect.Type, off uintptr, path string) ([]step, error) {
	elem, n := t.Elem(), t.Len()
	one, err := c.leaves(nil, elem, 0, path+"[]")
	if err != nil || n == 0 || len(one) == 0 {
		return list, err
	}
	if s := one[0]; len(one) == 1 && s.op < opString && s.n == elem.Size() {
		s.off, s.n = off, s.n*uintptr(n)
		return append(list, s), nil
	}
	if len(one) > maxSpread/n {
		sub := &array{n: n, size: elem.Size(), codec: newProgram(one)}
		return append(list, step{op: opSub, off: off, sub: sub}), nil
	}
	for i := range n {
		for _, s := range one {
			s.off += off + uintptr(i)*elem.Size()
			list = append(list, s)
		}
	}
	return list, nil
}

// reference compiles a pointer, slice, map or interface type. Only these can close a circle, so a second meeting gives
// the same codec, finished or not.
func (c *compiler) reference(t reflect.Type, path string) (codec, error) {
	if l, ok := c.subs[t]; ok {
		if l.codec != nil {
			return l.codec, nil
		}
		return l, nil
	}
	l := &later{}
	c.subs[t] = l
	var err error
	switch t.Kind() {
	case reflect.Pointer:
		p := &pointer{elem: t.Elem()}
		p.codec, err = c.codecOf(t.Elem(), path)
		l.codec = p
	case reflect.Slice:
		s := &slice{typ: t, size: t.Elem().Size(), plain: !holdsPointers(t.Elem())}
		s.codec, err = c.codecOf(t.Elem(), path+"[]")
		l.codec = s
	case reflect.Map:
		l.codec, err = c.mapOf(t, path)
	default:
		l.codec, err = c.setOf(t, path)
	}
	return l.codec, err
}

func (c *compiler) mapOf(t reflect.Type, path string) (codec, error) {
	if reason := c.badMapKey(t.Key(), nil); reason != "" {
		return nil, c.refuse(path+"[key]", "%s", reason)
	}
	key, err := c.codecOf(t.Key(), path+"[key]")
	if err != nil {
		return nil, err
	}
	val, err := c.codecOf(t.Elem(), path+"[]")
	return &mapping{typ: t, key: key, val: val}, err
}

// badMapKey says why keys of type t would not be found again after decoding, or would make a map panic.
func (c *compiler) badMapKey(t reflect.Type, seen []reflect.Type) string {
	for _, s := range seen {
		if s == t {
			return ""
		}
	}
	seen = append(seen, t)
	switch t.Kind() {
	case reflect.Pointer:
		return fmt.Sprintf("%s can't be part of a map's key: a decoded pointer is another key", t)
	case reflect.Array:
		return c.badMapKey(t.Elem(), seen)
	case reflect.Struct:
		if isTime(t) {
			return ""
		}
		for i := range t.NumField() {
			if reason := c.badMapKey(t.Field(i).Type, seen); reason != "" {
				return reason
			}
		}
	case reflect.Interface:
		set, ok := c.sets[t]
		if !ok {
			return ""
		}
		for i := range set.members {
			if reason := c.badMapKey(set.members[i].typ, seen); reason != "" {
				return reason
			}
		}
	case reflect.Slice, reflect.Map, reflect.Func:
		return fmt.Sprintf("%s can't be part of a map's key: it has no ==", t)
	}
	return ""
}

func (c *compiler) setOf(t reflect.Type, path string) (codec, error) {
	set := c.sets[t].copy()
	for i := range set.members {
		m := &set.members[i]
		var err error
		if m.codec, err = c.codecOf(m.typ, fmt.Sprintf("%s.(%s)", path, m.typ)); err != nil {
			return set, err
		}
	}
	return set, nil
}

// framedOf gives the codec of a type that is encoded by user code.
func (c *compiler) framedOf(t reflect.Type, how manner) *framed {
	switch how {
	case byUser:
		return c.user[t]
	case byProto:
		return c.protoOf(t)(t)
	}
	return marshaler(t)
}
