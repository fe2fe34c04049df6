//go:build unix

package env

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
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
)

// killedDir tells the test binary that it is the program that is killed, and where its files are.
const killedDir = "FLOTT_KILLED_DIR"

// killedWaits, if it is set, has the program wait at its first element until the test closes its input, however busy the machine
// is meanwhile.
const killedWaits = "FLOTT_KILLED_WAITS"

// killedLimit is how many numbers the program sums.
const killedLimit = 1200

// ledger commits to files, one for each transaction.
type ledger string

func (l ledger) commit(id, subtask int64, xs []int64) {
	var b strings.Builder
	for _, x := range xs {
		fmt.Fprintln(&b, x)
	}
	name := filepath.Join(string(l), fmt.Sprintf("%d-%d", id, subtask))
	if have, err := os.ReadFile(name); err == nil && string(have) != b.String() {
		panic(fmt.Sprintf("transaction %s was committed with other elements", name))
	}
	temporary := name + ".new"
	if err := os.WriteFile(temporary, []byte(b.String()), 0o666); err != nil {
		panic(err)
	}
	if err := os.Rename(temporary, name); err != nil {
		panic(err)
	}
}

// TestProgramThatIsKilled is the program of the test below; alone it does nothing.
func TestProgramThatIsKilled(t *testing.T) {
	dir := os.Getenv(killedDir)
	if dir == "" {
		return
	}
	e := kept(2)
	e.Settings.Checkpoints.Recovery = filepath.Join(dir, "recovery")
	tallyTo(t, e, killedLimit, func(x int64) error {
		fmt.Println("element", x)
		if os.Getenv(killedWaits) == "" {
			return nil
		}
		_, err := io.Copy(io.Discard, os.Stdin)
		return err
	}, ledger(filepath.Join(dir, "ledger")))
	x, err := e.Start(context.Background(), "killed")
	if err != nil {
		t.Fatal(err)
	}
	<-x.Done()
	if x.Err() != nil {
		t.Fatal(x.Err())
	}
	fmt.Println("finished")
}

// A process that is killed at any moment goes on when it is started again: nothing is lost and nothing comes twice.
func TestKilledProcessesLoseNothing(t *testing.T) {
	first := number(t, "FLOTT_SEED", 1)
	for seed := first; seed < first+2*number(t, "FLOTT_SOAK", 1); seed++ {
		rng, dir := rand.New(rand.NewPCG(uint64(seed), 9)), t.TempDir()
		if err := os.Mkdir(filepath.Join(dir, "ledger"), 0o777); err != nil {
			t.Fatal(err)
		}
		var instants []int
		progress := false // something was committed: a checkpoint has elements
		for finished := false; !finished; {
			kill := 1 << 30 // never
			if len(instants) < 5 {
				kill = 1 + rng.IntN(killedLimit/3)
				instants = append(instants, kill)
			}
			var n int
			n, finished = runKilled(t, dir, kill)
			if n < kill && !finished {
				t.Fatalf("FLOTT_SEED=%d, killed after %v elements: the program ended by itself after %d", seed, instants, n)
			}
			if finished && n >= killedLimit && progress {
				t.Errorf("FLOTT_SEED=%d: the last run read %d elements: it began anew", seed, n)
			}
			progress = progress || len(committed(t, dir)) > 0
		}
		if got := committed(t, dir); !slices.Equal(got, totals(killedLimit)) {
			t.Errorf("FLOTT_SEED=%d, killed after %v elements: %d totals were committed, want %d, or others", seed, instants, len(got), killedLimit)
		}
	}
}

// runKilled runs the program until it has read so many elements.
func runKilled(t *testing.T, dir string, kill int) (read int, finished bool) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestProgramThatIsKilled$", "-test.count=1")
	cmd.Env = append(os.Environ(), killedDir+"="+dir)
	var problems strings.Builder
	cmd.Stderr = &problems
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var text []string
	for lines := bufio.NewScanner(out); lines.Scan(); {
		switch line := lines.Text(); {
		case line == "finished":
			finished = true
		case strings.HasPrefix(line, "element "):
			if read++; read == kill {
				if err := cmd.Process.Signal(syscall.SIGKILL); err != nil {
					t.Fatal(err)
				}
			}
		default:
			text = append(text, line)
		}
	}
	if err := cmd.Wait(); err != nil && read < kill {
		t.Fatalf("%v\n%s\n%s", err, strings.Join(text, "\n"), problems.String())
	}
	return read, finished
}

// committed are all totals in the ledger.
func committed(t *testing.T, dir string) []int64 {
	files, err := filepath.Glob(filepath.Join(dir, "ledger", "*-?"))
	if err != nil {
		t.Fatal(err)
	}
	var xs []int64
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(b)) {
			x, err := strconv.ParseInt(strings.TrimSpace(line), 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			xs = append(xs, x)
		}
	}
	slices.Sort(xs)
	return xs
}

// otherProcess starts the program in a process of its own, in a new folder; out is what it prints. It waits at its first element
// until goOn is closed.
func otherProcess(t *testing.T) (dir string, cmd *exec.Cmd, out io.Reader, goOn io.Closer) {
	t.Helper()
	dir = t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "ledger"), 0o777); err != nil {
		t.Fatal(err)
	}
	cmd = exec.Command(os.Args[0], "-test.run=^TestProgramThatIsKilled$", "-test.count=1")
	cmd.Env = append(os.Environ(), killedDir+"="+dir, killedWaits+"=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if goOn, err = cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return dir, cmd, out, goOn
}

// While a process that runs a job stands still, another one is refused: it could commit what the first commits later.
func TestProcessThatStandsStillKeepsItsFolder(t *testing.T) {
	dir, cmd, out, goOn := otherProcess(t)
	var stopped atomic.Bool
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "element ") && !stopped.Swap(true) {
			if err := cmd.Process.Signal(syscall.SIGSTOP); err != nil {
				t.Fatal(err)
			}
			e := kept(1)
			e.Settings.Checkpoints.Recovery, e.Settings.pause = filepath.Join(dir, "recovery"), impatient
			tally(t, e, 1, neverFail)
			if _, err := e.Start(t.Context(), "killed"); err == nil || !strings.Contains(err.Error(), fmt.Sprint("process ", cmd.Process.Pid)) {
				t.Errorf("a second process was not refused: %v", err)
			}
			if err := errors.Join(cmd.Process.Signal(syscall.SIGCONT), goOn.Close()); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	if got := committed(t, dir); !slices.Equal(got, totals(killedLimit)) {
		t.Errorf("%d totals were committed, want %d, or others", len(got), killedLimit)
	}
}

// A process that has been killed may keep its lock for a moment. Whoever is started in that moment waits for its end.
func TestStartWaitsForAKilledProcess(t *testing.T) {
	dir, cmd, out, goOn := otherProcess(t)
	defer goOn.Close()
	lines := bufio.NewScanner(out)
	for lines.Scan() && !strings.HasPrefix(lines.Text(), "element ") { // until it has the lock
	}
	e := kept(1)
	pauses := 0
	e.Settings.Checkpoints.Recovery = filepath.Join(dir, "recovery")
	e.Settings.pause = func(context.Context, time.Duration) error {
		if pauses++; pauses == 3 {
			if err := cmd.Process.Kill(); err != nil {
				return err
			}
			_, _ = cmd.Process.Wait()
		}
		return nil
	}
	tally(t, e, 1, neverFail)
	x, err := e.Start(t.Context(), "killed")
	if err != nil {
		t.Fatal(err)
	}
	wait(t, x)
	if pauses != 3 {
		t.Errorf("%d pauses, want 3", pauses)
	}
}
