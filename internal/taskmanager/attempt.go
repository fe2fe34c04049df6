// Package taskmanager runs the subtasks of a job in this process: it makes the channels between them, builds the tasks,
// gives each its thread and reports how it ended. It decides nothing: what to run, and what follows a failure, is the
// job manager's.
package taskmanager

import (
	"context"
	"fmt"
	"sync"

	"github.com/flott-dev/flott/internal/clock"
	"github.com/flott-dev/flott/internal/exchange"
	"github.com/flott-dev/flott/internal/host"
	"github.com/flott-dev/flott/internal/keygroup"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/internal/plan"
	"github.com/flott-dev/flott/internal/task"
	"github.com/flott-dev/flott/statebackend"
)

// Options describe the process that tasks run in.
type Options struct {
	Threads host.Threads
	Clock   clock.Clock
	Memory  *host.Memory
	Backend statebackend.Backend
	// FrameBudget bounds the bytes of all frames in flight of one writer; 0: 4 MiB, less if all writers could not have as much.
	FrameBudget int
	// Isolated makes every edge encode and decode its elements, as between processes.
	Isolated bool
	// NoGoroutines makes operators fail that start goroutines, as in a simulation. Snapshots are written by the tasks then.
	NoGoroutines bool
	// Checkpoints lets the tasks take snapshots; nil: they take none.
	Checkpoints *Checkpoints
	// Restore is the snapshot that the attempt begins with; nil: it begins afresh.
	Restore *Restore
	// Preloaded are stores that the first attempt takes; nil: it fills all of its own.
	Preloaded *Preloaded
	// Vertices are those whose subtasks are run, which exchange nothing with others; nil: all.
	Vertices []*plan.ExecutionVertex
}

// Job is what the attempts of a job have in common.
type Job struct {
	Graph              *plan.ExecutionGraph
	Name               string
	Seed               uint64
	AutoWatermark      int64 // ms
	Latency            int64 // ms between two latency markers of a source; 0: none
	LatencyGranularity LatencyGranularity
	Parameters         map[string]string
	Files              map[string]string // distributed cache: name to local path
}

// Ended is a task's report.
type Ended struct {
	Vertex, Subtask int
	Err             error // nil: finished; exchange.ErrCancelled: cancelled
}

// Attempt is one execution of all subtasks of a job, or of a failover region of it.
type Attempt struct {
	Number int
	Tasks  []*Subtask
	cancel context.CancelFunc
	spawn  host.Spawner
	group  sync.WaitGroup
}

// Subtask is a running task with what others see of it.
type Subtask struct {
	Vertex  *plan.Vertex
	Index   int
	Mailbox *host.Mailbox
	Hosts   []*Host   // per node of the chain
	Feeds   [][]*Feed // by input of the head, then channel
	Times   task.Times
	// Barriers are the times of the barriers of checkpoints.
	Barriers task.BarrierTimes
	Started  int64 // ns on the job's clock
	task     *task.Task
	groups   []keygroup.Range // by node
	writes   sync.WaitGroup   // of its parts of snapshots
	scribe   *scribe          // nil: it takes none
}

// Operators are the chain's operators; only their counters may be read from other goroutines.
func (s *Subtask) Operators() []operator.Operator { return s.task.Operators() }

// Runtimes are what the operators got, in the same order; only their counters may be read from other goroutines.
func (s *Subtask) Runtimes() []*operator.Runtime { return s.task.Runtimes() }

// Event leaves a coordinator's event for the operator at index node of the chain.
func (s *Subtask) Event(node int, event []byte) { s.Mailbox.Post(s.task.Event(node, event)) }

// channelKey identifies a channel: edge, upstream and downstream subtask.
type channelKey struct{ edge, up, down int }

// builder holds what is needed while an attempt is being built.
type builder struct {
	job      *Job
	opt      Options
	attempt  *Attempt
	ctx      context.Context
	channels map[channelKey]*exchange.Channel
	origins  []origin                                                              // nil: latency is not measured
	opened   func(o statebackend.Options, s statebackend.Store) statebackend.Store // sees each store that is opened; nil: nobody does
	toJob    func(vertex, subtask, node int, event []byte)
}

// Deploy builds all subtasks of an attempt and starts them. ended is called once for each, from its own thread, as the
// last thing it does. toCoordinator takes events of operators for their coordinators. An error means that nothing was
// started.
func Deploy(ctx context.Context, job *Job, number int, opt Options, toCoordinator func(vertex, subtask, node int, event []byte), ended func(Ended)) (*Attempt, error) {
	if opt.FrameBudget == 0 {
		opt.FrameBudget = frameBudget(job.Graph, opt.Memory)
	}
	ctx, cancel := context.WithCancel(ctx)
	b := &builder{
		job: job, opt: opt, attempt: &Attempt{Number: number, cancel: cancel}, ctx: ctx,
		channels: map[channelKey]*exchange.Channel{}, toJob: toCoordinator,
	}
	b.attempt.spawn.Refuse = opt.NoGoroutines
	if job.Latency > 0 {
		b.origins = origins(job.Graph)
	}
	if opt.Vertices == nil {
		opt.Vertices = job.Graph.Vertices
	}
	for _, v := range opt.Vertices {
		for _, st := range v.Subtasks {
			if err := b.build(v, st); err != nil {
				cancel()
				return nil, err
			}
		}
	}
	b.attempt.start(opt.Threads, ended)
	return b.attempt, nil
}

// mostFrames is what the frames in flight of a writer may take.
const mostFrames = 4 << 20

// frameBudget is what each writer of a job may take: so little in wide jobs that the frames of all leave half of the memory.
// Whether there is enough for one more must not depend on who is ahead of whom.
func frameBudget(g *plan.ExecutionGraph, m *host.Memory) int {
	if m == nil || m.Limit() == 0 {
		return mostFrames
	}
	writers := int64(1)
	for _, v := range g.Vertices {
		writers += int64(len(v.Subtasks) * len(v.Outputs))
	}
	return int(max(1, min(mostFrames, m.Limit()/2/writers)))
}

// channel is the channel of that key, made by whichever end comes first.
func (b *builder) channel(edge *plan.JobEdge, up, down int) *exchange.Channel {
	k := channelKey{edge.ID, up, down}
	c := b.channels[k]
	if c == nil {
		c = &exchange.Channel{}
		b.channels[k] = c
	}
	return c
}

func (b *builder) build(v *plan.ExecutionVertex, st *plan.Subtask) error {
	waiter := b.opt.Threads.NewWaiter()
	sub := &Subtask{Vertex: v.Vertex, Index: st.Index, Mailbox: host.NewMailbox(waiter), Started: b.opt.Clock.Nanos(), groups: st.KeyGroups}
	d := task.Deployment{
		Vertex: v.Vertex, Subtask: st.Index, Attempt: b.attempt.Number, JobName: b.job.Name, Ctx: b.ctx,
		Clock: b.opt.Clock, Waiter: waiter, Mailbox: sub.Mailbox, Spawn: &b.attempt.spawn, Seed: b.job.Seed,
		FrameBudget: b.opt.FrameBudget, AutoWatermark: b.job.AutoWatermark, Times: &sub.Times, Isolated: b.opt.Isolated, Memory: b.opt.Memory,
	}
	if n, ok := number(b.origins, v.Head().ID.String(), st.Index); ok {
		d.Latency, d.LatencyFrom = b.job.Latency, n
	}
	d.Checkpoints, d.Finished = b.checkpoints(sub), b.opt.Restore.finished(v.Vertex, st.Index)
	for i, g := range st.Inputs {
		if g.Edge.Feedback {
			continue // the ends of an iteration have a way of their own between them, see package iterate
		}
		for _, up := range g.Peers {
			c := b.channel(g.Edge, up, st.Index)
			c.Consumer = waiter
			d.Inputs = append(d.Inputs, task.Input{Channel: c, Input: g.Edge.Input, Gate: i, Peer: up, Peers: g.Edge.From.Parallelism, Aligned: aligned(g.Edge)})
			sub.feed(g.Edge, up, c)
		}
	}
	for _, g := range st.Outputs {
		if g.Edge.Feedback {
			d.Outputs = append(d.Outputs, nil)
			continue
		}
		var out []*exchange.Channel
		for _, down := range g.Peers {
			c := b.channel(g.Edge, st.Index, down)
			c.Producer = waiter
			out = append(out, c)
		}
		d.Outputs = append(d.Outputs, out)
	}
	var failed error
	d.Runtime = func(n *plan.ChainNode, scope *operator.Scope) *operator.Runtime {
		rt := b.runtime(sub, st, n, scope)
		if !d.Finished && failed == nil {
			rt.Restored, failed = b.opt.Restore.restored(n, st.Index, v.Parallelism)
		}
		return rt
	}
	t, err := task.New(d)
	if err == nil {
		err = failed
	}
	if err != nil {
		return fmt.Errorf("build subtask %d of %s: %w", st.Index+1, v.Name, err)
	}
	sub.task = t
	for node := range v.Nodes {
		sub.watermarkMetrics(node)
	}
	b.attempt.Tasks = append(b.attempt.Tasks, sub)
	return nil
}

// feed notes a channel into the subtask; the task numbers the channels of an input in this order, too.
func (s *Subtask) feed(e *plan.JobEdge, up int, c *exchange.Channel) {
	for len(s.Feeds) <= e.Input {
		s.Feeds = append(s.Feeds, nil)
	}
	s.Feeds[e.Input] = append(s.Feeds[e.Input], &Feed{Edge: e, Subtask: up, channel: c})
}

// runtime makes what one operator of the chain gets.
func (b *builder) runtime(sub *Subtask, st *plan.Subtask, n *plan.ChainNode, scope *operator.Scope) *operator.Runtime {
	rt := &operator.Runtime{
		Scope: scope, Name: n.Node.Name, UID: n.ID.String(), GivenUID: n.Node.UID, MaxParallelism: n.MaxParallelism, Seed: b.job.Seed,
		ToCoordinator: func(event []byte) { b.toJob(sub.Vertex.Index, st.Index, n.Index, event) },
	}
	groups, id := st.KeyGroups[n.Index], storeID{rt.UID, st.Index}
	if b.attempt.Number > 0 {
		b.opt.Preloaded.drop(id)
	}
	rt.OpenState = func(o statebackend.Options) (statebackend.Store, error) {
		o.MaxParallelism, o.FirstGroup, o.LastGroup = n.MaxParallelism, groups.First, groups.Last
		o.Memory = b.opt.Memory
		if sub.scribe != nil {
			o.Yield = sub.scribe.courtesy.yield
		}
		if rt.Restored != nil {
			o.Restored = rt.Restored.Store
		}
		if b.attempt.Number == 0 {
			if s := b.opt.Preloaded.take(id, &o); s != nil {
				return s, nil
			}
		}
		s, err := b.opt.Backend.Open(o)
		if err == nil && b.opened != nil {
			s = b.opened(o, s)
		}
		return s, err
	}
	h := newHost(b.job, rt)
	h.origins = b.origins
	rt.Host = h
	sub.Hosts = append(sub.Hosts, h)
	return rt
}

func (a *Attempt) start(threads host.Threads, ended func(Ended)) {
	a.group.Add(len(a.Tasks))
	for _, s := range a.Tasks {
		threads.Start(s.task.Waiter(), func() {
			defer a.group.Done()
			returned := false
			var err error
			defer func() { // runs also when user code ends the goroutine, as t.Fatal does in a test
				if !returned {
					err = s.task.Abandoned()
				}
				if err == nil {
					s.writes.Wait() // what a task tells of its snapshots comes before its end
				} // else nobody listens: a storage that hangs must not keep the region from being restarted
				ended(Ended{Vertex: s.Vertex.Index, Subtask: s.Index, Err: err})
			}()
			err = s.task.Run()
			returned = true
		})
	}
}

// Cancel makes all tasks end soon.
func (a *Attempt) Cancel() {
	a.cancel()
	for _, s := range a.Tasks {
		s.task.Cancel()
	}
}

// Wait returns when all tasks and the goroutines that they started have ended.
func (a *Attempt) Wait() {
	a.group.Wait()
	a.cancel()
	a.spawn.Wait()
}
