package state

import (
	"fmt"
	"reflect"
	"time"

	"github.com/flott-dev/flott/serde"
	"github.com/flott-dev/flott/statebackend"
)

// Option changes how a state is declared.
type Option func(*declaration)

type declaration struct {
	value, key []serde.Option
	initial    any
	ttl        *statebackend.TTL
	err        error
}

// Default sets the value that Get returns and Update starts from while the key has no value; without it that is the zero
// value. Its type must be the state's. Lookup and Exists are not affected. Values only.
func Default[V any](v V) Option {
	return func(d *declaration) { d.initial = v }
}

// Serde passes options to the codec of the state's value, of a list's elements, or of a map's values.
func Serde(opts ...serde.Option) Option {
	return func(d *declaration) { d.value = append(d.value, opts...) }
}

// Upgrade brings values of the type Old, which snapshots of earlier versions of the program hold, to the type New: that of the
// state, or one inside of it. Fields that are added, removed or reordered need none; serde.Upgrade says when it is called.
func Upgrade[Old, New any](f func(Old) (New, error)) Option { return Serde(serde.Upgrade(f)) }

// KeySerde passes options to the codec of a map's keys.
func KeySerde(opts ...serde.Option) Option {
	return func(d *declaration) { d.key = append(d.key, opts...) }
}

// Renewal says what renews the time that state lives.
type Renewal uint8

const (
	// OnCreateAndWrite renews by writes.
	OnCreateAndWrite Renewal = iota
	// OnReadAndWrite renews by reads, too.
	OnReadAndWrite
)

// Visibility says whether a read may return expired state.
type Visibility uint8

const (
	// NeverReturnExpired hides expired state even if nothing has removed it yet.
	NeverReturnExpired Visibility = iota
	// ReturnExpiredIfNotCleanedUp returns it if it is still there.
	ReturnExpiredIfNotCleanedUp
)

// TTLConfig says when state expires, in processing time. Time passes while the job is down. A map's entries and a list's
// elements expire one by one.
type TTLConfig struct {
	// After is the time to live, rounded up to ms; it must be positive.
	After time.Duration
	// Update says what renews it. Default OnCreateAndWrite.
	Update Renewal
	// Visibility says what reads see. Default NeverReturnExpired.
	Visibility Visibility
}

// TTL lets the state expire.
func TTL(c TTLConfig) Option {
	return func(d *declaration) {
		ms := c.After.Milliseconds()
		if c.After%time.Millisecond > 0 {
			ms++
		}
		if ms <= 0 {
			d.err = fmt.Errorf("time to live of %v: it must be positive", c.After)
			return
		}
		d.ttl = &statebackend.TTL{
			Millis:        ms,
			OnRead:        c.Update == OnReadAndWrite,
			ReturnExpired: c.Visibility == ReturnExpiredIfNotCleanedUp,
		}
	}
}

// declare applies options and compiles the codec of V. Mistakes are reported; the spec is not usable then.
func declare[V any](b Binder, name string, opts []Option) (spec statebackend.TableSpec, d declaration, ok bool) {
	for _, o := range opts {
		o(&d)
	}
	h, err := serde.Of[V](d.value...)
	if d.err != nil {
		err = d.err
	}
	if err != nil {
		b.Report(fmt.Errorf("state %q: %w", name, err))
		return spec, d, false
	}
	return statebackend.TableSpec{Name: name, Value: h, TTL: d.ttl}, d, true
}

// initial gives the default value; it must have the type of the state.
func initial[V any](b Binder, name string, d *declaration) (v V, ok bool) {
	if d.initial == nil {
		return v, false
	}
	if v, ok = d.initial.(V); !ok {
		b.Report(fmt.Errorf("state %q of %v: default value is of type %T", name, reflect.TypeFor[V](), d.initial))
	}
	return v, ok
}
