package keyed

import (
	"fmt"
	"unsafe"

	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/internal/operator/timers"
	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/serde"
	"github.com/flott-dev/flott/state"
	"github.com/flott-dev/flott/statebackend"
)

// Keys is the keyed side of a driver that calls process functions: one store and one set of timers for all inputs, and
// which key is at hand. Drivers with several inputs use it from their packages.
type Keys struct {
	keyer
	services services
	inputs   []*operator.Key
	extracts []func(*frame.Run) serde.Column // by input
	handler  Handler
	spaced   SpacedHandler              // in place of handler
	ends     interface{ Flush() error } // the one of them that there is
	types    timers.Types
	flushing bool       // a callback is scheduled that ends the stretch of a spaced handler
	begun    *frame.Run // whose keys are at hand; nil: that of firing is, or of a visit to all keys
	firing   timer
	fired    fired             // if they are taken many at a time
	onEvent  timers.Fire       // bound once: a method value would be allocated at each use
	onFlush  func(int64) error // likewise
}

// timer is one that fires.
type timer struct {
	domain process.Domain
	at     int64
}

// Handler is a driver whose timers fire.
type Handler interface {
	// Fire is called for a timer with its key at hand; key is its canonical encoding.
	Fire(d process.Domain, key []byte, at int64) error
	// Flush ends a stretch of user calls.
	Flush() error
}

// NewKeys returns the keyed side of an operator whose inputs have these keys, all of one type; nil for an input without.
func NewKeys(inputs ...*operator.Key) *Keys {
	k := &Keys{inputs: inputs, extracts: make([]func(*frame.Run) serde.Column, len(inputs))}
	for _, key := range inputs {
		if key != nil && k.key == nil {
			k.key = key
		}
	}
	return k
}

// Open opens the store and the timers; sides must be open.
func (k *Keys) Open(rt *operator.Runtime, sides *operator.Sides, h Handler) error {
	k.handler, k.ends, k.onEvent = h, h, k.fireEvent
	return k.openTimers(rt, sides, k.fireProcessing, nil)
}

// openTimers opens store and timers, as a snapshot has them. namespace is the type of the timers' namespaces, if they have
// some.
func (k *Keys) openTimers(rt *operator.Runtime, sides *operator.Sides, processing timers.Fire, namespace *serde.Key) error {
	if err := k.open(rt); err != nil {
		return err
	}
	for i, key := range k.inputs {
		if key != nil {
			k.extracts[i] = key.Extract()
		}
	}
	rt.AtHand = k.AtHand
	k.services = services{
		Services: *operator.NewServices(rt, sides), keyer: &k.keyer, run: state.CurrentRun{Index: state.None},
	}
	o := timers.Options{Callbacks: rt.Timers, OnProcessingTime: processing, Inline: k.inline(namespace), Operator: rt.Name}
	o.Store, _ = k.store.(statebackend.TimerStore)
	if rt.Memory != nil {
		o.Memory = rt.Memory
	}
	k.services.timers = timers.New(o)
	k.types = timers.Types{Key: k.key.Key, Namespace: namespace, Seed: rt.Seed}
	return k.services.timers.Restore(rt.Restored, k.types)
}

// inline is the width of a timer's key and namespace, 0 if it varies.
func (k *Keys) inline(namespace *serde.Key) int {
	switch {
	case namespace == nil:
		return int(k.key.Width)
	case k.key.Width == 0 || namespace.Width == 0 && namespace.Size > 0:
		return 0
	}
	return int(k.key.Width + namespace.Width)
}

// Snapshot adds store and timers to a snapshot.
func (k *Keys) Snapshot(s *operator.Snapshot) error {
	if err := k.keyer.Snapshot(s); err != nil {
		return err
	}
	return k.services.timers.Freeze(s, k.types)
}

// Close releases timers and store.
func (k *Keys) Close() error {
	if k.services.timers != nil {
		k.services.timers.Close()
	}
	return k.close()
}

// Store is where the function's state is bound.
func (k *Keys) Store() statebackend.Store { return k.store }

// Services is the engine's side of the function's contexts.
func (k *Keys) Services() process.Services { return &k.services }

// Current says which key is at hand: drivers set its index to that of the element.
func (k *Keys) Current() *state.CurrentRun { return &k.services.run }

// Each cuts a run of any length into pieces that Begin takes.
func (k *Keys) Each(r *frame.Run, push func(*frame.Run) error) error { return k.each(r, push) }

// Begin opens a run of an input on the store and returns its keys as they are in Go memory.
func (k *Keys) Begin(input int, r *frame.Run) (serde.Column, error) {
	k.extract = k.extracts[input]
	k.services.run.Index, k.begun = state.None, r
	return k.begin(r)
}

// Leave says that no key is at hand, and returns the first access to state that has failed.
func (k *Keys) Leave() error {
	k.services.run.Index = state.None
	return k.services.run.Take()
}

// At puts one key at hand, by its canonical encoding, until the next run begins.
func (k *Keys) At(key []byte, hash uint64) {
	k.begun = nil
	k.services.atKey(key, hash)
}

// Decode makes the Go value of a canonical key at p.
func (k *Keys) Decode(key []byte, p unsafe.Pointer) error {
	if err := k.key.Decode(key, p); err != nil {
		return fmt.Errorf("decode the key of state or a timer: %w", err)
	}
	return nil
}

// Advance sets the operator's watermark and fires the event-time timers that it has reached.
func (k *Keys) Advance(watermark int64) error {
	k.services.Current = watermark
	err := k.services.timers.AdvanceWatermark(watermark, k.onEvent)
	if err == nil {
		err = k.fireAll()
	}
	if err != nil {
		return err
	}
	return k.ends.Flush()
}

// AtHand is operator.Runtime's: the key at hand with its element or timer. Drivers that know more put theirs in its place.
func (k *Keys) AtHand(r *frame.Run) string { return operator.AtHand(k.Hand(r)) }

// Hand is the key at hand, and its element or timer; "" if there is none.
func (k *Keys) Hand(r *frame.Run) (key, what string) {
	i := k.services.run.Index
	if i < 0 || i >= k.canon.N {
		return "", ""
	}
	key = operator.NamedKey(k.key.Key, k.canon.Bytes(i))
	if r == nil {
		return key, operator.NamedTimer(k.firing.domain, k.firing.at)
	}
	if r != k.begun { // a visit to all keys because of an element of another input
		var ok bool
		if i, ok = r.Culprit(); !ok {
			return key, ""
		}
	}
	return key, operator.NamedElement(r, i)
}

func (k *Keys) fireEvent(key []byte, hash uint64, _ []byte, at int64) error {
	k.firing = timer{process.EventTime, at}
	k.At(key, hash)
	return k.handler.Fire(process.EventTime, key, at)
}

// fireProcessing is called for each processing-time timer that the clock is past; a stretch of its own.
func (k *Keys) fireProcessing(key []byte, hash uint64, _ []byte, at int64) error {
	k.services.RT.At, k.services.RT.Run = k.services.RT, nil
	k.firing = timer{process.ProcessingTime, at}
	k.At(key, hash)
	if err := k.handler.Fire(process.ProcessingTime, key, at); err != nil {
		return err
	}
	return k.handler.Flush()
}
