package process

import (
	"reflect"

	"github.com/flott-dev/flott/internal/frame"
)

func isType[X any](t *frame.Type) bool { return t.Handle.Type == reflect.TypeFor[X]() }
