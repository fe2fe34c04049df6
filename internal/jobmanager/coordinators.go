package jobmanager

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/internal/plan"
	"github.com/flott-dev/flott/internal/taskmanager"
)

// coordinators runs the coordinators of a region's sources during one attempt, each on a goroutine of its own that takes calls in order.
type coordinators struct {
	ctx    context.Context
	cancel context.CancelFunc
	all    map[[2]int]*coordinator // by vertex and node
	failed chan error
	group  sync.WaitGroup
	over   atomic.Bool // all tasks have finished
}

// coordinator is one running coordinator with its queue of calls.
type coordinator struct {
	owner       *coordinators
	c           operator.Coordinator
	name        string
	of          *plan.ExecutionVertex
	parallelism int
	vertex      int
	node        int
	attempt     *taskmanager.Attempt
	busy        atomic.Int32 // its goroutines

	mu    sync.Mutex
	calls []func() error
	wake  chan struct{}

	id       string // the operator's
	restored []byte // what it begins with; nil: it begins afresh

	sending sync.Mutex
	holds   holds
}

// restore says what the coordinators begin with. Those whose readers have all finished have nobody left to coordinate: they
// don't begin at all.
func (cs *coordinators) restore(r *taskmanager.Restore) {
	for at, c := range cs.all {
		if o := r.Manifest.Operator(c.id); o != nil {
			c.restored = o.Coordinator
		}
		if r.AllFinished(c.of.Vertex) {
			delete(cs.all, at)
		}
	}
}

// Hold implements enumerators: each coordinator's state is of a moment after which it sends nothing until Release. If all
// tasks have finished there is no state any more, and nobody who needs it.
func (cs *coordinators) Hold(id int64) (map[[2]int][]byte, error) {
	type answer struct {
		of    *coordinator
		state []byte
		err   error
	}
	answers := make(chan answer, len(cs.all))
	for _, c := range cs.all {
		c.post(func() error {
			state, err := c.c.Snapshot(id)
			c.sending.Lock()
			c.holds.begin(id)
			c.sending.Unlock()
			answers <- answer{c, state, err}
			return nil
		})
	}
	states := map[[2]int][]byte{}
	var errs []error
	for range cs.all {
		select {
		case a := <-answers:
			if a.err != nil {
				errs = append(errs, fmt.Errorf("take the state of the coordinator of %q: %w", a.of.name, a.err))
			}
			states[[2]int{a.of.vertex, a.of.node}] = append([]byte{}, a.state...)
		case <-cs.ctx.Done():
			if cs.over.Load() {
				return nil, nil
			}
			return nil, fmt.Errorf("take the state of the coordinators: %w", context.Cause(cs.ctx))
		}
	}
	return states, errors.Join(errs...)
}

// Release implements enumerators.
func (cs *coordinators) Release(checkpoint int64) {
	for _, c := range cs.all {
		c.sending.Lock()
		for _, send := range c.holds.end(checkpoint) {
			send()
		}
		c.sending.Unlock()
	}
}

func newCoordinators(ctx context.Context, vertices []*plan.ExecutionVertex) *coordinators {
	ctx, cancel := context.WithCancel(ctx)
	cs := &coordinators{ctx: ctx, cancel: cancel, all: map[[2]int]*coordinator{}, failed: make(chan error, 1)}
	for _, v := range vertices {
		for _, n := range v.Nodes {
			if n.Node.NewCoordinator == nil {
				continue
			}
			cs.all[[2]int{v.Index, n.Index}] = &coordinator{
				owner: cs, c: n.Node.NewCoordinator(), name: n.Node.Name, of: v, parallelism: v.Parallelism,
				vertex: v.Index, node: n.Index, wake: make(chan struct{}, 1), id: n.ID.String(),
			}
		}
	}
	return cs
}

// finish takes the word that all tasks have finished.
func (cs *coordinators) finish() { cs.over.Store(true) }

// fromSubtask takes an event of an operator.
func (cs *coordinators) fromSubtask(vertex, subtask, node int, event []byte) {
	if c := cs.all[[2]int{vertex, node}]; c != nil {
		c.post(func() error { return c.c.Handle(subtask, event) })
	}
}

func (cs *coordinators) start(a *taskmanager.Attempt) {
	for _, c := range cs.all {
		c.attempt = a
		c.spawn(c.run)
	}
}

// unfinished names the coordinators that have goroutines.
func (cs *coordinators) unfinished() []string {
	var names []string
	for _, c := range cs.all {
		if c.busy.Load() != 0 {
			names = append(names, fmt.Sprintf("the coordinator of %q", c.name))
		}
	}
	slices.Sort(names)
	return names
}

// spawn starts a goroutine that the end of the attempt waits for.
func (c *coordinator) spawn(f func()) {
	c.busy.Add(1)
	c.owner.group.Go(func() {
		defer c.busy.Add(-1)
		f()
	})
}

// fail reports a failure, except that a coordinator gave up because the attempt is over.
func (c *coordinator) fail(err error) {
	if c.owner.ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return
	}
	select {
	case c.owner.failed <- fmt.Errorf("coordinate %q: %w", c.name, err):
	default:
	}
}

func (c *coordinator) post(f func() error) {
	c.mu.Lock()
	c.calls = append(c.calls, f)
	c.mu.Unlock()
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

func (c *coordinator) run() {
	defer func() {
		if p := recover(); p != nil {
			c.fail(fmt.Errorf("panic: %v", p))
		}
	}()
	defer func() {
		if err := c.c.Close(); err != nil {
			c.fail(fmt.Errorf("close: %w", err))
		}
	}()
	if err := c.c.Start(c, c.restored); err != nil {
		c.fail(err)
		return
	}
	for {
		select {
		case <-c.wake:
		case <-c.owner.ctx.Done():
			return
		}
		if c.owner.ctx.Err() != nil {
			return
		}
		c.mu.Lock()
		calls := c.calls
		c.calls = nil
		c.mu.Unlock()
		for _, call := range calls {
			if err := call(); err != nil {
				c.fail(err)
				return
			}
		}
	}
}

// Context implements operator.CoordinatorContext.
func (c *coordinator) Context() context.Context { return c.owner.ctx }

// Parallelism implements operator.CoordinatorContext.
func (c *coordinator) Parallelism() int { return c.parallelism }

// Send implements operator.CoordinatorContext.
func (c *coordinator) Send(subtask int, event []byte) {
	c.sending.Lock()
	defer c.sending.Unlock()
	if send := func() { c.deliver(subtask, event) }; !c.holds.keep(send) {
		send()
	}
}

func (c *coordinator) deliver(subtask int, event []byte) {
	for _, s := range c.attempt.Tasks {
		if s.Vertex.Index == c.vertex && s.Index == subtask {
			s.Event(c.node, event)
			return
		}
	}
}

// Do implements operator.CoordinatorContext.
func (c *coordinator) Do(every int64, work func(context.Context) error, done func(error)) {
	c.spawn(func() {
		for {
			err := work(c.owner.ctx)
			c.post(func() error {
				if done == nil {
					return err
				}
				done(err)
				return nil
			})
			if every <= 0 || !pause(c.owner.ctx, time.Duration(every)*time.Millisecond) {
				return
			}
		}
	})
}
