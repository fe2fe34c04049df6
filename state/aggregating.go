package state

import "github.com/flott-dev/flott/agg"

// Aggregating is one accumulator per key, to which elements are added by an aggregate function.
type Aggregating[In, Acc, Out any] struct {
	value *Value[Acc]
	agg   agg.Aggregate[In, Acc, Out]
}

// NewAggregating declares an accumulator per key. See NewValue; the accumulator's type is the state's, and a type
// without pointers is changed in place. Default is ignored.
func NewAggregating[In, Acc, Out any](b Binder, name string, a agg.Aggregate[In, Acc, Out], opts ...Option) *Aggregating[In, Acc, Out] {
	return &Aggregating[In, Acc, Out]{NewValue[Acc](b, name, opts...), a}
}

// Add adds x to the accumulator of the key at hand.
func (s *Aggregating[In, Acc, Out]) Add(x In) {
	v := s.value
	if p := v.peek(); p != nil {
		s.agg.Add(p, x)
		return
	}
	if v.inPlace {
		if p, fresh := v.slot(); p != nil {
			if fresh {
				*p = s.agg.Create()
			}
			s.agg.Add(p, x)
		}
		return
	}
	acc, ok := v.lookup()
	if v.run.err != nil {
		return
	}
	if !ok {
		acc = s.agg.Create()
	}
	v.changed = acc
	s.agg.Add(&v.changed, x)
	acc = v.changed
	var zero Acc
	v.changed = zero
	v.set(acc)
}

// Get gives the result for the key at hand; the zero value if nothing was added.
func (s *Aggregating[In, Acc, Out]) Get() Out {
	out, _ := s.Lookup()
	return out
}

// Lookup gives the result for the key at hand and says whether anything was added.
func (s *Aggregating[In, Acc, Out]) Lookup() (out Out, ok bool) {
	acc, ok := s.value.Lookup()
	if !ok {
		return out, false
	}
	s.value.changed = acc
	out = s.agg.Result(&s.value.changed)
	var zero Acc
	s.value.changed = zero
	return out, true
}

// Exists says whether anything was added for the key at hand.
func (s *Aggregating[In, Acc, Out]) Exists() bool { return s.value.Exists() }

// Clear removes the accumulator of the key at hand.
func (s *Aggregating[In, Acc, Out]) Clear() { s.value.Clear() }
