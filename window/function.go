package window

import (
	"fmt"

	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/state"
)

// Result is what aggregates of keyed windows emit.
type Result[K any, W Window, R any] struct {
	Key    K // of the stream
	Window W // that fired
	Value  R // of the aggregate
}

// String prints the result as (key,window,value).
func (r Result[K, W, R]) String() string { return fmt.Sprintf("(%v,%v,%v)", r.Key, r.Window, r.Value) }

// AllResult is what aggregates of windows over all elements emit.
type AllResult[W Window, R any] struct {
	Window W // that fired
	Value  R // of the aggregate
}

// String prints the result as (window,value).
func (r AllResult[W, R]) String() string { return fmt.Sprintf("(%v,%v)", r.Window, r.Value) }

// Info says of which key and window a result is.
type Info[K any, W Window] struct {
	Key    K
	Window W
}

// Function is a window function with a context: it is called when a window fires. A constructor makes one per subtask; its
// fields are the subtask's own. E is the type of the stream's elements, or of the result of an aggregate, of which there is
// one then. On windows over all elements K is All. If it also has Clear (Clearer), that is called when a window is gone; if
// it has Close() error, at the end of the task.
type Function[K, E any, W Window, R any] interface {
	// Process is given the contents of a window, in order of arrival. The slice is valid during the call, its elements for
	// ever. What is emitted, to side outputs as well, has the window's max timestamp. An error fails the task.
	Process(ctx *Context[K, W], elements []E, out *process.Collector[R]) error
}

// Clearer is implemented by window functions that keep state per window: Clear is called when a window is gone for good,
// and clears it.
type Clearer[K any, W Window] interface {
	Clear(ctx *Context[K, W]) error
}

// All is the key of windows over all elements.
type All struct{}

// Runtime is what the constructor of a window function gets. State that is declared on it belongs to the key, whatever the
// window; see PerWindow for state of one window.
type Runtime struct {
	*process.Runtime
	perWindow state.Binder
}

// NewRuntime is for drivers and test harnesses. perWindow binds state of the key and window at hand.
func NewRuntime(rt *process.Runtime, perWindow state.Binder) *Runtime { return &Runtime{rt, perWindow} }

// PerWindow is where state that belongs to the key and the window at hand is declared: state.NewValue[int](rt.PerWindow(),
// "seen"). The function clears it in Clear, or it stays. Windows that merge can't have it: declaring it fails the task
// before its first element, as in Flink.
func (r *Runtime) PerWindow() state.Binder { return r.perWindow }

// Context is what a window function sees beside the elements. It is valid during the call that it was passed to. Its
// timestamp is the window's max timestamp.
type Context[K any, W Window] struct {
	process.Context
	key    K
	window W
}

// NewContext is for drivers and test harnesses.
func NewContext[K any, W Window](s process.Services) *Context[K, W] {
	return &Context[K, W]{Context: *process.NewContext(s)}
}

// Set is for drivers: the key and window at hand.
func (c *Context[K, W]) Set(key K, w W) {
	c.key, c.window = key, w
	c.SetTime(w.MaxTimestamp())
}

// Key is the key of the window.
func (c *Context[K, W]) Key() K { return c.key }

// Window is the window.
func (c *Context[K, W]) Window() W { return c.window }
