// Package env is the one joint between the front doors and the engine: it collects the graph that a program builds with
// its mistakes, holds the environment's settings, turns names into things (state backends), and runs the job in an
// embedded job manager and task manager.
package env

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/flott-dev/flott/checkpoint"
	"github.com/flott-dev/flott/internal/clock"
	"github.com/flott-dev/flott/internal/graph"
	"github.com/flott-dev/flott/internal/host"
	"github.com/flott-dev/flott/internal/jobmanager"
	"github.com/flott-dev/flott/internal/plan"
	"github.com/flott-dev/flott/internal/rest"
	"github.com/flott-dev/flott/internal/taskmanager"
	"github.com/flott-dev/flott/serde"
	"github.com/flott-dev/flott/statebackend"
)

// Settings are what a program or the configuration sets on an environment.
type Settings struct {
	Parallelism        int           // default: runtime.GOMAXPROCS(0)
	MaxParallelism     int           // graph.Unset: computed per operator
	BufferTimeout      time.Duration // 0: every element at once; < 0: only full frames; default: when the input runs dry
	AutoWatermark      time.Duration // default 200 ms
	Latency            time.Duration // between two latency markers of a source; default 0: none
	LatencyGranularity LatencyGranularity
	Chaining           bool                   // default true
	Restart            Restart                // nil: exponential delay for jobs that take checkpoints, else no restart
	FullRestart        bool                   // a failure restarts all tasks, not only those of its failover region
	Memory             int64                  // bytes; 0: 60 % of what the process may use
	RequireUIDs        bool                   // every operator needs a UID or a hash
	Backends           []statebackend.Backend // those that the program links; the first is the default
	BackendName        string                 // of the one that keeps state; "": the default
	Storage            []checkpoint.Opener    // of URLs
	JobName            string                 // of jobs that are executed without one
	Check              bool                   // dry run: Start says whether the job could start, and ends the process
	Configuration      Configuration
	Isolated           bool
	GeneralWindows     bool // no window takes a path of its own
	Parameters         map[string]string
	Files              map[string]string
	Checkpoints        Checkpoints
	REST               REST
	Serde              []serde.Option
	Seed               uint64 // of key hashes; 0: DefaultSeed
	Clock              clock.Clock
	// Threads runs the subtasks; nil: goroutines. A test kit's clock wakes them.
	Threads host.Threads
	// Launch takes the plan in place of the embedded managers, and Start returns its error, which must not be nil: a test
	// kit drives single operators itself.
	Launch func(*plan.JobGraph) error

	// pause waits between two tries to take a lock; nil: by the machine's clock.
	pause func(context.Context, time.Duration) error
}

// ErrCanceled is wrapped by the error of a job that was cancelled.
var ErrCanceled = jobmanager.ErrCanceled

// ErrChecked is what Start returns after a dry run if the process has not ended.
var ErrChecked = errors.New("the job was checked only")

// DefaultSeed is the hash seed of jobs that set none: fixed, so that every process and every run agrees.
const DefaultSeed = 0x9E3779B97F4A7C15

// DefaultBufferTimeout is the setting "when the input runs dry": the number is Flink's default, kept in plans.
const DefaultBufferTimeout = 100 * time.Millisecond

// Env collects a program's graph. It is used by the one goroutine that builds the program.
type Env struct {
	Settings Settings
	graph    *graph.Graph
	mistakes []error
	recorded map[string]any

	recoveries    int            // jobs with recovery so far
	configured    []string       // warnings of the configuration
	misconfigured error          // mistakes in it
	logged        []string       // warnings that were
	begun         bool           // a job was submitted
	memoryStorage *MemoryStorage // the job manager's memory
	remembered    int            // jobs with checkpoints in it so far
	data          *places        // of connectors; nil: none was asked for

	stdout io.Writer // of dry runs
	exit   func(code int)
	server *rest.Server
}

// New returns an environment with default settings.
func New() *Env {
	return &Env{Settings: defaults(), graph: &graph.Graph{}, memoryStorage: NewMemoryStorage(), stdout: os.Stdout, exit: os.Exit}
}

func defaults() Settings {
	return Settings{
		Parallelism: runtime.GOMAXPROCS(0), MaxParallelism: graph.Unset, BufferTimeout: DefaultBufferTimeout,
		AutoWatermark: 200 * time.Millisecond, Chaining: true, Parameters: map[string]string{}, Files: map[string]string{},
		Checkpoints: DefaultCheckpoints(),
	}
}

// Add puts a node into the graph.
func (e *Env) Add(n *graph.Node) { e.graph.Nodes = append(e.graph.Nodes, n) }

// Report collects a mistake in the program; Execute returns all of them together.
func (e *Env) Report(caller string, err error) {
	e.mistakes = append(e.mistakes, fmt.Errorf("%s: %w", caller, err))
}

// Caller is the file and line of the user's call: the first frame outside the package of that import path.
func Caller(pkg string) string {
	var pcs [16]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs[:])])
	for {
		f, more := frames.Next()
		if !strings.HasPrefix(f.Function, pkg+".") && !strings.HasPrefix(f.Function, "github.com/flott-dev/flott/internal/env.") {
			return fmt.Sprintf("%s:%d", f.File, f.Line)
		}
		if !more {
			return "unknown place"
		}
	}
}

// Graph is the present graph with the settings that planning needs.
func (e *Env) Graph(name string) (*graph.Graph, error) {
	g := *e.graph
	s := &e.Settings
	g.JobName, g.Parallelism, g.MaxParallelism = name, s.Parallelism, s.MaxParallelism
	g.BufferTimeout, g.ChainingEnabled, g.GlobalParameters = s.BufferTimeout, s.Chaining, s.Parameters
	g.HashSeed, g.RequireUIDs = s.Seed, s.RequireUIDs
	if g.HashSeed == 0 {
		g.HashSeed = DefaultSeed
	}
	err := errors.Join(append([]error{e.misconfigured, e.wrongRestart()}, e.mistakes...)...)
	if len(g.Nodes) == 0 && err == nil {
		return nil, errors.New("the job has no operators: build a stream before Execute")
	}
	if b, wrong := e.backend(); wrong == nil { // else the submission says so
		if s, ok := b.(statebackend.Spiller); ok && s.Spills() {
			return g.Spilled(), err
		}
	}
	return &g, err
}

// Plan is the job graph of what was built so far. The error joins all mistakes, those of the whole graph after those of
// single calls.
func (e *Env) Plan(name string) (*plan.JobGraph, error) {
	g, err := e.Graph(name)
	if err != nil {
		if g != nil {
			err = errors.Join(err, g.Validate())
		}
		return nil, err
	}
	return plan.Build(g)
}

// Warnings is what is useless in the settings, and what is allowed and unwise in what was built so far, each with file and line.
func (e *Env) Warnings() []string {
	return append(e.settingWarnings(), e.graph.Warnings()...)
}

// settingWarnings are those of the settings.
func (e *Env) settingWarnings() []string {
	all := append(slices.Clone(e.configured), e.Settings.Checkpoints.idle()...)
	if e.begun {
		return all // the program's next job starts from nothing, whatever was set for the first
	}
	return append(all, e.Settings.Checkpoints.idleStart()...)
}

// logWarnings logs warnings about settings, each once, unless who has started the program gets them.
func (e *Env) logWarnings(job string) {
	if os.Getenv(ReportVariable) != "" {
		return
	}
	for _, w := range e.settingWarnings() {
		if !slices.Contains(e.logged, w) {
			e.logged = append(e.logged, w)
			slog.Warn("a setting is of no use", "job", job, "setting", w)
		}
	}
}

// Execution is a running or ended job.
type Execution struct {
	*jobmanager.Job
	Name  string
	Graph *plan.ExecutionGraph

	refusal    error // why it takes no snapshots
	places     *places
	savepoints string          // where they lie by default
	over       <-chan struct{} // see Over
	address    string          // see Address
}

// Start submits what was built so far and begins an empty graph.
func (e *Env) Start(ctx context.Context, name string) (*Execution, error) {
	name = e.jobName(name)
	jg, err := e.Plan(name)
	if e.Settings.Check && e.Settings.Launch == nil {
		e.check(ctx, jg, name, err)
		return nil, ErrChecked
	}
	warnings := e.Warnings()
	e.graph, e.mistakes = &graph.Graph{}, nil
	if err != nil {
		return nil, fmt.Errorf("build job %q: %w", name, err)
	}
	if e.Settings.Launch != nil {
		return nil, e.Settings.Launch(jg)
	}
	if err := explain(jg); err != nil {
		return nil, err
	}
	x, err := e.submit(ctx, jg, name, warnings)
	if err != nil {
		return nil, fmt.Errorf("start job %q: %w", name, err)
	}
	e.logWarnings(name)
	e.begun, e.Settings.Checkpoints.Savepoint = true, "" // the program's next job is another one
	return x, nil
}

// submit hands a job to the managers, once all is there that it needs. Who started the program gets the warnings.
func (e *Env) submit(ctx context.Context, jg *plan.JobGraph, name string, warnings []string) (x *Execution, err error) {
	backend, err := e.backend()
	if err != nil {
		return nil, err
	}
	hold, err := e.openREST()
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil && hold != nil {
			hold.Release()
		}
	}()
	c := e.Settings.Clock
	if c == nil {
		c = clock.NewSystem()
	}
	id := newID()
	keeping, err := e.keeping(ctx, jg, id, name)
	if err != nil {
		return nil, err
	}
	keeping.backend = backend
	job := e.job(jg, name)
	threads := e.Settings.Threads
	if threads == nil {
		threads = host.Goroutines{Clock: c}
	}
	opt := taskmanager.Options{
		Threads: threads, Clock: c, Memory: e.memory(), Backend: backend, Isolated: e.Settings.Isolated,
	}
	if opt.Preloaded, err = e.takeUp(ctx, job, opt, keeping.opt); err != nil {
		keeping.release()
		return nil, err
	}
	keeping.after(opt.Preloaded)
	x = &Execution{
		Job: jobmanager.Submit(ctx, id, job, opt, e.restart(), keeping.opt), Name: name, Graph: job.Graph, refusal: keeping.refusal,
		places: keeping.places, savepoints: e.Settings.Checkpoints.SavepointDir,
	}
	e.serve(x, c, &keeping, hold, warnings)
	return x, nil
}

// job is what the attempts of the job have in common.
func (e *Env) job(jg *plan.JobGraph, name string) *taskmanager.Job {
	return &taskmanager.Job{
		Graph: plan.Unfold(jg), Name: name, Seed: jg.Graph.HashSeed, AutoWatermark: e.Settings.AutoWatermark.Milliseconds(),
		Latency: latencyMillis(e.Settings.Latency), LatencyGranularity: e.Settings.LatencyGranularity,
		Parameters: e.Settings.Parameters, Files: e.Settings.Files,
	}
}

func (e *Env) memory() *host.Memory {
	if e.Settings.Memory > 0 {
		return host.NewMemory(e.Settings.Memory)
	}
	return host.NewMemory(host.CgroupLimit() / 10 * 6)
}

// newID is a job's identity: 32 random hex digits, as in Flink.
func newID() string {
	var b [16]byte
	_, _ = rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

// Record evaluates f once per job and name; later calls give the same value, which is part of the job's record.
func (e *Env) Record(name string, f func() (any, error)) (any, error) {
	if v, ok := e.recorded[name]; ok {
		return v, nil
	}
	v, err := f()
	if err != nil {
		return nil, fmt.Errorf("evaluate recorded value %q: %w", name, err)
	}
	if e.recorded == nil {
		e.recorded = map[string]any{}
	}
	e.recorded[name] = v
	return v, nil
}
