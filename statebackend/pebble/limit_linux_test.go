package pebble_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/flott-dev/flott/statebackend/pebble"
	"github.com/flott-dev/flott/stream"
)

// account is the state of a key, which is more than a hundred bytes with its key.
type account struct {
	Index int64 // of the element that it has last
	Key   int64
	Count int64
	Sums  [11]int64
}

// limits is a job that has more state than memory, in a process of its own.
type limits struct {
	keys   int64
	memory int64 // for state and frames
	cache  int64 // of a subtask
	peak   int64 // of the process, in bytes: what may be resident
}

// keysOfProcess says that the test binary is the process of such a job, and how large it is.
const keysOfProcess = "FLOTT_LIMIT_KEYS"

func limitsOf(keys int64) limits {
	if keys >= 10_000_000 {
		return limits{keys: keys, memory: 600 << 20, cache: 64 << 20, peak: 1 << 30}
	}
	return limits{keys: keys, memory: 24 << 20, cache: 3 << 20, peak: 128 << 20}
}

// TestStateIsLargerThanMemory counts keys whose state is larger than what the process may use, with incremental checkpoints, and
// restarts from one of them. With FLOTT_SOAK > 1 it has ten million keys in 1 GiB.
func TestStateIsLargerThanMemory(t *testing.T) {
	if n, err := strconv.ParseInt(os.Getenv(keysOfProcess), 10, 64); err == nil {
		limitsOf(n).run(t)
		return
	}
	if pebble.Raced {
		t.Skip("the race detector takes memory of its own")
	}
	l := limitsOf(300_000)
	if n, _ := strconv.Atoi(os.Getenv("FLOTT_SOAK")); n > 1 {
		l = limitsOf(10_000_000)
	}
	if state := l.keys * 120; state < l.memory || state < l.peak && l.peak >= 1<<30 {
		t.Fatalf("%d keys have %d bytes, less than the memory of %d", l.keys, state, l.memory)
	}
	cmd := exec.Command(os.Args[0], "-test.run", "^TestStateIsLargerThanMemory$", "-test.v")
	cmd.Env = append(os.Environ(), fmt.Sprint(keysOfProcess, "=", l.keys), fmt.Sprint("GOMEMLIMIT=", l.peak/2), "TMPDIR="+t.TempDir())
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	_, after, _ := strings.Cut(string(out), "VmHWM:")
	fields := strings.Fields(after)
	if len(fields) == 0 {
		t.Fatalf("the process does not say what it took:\n%s", out)
	}
	peak, err := strconv.ParseInt(fields[0], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d keys: at most %d MiB were resident", l.keys, peak>>10)
	if peak<<10 > l.peak {
		t.Errorf("%d keys: %d MiB were resident, want %d at most", l.keys, peak>>10, l.peak>>20)
	}
}

// run is what the process does.
func (l limits) run(t *testing.T) {
	dir := t.TempDir()
	env := stream.NewEnv(stream.WithMemory(l.memory), stream.WithBackends(pebble.Backend{Folder: dir, CacheBytes: l.cache})).
		SetParallelism(2).SetCheckpointStorage(dir).
		EnableCheckpointing(500*time.Millisecond, stream.IncrementalCheckpoints(true)).
		SetRestartStrategy(stream.FixedDelayRestart(1, time.Millisecond))
	r := &rounds{keys: l.keys, half: make(chan struct{}), whole: make(chan struct{}), seen: make([]atomic.Bool, l.keys)}
	env.FromGenerator(-1, r.element, 0).UID("numbers").TryMap(r.fail).
		KeyBy(func(a account) int64 { return a.Key }).ReducePtr(addUp).UID("accounts").ForEach(r.check)
	job, err := env.ExecuteAsync(t.Context(), "accounts")
	if err != nil {
		t.Fatal(err)
	}
	r.await(t, job, r.half)
	if _, err := job.TriggerCheckpoint(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	r.bad.Store(true)
	r.await(t, job, r.whole)
	job.Cancel()
	_, _ = job.Wait()
	if r.wrong.Load() != nil {
		t.Errorf("%v", *r.wrong.Load())
	}
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	fmt.Println(string(status))
}

// rounds are elements that come to each key in turn, again and again.
type rounds struct {
	keys        int64
	half, whole chan struct{} // closed when as many keys have come, and when all have come twice since the restart
	seen        []atomic.Bool // keys, since the restart
	n           atomic.Int64  // of them
	bad, failed atomic.Bool   // an element fails, or has
	halfway     atomic.Bool
	wrong       atomic.Pointer[account]
}

// element is the element of an index.
func (r *rounds) element(i int64) account {
	a := account{Index: i, Key: i % r.keys * 0x9e3779b97f4a7c1, Count: 1}
	for j := range a.Sums {
		a.Sums[j] = i%r.keys + int64(j)
	}
	return a
}

// fail fails once when it is told to.
func (r *rounds) fail(_ context.Context, a account) (account, error) {
	if r.bad.CompareAndSwap(true, false) {
		r.failed.Store(true)
		return a, errors.New("a bad element")
	}
	return a, nil
}

func addUp(acc, x *account) {
	acc.Index = x.Index
	acc.Count += x.Count
	for j := range acc.Sums {
		acc.Sums[j] += x.Sums[j]
	}
}

// check compares an account with what it must be after the element that it has last.
func (r *rounds) check(a account) {
	round, k := a.Index/r.keys+1, a.Index%r.keys
	for j, sum := range a.Sums {
		if a.Count != round || sum != round*(k+int64(j)) {
			r.wrong.CompareAndSwap(nil, &a)
		}
	}
	if round == 1 && k >= r.keys/2 && r.halfway.CompareAndSwap(false, true) {
		close(r.half)
	}
	if r.failed.Load() && round > 1 && r.seen[k].CompareAndSwap(false, true) && r.n.Add(1) == r.keys {
		close(r.whole)
	}
}

func (r *rounds) await(t *testing.T, job *stream.Job, event chan struct{}) {
	t.Helper()
	select {
	case <-event:
	case <-job.Done():
		_, err := job.Wait()
		t.Fatalf("the job ended: %v", err)
	}
}
