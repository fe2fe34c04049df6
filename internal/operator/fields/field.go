// Package fields works on fields of elements that are named at graph time, as text or by position: it finds them in the
// Go type once and copies, adds or compares them by offset, without reflection per element. The driver of project is
// here, too. It keeps no state; package stream calls it when the graph is built, the engine what it returns.
package fields

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

// Field is a field of an element, at any depth, or the whole element.
type Field struct {
	Path   string // as the user wrote it
	Offset uintptr
	Type   reflect.Type
}

// Find finds the field that a path names: names joined by dots, "*" for everything at that place. A name is that of the
// Go field, also one promoted from an embedded struct; if there is none, the one field that differs in capitals only; else
// f0, f1 ... or _1, _2 ... for a position. Elements of arrays have positions only.
func Find(t reflect.Type, path string) (Field, error) {
	f := Field{Path: path, Type: t}
	if path == "" {
		return f, fmt.Errorf("type %s: the path of a field is empty", t)
	}
	parts := strings.Split(path, ".")
	for i, name := range parts {
		if name == "*" || name == "_" {
			if i != len(parts)-1 {
				return f, fmt.Errorf("type %s: path %q goes on behind a wildcard", t, path)
			}
			return f, nil
		}
		offset, typ, err := step(f.Type, name)
		if err != nil {
			return f, fmt.Errorf("type %s: field %q: %w", t, path, err)
		}
		f.Offset, f.Type = f.Offset+offset, typ
	}
	return f, nil
}

// At finds the field at a position, from 0, of a struct or array.
func At(t reflect.Type, position int) (Field, error) {
	f := Field{Path: strconv.Itoa(position)}
	var err error
	if f.Offset, f.Type, err = at(t, position); err != nil {
		return f, fmt.Errorf("type %s: %w", t, err)
	}
	return f, nil
}

func step(t reflect.Type, name string) (uintptr, reflect.Type, error) {
	if t.Kind() == reflect.Struct {
		if f, ok := named(t, name); ok {
			return place(t, f)
		}
	}
	if i, ok := position(name); ok && (t.Kind() == reflect.Struct || t.Kind() == reflect.Array) {
		return at(t, i)
	}
	switch t.Kind() {
	case reflect.Struct:
		return 0, nil, fmt.Errorf("%s has no field %q, it has %s", t, name, list(t))
	case reflect.Pointer:
		return 0, nil, fmt.Errorf("%s is a pointer, which a path can't follow: use a selector function", t)
	}
	return 0, nil, fmt.Errorf("%s has no fields", t)
}

// named finds a field by its name, then by the only name that differs in capitals.
func named(t reflect.Type, name string) (reflect.StructField, bool) {
	if f, ok := t.FieldByName(name); ok {
		return f, name != "_"
	}
	return t.FieldByNameFunc(func(have string) bool { return strings.EqualFold(have, name) })
}

// place adds up the offsets on the way to a field, which may be promoted.
func place(t reflect.Type, f reflect.StructField) (uintptr, reflect.Type, error) {
	offset := uintptr(0)
	for i, at := range f.Index {
		if t.Kind() == reflect.Pointer {
			return 0, nil, fmt.Errorf("%s is embedded as a pointer, which a path can't follow: use a selector function", t)
		}
		next := t.Field(at)
		offset += next.Offset
		if i < len(f.Index)-1 || next.Type == f.Type {
			t = next.Type
		}
	}
	return offset, f.Type, nil
}

func at(t reflect.Type, i int) (uintptr, reflect.Type, error) {
	switch t.Kind() {
	case reflect.Struct:
		if i < 0 || i >= t.NumField() {
			return 0, nil, fmt.Errorf("position %d of %s: it has %d fields", i, t, t.NumField())
		}
		f := t.Field(i)
		if f.Name == "_" {
			return 0, nil, fmt.Errorf("position %d of %s is a blank field", i, t)
		}
		return f.Offset, f.Type, nil
	case reflect.Array:
		if i < 0 || i >= t.Len() {
			return 0, nil, fmt.Errorf("position %d of %s: it has %d elements", i, t, t.Len())
		}
		return uintptr(i) * t.Elem().Size(), t.Elem(), nil
	}
	return 0, nil, fmt.Errorf("position %d: %s has no fields", i, t)
}

// position reads the names that tuples give their fields.
func position(name string) (int, bool) {
	if digits, ok := strings.CutPrefix(name, "f"); ok {
		i, err := strconv.Atoi(digits)
		return i, err == nil
	}
	if digits, ok := strings.CutPrefix(name, "_"); ok {
		i, err := strconv.Atoi(digits)
		return i - 1, err == nil
	}
	return 0, false
}

func list(t reflect.Type) string {
	var names []string
	for _, f := range reflect.VisibleFields(t) {
		if !f.Anonymous && f.Name != "_" {
			names = append(names, f.Name)
		}
	}
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}
