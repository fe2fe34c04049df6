// Package parquet reads and writes Parquet files. It owns what lies between the files of package connector/file and the
// library github.com/parquet-go/parquet-go, which knows the format: which row groups a split reads, from where a restored
// job goes on, which columns a struct wants, and that damaged files give errors. Programs call it:
//
//	rows := env.ReadFile(parquet.Format[Trade](), "trades/*.parquet")
//	rows.CommitTo(filesink.NewBulk("out", parquet.Encoding[Trade]()))
//
// Elements are structs, whose fields say by the library's tags which columns they are: `parquet:"price"` names the column,
// `parquet:"price,optional"` is one that may be null, as a pointer is, `parquet:"-"` leaves the field out; see there for
// lists, maps, timestamps and encodings.
package parquet

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/flott-dev/flott/connector/file"
	pq "github.com/parquet-go/parquet-go"
)

// ErrDamaged says that a file is no Parquet file, or one that is cut off or damaged.
var ErrDamaged = errors.New("the file is damaged or no Parquet file")

// schemaOf is the schema of a struct type.
func schemaOf[T any]() (schema *pq.Schema, err error) {
	t := reflect.TypeFor[T]()
	if t.Kind() != reflect.Struct {
		return nil, fmt.Errorf("rows are structs, and %s is none", t)
	}
	err = file.Guard(func() error { // the library panics at fields that it does not take
		schema = pq.SchemaOf(new(T))
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("make a schema of %s: %w", t, err)
	}
	if len(schema.Columns()) == 0 {
		return nil, fmt.Errorf("type %s has no exported field for a column", t)
	}
	return schema, nil
}
