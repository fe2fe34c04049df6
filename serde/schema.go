package serde

import (
	"reflect"
	"strconv"
	"strings"
	"unsafe"
)

// Kind says what a Schema describes.
type Kind uint8

const (
	Bool       Kind = iota + 1 // 1 byte, 0 or 1
	Int8                       // 1 byte
	Int16                      // 2 bytes, as all numbers little-endian
	Int32                      // 4 bytes
	Int64                      // 8 bytes; int as well
	Uint8                      // 1 byte
	Uint16                     // 2 bytes
	Uint32                     // 4 bytes
	Uint64                     // 8 bytes; uint and uintptr as well
	Float32                    // 4 bytes
	Float64                    // 8 bytes
	Complex64                  // 8 bytes
	Complex128                 // 16 bytes
	String                     // a length and its bytes
	Time                       // 16 bytes
	Array                      // Len times Elem
	Slice                      // of Elem
	Pointer                    // to Elem
	Map                        // Key to Elem
	Struct                     // Fields
	Interface                  // one of Fields, which are named after their types
	Custom                     // bytes that user code makes: WithCodec, MarshalBinary, Proto; Name is the type's
	Recursion                  // the schema Len levels up
)

// Schema is the shape of an encoding: what a snapshot keeps beside the bytes, so that a later program can read them by
// field names. It knows no package paths and, except for Custom and Interface, no type names: those may change.
type Schema struct {
	Kind   Kind    // which of the other fields have a meaning
	Name   string  // Custom only
	Len    int     // Array and Recursion only
	Key    *Schema // Map only
	Elem   *Schema // Array, Slice, Pointer and Map only
	Fields []Field // Struct and Interface only, in the order of the encoding
}

// Field is a field of a struct, or a type of a closed set.
type Field struct {
	Name   string  // the tag `flott:"name"` or the Go name; of a type in a set its name, with a * for pointers
	Schema *Schema // how it is encoded
}

// Fingerprint is a hash of the schema: two schemas are the same exactly if their fingerprints are, collisions aside. It
// is stable over processes and versions.
func (s *Schema) Fingerprint() uint64 {
	text := s.String()
	return keysOfSeed(0).bytes(unsafe.Pointer(unsafe.StringData(text)), len(text))
}

// String gives the schema in the notation that ParseSchema reads, close to Go's own:
//
//	struct{ID int64;Tags []string;At time;Next *^2}
func (s *Schema) String() string {
	var b strings.Builder
	s.write(&b)
	return b.String()
}

func (s *Schema) write(b *strings.Builder) {
	switch s.Kind {
	case Array:
		b.WriteString("[" + strconv.Itoa(s.Len) + "]")
		s.Elem.write(b)
	case Slice:
		b.WriteString("[]")
		s.Elem.write(b)
	case Pointer:
		b.WriteString("*")
		s.Elem.write(b)
	case Map:
		b.WriteString("map[")
		s.Key.write(b)
		b.WriteString("]")
		s.Elem.write(b)
	case Struct, Interface:
		b.WriteString(s.Kind.String() + "{")
		for i, f := range s.Fields {
			if i > 0 {
				b.WriteByte(';')
			}
			b.WriteString(quoteName(f.Name) + " ")
			f.Schema.write(b)
		}
		b.WriteString("}")
	case Custom:
		b.WriteString("custom(" + strconv.Quote(s.Name) + ")")
	case Recursion:
		b.WriteString("^" + strconv.Itoa(s.Len))
	default:
		b.WriteString(s.Kind.String())
	}
}

// quoteName leaves identifiers as they are.
func quoteName(name string) string {
	for _, r := range name {
		if r != '_' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') {
			return strconv.Quote(name)
		}
	}
	if name == "" {
		return `""`
	}
	return name
}

// String gives the word of the kind in a schema's text.
func (k Kind) String() string {
	names := [...]string{
		Bool: "bool", Int8: "int8", Int16: "int16", Int32: "int32", Int64: "int64", Uint8: "uint8", Uint16: "uint16",
		Uint32: "uint32", Uint64: "uint64", Float32: "float32", Float64: "float64", Complex64: "complex64",
		Complex128: "complex128", String: "string", Time: "time", Array: "array", Slice: "slice", Pointer: "pointer",
		Map: "map", Struct: "struct", Interface: "oneof", Custom: "custom", Recursion: "recursion",
	}
	if int(k) < len(names) && names[k] != "" {
		return names[k]
	}
	return "kind(" + strconv.Itoa(int(k)) + ")"
}

// schema describes a type that was compiled without an error. Above holds the types that enclose it.
func (c *compiler) schema(t reflect.Type, above []reflect.Type) *Schema {
	for i, a := range above {
		if a == t {
			return &Schema{Kind: Recursion, Len: len(above) - i}
		}
	}
	how, err := c.manner(t, "")
	if err != nil {
		panic("serde: schema of a type that was not compiled: " + err.Error())
	}
	switch how {
	case byUser, byMarshaler, byProto:
		return &Schema{Kind: Custom, Name: t.Name()}
	case byTime:
		return &Schema{Kind: Time}
	}
	above = append(above, t)
	switch t.Kind() {
	case reflect.Array:
		return &Schema{Kind: Array, Len: t.Len(), Elem: c.schema(t.Elem(), above)}
	case reflect.Slice:
		return &Schema{Kind: Slice, Elem: c.schema(t.Elem(), above)}
	case reflect.Pointer:
		return &Schema{Kind: Pointer, Elem: c.schema(t.Elem(), above)}
	case reflect.Map:
		return &Schema{Kind: Map, Key: c.schema(t.Key(), above), Elem: c.schema(t.Elem(), above)}
	case reflect.Interface:
		s := &Schema{Kind: Interface}
		for _, m := range c.sets[t].members {
			s.Fields = append(s.Fields, Field{Name: memberName(m.typ), Schema: c.schema(m.typ, above)})
		}
		return s
	case reflect.Struct:
		s := &Schema{Kind: Struct}
		for i := range t.NumField() {
			if f := t.Field(i); f.Name != "_" {
				s.Fields = append(s.Fields, Field{Name: fieldName(f), Schema: c.schema(f.Type, above)})
			}
		}
		return s
	}
	return &Schema{Kind: scalarKind(t.Kind())}
}

// fieldName is the name of a field in snapshots: its tag `flott:"name"`, or its Go name.
func fieldName(f reflect.StructField) string {
	if tag := f.Tag.Get("flott"); tag != "" {
		return tag
	}
	return f.Name
}

func memberName(t reflect.Type) string {
	if t.Kind() == reflect.Pointer {
		return "*" + t.Elem().Name()
	}
	return t.Name()
}

func scalarKind(k reflect.Kind) Kind {
	switch k {
	case reflect.Int:
		return Int64
	case reflect.Uint, reflect.Uintptr:
		return Uint64
	case reflect.Bool:
		return Bool
	case reflect.String:
		return String
	case reflect.Float32, reflect.Float64, reflect.Complex64, reflect.Complex128:
		return Float32 + Kind(k-reflect.Float32)
	case reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return Int8 + Kind(k-reflect.Int8)
	}
	return Uint8 + Kind(k-reflect.Uint8)
}
