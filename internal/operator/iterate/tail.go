package iterate

import (
	"log/slog"

	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/process"
)

// tail feeds what it gets back to the head of the same subtask. It never waits.
type tail struct {
	operator.Unary
	loop *Loop
	lane *lane
	lost int64
}

// Tail returns the driver of a loop's tail; feedback is the type of what is fed back.
func Tail(l *Loop, feedback *frame.Type) operator.Operator {
	return &tail{Unary: operator.Unary{In: feedback, Out: operator.NewOutput(feedback)}, loop: l}
}

// Inputs implements operator.Operator.
func (t *tail) Inputs() []operator.Input { return []operator.Input{t} }

// Open implements operator.Operator.
func (t *tail) Open(rt *operator.Runtime) error {
	t.lane = t.loop.enter(rt, t.In)
	return t.Unary.Open(rt)
}

// Close implements operator.Operator.
func (t *tail) Close() error {
	if t.lane != nil {
		t.lane.leave()
	}
	return nil
}

// Push implements operator.Input. The output has no consumer, it counts.
func (t *tail) Push(r *frame.Run) error {
	taken, err := t.lane.put(r)
	if err != nil {
		return err
	}
	if !taken {
		t.lost += int64(r.N)
		return nil
	}
	return t.Out.Push(r)
}

// Mark implements operator.Input: time does not go round, nor do other loops' probes.
func (t *tail) Mark(m frame.Mark) error {
	switch {
	case m.Kind == frame.Probe && t.loop.own(m):
		t.lane.mark(m.Value)
	case m.Kind == frame.Barrier:
		t.lane.barrier(m.Value)
	case m.Kind == frame.End:
		drop(t.RT, t.lost)
	}
	return nil
}

// drop reports elements that were fed back in vain.
func drop(rt *operator.Runtime, n int64) {
	if n == 0 {
		return
	}
	slog.Warn("elements were fed back to an iteration that had ended", "operator", rt.Name, "subtask", rt.Subtask, "elements", n)
	operator.Count(rt, Dropped, n)
	process.NewLongCounter(process.NewRuntime(rt.Host), Dropped).Add(n)
}
