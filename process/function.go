package process

// Function handles the elements of a stream that is not keyed. A constructor makes one per subtask; its fields are the
// subtask's own. If it also has Close() error, that is called at the end of the task, whatever the end; if it has
// Finish(*Collector[R]) error, that is called at the end of the input and may emit.
type Function[T, R any] interface {
	// ProcessElement is called for each element in stream order. An error fails the task.
	ProcessElement(ctx *Context, x T, out *Collector[R]) error
}

// KeyedFunction handles the elements of a keyed stream; state and timers belong to the key at hand. Close and Finish as
// for Function (without a key: state may not be used there).
type KeyedFunction[K, T, R any] interface {
	// ProcessElement is called for each element in stream order. An error fails the task.
	ProcessElement(ctx *KeyedContext[K], x T, out *Collector[R]) error
	// OnTimer is called for each timer that fires, with its key at hand. What it emits has the timer's time for an
	// event-time timer and no timestamp for a processing-time timer.
	OnTimer(ctx *KeyedContext[K], t Timer, out *Collector[R]) error
}

// NoTimers is embedded in keyed functions that register no timers.
type NoTimers[K, R any] struct{}

// OnTimer does nothing.
func (NoTimers[K, R]) OnTimer(*KeyedContext[K], Timer, *Collector[R]) error { return nil }

// CoFunction handles the elements of two connected streams in one operator.
type CoFunction[A, B, R any] interface {
	// ProcessElement1 is called for each element of the first stream.
	ProcessElement1(ctx *Context, a A, out *Collector[R]) error
	// ProcessElement2 is called for each element of the second stream.
	ProcessElement2(ctx *Context, b B, out *Collector[R]) error
}

// KeyedCoFunction handles the elements of two connected streams keyed alike; both sides share state and timers.
type KeyedCoFunction[K, A, B, R any] interface {
	// ProcessElement1 is called for each element of the first stream.
	ProcessElement1(ctx *KeyedContext[K], a A, out *Collector[R]) error
	// ProcessElement2 is called for each element of the second stream.
	ProcessElement2(ctx *KeyedContext[K], b B, out *Collector[R]) error
	// OnTimer is called for each timer that fires, whichever side registered it.
	OnTimer(ctx *KeyedContext[K], t Timer, out *Collector[R]) error
}

// Finisher is implemented by functions that emit at the end of their input.
type Finisher[R any] interface {
	// Finish is called once, when all inputs have ended; what it emits has no timestamp.
	Finish(out *Collector[R]) error
}

// Closer is implemented by functions that hold resources. Close is called once, at the end of the task, in success,
// failure and cancellation.
type Closer interface {
	Close() error
}
