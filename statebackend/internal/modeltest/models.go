package modeltest

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"unsafe"

	"github.com/flott-dev/flott/serde"
	"github.com/flott-dev/flott/statebackend"
)

// textValue is a value with texts.
type textValue struct {
	N    int64
	S    string
	Flag bool
	T    string
}

// New makes a model of each kind of table, with texts up to about 40 bytes times fat.
func New(t testing.TB, fat int) []*Model {
	var out []*Model
	window, err := serde.KeyOf[[8]byte]()
	ok(t, err)
	text, err := serde.KeyOf[string]()
	ok(t, err)
	values := []struct {
		h    *serde.Handle
		draw func(*rand.Rand) unsafe.Pointer
	}{
		{handle[int64](t), func(r *rand.Rand) unsafe.Pointer { v := r.Int64(); return unsafe.Pointer(&v) }},
		{handle[textValue](t), func(r *rand.Rand) unsafe.Pointer {
			v := textValue{N: r.Int64N(99), S: strings.Repeat("s", r.IntN(40*fat)), T: fmt.Sprint(r.IntN(99))}
			return unsafe.Pointer(&v)
		}},
		{handle[[]string](t), func(r *rand.Rand) unsafe.Pointer {
			v := make([]string, r.IntN(5))
			for i := range v {
				v[i] = strings.Repeat("x", r.IntN(30*fat))
			}
			return unsafe.Pointer(&v)
		}},
	}
	ttls := []*statebackend.TTL{nil, {Millis: 300}, {Millis: 300, OnRead: true}}
	n := 0
	for _, kind := range []string{"value", "list", "map"} {
		for v, value := range values {
			for _, ns := range []*serde.Key{nil, window} {
				m := &Model{draw: value.draw, held: map[Owner][]Item{}}
				m.Spec = statebackend.TableSpec{Value: value.h, Namespace: ns, List: kind == "list", TTL: ttls[n%len(ttls)]}
				m.Spec.Name = fmt.Sprint(kind, "/", value.h.Layout, "/ns ", ns != nil, "/ttl ", n%len(ttls))
				if kind == "map" {
					m.Spec.MapKey = text
				}
				out = append(out, m)
				n++
				if v == 0 || kind == "list" { // one more with the next TTL
					c := *m
					c.held = map[Owner][]Item{}
					c.Spec.TTL = ttls[n%len(ttls)]
					c.Spec.Name += fmt.Sprint(", ", n%len(ttls))
					out = append(out, &c)
				}
			}
		}
	}
	return out
}
