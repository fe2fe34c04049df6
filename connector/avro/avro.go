// Package avro reads and writes Avro's object container files. It owns the container: header, blocks, sync markers,
// compression, so that files are cut into splits and a restored job goes on at a record; the library
// github.com/hamba/avro/v2 knows schemas and turns bytes into values. Programs call it:
//
//	rows := env.ReadFile(avro.Format[Trade](""), "trades/*.avro")
//	rows.CommitTo(filesink.NewBulk("out", avro.Encoding[Trade]("")))
//
// Elements are mostly structs, whose fields say by tags which fields of a record they are: `avro:"price"`; without a tag
// the name must be the same. See the library for what Go types Avro's types may be.
package avro

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/flott-dev/flott/connector/file"
	"github.com/hamba/avro/v2"
)

// ErrDamaged says that a file is no Avro container, or one that is cut off or damaged.
var ErrDamaged = errors.New("the file is damaged or no Avro container file")

// maxSlice is how many items an array may have: the library takes the memory before it looks for them.
const maxSlice = 1 << 22

// library is the library with limits, for one format or encoding: it keeps what it compiled.
func library() avro.API {
	return avro.Config{MaxByteSliceSize: maxBlock, MaxSliceAllocSize: maxSlice}.Freeze()
}

// parse parses a schema that has nothing to do with any other: the names in it are its own.
func parse(text string) (schema avro.Schema, err error) {
	err = file.Guard(func() (err error) {
		schema, err = avro.ParseWithCache(text, "", &avro.SchemaCache{})
		return err
	})
	if err == nil && emptyItems(schema, map[avro.Schema]bool{}) {
		return nil, errors.New("arrays of items without bytes, such as nulls, are not supported")
	}
	return schema, err
}

// emptyItems tells whether a schema has arrays whose items take no bytes: nothing would bound how many of them a few bytes
// can stand for.
func emptyItems(s avro.Schema, seen map[avro.Schema]bool) bool {
	if seen[s] {
		return false
	}
	seen[s] = true
	switch s := s.(type) {
	case *avro.RefSchema:
		return emptyItems(s.Schema(), seen)
	case *avro.RecordSchema:
		return slices.ContainsFunc(s.Fields(), func(f *avro.Field) bool { return emptyItems(f.Type(), seen) })
	case *avro.UnionSchema:
		return slices.ContainsFunc(s.Types(), func(t avro.Schema) bool { return emptyItems(t, seen) })
	case *avro.MapSchema:
		return emptyItems(s.Values(), seen)
	case *avro.ArraySchema:
		return empty(s.Items(), 0) || emptyItems(s.Items(), seen)
	}
	return false
}

// empty tells whether values of a schema may take no bytes.
func empty(s avro.Schema, depth int) bool {
	if depth > maxDepth {
		return false // a record in itself without a union around is no value at all
	}
	switch s := s.(type) {
	case *avro.NullSchema:
		return true
	case *avro.FixedSchema:
		return s.Size() == 0
	case *avro.RefSchema:
		return empty(s.Schema(), depth+1)
	case *avro.RecordSchema:
		return !slices.ContainsFunc(s.Fields(), func(f *avro.Field) bool { return !empty(f.Type(), depth+1) })
	}
	return false
}

// recursive is the name of a record that may have one of its kind within it, "" if there is none. around are those that the
// schema lies in.
func recursive(s avro.Schema, around []*avro.RecordSchema) string {
	var inner []avro.Schema
	switch s := s.(type) {
	case *avro.RefSchema:
		if r, ok := s.Schema().(*avro.RecordSchema); ok && slices.Contains(around, r) {
			return r.FullName()
		}
		inner = []avro.Schema{s.Schema()}
	case *avro.RecordSchema:
		around = append(slices.Clone(around), s)
		for _, f := range s.Fields() {
			inner = append(inner, f.Type())
		}
	case *avro.UnionSchema:
		inner = s.Types()
	case *avro.MapSchema:
		inner = []avro.Schema{s.Values()}
	case *avro.ArraySchema:
		inner = []avro.Schema{s.Items()}
	}
	for _, s := range inner {
		if name := recursive(s, around); name != "" {
			return name
		}
	}
	return ""
}

// maxDepth is how deep values may lie in values.
const maxDepth = 64

// covers reports fields of a struct type that a schema does not have: they would stay empty without a word.
func covers(s avro.Schema, t reflect.Type) error {
	record, ok := s.(*avro.RecordSchema)
	if !ok || t.Kind() != reflect.Struct {
		return nil
	}
	var names []string
	for _, f := range record.Fields() {
		names = append(append(names, f.Name()), f.Aliases()...)
	}
	for _, f := range reflect.VisibleFields(t) {
		name := fieldName(f)
		if name != "" && !slices.Contains(names, name) {
			return fmt.Errorf("record %s has no field %s for %s.%s; it has %s", record.FullName(), name, t, f.Name, strings.Join(names, ", "))
		}
	}
	return nil
}
