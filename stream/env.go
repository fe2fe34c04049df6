// Package stream is the DataStream API: typed, fluent descriptions of stateful dataflow. Programs build a graph with it
// and hand it to Execute; nothing runs before. What a program may hold at run time (processors, state, timers) is in the
// packages process, state, agg and watermark.
//
// Functions given to map, filter and the like are shared by all subtasks of a process and must not change what they
// capture; what has state of its own is a processor. Elements are immutable once emitted. A function over elements has a
// form that takes a pointer beside the one that takes a value: use it for structs of more than four words or fields, or
// with array fields, which Go passes through memory.
package stream

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/flott-dev/flott/internal/env"
	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/graph"
	"github.com/flott-dev/flott/internal/operator/watermarks"
	"github.com/flott-dev/flott/serde"
	"github.com/flott-dev/flott/statebackend"
)

const packagePath = "github.com/flott-dev/flott/stream"

// Env is where a program begins: it makes sources, holds the job's settings and executes what was built. One goroutine
// uses it.
type Env struct {
	e       *env.Env
	time    TimeCharacteristic
	aligned map[string]*watermarks.Group
	loops   int64           // iterations so far
	claims  map[string]bool // what sinks of the next job have for themselves
}

// Option is a setting of an environment.
type Option func(*env.Settings)

// WithBackends links state backends: the first keeps the state of the environment's jobs, unless configuration
// (state.backend.type) or SetStateBackend chooses another one by its name. Without it state is kept in memory ("hashmap"), which
// is always linked.
func WithBackends(backends ...statebackend.Backend) Option {
	return func(s *env.Settings) { s.Backends = append(s.Backends, backends...) }
}

// WithTypes adds codecs and closed sets of interface types (serde.OneOf, serde.WithCodec) for the job's element, key and
// state types.
func WithTypes(opts ...serde.Option) Option {
	return func(s *env.Settings) { s.Serde = append(s.Serde, opts...) }
}

// WithMemory bounds the memory of state and frames in bytes; the default is 60 % of what the process may use.
func WithMemory(bytes int64) Option { return func(s *env.Settings) { s.Memory = bytes } }

// WithIsolation makes every edge between tasks encode and decode its elements, as between processes. For tests.
func WithIsolation() Option { return func(s *env.Settings) { s.Isolated = true } }

// NewEnv returns an environment that executes in this process, at the machine's parallelism unless told otherwise.
// Configuration comes first (WithConfiguration, WithConfigurationFile, and the environment variable FLOTT_CONFIGURATION, by which
// "flott run" passes its own), then options in their order.
func NewEnv(opts ...Option) *Env {
	e := env.New()
	e.Setup(func(s *env.Settings) {
		for _, o := range opts {
			o(s)
		}
	})
	return &Env{e: e}
}

// SetParallelism sets the number of subtasks of operators that have no setting of their own. Default: GOMAXPROCS.
func (e *Env) SetParallelism(n int) *Env {
	if n < 1 {
		e.report(fmt.Errorf("set parallelism %d: it must be at least 1", n))
		return e
	}
	e.e.Settings.Parallelism = n
	return e
}

// Parallelism is the default number of subtasks.
func (e *Env) Parallelism() int { return e.e.Settings.Parallelism }

// SetMaxParallelism sets the number of key groups, 1 ... 32768: the bound for rescaling. The default is computed from
// the parallelism as Flink does (at least 128).
func (e *Env) SetMaxParallelism(n int) *Env {
	if n < 1 || n > 32768 {
		e.report(fmt.Errorf("set max parallelism %d: it must lie in 1 ... 32768", n))
		return e
	}
	e.e.Settings.MaxParallelism = n
	return e
}

// SetBufferTimeout says when elements that wait for their frame to be filled are sent: 0 = every element at once, a
// negative time = only full frames, else (the default) when the input runs dry. Watermarks travel with the data;
// barriers and the end are never held back.
func (e *Env) SetBufferTimeout(d time.Duration) *Env {
	e.e.Settings.BufferTimeout = d
	return e
}

// SetAutoWatermarkInterval sets how often periodic watermark strategies are asked. Default 200 ms; 0 never.
func (e *Env) SetAutoWatermarkInterval(d time.Duration) *Env {
	if d < 0 {
		e.report(fmt.Errorf("set auto watermark interval %v: it must not be negative", d))
		return e
	}
	e.e.Settings.AutoWatermark = d
	return e
}

// DisableOperatorChaining gives every operator a task of its own.
func (e *Env) DisableOperatorChaining() *Env {
	e.e.Settings.Chaining = false
	return e
}

// SetGlobalParameter sets a job parameter that every operator can read through its runtime.
func (e *Env) SetGlobalParameter(key, value string) *Env {
	e.e.Settings.Parameters[key] = value
	return e
}

// RegisterCachedFile makes a local file available to every operator by name (Flink's distributed cache).
func (e *Env) RegisterCachedFile(path, name string) *Env {
	e.e.Settings.Files[name] = path
	return e
}

// Recorded evaluates f once per job and gives the same value in every process and attempt: for whatever differs from run
// to run, like the time of the start.
func (e *Env) Recorded[V any](name string, f func() (V, error)) (V, error) {
	v, err := e.e.Record(name, func() (any, error) { return f() })
	if err != nil {
		var zero V
		return zero, err
	}
	typed, ok := v.(V)
	if !ok {
		return typed, fmt.Errorf("evaluate recorded value %q: it was recorded as a %T before", name, v)
	}
	return typed, nil
}

// report collects a mistake at the user's line.
func (e *Env) report(err error) { e.e.Report(env.Caller(packagePath), err) }

// typeOf makes the handle of T; a type that can't be encoded is a mistake of the program.
func typeOf[T any](e *Env) *frame.Type {
	t, err := frame.TypeOf[T](e.e.Settings.Serde...)
	if err != nil {
		e.report(err)
	}
	return t
}

// Execute runs what was built and returns when it has ended. Mistakes of the program come back together, each with file
// and line. A failure names the operator, its subtask and the cause. When ctx ends the job is cancelled and the error
// wraps the context's. The environment is empty afterwards and may be used for another job.
func (e *Env) Execute(ctx context.Context, name string) (*Result, error) {
	job, err := e.ExecuteAsync(ctx, name)
	if err != nil {
		return nil, err
	}
	return job.Wait()
}

// ExecuteAsync starts what was built and returns a handle on the running job.
func (e *Env) ExecuteAsync(ctx context.Context, name string) (*Job, error) {
	e.claims = nil
	x, err := e.e.Start(ctx, name)
	if err != nil {
		return nil, err
	}
	return &Job{x: x}, nil
}

// ExecutionPlan is the plan of what was built so far as Flink's plan JSON.
func (e *Env) ExecutionPlan() (string, error) { return e.e.PlanJSON() }

// DisableAutoGeneratedUIDs makes an operator without UID or UIDHash a mistake: for programs whose savepoints must survive
// changes.
func (e *Env) DisableAutoGeneratedUIDs() *Env {
	e.e.Settings.RequireUIDs = true
	return e
}

// Warnings is what is allowed and unwise in what was built so far, each with file and line: operators that keep state and
// have no UID, so that a savepoint would find their state only while the operators before them stay the same. Before these
// come configuration keys and settings that are unknown or do nothing here, with the reason.
func (e *Env) Warnings() []string { return e.e.Warnings() }

// Explain is the plan of what was built so far as text: tasks, chains, partitioning, state layouts.
func (e *Env) Explain() (string, error) {
	p, err := e.e.Plan("job")
	if err != nil {
		return "", err
	}
	return p.String(), nil
}

// errNoOperator is why a setting has no place to go.
var errNoOperator = errors.New("this stream has no operator of its own (union, partitioning or side output): set it on the operator before or after")

// unset is graph.Unset under a shorter name.
const unset = graph.Unset
