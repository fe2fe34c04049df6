package serde

import (
	"fmt"
	"reflect"
)

// compiler turns one type into codecs.
type compiler struct {
	*settings
	root reflect.Type
}

func compileHandle(t reflect.Type, s *settings) (*Handle, error) {
	c := &compiler{settings: s, root: t}
	cd, err := c.codecOf(t, "")
	if err != nil {
		return nil, err
	}
	h := &Handle{Type: t, Name: t.String(), codec: cd}
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
	switch t.Kind() {
	case reflect.Bool:
		return append(list, step{op: opBool, unit: 1, off: off, n: 1}), nil
	case reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64,
		reflect.Int, reflect.Uint, reflect.Uintptr:
		return append(list, step{op: opRaw, unit: uint8(size), off: off, n: size}), nil
	case reflect.Float32, reflect.Complex64:
		return append(list, step{op: opFloat32, unit: 4, off: off, n: size}), nil
	case reflect.Float64, reflect.Complex128:
		return append(list, step{op: opFloat64, unit: 8, off: off, n: size}), nil
	case reflect.String:
		return append(list, step{op: opString, off: off}), nil
	case reflect.Struct:
		return c.structLeaves(list, t, off, path)
	}
	return nil, c.refuse(path, "%s has no encoding", t)
}

func (c *compiler) structLeaves(list []step, t reflect.Type, off uintptr, path string) ([]step, error) {
	var err error
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Name == "_" {
			continue
		}
		at := joinPath(path, f.Name)
		if !f.IsExported() {
			return nil, c.refuse(at, "the field is unexported: export it, or give %s MarshalBinary and UnmarshalBinary", t)
		}
		if list, err = c.leaves(list, f.Type, off+f.Offset, at); err != nil {
			return nil, err
		}
	}
	return list, nil
}
