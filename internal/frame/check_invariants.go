//go:build invariants

package frame

import (
	"fmt"
	"reflect"
)

func checkView[T any](t *Type) {
	if want := reflect.TypeFor[T](); t.Handle.Type != want {
		panic(fmt.Sprintf("frame: view a column of %s as %s", t.Name, want))
	}
}
