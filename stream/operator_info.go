package stream

import "reflect"

// OperatorInfo is what is known of the operator that made a stream before the job runs.
type OperatorInfo struct {
	Name        string       // as in plans, metrics and errors
	Description string       // the longer text
	UID         string       // the user's; "" if none was given
	Parallelism int          // 0 for a stream without an operator of its own (union, partitioning, side output)
	Type        reflect.Type // of the stream's elements
	Layout      string       // how state would keep an element: fixed, text or encoded
}

// Operator tells about the operator that made the stream (Flink: getId, getParallelism, getType).
func (s *Stream[T]) Operator() OperatorInfo { return s.c.info() }

// Env is the environment that the stream belongs to (Flink: getExecutionEnvironment).
func (s *Stream[T]) Env() *Env { return s.c.env }

//go:noinline
func (c *core) info() OperatorInfo {
	i := OperatorInfo{Type: c.typ.Handle.Type, Layout: c.typ.Layout.String()}
	if n := c.node; n != nil {
		i.Name, i.Description, i.UID, i.Parallelism = n.Name, n.Description, n.UID, n.Parallelism
		if n.NonParallel {
			i.Parallelism = 1
		}
	}
	return i
}
