package process

import (
	"fmt"

	"github.com/flott-dev/flott/serde"
	"github.com/flott-dev/flott/state"
)

// BroadcastFunction handles the elements of a stream together with those of a broadcast stream. Every subtask sees every
// broadcast element and keeps its own copy of the broadcast state, so all must make the same changes to it: from the
// broadcast element and the state alone, not from what only one subtask knows. Nothing is promised about the order of
// elements of different streams. Close, Finish, EndInput1 (the stream) and EndInput2 (the broadcast stream) as for
// functions on connected streams.
type BroadcastFunction[T, B, R any] interface {
	// ProcessElement is called for each element of the stream; it can read broadcast state, not change it.
	ProcessElement(ctx *ReadOnlyContext, x T, out *Collector[R]) error
	// ProcessBroadcastElement is called in every subtask for each element of the broadcast stream.
	ProcessBroadcastElement(ctx *BroadcastContext, b B, out *Collector[R]) error
}

// KeyedBroadcastFunction is a BroadcastFunction on a keyed stream: ProcessElement and OnTimer have state and timers of
// their key. ProcessBroadcastElement has no key: an access to keyed state there fails the task, except within
// ApplyToKeyedState.
type KeyedBroadcastFunction[K, T, B, R any] interface {
	// ProcessElement is called for each element of the keyed stream; it can read broadcast state, not change it.
	ProcessElement(ctx *KeyedReadOnlyContext[K], x T, out *Collector[R]) error
	// ProcessBroadcastElement is called in every subtask for each element of the broadcast stream.
	ProcessBroadcastElement(ctx *KeyedBroadcastContext[K], b B, out *Collector[R]) error
	// OnTimer is called for each timer that fires, as in KeyedFunction.
	OnTimer(ctx *KeyedReadOnlyContext[K], t Timer, out *Collector[R]) error
}

// NoBroadcastTimers is embedded in keyed broadcast functions that register no timers.
type NoBroadcastTimers[K, R any] struct{}

// OnTimer does nothing.
func (NoBroadcastTimers[K, R]) OnTimer(*KeyedReadOnlyContext[K], Timer, *Collector[R]) error {
	return nil
}

// ReadOnlyContext is what a broadcast function sees beside an element of its stream.
type ReadOnlyContext struct {
	Context
	states *BroadcastStates
}

// NewReadOnlyContext is for drivers and test harnesses.
func NewReadOnlyContext(s Services, states *BroadcastStates) *ReadOnlyContext {
	return &ReadOnlyContext{Context: *NewContext(s), states: states}
}

// BroadcastState is the broadcast state that d declares, for reading. The broadcast stream must have been made with d.
func (c *ReadOnlyContext) BroadcastState[K comparable, V any](d *state.BroadcastDescriptor[K, V]) *state.BroadcastView[K, V] {
	return viewOf(c.states, d)
}

// BroadcastContext is what a broadcast function sees beside an element of the broadcast stream.
type BroadcastContext struct {
	Context
	states *BroadcastStates
}

// NewBroadcastContext is for drivers and test harnesses.
func NewBroadcastContext(s Services, states *BroadcastStates) *BroadcastContext {
	return &BroadcastContext{Context: *NewContext(s), states: states}
}

// BroadcastState is the broadcast state that d declares. The broadcast stream must have been made with d.
func (c *BroadcastContext) BroadcastState[K comparable, V any](d *state.BroadcastDescriptor[K, V]) *state.Broadcast[K, V] {
	return stateOf(c.states, d)
}

// KeyedReadOnlyContext is a ReadOnlyContext with the key at hand and its timers.
type KeyedReadOnlyContext[K any] struct {
	KeyedContext[K]
	states *BroadcastStates
}

// NewKeyedReadOnlyContext is for drivers and test harnesses.
func NewKeyedReadOnlyContext[K any](s Services, states *BroadcastStates) *KeyedReadOnlyContext[K] {
	return &KeyedReadOnlyContext[K]{KeyedContext: *NewKeyedContext[K](s), states: states}
}

// BroadcastState is the broadcast state that d declares, for reading. The broadcast stream must have been made with d.
func (c *KeyedReadOnlyContext[K]) BroadcastState[MK comparable, V any](d *state.BroadcastDescriptor[MK, V]) *state.BroadcastView[MK, V] {
	return viewOf(c.states, d)
}

// KeyedBroadcastContext is a BroadcastContext that can reach the state of all keys.
type KeyedBroadcastContext[K any] struct {
	BroadcastContext
	apply func(name string, f func(key K) error) error
}

// NewKeyedBroadcastContext is for drivers and test harnesses. apply is ApplyToKeyedState.
func NewKeyedBroadcastContext[K any](s Services, states *BroadcastStates, apply func(name string, f func(key K) error) error) *KeyedBroadcastContext[K] {
	return &KeyedBroadcastContext[K]{BroadcastContext: *NewBroadcastContext(s, states), apply: apply}
}

// ApplyToKeyedState calls f for each key of this subtask that has something in the keyed state called name, in no
// particular order, with that key at hand: the function's handles read and change that key's state. The keys are those at
// the time of the call. It ends at the first error of f and returns it.
func (c *KeyedBroadcastContext[K]) ApplyToKeyedState(name string, f func(key K) error) error {
	return c.apply(name, f)
}

// BroadcastDescriptor is a state.BroadcastDescriptor of whatever types.
type BroadcastDescriptor interface {
	// Name is the name of the state.
	Name() string
	// Err is the mistake in the declaration, or nil.
	Err() error
	// Schema describes an item of a snapshot.
	Schema() *serde.Schema
	// OpenItems makes an empty state for a subtask, a *state.Broadcast of the descriptor's types; Err must be nil. fail
	// takes the errors of accesses.
	OpenItems(fail func(error)) state.BroadcastItems
}

// BroadcastStates are the broadcast states of one subtask of an operator. For drivers and test harnesses.
type BroadcastStates struct {
	all []broadcastState // few: looking through them beats a map
}

type broadcastState struct {
	declared BroadcastDescriptor
	state    state.BroadcastItems // of the descriptor's types
	view     any                  // likewise; nil until the first access
}

// NewBroadcastStates returns the declared states, empty. fail takes accesses that fail; it must fail the task.
func NewBroadcastStates(declared []BroadcastDescriptor, fail func(error)) *BroadcastStates {
	s := &BroadcastStates{all: make([]broadcastState, len(declared))}
	for i, d := range declared {
		s.all[i].declared = d
		s.all[i].state = d.OpenItems(fail)
	}
	return s
}

// Each calls f for each state, in the order of the declarations, until it returns an error.
func (s *BroadcastStates) Each(f func(d BroadcastDescriptor, state state.BroadcastItems) error) error {
	for i := range s.all {
		if err := f(s.all[i].declared, s.all[i].state); err != nil {
			return err
		}
	}
	return nil
}

func stateOf[K comparable, V any](s *BroadcastStates, d *state.BroadcastDescriptor[K, V]) *state.Broadcast[K, V] {
	return open(s, d).state.(*state.Broadcast[K, V])
}

func viewOf[K comparable, V any](s *BroadcastStates, d *state.BroadcastDescriptor[K, V]) *state.BroadcastView[K, V] {
	return open(s, d).view.(*state.BroadcastView[K, V])
}

// open finds a state. It panics where the program is wrong: what the function asks for
// is not what the stream was broadcast with.
func open[K comparable, V any](s *BroadcastStates, d *state.BroadcastDescriptor[K, V]) *broadcastState {
	for i := range s.all {
		b := &s.all[i]
		if b.declared.Name() != d.Name() {
			continue
		}
		if _, same := b.declared.(*state.BroadcastDescriptor[K, V]); !same {
			panic(fmt.Sprintf("use broadcast state %q as a %T: the stream was broadcast with a %T", d.Name(), d, b.declared))
		}
		if b.view == nil {
			b.view = b.state.(*state.Broadcast[K, V]).View()
		}
		return b
	}
	panic(fmt.Sprintf("use broadcast state %q: the stream was not broadcast with it", d.Name()))
}
