package avro

import (
	"encoding/binary"
	"fmt"
	"reflect"
	"strings"

	"github.com/flott-dev/flott/connector/file"
	"github.com/hamba/avro/v2"
)

// suits tells, before any file is there, whether values of a Go type can be those of a schema: it reads one, and writes it
// where it must be written. The library has no other way to ask.
func suits[T any](api avro.API, s avro.Schema, write bool) error {
	var x T
	err := file.Guard(func() error {
		b, _ := sample(nil, s, 0)
		return api.Unmarshal(s, b, &x)
	})
	if err == nil && write {
		err = file.Guard(func() error {
			w := avro.NewWriter(nil, 64, avro.WithWriterConfig(api))
			put(w, s, &x)
			return w.Error
		})
	}
	if err != nil && strings.Contains(err.Error(), "unsupported") { // else the type may just dislike the value
		return fmt.Errorf("values of type %s for schema %s: %w", reflect.TypeFor[T](), s.Type(), err)
	}
	return nil
}

// put writes a value. The library takes pointers to structs, which saves a copy, but not to all that values can be.
func put[T any](w *avro.Writer, s avro.Schema, x *T) {
	if reflect.TypeFor[T]().Kind() == reflect.Struct && s.Type() == avro.Record {
		w.WriteVal(s, x)
		return
	}
	w.WriteVal(s, *x)
}

// sample appends the encoding of some value of a schema, with an item in each array and map; false if there is none that
// is not too deep.
func sample(b []byte, s avro.Schema, depth int) ([]byte, bool) {
	if depth > maxDepth {
		return b, false
	}
	ok := true
	switch s := s.(type) {
	case *avro.NullSchema:
	case *avro.RefSchema:
		return sample(b, s.Schema(), depth+1)
	case *avro.FixedSchema:
		b = append(b, make([]byte, s.Size())...)
	case *avro.RecordSchema:
		for _, f := range s.Fields() {
			if b, ok = sample(b, f.Type(), depth+1); !ok {
				return b, false
			}
		}
	case *avro.ArraySchema:
		if item, ok := sample(nil, s.Items(), depth+1); ok {
			b = append(append(b, 2), item...)
		}
		b = append(b, 0)
	case *avro.MapSchema:
		if value, ok := sample(nil, s.Values(), depth+1); ok {
			b = append(append(b, 2, 0), value...) // one value, with an empty key
		}
		b = append(b, 0)
	case *avro.UnionSchema:
		for i := len(s.Types()) - 1; i >= 0; i-- { // null comes first, as a rule
			if value, ok := sample(binary.AppendVarint(nil, int64(i)), s.Types()[i], depth+8); ok {
				return append(b, value...), true
			}
		}
		return b, false
	case *avro.PrimitiveSchema:
		b = append(b, make([]byte, width(s.Type()))...)
	default: // an enum
		b = append(b, 0)
	}
	return b, ok
}

// width is how many bytes a zero takes.
func width(t avro.Type) int {
	switch t {
	case avro.Float:
		return 4
	case avro.Double:
		return 8
	}
	return 1
}
