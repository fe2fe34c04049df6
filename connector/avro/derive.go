package avro

import (
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// SchemaOf is the schema of a Go type that Encoding takes if it is given none, as JSON. A struct is a record of its type's name
// with its exported fields, named by their tags; those of embedded structs are its own.
//
//	bool                                    boolean
//	int8, int16, int32, uint8, uint16       int
//	int, int64, uint32, time.Duration (ns)  long
//	float32, float64                        float, double
//	string, and what has MarshalText        string
//	[]byte, [N]byte                         bytes, fixed
//	time.Time                               long, timestamp-micros
//	[]T, map[string]T, struct               array, map, record
//	*T                                      union of null, the default, and T
//
// Other types, such as uint64, interfaces and big.Rat, are an error that names the field: the schema has to be said then.
func SchemaOf[T any]() (string, error) {
	d := deriver{names: map[string]reflect.Type{}}
	t := reflect.TypeFor[T]()
	s, err := d.schema(t, t.Name())
	if err != nil {
		return "", fmt.Errorf("make an Avro schema of %s: %w", t, err)
	}
	b, err := json.Marshal(s)
	if err != nil {
		return "", fmt.Errorf("make an Avro schema of %s: %w", t, err)
	}
	return string(b), nil
}

// Parts of schemas, as JSON has them.
type (
	recordSchema struct {
		Type   string        `json:"type"`
		Name   string        `json:"name"`
		Fields []fieldSchema `json:"fields"`
	}
	fieldSchema struct {
		Name    string          `json:"name"`
		Type    any             `json:"type"`
		Default json.RawMessage `json:"default,omitempty"`
	}
	otherSchema struct {
		Type    string `json:"type"`
		Logical string `json:"logicalType,omitempty"`
		Name    string `json:"name,omitempty"`
		Size    int    `json:"size,omitempty"`
		Items   any    `json:"items,omitempty"`
		Values  any    `json:"values,omitempty"`
	}
)

// deriver makes one schema.
type deriver struct {
	names map[string]reflect.Type // that are taken
}

// schema is that of a type; a name is for types that need one and have none.
func (d *deriver) schema(t reflect.Type, name string) (any, error) {
	switch {
	case t == reflect.TypeFor[time.Time]():
		return otherSchema{Type: "long", Logical: "timestamp-micros"}, nil
	case isText(t):
		return "string", nil
	}
	switch t.Kind() {
	case reflect.Pointer:
		s, err := d.schema(t.Elem(), name)
		if _, union := s.([]any); union {
			return nil, errors.New("there are no pointers to pointers in Avro")
		}
		return []any{"null", s}, err
	case reflect.Struct:
		return d.record(t, name)
	case reflect.Map:
		if t.Key().Kind() != reflect.String {
			return nil, fmt.Errorf("the keys of Avro's maps are texts, not %s", t.Key())
		}
		s, err := d.schema(t.Elem(), name+"_value")
		return otherSchema{Type: "map", Values: s}, err
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return "bytes", nil
		}
		s, err := d.schema(t.Elem(), name+"_item")
		return otherSchema{Type: "array", Items: s}, err
	case reflect.Array:
		if t.Elem().Kind() == reflect.Uint8 {
			return otherSchema{Type: "fixed", Name: d.name(t, name), Size: t.Len()}, nil
		}
	default:
		if word := primitive(t.Kind()); word != "" {
			return word, nil
		}
	}
	return nil, fmt.Errorf("there is no Avro type for %s: give the schema, or leave the field out with the tag `avro:\"-\"`", t)
}

// primitive is the Avro type of a simple Go type; "": there is none.
func primitive(k reflect.Kind) string {
	switch k {
	case reflect.Bool:
		return "boolean"
	case reflect.Int8, reflect.Int16, reflect.Int32, reflect.Uint8, reflect.Uint16:
		return "int"
	case reflect.Int, reflect.Int64, reflect.Uint32:
		return "long"
	case reflect.Float32:
		return "float"
	case reflect.Float64:
		return "double"
	case reflect.String:
		return "string"
	}
	return ""
}

// isText tells whether values of a type write and read themselves as text.
func isText(t reflect.Type) bool {
	reads := reflect.TypeFor[encoding.TextUnmarshaler]()
	return t.Kind() != reflect.Pointer && t.Implements(reflect.TypeFor[encoding.TextMarshaler]()) &&
		(t.Implements(reads) || reflect.PointerTo(t).Implements(reads))
}

// record is the schema of a struct, or its name if it had one before.
func (d *deriver) record(t reflect.Type, name string) (any, error) {
	if t.Name() != "" {
		name = t.Name()
	}
	for known, other := range d.names {
		if other == t {
			return known, nil
		}
	}
	r := recordSchema{Type: "record", Name: d.name(t, name), Fields: []fieldSchema{}}
	for _, f := range reflect.VisibleFields(t) {
		field := fieldName(f)
		if field == "" {
			continue
		}
		s, err := d.schema(f.Type, r.Name+"_"+field)
		if err != nil {
			return nil, fmt.Errorf("field %s of %s: %w", f.Name, t, err)
		}
		out := fieldSchema{Name: field, Type: s}
		if f.Type.Kind() == reflect.Pointer {
			out.Default = json.RawMessage("null")
		}
		r.Fields = append(r.Fields, out)
	}
	if len(r.Fields) == 0 {
		return nil, fmt.Errorf("%s has no exported fields: give the schema, or leave it out with the tag `avro:\"-\"`", t)
	}
	return r, nil
}

// name is one that is not taken yet: letters, digits and underscores.
func (d *deriver) name(t reflect.Type, want string) string {
	want = strings.Map(func(c rune) rune {
		if c == '_' || c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' {
			return c
		}
		return '_'
	}, want)
	if want == "" {
		want = "Record"
	}
	name := want
	for n := 2; d.names[name] != nil; n++ {
		name = want + "_" + strconv.Itoa(n)
	}
	d.names[name] = t
	return name
}

// fieldName is the name in a record of a struct's field; "": it is none of the record's.
func fieldName(f reflect.StructField) string {
	if !f.IsExported() || f.Anonymous {
		return ""
	}
	name := f.Name
	if tag, ok := f.Tag.Lookup("avro"); ok {
		name, _, _ = strings.Cut(tag, ",")
	}
	if name == "-" {
		return ""
	}
	return name
}
