package env

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/flott-dev/flott/checkpoint"
	"github.com/flott-dev/flott/internal/clock"
	"github.com/flott-dev/flott/internal/control"
	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/jobmanager"
	"github.com/flott-dev/flott/internal/plan"
	"github.com/flott-dev/flott/internal/rest"
	"github.com/flott-dev/flott/internal/task"
	"github.com/flott-dev/flott/internal/taskmanager"
)

// REST are the settings of the endpoint by which other processes watch and control jobs.
type REST struct {
	Enabled bool
	Host    string // "" is loopback
	Ports   []int  // tried in turn; 0 is any free one
	Remote  bool   // Host may be an address that other machines reach
	Mistake error  // in how it was set; Start reports it
}

// ListenAt serves jobs at "host:port"; the port may be a range or list.
func (r *REST) ListenAt(address string) {
	r.Enabled = true
	host, ports, err := splitAddress(address)
	if err == nil {
		r.Host = host
		r.Ports, err = rest.ParsePorts(ports)
	}
	if err != nil {
		r.Mistake = fmt.Errorf("serve REST at %q: %w", address, err)
	}
}

// splitAddress cuts an address at its last colon; in ports there is none.
func splitAddress(address string) (host, ports string, err error) {
	for i := len(address) - 1; i >= 0; i-- {
		if address[i] == ':' {
			host, ports = address[:i], address[i+1:]
			if n := len(host); n > 1 && host[0] == '[' && host[n-1] == ']' {
				host = host[1 : n-1]
			}
			return host, ports, nil
		}
	}
	return "", "", errors.New("write host:port, as in 127.0.0.1:8081")
}

// ReportVariable is the variable of the environment that names a file in which a process tells who started it what jobs it
// runs: a JSON object a line.
const ReportVariable = "FLOTT_REPORT"

// PlanVariable is the variable of the environment that names a file to which the first job's plan is written, as Flink's plan
// JSON; the process then ends, and runs nothing.
const PlanVariable = "FLOTT_PLAN"

// explain writes the plan of a job and ends the process, if that is asked for.
func explain(jg *plan.JobGraph) error {
	name := os.Getenv(PlanVariable)
	if name == "" {
		return nil
	}
	text, err := planJSON(jg)
	if err == nil {
		err = os.WriteFile(name, []byte(text), 0o600)
	}
	if err != nil {
		return fmt.Errorf("write the plan: %w", err)
	}
	os.Exit(0)
	return nil
}

// Report is a line of that file.
type Report struct {
	Event        string            `json:"event"` // submitted or ended
	ID           string            `json:"jobid"`
	Name         string            `json:"name"`
	Address      string            `json:"address,omitempty"` // of the REST endpoint
	Status       string            `json:"status,omitempty"`
	Runtime      int64             `json:"runtime,omitempty"` // ms
	Accumulators map[string]string `json:"accumulators,omitempty"`
	Warnings     []string          `json:"warnings,omitempty"` // of a job that was submitted: see Env.Warnings
}

func (r *Report) write() {
	name := os.Getenv(ReportVariable)
	if name == "" {
		return
	}
	b, err := json.Marshal(r)
	if err != nil {
		return
	}
	f, err := os.OpenFile(name, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return // who asked for it has gone
	}
	_, _ = f.Write(append(b, '\n'))
	_ = f.Close()
}

// openREST has the endpoint listen for one more job; nil if jobs are not served.
func (e *Env) openREST() (*rest.Hold, error) {
	r := &e.Settings.REST
	if r.Mistake != nil {
		return nil, r.Mistake
	}
	if !r.Enabled {
		return nil, nil
	}
	if e.server == nil {
		opt := rest.DefaultOptions()
		opt.Host, opt.Remote = r.Host, r.Remote
		if len(r.Ports) > 0 {
			opt.Ports = r.Ports
		}
		opt.Version, opt.Commit = buildVersion()
		opt.Disk = func(location string) (checkpoint.FS, string, error) {
			p := e.places()
			dir, err := p.name(context.Background(), location)
			return p, dir, err
		}
		e.server = rest.New(opt)
	}
	return e.server.Open()
}

// buildVersion is the version of this module in the program, and the commit of the program.
func buildVersion() (version, commit string) {
	version, commit = "unknown", "unknown"
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return version, commit
	}
	for _, m := range append(info.Deps, &info.Main) {
		if m.Path == "github.com/flott-dev/flott" && m.Version != "" {
			version = m.Version
		}
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			commit = s.Value
		}
	}
	return version, commit
}

// serve lists the job at the endpoint, if there is one, and reports it.
func (e *Env) serve(x *Execution, c clock.Clock, k *keeping, hold *rest.Hold, warnings []string) {
	x.over = x.Done()
	report := Report{Event: "submitted", ID: x.ID, Name: x.Name, Warnings: warnings}
	if hold != nil {
		x.address = e.server.Address()
		report.Address = x.address
		hold.Serve(&served{x: x, clock: c, facts: e.facts(x, k)})
		x.over = hold.Released()
	}
	if os.Getenv(ReportVariable) == "" {
		return
	}
	report.write()
	over, before := make(chan struct{}), x.over
	x.over = over
	go func() {
		defer close(over)
		<-x.Done()
		end := Report{Event: "ended", ID: x.ID, Name: x.Name, Status: string(x.Status()), Runtime: x.Duration().Milliseconds(), Accumulators: map[string]string{}}
		if values, err := x.Accumulators(); err == nil {
			for name, v := range values {
				end.Accumulators[name] = fmt.Sprint(v)
			}
		}
		end.write()
		<-before
	}()
}

// Over is closed when the job has ended and nobody waits for an answer about it any more: the results of what clients of the
// REST endpoint have asked for are fetched, or the time for that is over.
func (x *Execution) Over() <-chan struct{} { return x.over }

// Address is host and port of the REST endpoint that serves the job; "" if none does.
func (x *Execution) Address() string { return x.address }

// facts is what never changes of a job.
func (e *Env) facts(x *Execution, k *keeping) *rest.Facts {
	f := &rest.Facts{
		ID: x.ID, Name: x.Name, Graph: x.Graph, Parallelism: e.Settings.Parallelism, Restart: restartText(e.restart().Strategy), Parameters: e.Settings.Parameters,
		SavepointDir: x.savepoints, Configuration: e.effective(),
	}
	if k.opt == nil {
		if f.Unable = "it takes no snapshots"; k.refusal != nil {
			f.Unable = k.refusal.Error()
		}
		return f
	}
	f.Checkpoints = &rest.Checkpointing{Config: k.opt.Config, Backend: k.backend.Name(), Storage: "FileSystemCheckpointStorage"}
	if e.Settings.Checkpoints.inMemory() {
		f.Checkpoints.Storage, f.Checkpoints.Memory = "JobManagerCheckpointStorage", true
	}
	return f
}

// restartText is a restart strategy for people.
func restartText(r control.Restart) string {
	switch r := r.(type) {
	case control.NoRestart:
		return "Restart deactivated."
	case *control.FixedDelay:
		return fmt.Sprintf("Restart with fixed delay (%v). #%d restart attempts.", r.Delay, r.Attempts)
	case *control.FailureRate:
		return fmt.Sprintf("Restart unless there are more than %d failures in %v, %v after each.", r.Max, r.Interval, r.Delay)
	case *control.ExponentialDelay:
		return fmt.Sprintf("Restart for ever, after %v and then %v times as long after each failure, %v at most.", r.Initial, r.Factor, r.Max)
	}
	return fmt.Sprintf("%T", r)
}

// served is a job as the endpoint sees it.
type served struct {
	x     *Execution
	clock clock.Clock
	facts *rest.Facts
}

func (s *served) Facts() *rest.Facts                      { return s.facts }
func (s *served) Checkpoints() control.CheckpointOverview { return s.x.Checkpoints() }
func (s *served) Accumulators() (map[string]any, error)   { return s.x.Accumulators() }
func (s *served) Done() <-chan struct{}                   { return s.x.Done() }
func (s *served) Cancel()                                 { s.x.Cancel() }
func (s *served) TriggerCheckpoint(ctx context.Context, full bool) (int64, error) {
	return s.x.TakeCheckpoint(ctx, full)
}

func (s *served) TriggerSavepoint(ctx context.Context, dir string) (string, error) {
	return s.x.TakeSavepoint(ctx, dir, false, false)
}

func (s *served) StopWithSavepoint(ctx context.Context, dir string, drain bool) (string, error) {
	return s.x.TakeSavepoint(ctx, dir, drain, true)
}

func (s *served) CancelWithSavepoint(ctx context.Context, dir string) (string, error) {
	return s.x.CancelWithSavepoint(ctx, dir)
}

// View looks at the job and the tasks of its present attempt.
func (s *served) View() *rest.View {
	r := s.x.Record()
	v := &rest.View{
		Status: string(s.x.Status()), Now: s.clock.Millis(), Start: r.Start.UnixMilli(), End: -1, Entered: map[string]int64{}, Restarts: r.Restarts, Dropped: r.Dropped,
	}
	if !r.End.IsZero() {
		v.End = r.End.UnixMilli()
	}
	for state, at := range r.Entered {
		v.Entered[string(state)] = at.UnixMilli()
	}
	for i := range r.Failures {
		v.Failures = append(v.Failures, s.failure(&r.Failures[i]))
	}
	for _, pv := range s.facts.Graph.Vertices {
		vertex := rest.Vertex{Subtasks: make([]rest.Subtask, len(pv.Subtasks))}
		for i := range vertex.Subtasks {
			vertex.Subtasks[i] = rest.Subtask{State: "CREATED", Start: -1, End: -1, Watermark: frame.MinWatermark}
		}
		v.Vertices = append(v.Vertices, vertex)
	}
	for _, t := range s.x.Tasks() {
		v.Attempt = max(v.Attempt, t.Runtimes()[0].Attempt) // each failover region numbers its own
		v.Vertices[t.Vertex.Index].Subtasks[t.Index] = s.subtask(t, v.Status, &r)
	}
	return v
}

func (s *served) failure(f *jobmanager.Failure) rest.Failure {
	out := rest.Failure{At: f.At.UnixMilli(), Attempt: f.Attempt, Class: rest.ErrorClass(f.Err), Text: f.Err.Error(), Same: f.Same, SameRecord: f.SameRecord}
	var at *task.Error
	if errors.As(f.Err, &at) {
		out.Task = at.Operator + " (" + strconv.Itoa(at.Subtask+1) + ")"
		for _, v := range s.facts.Graph.Vertices {
			for _, n := range v.Nodes {
				if n.ID.String() == at.UID {
					out.Task = fmt.Sprintf("%s (%d/%d)", n.Node.Title(), at.Subtask+1, v.Parallelism)
				}
			}
		}
	}
	return out
}

// subtask looks at a task.
func (s *served) subtask(t *taskmanager.Subtask, status string, r *jobmanager.Record) rest.Subtask {
	now, nanos := s.clock.Millis(), s.clock.Nanos()
	out := rest.Subtask{
		State: "RUNNING", Start: now - (nanos-t.Started)/1e6, End: -1, RecordsIn: t.Runtimes()[0].In.Load(),
	}
	if status == "CANCELLING" || status == "FAILING" {
		out.State = "CANCELING"
	}
	life := nanos - t.Started
	if end, over := r.Ended[[2]int{t.Vertex.Index, t.Index}]; over {
		switch {
		case end.Canceled:
			out.State = "CANCELED"
		case end.Err != nil:
			out.State = "FAILED"
		default:
			out.State = "FINISHED"
		}
		out.End = max(out.Start, end.At.UnixMilli())
		life = (out.End - out.Start) * 1e6
	}
	idle, back := t.Times.Idle.Load(), t.Times.Backpressured.Load()
	out.Idle, out.Backpressured, out.Busy = time.Duration(idle), time.Duration(back), time.Duration(max(0, life-idle-back))
	out.Alignment, out.StartDelay = t.Barriers.Alignment(t.Started+life), t.Barriers.StartDelay()
	out.Watermark, _ = t.Received(0)
	type port struct {
		node int
		tag  string
	}
	counted := map[port]bool{}
	for _, e := range t.Vertex.Outputs {
		p := port{e.Producer, e.Tag}
		if o := t.Operators()[p.node].Output(p.tag); o != nil && !counted[p] {
			counted[p] = true
			out.RecordsOut += o.Count.Load()
		}
	}
	for i, n := range t.Vertex.Nodes {
		o := rest.Operator{Title: n.Node.Title(), Metrics: map[string]any{"numRecordsIn": t.Runtimes()[i].In.Load()}}
		if main := t.Operators()[i].Output(""); main != nil {
			o.Metrics["numRecordsOut"] = main.Count.Load()
		}
		for name, m := range t.Hosts[i].Metrics() {
			o.Metrics[name] = m.Read()
		}
		out.Operators = append(out.Operators, o)
	}
	return out
}

// TakeCheckpoint takes a checkpoint now and gives its number when it is complete. Full says that it builds on no earlier one.
func (x *Execution) TakeCheckpoint(ctx context.Context, full bool) (int64, error) {
	if x.refusal != nil {
		return 0, fmt.Errorf("trigger a checkpoint: %w", x.refusal)
	}
	return x.TriggerCheckpoint(ctx, full)
}

// CancelWithSavepoint takes a savepoint into a new folder under dir and cancels the job when it is complete.
func (x *Execution) CancelWithSavepoint(ctx context.Context, dir string) (string, error) {
	if x.refusal != nil {
		return "", fmt.Errorf("take a savepoint: %w", x.refusal)
	}
	target, err := x.places.name(ctx, dir)
	if err != nil {
		return "", fmt.Errorf("take a savepoint: %w", err)
	}
	folder, err := x.Job.CancelWithSavepoint(ctx, target)
	if folder != "" {
		folder = locationOf(folder)
	}
	return folder, err
}
