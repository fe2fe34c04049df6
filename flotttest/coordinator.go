package flotttest

import (
	"context"
	"errors"
	"fmt"

	"github.com/flott-dev/flott/internal/operator"
)

// coordinator is a source's enumerator in a harness: it is called by the test's goroutine, with the letters.
type coordinator struct {
	operator.Coordinator
	c        *Control
	node     *node
	periodic []*chore
}

// chore is work that is done again and again.
type chore struct {
	next, every int64
	do          func()
}

// coordinate gives a node its coordinator.
func (c *Control) coordinate(n *node, of operator.Coordinator) error {
	if c.scope.Parallelism != 1 {
		return errors.New("build the operator: a source with an enumerator is driven as one subtask: leave WithSubtask out")
	}
	co := &coordinator{Coordinator: of, c: c, node: n}
	c.coordinators = append(c.coordinators, co)
	n.rt.ToCoordinator = func(event []byte) {
		c.scope.Mailbox.Post(func() error { return co.Handle(c.scope.Subtask, event) })
	}
	return nil
}

func (c *Control) startCoordinators() error {
	for _, co := range c.coordinators {
		var restored []byte
		if c.restored != nil {
			if o := c.restored.manifest.Operator(co.node.rt.UID); o != nil {
				restored = o.Coordinator
			}
		}
		if err := co.Start(co, restored); err != nil {
			return fmt.Errorf("start the enumerator: %w", err)
		}
	}
	return nil
}

// holdCoordinators takes the states of all.
func (c *Control) holdCoordinators(id int64) (map[*node][]byte, error) {
	states := map[*node][]byte{}
	for _, co := range c.coordinators {
		state, err := co.Snapshot(id)
		if err != nil {
			return nil, fmt.Errorf("take snapshot %d of the enumerator: %w", id, err)
		}
		states[co.node] = append([]byte{}, state...)
	}
	return states, nil
}

// repeat begins the work that is due.
func (c *Control) repeat(ms int64) {
	for _, co := range c.coordinators {
		for _, w := range co.periodic {
			if w.next <= ms {
				w.next = ms + w.every
				w.do()
			}
		}
	}
}

// Context implements operator.CoordinatorContext.
func (co *coordinator) Context() context.Context { return co.c.scope.Ctx }

// Parallelism implements operator.CoordinatorContext.
func (co *coordinator) Parallelism() int { return 1 }

// Send implements operator.CoordinatorContext.
func (co *coordinator) Send(_ int, event []byte) {
	co.c.scope.Mailbox.Post(func() error {
		r, ok := co.node.op.(operator.EventReceiver)
		if !ok {
			return fmt.Errorf("operator %q takes no events of its enumerator", co.node.rt.Name)
		}
		return r.HandleEvent(event)
	})
}

// Do implements operator.CoordinatorContext.
func (co *coordinator) Do(every int64, work func(context.Context) error, done func(error)) {
	do := func() {
		co.c.spawn.Go(func() {
			err := work(co.Context())
			co.c.scope.Mailbox.Post(func() error {
				if done == nil {
					return err
				}
				done(err)
				return nil
			})
		})
	}
	if every > 0 {
		co.c.scope.Mailbox.Post(func() error {
			co.periodic = append(co.periodic, &chore{co.c.scope.Now + every, every, do})
			return nil
		})
	}
	do()
}
