package backendtest

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"unsafe"

	"github.com/flott-dev/flott/serde"
	"github.com/flott-dev/flott/statebackend"
)

// models makes a model of each kind of table, with texts up to about 40 bytes times fat.
func models(t testing.TB, fat int) []*model {
	var out []*model
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
				m := &model{draw: value.draw, held: map[owner][]item{}}
				m.spec = statebackend.TableSpec{Value: value.h, Namespace: ns, List: kind == "list", TTL: ttls[n%len(ttls)]}
				m.spec.Name = fmt.Sprint(kind, "/", value.h.Layout, "/ns ", ns != nil, "/ttl ", n%len(ttls))
				if kind == "map" {
					m.spec.MapKey = text
				}
				out = append(out, m)
				n++
				if v == 0 || kind == "list" { // one more with the next TTL
					c := *m
					c.held = map[owner][]item{}
					c.spec.TTL = ttls[n%len(ttls)]
					c.spec.Name += fmt.Sprint(", ", n%len(ttls))
					out = append(out, &c)
				}
			}
		}
	}
	return out
}
