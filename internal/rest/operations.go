package rest

import (
	"crypto/rand"
	"encoding/hex"
	"sync"
	"time"

	"github.com/flott-dev/flott/internal/clock"
)

// operationKey names an asynchronous operation: what it is, of which job ("" for the process), and the client's or our own
// number of it, 32 hex digits.
type operationKey struct{ kind, job, trigger string }

// The kinds of operations. Savepoints and stops share one, as clients look for both at the same path.
const (
	savepointKind  = "savepoint"
	checkpointKind = "checkpoint"
	disposalKind   = "disposal"
)

// operations are the asynchronous operations of a process: those under way and, for some time, the results of the others.
type operations struct {
	clock clock.Clock
	keep  time.Duration

	mu      sync.Mutex
	all     map[operationKey]*operation
	changed chan struct{} // closed and renewed when a result has come or was fetched
}

// operation is one of them.
type operation struct {
	result  any // nil: under way
	ended   int64
	fetched bool
}

func newOperations(c clock.Clock, keep time.Duration) *operations {
	return &operations{clock: c, keep: keep, all: map[operationKey]*operation{}, changed: make(chan struct{})}
}

// start runs f aside, unless an operation of that key is known already.
func (o *operations) start(key operationKey, f func() any) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.expire()
	if o.all[key] != nil {
		return
	}
	op := &operation{}
	o.all[key] = op
	go func() {
		result := f()
		o.mu.Lock()
		defer o.mu.Unlock()
		op.result, op.ended = result, o.clock.Nanos()
		o.signal()
	}()
}

// find gives the result of an operation, nil while it is under way. An operation that nobody knows (any more) is not known.
func (o *operations) find(key operationKey) (result any, known bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.expire()
	op := o.all[key]
	if op == nil {
		return nil, false
	}
	if op.result != nil && !op.fetched {
		op.fetched = true
		o.signal()
	}
	return op.result, true
}

// has reports whether an operation of that key is known.
func (o *operations) has(key operationKey) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.expire()
	return o.all[key] != nil
}

func (o *operations) expire() {
	now := o.clock.Nanos()
	for key, op := range o.all {
		if op.result != nil && now-op.ended > o.keep.Nanoseconds() {
			delete(o.all, key)
		}
	}
}

func (o *operations) signal() {
	close(o.changed)
	o.changed = make(chan struct{})
}

// settled returns when the results of all operations of a job were fetched, or limit comes.
func (o *operations) settled(job string, limit <-chan time.Time) {
	for {
		o.mu.Lock()
		open, changed := false, o.changed
		for key, op := range o.all {
			open = open || key.job == job && !op.fetched
		}
		o.mu.Unlock()
		if !open {
			return
		}
		select {
		case <-changed:
		case <-limit:
			return
		}
	}
}

// newTrigger is a number of our own for an operation.
func newTrigger() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}
