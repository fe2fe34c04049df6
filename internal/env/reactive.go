package env

import (
	"context"
	"errors"
	"fmt"

	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/internal/plan"
	"github.com/flott-dev/flott/internal/taskmanager"
)

// reactive are the coordinators of a simulated job: those that only react to events, called at once.
type reactive struct {
	all    []*reactor
	byNode map[[2]int]*reactor
	fail   func(error) // takes what goes wrong in their calls
	broken bool        // something has
}

// reactor is one coordinator and its way to the subtasks.
type reactor struct {
	operator.Coordinator
	ctx         context.Context
	name        string
	vertex      int
	node        int
	parallelism int
	attempt     *taskmanager.Attempt

	id       string // the operator's
	restored []byte
	held     []hold // what is sent waits for the triggers of checkpoints
}

// hold is what waits since the state for a checkpoint was taken.
type hold struct {
	checkpoint int64
	events     []heldEvent
}

// heldEvent is something that waits to be sent.
type heldEvent struct {
	subtask int
	event   []byte
}

func newReactive(ctx context.Context, vertices []*plan.ExecutionVertex, fail func(error)) (*reactive, error) {
	cs := &reactive{byNode: map[[2]int]*reactor{}, fail: fail}
	for _, v := range vertices {
		for _, n := range v.Nodes {
			if n.Node.NewCoordinator == nil {
				continue
			}
			c, ok := n.Node.NewCoordinator().(operator.Reactive)
			if !ok {
				return nil, fmt.Errorf("source %q has an enumerator, which runs outside of the simulation", n.Node.Name)
			}
			r := &reactor{Coordinator: c, ctx: ctx, name: n.Node.Name, vertex: v.Index, node: n.Index, parallelism: v.Parallelism, id: n.ID.String()}
			cs.all = append(cs.all, r)
			cs.byNode[[2]int{v.Index, n.Index}] = r
		}
	}
	return cs, nil
}

func (cs *reactive) start(a *taskmanager.Attempt) error {
	for _, c := range cs.all {
		c.attempt = a
		if err := c.Start(c, c.restored); err != nil {
			return fmt.Errorf("coordinate %q: %w", c.name, err)
		}
	}
	return nil
}

func (cs *reactive) fromSubtask(vertex, subtask, node int, event []byte) {
	c := cs.byNode[[2]int{vertex, node}]
	if c == nil || cs.broken {
		return
	}
	if err := c.Handle(subtask, event); err != nil {
		cs.broken = true
		cs.fail(fmt.Errorf("coordinate %q: %w", c.name, err))
	}
}

func (cs *reactive) close() error {
	var errs []error
	for _, c := range cs.all {
		if err := c.Close(); err != nil {
			errs = append(errs, fmt.Errorf("coordinate %q: close: %w", c.name, err))
		}
	}
	return errors.Join(errs...)
}

// Context implements operator.CoordinatorContext.
func (c *reactor) Context() context.Context { return c.ctx }

// Parallelism implements operator.CoordinatorContext.
func (c *reactor) Parallelism() int { return c.parallelism }

// Send implements operator.CoordinatorContext.
func (c *reactor) Send(subtask int, event []byte) {
	e := heldEvent{subtask, event}
	if n := len(c.held); n > 0 {
		c.held[n-1].events = append(c.held[n-1].events, e)
		return
	}
	c.deliver(e)
}

func (c *reactor) deliver(e heldEvent) {
	for _, s := range c.attempt.Tasks {
		if s.Vertex.Index == c.vertex && s.Index == e.subtask {
			s.Event(c.node, e.event)
		}
	}
}

// Do implements operator.CoordinatorContext: a reactive coordinator never calls it.
func (c *reactor) Do(int64, func(context.Context) error, func(error)) {
	panic("env: a reactive coordinator asked for a goroutine")
}
