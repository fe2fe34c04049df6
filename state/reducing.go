package state

// Reducing is one value per key, to which elements are added by a function.
type Reducing[V any] struct {
	value *Value[V]
	f     func(V, V) V
}

// NewReducing declares a value per key that Add folds elements into: the first element becomes the value, then the value
// becomes f(value, element). See NewValue; Default is ignored.
func NewReducing[V any](b Binder, name string, f func(V, V) V, opts ...Option) *Reducing[V] {
	return &Reducing[V]{NewValue[V](b, name, opts...), f}
}

// Add folds x into the value of the key at hand.
func (r *Reducing[V]) Add(x V) {
	v := r.value
	if p := v.peek(); p != nil {
		*p = r.f(*p, x)
		return
	}
	if v.inPlace {
		if p, fresh := v.slot(); p != nil {
			if !fresh {
				x = r.f(*p, x)
			}
			*p = x
		}
		return
	}
	if old, ok := v.lookup(); ok {
		x = r.f(old, x)
	}
	if v.run.err == nil {
		v.set(x)
	}
}

// Get gives the value of the key at hand, or the zero value if nothing was added.
func (r *Reducing[V]) Get() V {
	x, _ := r.value.Lookup()
	return x
}

// Lookup gives the value of the key at hand and says whether anything was added.
func (r *Reducing[V]) Lookup() (V, bool) { return r.value.Lookup() }

// Exists says whether anything was added for the key at hand.
func (r *Reducing[V]) Exists() bool { return r.value.Exists() }

// Clear removes the value of the key at hand.
func (r *Reducing[V]) Clear() { r.value.Clear() }
