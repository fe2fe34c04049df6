package operator

import (
	"fmt"
	"sync/atomic"

	"github.com/flott-dev/flott/internal/frame"
)

// Output is one output of an operator: typed links to what consumes it, asserted once. Without a consumer it drops
// everything.
type Output struct {
	Type  *frame.Type
	Count atomic.Int64 // elements emitted, however many consumers there are; read by metrics
	// EventTime is the last watermark that went out, read by metrics; MinWatermark before the first.
	EventTime atomic.Int64
	// Idle reports whether the last word was that nothing comes for now, read by metrics.
	Idle atomic.Bool

	owner *Runtime
	links []link
	lent  frame.Run // scratch: a run handed through an interface must not be a local, it would be allocated
}

// link is one consumer. at is the consuming operator: failures are named by it. For an exchange it is a stand-in of the
// emitter, which is named in the same way and has nothing at hand but the run that is sent.
type link struct {
	in   Input
	at   *Runtime
	away bool // an exchange
}

// NewOutput returns an output of elements of type t.
func NewOutput(t *frame.Type) Output { return Output{Type: t} }

// Connect links the output to a consumer; several consumers see every run. at is the consuming operator's runtime, nil
// for an exchange. The error names both types.
func (o *Output) Connect(down Input, at *Runtime) error {
	if t := down.Type(); t != nil && !t.Same(o.Type) {
		return fmt.Errorf("connect an output of %s to an input of %s", o.Type.Name, t.Name)
	}
	o.links = append(o.links, link{in: down, at: at})
	return nil
}

// Bind tells the output whose it is; drivers call it in Open.
func (o *Output) Bind(owner *Runtime) {
	o.owner = owner
	o.EventTime.Store(frame.MinWatermark)
	for i := range o.links {
		if o.links[i].at == nil {
			o.links[i].at, o.links[i].away = &Runtime{Scope: owner.Scope, Name: owner.Name, UID: owner.UID, GivenUID: owner.GivenUID}, true
		}
	}
}

// Push hands a run to the consumers: read-only to all but the last. After an error Scope.At still names the operator
// that failed, and Scope.Run is what it was at work on.
func (o *Output) Push(r *frame.Run) error {
	if r.N == 0 {
		return nil
	}
	o.Count.Add(int64(r.N))
	scope := o.owner.Scope
	was := scope.Run
	for i := range o.links {
		l := &o.links[i]
		scope.At, scope.Run = l.at, r
		if !l.away {
			l.at.In.Add(int64(r.N))
		}
		if i == len(o.links)-1 {
			if err := l.in.Push(r); err != nil {
				return scope.fail(err)
			}
			break
		}
		o.lent = *r
		o.lent.Shared = true
		scope.Run = &o.lent
		if err := l.in.Push(&o.lent); err != nil {
			return scope.fail(err)
		}
	}
	scope.At, scope.Run = o.owner, was
	return nil
}

// Mark hands a mark to the consumers.
func (o *Output) Mark(m frame.Mark) error {
	switch m.Kind {
	case frame.Watermark:
		o.EventTime.Store(m.Value)
	case frame.Idle, frame.Active:
		o.Idle.Store(m.Kind == frame.Idle)
	}
	scope := o.owner.Scope
	was := scope.Run
	for i := range o.links {
		l := &o.links[i]
		scope.At, scope.Run = l.at, nil
		if m.Kind == frame.LatencyMarker && !l.away {
			l.at.RecordLatency(m)
		}
		if err := l.in.Mark(m); err != nil {
			return scope.fail(err)
		}
	}
	scope.At, scope.Run = o.owner, was
	return nil
}
