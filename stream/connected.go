package stream

import (
	"errors"

	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/graph"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/internal/operator/co"
	"github.com/flott-dev/flott/process"
)

// ConnectedStreams are two streams of their own types that one operator reads: it may share state between them. Nothing
// is promised about the order of elements of different streams. The operator's event time is the smaller of the two
// streams' that are not idle.
type ConnectedStreams[A, B any] struct {
	c [2]*core
}

// Connect joins the stream with another one, of any type, as the two inputs of one operator.
func (s *Stream[T]) Connect[B any](other *Stream[B]) *ConnectedStreams[T, B] {
	return &ConnectedStreams[T, B]{s.c.with(other.c)}
}

// First is the first of the two streams.
func (s *ConnectedStreams[A, B]) First() *Stream[A] { return &Stream[A]{s.c[0]} }

// Second is the second of the two streams.
func (s *ConnectedStreams[A, B]) Second() *Stream[B] { return &Stream[B]{s.c[1]} }

// Map replaces each element of the first stream by f of it, and each of the second by g of it (Flink: CoMapFunction).
func (s *ConnectedStreams[A, B]) Map[R any](f func(A) R, g func(B) R) *Stream[R] {
	in, out := inputs(s.c), typeOf[R](s.c[0].env)
	return &Stream[R]{join("Co-Map", s.c, out, func(*graph.Node) operator.Operator { return co.Map(in, out, f, g) })}
}

// FlatMap replaces each element of the first stream by what f emits for it, and each of the second by what g emits (Flink:
// CoFlatMapFunction). emit may be called during the call only.
func (s *ConnectedStreams[A, B]) FlatMap[R any](f func(a A, emit func(R)), g func(b B, emit func(R))) *Stream[R] {
	in, out := inputs(s.c), typeOf[R](s.c[0].env)
	return &Stream[R]{join("Co-Flat Map", s.c, out, func(*graph.Node) operator.Operator { return co.FlatMap(in, out, f, g) })}
}

// Process runs a process function that construct makes once per subtask: it sees timestamps and may emit to side
// outputs. For state and timers key the streams first. A function that is a process.InputSelector chooses which stream is
// read next.
func (s *ConnectedStreams[A, B]) Process[P process.CoFunction[A, B, R], R any](construct func(*process.Runtime) P) *Stream[R] {
	in, out := inputs(s.c), typeOf[R](s.c[0].env)
	in.Selects = selects[P]()
	open := func(rt *process.Runtime) process.CoFunction[A, B, R] { return construct(rt) }
	return &Stream[R]{join("Co-Process", s.c, out, func(n *graph.Node) operator.Operator {
		return co.Process(in, out, n.Side, open)
	}).sided()}
}

// KeyBy partitions both streams by keys of one type: elements of both whose keys are equal meet in one subtask. See
// Stream.KeyBy for what can be a key.
func (s *ConnectedStreams[A, B]) KeyBy[K comparable](first func(A) K, second func(B) K) *ConnectedKeyedStreams[A, B, K] {
	return s.First().KeyBy(first).Connect(s.Second().KeyBy(second))
}

// ConnectedKeyedStreams are connected streams that are keyed alike: state and timers belong to the key, whichever of the
// two its elements come from.
type ConnectedKeyedStreams[A, B, K any] struct {
	c    [2]*core
	keys [2]*operator.Key
}

// Connect joins the stream with another one that has keys of the same type: elements of both whose keys are equal meet in
// one subtask.
func (s *KeyedStream[T, K]) Connect[B any](other *KeyedStream[B, K]) *ConnectedKeyedStreams[T, B, K] {
	return &ConnectedKeyedStreams[T, B, K]{c: s.c.with(other.c), keys: [2]*operator.Key{s.key, other.key}}
}

// First is the first of the two streams.
func (s *ConnectedKeyedStreams[A, B, K]) First() *KeyedStream[A, K] {
	return &KeyedStream[A, K]{c: s.c[0], key: s.keys[0]}
}

// Second is the second of the two streams.
func (s *ConnectedKeyedStreams[A, B, K]) Second() *KeyedStream[B, K] {
	return &KeyedStream[B, K]{c: s.c[1], key: s.keys[1]}
}

// Streams are the two partitioned streams for operators that need no key: the elements of one key still meet in one
// subtask.
func (s *ConnectedKeyedStreams[A, B, K]) Streams() *ConnectedStreams[A, B] {
	return &ConnectedStreams[A, B]{s.c}
}

// Map is ConnectedStreams.Map; the elements of one key meet in one subtask.
func (s *ConnectedKeyedStreams[A, B, K]) Map[R any](f func(A) R, g func(B) R) *Stream[R] {
	return s.Streams().Map(f, g)
}

// FlatMap is ConnectedStreams.FlatMap; the elements of one key meet in one subtask.
func (s *ConnectedKeyedStreams[A, B, K]) FlatMap[R any](f func(a A, emit func(R)), g func(b B, emit func(R))) *Stream[R] {
	return s.Streams().FlatMap(f, g)
}

// Process runs a keyed process function that construct makes once per subtask and that declares its state there; state
// and timers are shared by both streams. A function that is a process.InputSelector chooses which stream is read next.
func (s *ConnectedKeyedStreams[A, B, K]) Process[P process.KeyedCoFunction[K, A, B, R], R any](construct func(*process.Runtime) P) *Stream[R] {
	in, out, keys := inputs(s.c), typeOf[R](s.c[0].env), s.keys
	in.Selects = selects[P]()
	open := func(rt *process.Runtime) process.KeyedCoFunction[K, A, B, R] { return construct(rt) }
	c := join("Keyed Co-Process", s.c, out, func(n *graph.Node) operator.Operator {
		return co.KeyedProcess(in, out, keys, n.Side, open)
	})
	c.sided().timed().keyed(keys[:]...) // timers of event time give theirs
	return &Stream[R]{c}
}

// errTwoEnvironments is why streams can't meet.
var errTwoEnvironments = errors.New("connect streams of two environments")

func (c *core) with(other *core) [2]*core {
	if c.env != other.env {
		c.env.report(errTwoEnvironments)
	}
	return [2]*core{c, other}
}

func inputs(c [2]*core) co.Inputs { return co.Inputs{First: c[0].typ, Second: c[1].typ} }

// selects reports whether every function of a type chooses its input. Of an interface type only its values are known.
func selects[P any]() bool {
	var p P
	_, ok := any(p).(process.InputSelector)
	return ok
}

// join adds an operator with two inputs. open gets the node, whose side outputs are known when the graph is complete.
func join(name string, c [2]*core, out *frame.Type, open func(*graph.Node) operator.Operator) *core {
	n := newNode(graph.Operator, name, out)
	n.New = func() operator.Operator { return open(n) }
	for i := range c {
		for _, e := range c[i].edges() {
			e.Input = i
			n.Inputs = append(n.Inputs, e)
		}
	}
	return c[0].env.add(n)
}
