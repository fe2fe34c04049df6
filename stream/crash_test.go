//go:build unix

package stream_test

import (
	"bufio"
	"context"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/flott-dev/flott/connector/file"
	"github.com/flott-dev/flott/connector/filesink"
	"github.com/flott-dev/flott/internal/env"
	"github.com/flott-dev/flott/internal/vfs"
	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/state"
	"github.com/flott-dev/flott/stream"
	"github.com/flott-dev/flott/watermark"
	"github.com/flott-dev/flott/window"
)

// The environment of the test binary when it is the program that is killed.
const (
	crashDir      = "FLOTT_CRASH_DIR"      // where its files are; unset: it is no such program
	crashPayments = "FLOTT_CRASH_PAYMENTS" // how many it reads
	crashElements = "FLOTT_CRASH_ELEMENTS" // the element at which it kills itself; 0: none
	crashFileOps  = "FLOTT_CRASH_FILE_OPS" // the operation of the file system at which it does
	crashFlags    = "FLOTT_CRASH_FLAGS"    // how it takes checkpoints
)

// payment is one of payments or refunds: number i comes at i/100 ms.
type payment struct{ Number, Account, Cents, At int64 }

const (
	accounts    = 1000
	perMilli    = 100
	refundEvery = 50  // a refund for so many payments
	joinedEvery = 100 // of the payments are joined with refunds
	reportEvery = 100 // payments of an account
	windowMilli = 1000

	paymentsPerSecond = 200_000 // slow enough for checkpoints
)

// scatter spreads numbers over the accounts.
func scatter(i int64) int64 { return int64(uint64(i) * 0x9E3779B97F4A7C15 >> 33 % accounts) }

func nthPayment(i int64) payment { return payment{i, scatter(i), i * 7919 % 1000, i / perMilli} }

func nthRefund(i int64) payment {
	return payment{i, scatter(-i), i % 77, i * refundEvery / perMilli}
}

func (p payment) account() int64  { return p.Account }
func (p payment) time() time.Time { return time.UnixMilli(p.At) }

// balance keeps the sum of an account and tells it now and then.
type balance struct {
	process.NoTimers[int64, string]
	sum, count *state.Value[int64]
}

func newBalance(rt *process.Runtime) *balance {
	return &balance{sum: state.NewValue[int64](rt, "sum"), count: state.NewValue[int64](rt, "count")}
}

func (b *balance) ProcessElement(ctx *process.KeyedContext[int64], p payment, out *process.Collector[string]) error {
	n := b.count.Get() + 1
	b.count.Set(n)
	b.sum.Set(b.sum.Get() + p.Cents)
	if n%reportEvery == 0 {
		out.Collect(fmt.Sprint(ctx.Key(), " ", n, " ", b.sum.Get()))
	}
	return nil
}

// paymentsJob builds the program: balances, sums of windows, and payments joined with refunds, each into files.
func paymentsJob(e *stream.Env, disk vfs.FS, dir string, n int64, seen func()) {
	timed := watermark.BoundedOutOfOrderness(0, payment.time)
	payments := e.FromGenerator(n, nthPayment, paymentsPerSecond).Parallelism(1).UID("payments").
		Map(func(p payment) payment {
			seen()
			return p
		}).Parallelism(1).AssignTimestampsAndWatermarks(timed).Parallelism(1).UID("times of payments")
	refunds := e.FromGenerator(n/refundEvery, nthRefund, paymentsPerSecond/refundEvery).UID("refunds").
		AssignTimestampsAndWatermarks(timed).UID("times of refunds")
	write := func(s *stream.Stream[string], name string) {
		to := filesink.New(filepath.Join(dir, name), file.TextEncoding[string]("\n"))
		if disk != nil {
			to = to.On(disk, nil)
		}
		s.CommitTo(to).UID(name + " to files")
	}
	keyed := payments.KeyBy(payment.account)
	write(keyed.Process(newBalance).UID("balances"), "balances")
	write(keyed.Window(window.Tumbling(windowMilli*time.Millisecond)).
		Sum(func(p payment) int64 { return p.Cents }).UID("windows").
		Map(func(r window.Result[int64, window.Time, int64]) string {
			return fmt.Sprint(r.Key, " ", r.Window.Start, " ", r.Value)
		}), "windows")
	write(payments.Filter(func(p payment) bool { return p.Number%joinedEvery == 0 }).
		Join(refunds).Where(payment.account).EqualTo(payment.account).
		Window(window.Tumbling(windowMilli*time.Millisecond)).
		Apply(func(a, b payment) string { return fmt.Sprint(a.Number, " ", b.Number) }).UID("join"), "joins")
}

// paymentsOracle is what the program leaves, sorted.
func paymentsOracle(n int64) map[string][]string {
	out := map[string][]string{}
	var sums, counts [accounts]int64
	inWindow := map[[2]int64]int64{}
	joined := map[[2]int64][]int64{}
	for i := range n {
		p := nthPayment(i)
		a := p.Account
		sums[a] += p.Cents
		if counts[a]++; counts[a]%reportEvery == 0 {
			out["balances"] = append(out["balances"], fmt.Sprint(a, " ", counts[a], " ", sums[a]))
		}
		w := [2]int64{a, p.At / windowMilli * windowMilli}
		inWindow[w] += p.Cents
		if i%joinedEvery == 0 {
			joined[w] = append(joined[w], i)
		}
	}
	for w, sum := range inWindow {
		out["windows"] = append(out["windows"], fmt.Sprint(w[0], " ", w[1], " ", sum))
	}
	for i := range n / refundEvery {
		r := nthRefund(i)
		for _, p := range joined[[2]int64{r.Account, r.At / windowMilli * windowMilli}] {
			out["joins"] = append(out["joins"], fmt.Sprint(p, " ", i))
		}
	}
	for _, lines := range out {
		slices.Sort(lines)
	}
	return out
}

// dying is a file system whose process kills itself at an operation.
type dying struct {
	vfs.FS
	left *atomic.Int64
}

func (d dying) op() {
	if d.left.Add(-1) == 0 {
		die()
	}
}

// die kills the process: nothing is flushed, nobody is told.
func die() { _ = syscall.Kill(os.Getpid(), syscall.SIGKILL) }

func (d dying) Create(name string, how vfs.Mode) (vfs.Writer, error) {
	d.op()
	w, err := d.FS.Create(name, how)
	return dyingWriter{w, d}, err
}

func (d dying) Rename(from, to string) error { d.op(); return d.FS.Rename(from, to) }
func (d dying) Remove(name string) error     { d.op(); return d.FS.Remove(name) }
func (d dying) SyncDir(name string) error    { d.op(); return d.FS.SyncDir(name) }
func (d dying) MkdirAll(name string) error   { d.op(); return d.FS.MkdirAll(name) }

type dyingWriter struct {
	vfs.Writer
	d dying
}

func (w dyingWriter) Write(b []byte) (int, error) { w.d.op(); return w.Writer.Write(b) }
func (w dyingWriter) Sync() error                 { w.d.op(); return w.Writer.Sync() }
func (w dyingWriter) Close() error                { w.d.op(); return w.Writer.Close() }

// setting reads a number of the environment.
func setting(t *testing.T, name string, fallback int64) int64 {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return fallback
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// TestProgramThatIsKilled is the program of the test below; alone it does nothing.
func TestProgramThatIsKilled(t *testing.T) {
	dir := os.Getenv(crashDir)
	if dir == "" {
		return
	}
	var ops, elements atomic.Int64
	ops.Store(setting(t, crashFileOps, 0))
	elements.Store(setting(t, crashElements, 0))
	disk := dying{vfs.OS{}, &ops}
	flags := os.Getenv(crashFlags)
	e := stream.NewEnv(stream.WithRecovery(filepath.Join(dir, "recovery")), func(s *env.Settings) { s.Checkpoints.FS = disk }).
		SetParallelism(2).EnableCheckpointing(20*time.Millisecond, stream.IncrementalCheckpoints(strings.Contains(flags, "incremental")))
	var read atomic.Int64
	paymentsJob(e, disk, dir, setting(t, crashPayments, 0), func() {
		read.Add(1)
		if elements.Add(-1) == 0 {
			die()
		}
	})
	job, err := e.ExecuteAsync(context.Background(), "ledger")
	if err == nil {
		_, err = job.Wait()
	}
	if err != nil {
		t.Fatal(err)
	}
	fmt.Println("finished after", read.Load())
}

// A program that is killed at any moment goes on when it is started again: its files hold every result once. The moments
// are drawn from FLOTT_SEED, as a number of elements or of file operations. FLOTT_SOAK > 1: more kills, ten million elements.
func TestKilledProgramGoesOn(t *testing.T) {
	kills, payments := 20, int64(300_000)
	if setting(t, "FLOTT_SOAK", 1) > 1 {
		kills, payments = 300, 10_000_000
	}
	want := paymentsOracle(payments)
	for _, flags := range []string{"", "incremental"} {
		c := &crash{
			T: t, seed: setting(t, "FLOTT_SEED", 1), dir: t.TempDir(), flags: flags, kills: kills / 2, payments: payments,
		}
		c.play()
		t.Log(c)
		for name, lines := range want {
			if got := visible(t, filepath.Join(c.dir, name)); !slices.Equal(got, lines) {
				t.Errorf("%s: %s has %d lines, want %d, or others", c, name, len(got), len(lines))
			}
		}
	}
}

// crash starts a program again and again until it has finished.
type crash struct {
	*testing.T
	seed     int64
	dir      string
	flags    string
	kills    int
	payments int64
	instants []string
}

func (c *crash) String() string {
	return fmt.Sprintf("FLOTT_SEED=%d, checkpoints %q, killed at %v", c.seed, c.flags, c.instants)
}

func (c *crash) play() {
	rng := rand.New(rand.NewPCG(uint64(c.seed), uint64(len(c.flags))))
	for {
		kill, last := "", len(c.instants) >= c.kills
		switch {
		case last:
		case rng.IntN(2) == 0:
			kill = fmt.Sprintf("%s=%d", crashElements, 1+rng.Int64N(2*c.payments/int64(c.kills)))
		default:
			kill = fmt.Sprintf("%s=%d", crashFileOps, 1+rng.Int64N(400))
		}
		read, finished := c.start(kill)
		switch {
		case !finished && kill == "":
			c.Fatalf("%s: the last run did not finish", c)
		case finished && last && len(c.instants) > 3 && read >= c.payments:
			c.Errorf("%s: the last run read %d payments: it began anew", c, read)
		}
		if finished {
			return
		}
		c.instants = append(c.instants, strings.TrimPrefix(kill, "FLOTT_CRASH_"))
	}
}

// start runs the program once.
func (c *crash) start(kill string) (read int64, finished bool) {
	cmd := exec.Command(os.Args[0], "-test.run=^TestProgramThatIsKilled$", "-test.count=1")
	cmd.Env = append(os.Environ(), crashDir+"="+c.dir, fmt.Sprintf("%s=%d", crashPayments, c.payments), crashFlags+"="+c.flags, kill)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		c.Fatal(err)
	}
	var text []string
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if n, ok := strings.CutPrefix(lines.Text(), "finished after "); ok {
			read, err = strconv.ParseInt(n, 10, 64)
			finished = err == nil
		}
		text = append(text, lines.Text())
	}
	err = cmd.Wait()
	if s, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !finished && (!ok || !s.Signaled() || s.Signal() != syscall.SIGKILL) {
		c.Fatalf("%s, then %s: the program ended by itself: %v\n%s", c, kill, err, strings.Join(text, "\n"))
	}
	return read, finished
}

// visible are the lines of all files that are not hidden.
func visible(t *testing.T, dir string) (lines []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || strings.HasPrefix(e.Name(), ".") {
			return err
		}
		b, err := os.ReadFile(path)
		for line := range strings.Lines(string(b)) {
			lines = append(lines, strings.TrimSuffix(line, "\n"))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(lines)
	return lines
}
