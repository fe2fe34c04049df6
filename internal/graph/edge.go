package graph

import (
	"fmt"

	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/serde"
)

// Produces is the type of what the edge carries; nil if its producer has no such output.
func (e *Edge) Produces() *frame.Type {
	t, _ := e.produces()
	return t
}

func (e *Edge) produces() (*frame.Type, bool) {
	if e.Tag == "" {
		return e.From.Out, e.From.Out != nil
	}
	t, ok := e.From.Side[e.Tag]
	return t, ok && t != nil
}

func outputName(tag string) string {
	if tag == "" {
		return "output"
	}
	return fmt.Sprintf("side output %q", tag)
}

func keyHandle(k *Key) *serde.Handle {
	if k.Key == nil {
		return nil
	}
	return k.Handle
}

func keyName(k *Key) string {
	if h := keyHandle(k); h != nil {
		return h.Name
	}
	return "an unknown type"
}
