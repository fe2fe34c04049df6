package serde

import (
	"fmt"
	"reflect"
)

// manner is the way in which a type is encoded. Codecs, keys and schemas all ask for it, so that they agree.
type manner uint8

const (
	byStructure manner = iota // scalars, strings, arrays, structs
	byReference               // pointers, slices, maps, interfaces with a closed set
	byTime                    // time.Time
	byUser                    // WithCodec
	byMarshaler               // MarshalBinary
	byProto                   // Proto
)

// manner decides how a value of type t, at path, is encoded, or why it can't be.
func (c *compiler) manner(t reflect.Type, path string) (manner, error) {
	if _, ok := c.user[t]; ok {
		return byUser, nil
	}
	if isTime(t) {
		return byTime, nil
	}
	switch t.Kind() {
	case reflect.Chan:
		return 0, c.refuse(path, "channels have no encoding")
	case reflect.Func:
		return 0, c.refuse(path, "functions have no encoding")
	case reflect.UnsafePointer:
		return 0, c.refuse(path, "unsafe pointers have no encoding")
	case reflect.Interface:
		if _, ok := c.sets[t]; !ok {
			return 0, c.refuse(path, "%s is an interface: name its types with serde.OneOf[%s](...)", t, t)
		}
		return byReference, nil
	case reflect.Pointer:
		return byReference, nil
	case reflect.Struct, reflect.Slice, reflect.Map:
		return c.ownManner(t, path)
	case reflect.Array:
		if holdsPointers(t) {
			return c.ownManner(t, path)
		}
	}
	return byStructure, nil
}

// ownManner decides for a type that may have methods that encode it. Scalars, strings and arrays of scalars never do it
// by method: their memory says everything.
func (c *compiler) ownManner(t reflect.Type, path string) (manner, error) {
	if c.protoOf(t) != nil {
		return byProto, nil
	}
	if _, ok := reflect.PointerTo(t).MethodByName("ProtoReflect"); ok {
		return 0, c.refuse(path, "%s is a protocol buffer message: add the option serde.Proto(proto.Marshal, proto.Unmarshal)", t)
	}
	out, in := marshalers(t)
	if out && in && !promoted(t) {
		return byMarshaler, nil
	}
	if t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
		return byReference, nil
	}
	return byStructure, c.checkFields(t, path)
}

// checkFields refuses structs whose fields other packages must not see, since only the type's own code may encode those,
// and structs with two fields that snapshots would know by one name.
func (c *compiler) checkFields(t reflect.Type, path string) error {
	if t.Kind() != reflect.Struct {
		return nil
	}
	names := map[string]bool{}
	for i := range t.NumField() {
		f := t.Field(i)
		if name := fieldName(f); f.Name != "_" && names[name] {
			return c.refuse(joinPath(path, f.Name), "another field is named %q, too", name)
		}
		names[fieldName(f)] = true
		// The fields of an embedded struct are checked for themselves, whatever the name of its type.
		if f.Name == "_" || f.IsExported() || f.Anonymous && f.Type.Kind() == reflect.Struct {
			continue
		}
		return c.refuse(joinPath(path, f.Name), "%s", unexportedReason(t))
	}
	return nil
}

func unexportedReason(t reflect.Type) string {
	const advice = "the field is unexported: export it, give %s MarshalBinary and UnmarshalBinary, or use serde.WithCodec"
	out, in := marshalers(t)
	switch {
	case out && in:
		return fmt.Sprintf("the field is unexported, and the MarshalBinary of %s may be that of an embedded type: "+
			"use serde.WithCodec", t)
	case out:
		return fmt.Sprintf("the field is unexported, and %s has MarshalBinary but no UnmarshalBinary", t)
	case in:
		return fmt.Sprintf("the field is unexported, and %s has UnmarshalBinary but no MarshalBinary", t)
	}
	return fmt.Sprintf(advice, t)
}

// promoted reports whether MarshalBinary of struct t may be that of an embedded type, which knows nothing of the other
// fields. Go does not tell, so such a struct is encoded field by field.
func promoted(t reflect.Type) bool {
	if t.Kind() != reflect.Struct || t.NumField() < 2 {
		return false
	}
	for i := range t.NumField() {
		f := t.Field(i)
		if !f.Anonymous {
			continue
		}
		base := f.Type
		if base.Kind() == reflect.Pointer {
			base = base.Elem()
		}
		if out, _ := marshalers(base); out {
			return true
		}
	}
	return false
}

// protoOf gives the function that makes the codec of message type t; nil if it is none.
func (c *compiler) protoOf(t reflect.Type) func(reflect.Type) *framed {
	for _, r := range c.protos {
		if reflect.PointerTo(t).Implements(r.message) {
			return r.codec
		}
	}
	return nil
}
