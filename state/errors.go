package state

// NoKeyContextError is the failure of an access to keyed state while no key is at hand: in Open or Close, or on the
// broadcast side of connected streams.
type NoKeyContextError struct {
	State string // the name of the state
}

// Error names the state.
func (e *NoKeyContextError) Error() string {
	return "state " + quote(e.State) + ": no key context: no element or timer of a key is being handled"
}

// NotKeyedError is the failure of an access to keyed state on a stream without a key.
type NotKeyedError struct {
	State string // the name of the state
}

// Error names the state.
func (e *NotKeyedError) Error() string {
	return "state " + quote(e.State) + ": not a keyed stream: keyed state needs KeyBy before it"
}

func quote(s string) string { return `"` + s + `"` }
