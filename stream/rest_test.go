package stream_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/state"
	"github.com/flott-dev/flott/stream"
)

// served is a job that clients call.
type served struct {
	t   *testing.T
	job *stream.Job
	url string
}

// call makes a request of the job and decodes the answer.
func (s *served) call(method, path, body string, status int, to any) {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != status {
		s.t.Fatalf("%s %s: %d %s, %v", method, path, resp.StatusCode, b, err)
	}
	if to == nil {
		return
	}
	if err := json.Unmarshal(b, to); err != nil {
		s.t.Fatalf("%s %s: %v in %s", method, path, err, b)
	}
}

// until calls a path until the answer is as wanted.
func until[A any](s *served, path string, wanted func(A) bool) (a A) {
	s.t.Helper()
	for {
		s.call("GET", path, "", 200, &a)
		if wanted(a) {
			return a
		}
	}
}

// sums adds up by key.
type sums struct {
	sum   *state.Value[int64]
	count *process.LongCounter
}

func newSums(rt *process.Runtime) *sums {
	return &sums{state.NewValue[int64](rt, "sum"), process.NewLongCounter(rt, "elements")}
}

func (f *sums) ProcessElement(_ *process.KeyedContext[int64], x int64, out *process.Collector[int64]) error {
	f.count.Add(1)
	f.sum.Update(func(n *int64) { *n += x })
	out.Collect(f.sum.Get())
	return nil
}

func (f *sums) OnTimer(*process.KeyedContext[int64], process.Timer, *process.Collector[int64]) error {
	return nil
}

// serveSums starts an endless job.
func serveSums(t *testing.T, opts ...stream.Option) *served {
	t.Helper()
	env := stream.NewEnv(append([]stream.Option{stream.WithREST("127.0.0.1:0")}, opts...)...).SetParallelism(2)
	env.FromSequence(0, math.MaxInt64/4).Parallelism(1).Map(func(x int64) int64 {
		if x%1000 == 0 {
			time.Sleep(time.Millisecond)
		}
		return x
	}).Parallelism(1).UID("slowly").
		KeyBy(func(x int64) int64 { return x % 10 }).Process(newSums).Name("Sum").UID("sums").ForEach(func(int64) {})
	job, err := env.ExecuteAsync(t.Context(), "summing")
	if err != nil {
		t.Fatal(err)
	}
	return &served{t, job, job.WebInterfaceURL()}
}

type operation struct {
	Status    struct{ ID string }
	Operation *struct {
		Location     string
		CheckpointID int64     `json:"checkpointId"`
		Failure      *struct{} `json:"failure-cause"`
	}
}

// operate starts an operation and waits for its result.
func (s *served) operate(path, poll, body string) operation {
	s.t.Helper()
	var started struct {
		Request string `json:"request-id"`
	}
	s.call("POST", path, body, 202, &started)
	return until(s, poll+started.Request, func(o operation) bool { return o.Status.ID == "COMPLETED" })
}

func TestJobIsWatchedAndStoppedByREST(t *testing.T) {
	s := serveSums(t)
	base := "/jobs/" + s.job.ID()
	type vertex struct {
		ID, Name, Status string
		Parallelism      int
		Metrics          struct {
			Read  int64 `json:"read-records"`
			Write int64 `json:"write-records"`
		}
	}
	type details struct {
		State    string
		Vertices []vertex
	}
	d := until(s, base, func(d details) bool {
		return d.State == "RUNNING" && len(d.Vertices) == 2 && d.Vertices[1].Status == "RUNNING" &&
			d.Vertices[1].Metrics.Read > 0 && d.Vertices[0].Metrics.Write > 0
	})
	if d.Vertices[1].Parallelism != 2 {
		t.Errorf("vertices %+v", d.Vertices)
	}
	type metrics []struct{ ID, Value string }
	until(s, base+"/vertices/"+d.Vertices[1].ID+"/metrics?get=0.Sum.numRecordsOut,1.numRecordsIn", func(m metrics) bool {
		return len(m) == 2 && m[0].Value != "0" && m[1].Value != "0"
	})
	type accumulators struct {
		User []struct{ Name, Value string } `json:"user-task-accumulators"`
	}
	until(s, base+"/accumulators", func(a accumulators) bool {
		return len(a.User) == 1 && a.User[0].Name == "elements" && a.User[0].Value != "0"
	})

	if o := s.operate(base+"/checkpoints", base+"/checkpoints/", `{"checkpointType":"FULL"}`); o.Operation.CheckpointID != 1 {
		t.Errorf("checkpoint %+v", o.Operation)
	}
	if id, err := s.job.TriggerCheckpoint(t.Context(), false); err != nil || id != 2 {
		t.Errorf("checkpoint %d, %v", id, err)
	}
	saved := s.operate(base+"/savepoints", base+"/savepoints/", fmt.Sprintf(`{"target-directory":%q}`, t.TempDir()))
	var history struct {
		Counts struct{ Completed int }
		Latest struct {
			Savepoint struct {
				Path string `json:"external_path"`
			}
		}
	}
	if s.call("GET", base+"/checkpoints", "", 200, &history); history.Counts.Completed != 3 || history.Latest.Savepoint.Path != saved.Operation.Location {
		t.Errorf("history %+v, savepoint %+v", history, saved.Operation)
	}
	manifest, err := os.Stat(filepath.Join(saved.Operation.Location, "_metadata"))
	if err != nil {
		t.Fatal(err)
	}
	var sizes metrics
	if s.call("GET", base+"/metrics?get=lastCheckpointMetadataSize", "", 200, &sizes); len(sizes) != 1 || sizes[0].Value != fmt.Sprint(manifest.Size()) {
		t.Errorf("the manifest of %d bytes is shown as %v", manifest.Size(), sizes)
	}
	var times metrics
	if s.call("GET", base+"/vertices/"+d.Vertices[1].ID+"/metrics?get=0.checkpointStartDelayNanos,0.checkpointAlignmentTime", "", 200, &times); len(times) != 2 || times[0].Value == "0" || times[1].Value != "0" {
		t.Errorf("delay and alignment of the one barrier of a task: %v", times)
	}
	o := s.operate(base+"/stop", base+"/savepoints/", fmt.Sprintf(`{"targetDirectory":%q,"drain":true}`, t.TempDir()))
	if _, err := s.job.Wait(); err != nil || o.Operation.Failure != nil {
		t.Errorf("%v, %+v", err, o.Operation)
	}
	if _, err := http.Get(s.url + "/overview"); err == nil {
		t.Error("it is served after its end")
	}

	next := serveSums(t, stream.WithSavepoint(o.Operation.Location))
	restored := until(next, "/jobs/"+next.job.ID()+"/checkpoints", func(h struct {
		Counts struct{ Restored int }
	},
	) bool {
		return h.Counts.Restored == 1
	})
	next.call("PATCH", "/jobs/"+next.job.ID(), "", 202, nil)
	if _, err := next.job.Wait(); !errors.Is(err, stream.ErrCanceled) {
		t.Errorf("%+v, %v", restored, err)
	}
}

func TestFailuresAreListedByREST(t *testing.T) {
	env := stream.NewEnv(stream.WithREST("localhost:0"), stream.WithRestartStrategy(stream.FixedDelayRestart(math.MaxInt32, time.Millisecond))).SetParallelism(1)
	env.FromElements(1, 2).TryMap(func(context.Context, int) (int, error) { return 0, errors.New("boom") }).Name("breaks").ForEach(func(int) {})
	job, err := env.ExecuteAsync(t.Context(), "broken")
	if err != nil {
		t.Fatal(err)
	}
	s := &served{t, job, job.WebInterfaceURL()}
	type entry struct {
		Name   string            `json:"exceptionName"`
		Task   string            `json:"taskName"`
		Text   string            `json:"stacktrace"`
		Labels map[string]string `json:"failureLabels"`
	}
	e := until(s, "/jobs/"+job.ID()+"/exceptions", func(x struct {
		History struct{ Entries []entry } `json:"exceptionHistory"`
	},
	) bool {
		return len(x.History.Entries) > 1
	}).History.Entries[0]
	repeated, err := strconv.Atoi(e.Labels["repeated"])
	if e.Name != "*errors.errorString" || e.Task != "breaks (1/1)" || !strings.Contains(e.Text, ", at element 1: boom") || repeated < 2 || e.Labels["same-record"] != e.Labels["repeated"] {
		t.Errorf("%+v, %v", e, err)
	}
	job.Cancel()
	if _, err := job.Wait(); !errors.Is(err, stream.ErrCanceled) {
		t.Error(err)
	}
}

func TestJobsAreServedWhereTheyMay(t *testing.T) {
	for address, want := range map[string]string{"0.0.0.0:0": "no authentication", "127.0.0.1": "write host:port", "127.0.0.1:x": "is no port"} {
		env := stream.NewEnv(stream.WithREST(address))
		env.FromElements(1).ForEach(func(int) {})
		if _, err := env.Execute(t.Context(), "never"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", address, err)
		}
	}
	env := stream.NewEnv(stream.WithREST("[::]:0", stream.AllowRemote()))
	env.FromElements(1).ForEach(func(int) {})
	if _, err := env.Execute(t.Context(), "allowed"); err != nil && !strings.Contains(err.Error(), "address family") {
		t.Error(err)
	}
	plain := stream.NewEnv()
	plain.FromElements(1).ForEach(func(int) {})
	job, err := plain.ExecuteAsync(t.Context(), "unserved")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := job.Wait(); err != nil || job.WebInterfaceURL() != "" {
		t.Errorf("%q, %v", job.WebInterfaceURL(), err)
	}
}

// The guide's program; nobody's port is taken by the test, as it is not executed.
func TestGuideServesAJob(t *testing.T) {
	env := stream.NewEnv(stream.WithREST("127.0.0.1:8081"))
	env.FromElements(1).ForEach(func(int) {})
	if plan, err := env.Explain(); err != nil || plan == "" {
		t.Error(err)
	}
}
