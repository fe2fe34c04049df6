package keyed

import (
	"unsafe"

	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/serde"
)

// SpacedHandler is a driver whose timers belong to a key and a namespace, a window.
type SpacedHandler interface {
	// FireIn is called for a timer with its key at hand; key and namespace are their canonical encodings, valid during the
	// call.
	FireIn(d process.Domain, key, namespace []byte, at int64) error
	// Flush ends a stretch of user calls: for timers it is called once for all that fire together.
	Flush() error
}

// OpenSpaced is Open for a driver whose timers have a namespace of that type.
func (k *Keys) OpenSpaced(rt *operator.Runtime, sides *operator.Sides, namespace *serde.Key, h SpacedHandler) error {
	k.spaced, k.ends = h, h
	k.onEvent, k.onFlush = k.fireEventIn, k.flushSpaced
	return k.openTimers(rt, sides, k.fireProcessingIn, namespace)
}

// Register sets a timer of the key at hand in a namespace, which is copied.
func (k *Keys) Register(d process.Domain, namespace []byte, at int64) {
	i := k.services.run.Index
	if err := k.services.timers.Register(d, k.canon.Bytes(i), k.hashes[i], namespace, at); err != nil {
		k.services.run.Fail(err)
	}
}

// Delete takes a timer of the key at hand back.
func (k *Keys) Delete(d process.Domain, namespace []byte, at int64) {
	i := k.services.run.Index
	if err := k.services.timers.Delete(d, k.canon.Bytes(i), k.hashes[i], namespace, at); err != nil {
		k.services.run.Fail(err)
	}
}

// Timers is the number of timers, over all keys and namespaces.
func (k *Keys) Timers(d process.Domain) int { return k.services.timers.Count(d) }

func (k *Keys) fireEventIn(key []byte, hash uint64, namespace []byte, at int64) error {
	k.firing = timer{process.EventTime, at}
	k.At(key, hash)
	return k.spaced.FireIn(process.EventTime, key, namespace, at)
}

// fireProcessingIn is called for each processing-time timer that the clock is past. What they emit goes out together: the
// callback that does it comes after the one at work, since it is for the same time.
func (k *Keys) fireProcessingIn(key []byte, hash uint64, namespace []byte, at int64) error {
	rt := k.services.RT
	rt.At, rt.Run = rt, nil
	if !k.flushing {
		k.flushing = true
		rt.Timers.Schedule(at, k.onFlush)
	}
	k.firing = timer{process.ProcessingTime, at}
	k.At(key, hash)
	return k.spaced.FireIn(process.ProcessingTime, key, namespace, at)
}

func (k *Keys) flushSpaced(int64) error {
	k.flushing = false
	return k.spaced.Flush()
}

// NewKey makes memory for a key; see Decode.
func (k *Keys) NewKey() unsafe.Pointer { return k.key.New() }
