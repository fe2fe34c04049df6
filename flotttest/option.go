package flotttest

import (
	"context"
	"errors"
	"testing"

	"github.com/flott-dev/flott/internal/env"
	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/internal/plan"
	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/serde"
	"github.com/flott-dev/flott/stream"
)

// Option is a setting of a harness.
type Option func(*config)

// config is what options set.
type config struct {
	settings    *env.Settings // of the environment, once it is made
	streams     []stream.Option
	configure   []func(*stream.Env)
	sides       map[string]side
	subtask     int
	parallelism int
	start       int64
	readOnly    bool
	restored    []*Snapshot
	shape       shape
}

// shape says what of a plan is driven.
type shape struct {
	source bool // the plan begins with a source, not with stand-ins for inputs
	sink   bool // it ends with a sink, not with a stand-in for the output
}

// side is what a harness knows of a side output's type.
type side struct {
	typeOf func([]serde.Option) (*frame.Type, error)
	record func(c *Control, have any, typ *frame.Type) (recorder any, in operator.Input)
}

func newConfig(opts []Option) *config {
	c := &config{parallelism: 1, sides: map[string]side{}}
	for _, o := range opts {
		o(c)
	}
	return c
}

// WithEnv passes settings on to the environment that the operator is built in: codecs, a state backend, isolation (every
// element is encoded and decoded on its way in).
func WithEnv(opts ...stream.Option) Option {
	return func(c *config) { c.streams = append(c.streams, opts...) }
}

// Configure calls f with the environment before the operator is built: global parameters, cached files, the auto watermark
// interval, the time characteristic.
func Configure(f func(env *stream.Env)) Option {
	return func(c *config) { c.configure = append(c.configure, f) }
}

// WithSideOutput keeps what the operator emits to a side output, for Control.SideOutput.
func WithSideOutput[X any](tag process.OutputTag[X]) Option {
	return func(c *config) {
		c.sides[tag.Name()] = side{
			typeOf: func(opts []serde.Option) (*frame.Type, error) { return frame.TypeOf[X](opts...) },
			record: func(c *Control, have any, typ *frame.Type) (any, operator.Input) {
				r, ok := have.(*Recorder[X])
				if !ok {
					r = newRecorder[X](c, typ)
				}
				return r, link[X]{r}
			},
		}
	}
}

// WithSubtask makes the operator subtask number index, from 0, of parallelism ones. Default: 0 of 1.
func WithSubtask(index, parallelism int) Option {
	return func(c *config) { c.subtask, c.parallelism = index, parallelism }
}

// WithMaxParallelism sets the number of key groups.
func WithMaxParallelism(n int) Option {
	return Configure(func(env *stream.Env) { env.SetMaxParallelism(n) })
}

// WithProcessingTime is the processing time at the start, in ms since 1970. Default: 0.
func WithProcessingTime(ms int64) Option { return func(c *config) { c.start = ms } }

// WithReadOnlyInput hands elements over as they are when an operator shares them with others, and fails the test if it
// changes one.
func WithReadOnlyInput() Option { return func(c *config) { c.readOnly = true } }

// errCaptured ends an Execute whose plan the harness has taken.
var errCaptured = errors.New("the test harness has taken the plan")

// environment makes the environment that the operator is built in.
func (c *config) environment() *stream.Env {
	capture := func(s *env.Settings) { c.settings = s }
	e := stream.NewEnv(append(c.streams, capture)...).SetParallelism(c.parallelism)
	for _, f := range c.configure {
		f(e)
	}
	return e
}

// capture plans what build adds to the environment.
func (c *config) capture(t testing.TB, e *stream.Env, build func()) *plan.JobGraph {
	t.Helper()
	build()
	var jg *plan.JobGraph
	c.settings.Launch = func(p *plan.JobGraph) error {
		jg = p
		return errCaptured
	}
	if _, err := e.Execute(context.Background(), "harness"); jg == nil {
		t.Fatalf("build the operator: %v", err)
	}
	for tag, side := range c.sides {
		typ, err := side.typeOf(c.settings.Serde)
		if err != nil {
			t.Fatalf("read side output %q: %v", tag, err)
		}
		c.read(jg, tag, typ)
	}
	return jg
}

// read announces to every operator that somebody reads the side output.
func (c *config) read(jg *plan.JobGraph, tag string, typ *frame.Type) {
	for _, n := range jg.Graph.Nodes {
		if n.Side == nil {
			n.Side = map[string]*frame.Type{}
		}
		if n.Side[tag] == nil {
			n.Side[tag] = typ
		}
	}
}
