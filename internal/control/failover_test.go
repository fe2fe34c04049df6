package control

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// failoverRig drives a Failover and writes down what it wants done.
type failoverRig struct {
	*Failover
	now int64
}

func newFailoverRig(r Restart, regions int) *failoverRig {
	return &failoverRig{Failover: NewFailover(r, regions)}
}

func written(actions []FailoverAction) string {
	var out []string
	for _, a := range actions {
		switch a := a.(type) {
		case StartRegion:
			out = append(out, fmt.Sprintf("start %d.%d", a.Region, a.Attempt))
		case StopRegion:
			out = append(out, fmt.Sprintf("stop %d", a.Region))
		}
	}
	return strings.Join(out, ", ")
}

// do does one step: "deploy 0.1", "finish 0.1", "fail 0.1", "failall", "over 0.1", "bad 0.1" (over with an error), "stuck 0.1", "stopped",
// "cancel", "at 1000".
func (r *failoverRig) do(t *testing.T, step string) string {
	t.Helper()
	var word string
	var region, attempt int
	var at int64
	word, args, _ := strings.Cut(step, " ")
	if _, err := fmt.Sscanf(args, "%d.%d", &region, &attempt); args != "" && err != nil && word != "at" {
		t.Fatal(step, err)
	}
	err := fmt.Errorf("failure of %s", args)
	switch word {
	case "begin":
		return written(r.Start())
	case "deploy":
		r.Deployed(region, attempt)
	case "finish":
		r.Finished(region, attempt)
	case "fail":
		return written(r.Failed(r.now, region, attempt, err))
	case "failall":
		return written(r.FailedAll(r.now, err))
	case "over":
		return written(r.Over(r.now, region, attempt, nil, false))
	case "bad":
		return written(r.Over(r.now, region, attempt, err, false))
	case "stuck":
		return written(r.Over(r.now, region, attempt, fmt.Errorf("stuck after: %w", err), true))
	case "stopped":
		r.Stopped()
	case "cancel":
		return written(r.Cancel(errors.New("cancelled")))
	case "at":
		if _, err := fmt.Sscan(args, &at); err != nil {
			t.Fatal(step, err)
		}
		r.now = at
		return written(r.Due(at))
	default:
		t.Fatal("unknown step ", step)
	}
	return ""
}

func TestFailoverRestartsWhatHasFailed(t *testing.T) {
	second := &FixedDelay{Attempts: 2, Delay: time.Second}
	words := [...]string{"starting", "running", "restarting", "ending", "over"}
	for _, c := range []struct {
		name    string
		restart Restart
		regions int
		steps   string // step -> actions; phase
		err     string // at the end; "": none
	}{
		{"one region fails, the other goes on", second, 2, `
			begin -> start 0.0, start 1.0; starting
			deploy 0.0 -> ; starting
			deploy 1.0 -> ; running
			fail 1.0 -> stop 1; restarting
			fail 1.0 -> ; restarting
			at 999 -> ; restarting
			bad 1.0 -> ; restarting
			at 1000 -> start 1.1; restarting
			deploy 1.1 -> ; running
			over 0.0 -> ; running
			over 1.1 -> ; over`, ""},
		{"an attempt that ends after its time is followed at once", second, 1, `
			begin -> start 0.0; starting
			fail 0.0 -> stop 0; restarting
			at 5000 -> ; restarting
			bad 0.0 -> start 0.1; restarting
			over 0.1 -> ; over`, ""},
		{"what is told at the end only is a failure, too", second, 1, `
			begin -> start 0.0; starting
			bad 0.0 -> ; restarting
			at 1000 -> start 0.1; restarting
			over 0.1 -> ; over`, ""},
		{"all regions count into one budget", second, 3, `
			begin -> start 0.0, start 1.0, start 2.0; starting
			fail 0.0 -> stop 0; restarting
			fail 1.0 -> stop 1; restarting
			fail 2.0 -> stop 0, stop 1, stop 2; ending
			bad 0.0 -> ; ending
			bad 1.0 -> ; ending
			bad 2.0 -> ; over`, "failure of 2.0"},
		{"what waits is not started once the job has failed", &FixedDelay{Attempts: 1, Delay: time.Second}, 2, `
			begin -> start 0.0, start 1.0; starting
			fail 0.0 -> stop 0; restarting
			bad 0.0 -> ; restarting
			fail 1.0 -> stop 1; ending
			at 9000 -> ; ending
			over 1.0 -> ; over`, "failure of 1.0"},
		{"no restart", NoRestart{}, 2, `
			begin -> start 0.0, start 1.0; starting
			bad 1.0 -> stop 0; ending
			over 0.0 -> ; over`, "failure of 1.0"},
		{"a failure of nobody restarts all that run, once", &FixedDelay{Attempts: 1}, 3, `
			begin -> start 0.0, start 1.0, start 2.0; starting
			over 2.0 -> ; starting
			failall -> stop 0, stop 1; restarting
			failall -> ; restarting
			bad 0.0 -> start 0.1; restarting
			bad 1.0 -> start 1.1; restarting
			over 0.1 -> ; restarting
			over 1.1 -> ; over`, ""},
		{"one that has finished is not restarted for it, nor stopped before its end", second, 2, `
			begin -> start 0.0, start 1.0; starting
			deploy 0.0 -> ; starting
			finish 0.0 -> ; starting
			finish 1.0 -> ; running
			failall -> ; running
			over 0.0 -> ; running
			bad 1.0 -> ; restarting
			at 1000 -> start 1.1; restarting
			finish 1.0 -> ; restarting
			failall -> stop 1; restarting
			bad 1.1 -> ; restarting
			at 2000 -> start 1.2; restarting
			over 1.2 -> ; over`, ""},
		{"news of former attempts is none", second, 1, `
			begin -> start 0.0; starting
			fail 0.0 -> stop 0; restarting
			bad 0.0 -> ; restarting
			over 0.0 -> ; restarting
			fail 0.0 -> ; restarting
			at 1000 -> start 0.1; restarting
			fail 0.0 -> ; restarting
			deploy 0.0 -> ; restarting
			over 0.0 -> ; restarting
			over 0.1 -> ; over`, ""},
		{"after a savepoint that stops the job, a failure is everybody's", second, 2, `
			begin -> start 0.0, start 1.0; starting
			stopped -> ; starting
			over 0.0 -> ; starting
			fail 1.0 -> stop 1; restarting
			bad 1.0 -> ; restarting
			at 1000 -> start 0.1, start 1.1; restarting
			deploy 0.1 -> ; restarting
			deploy 1.1 -> ; running
			fail 1.1 -> stop 1; restarting
			bad 1.1 -> ; restarting
			at 9000 -> start 1.2; restarting
			over 1.2 -> ; running
			over 0.1 -> ; over`, ""},
		{"also of a region that is about to end", second, 2, `
			begin -> start 0.0, start 1.0; starting
			stopped -> ; starting
			finish 0.0 -> ; starting
			fail 1.0 -> stop 1; restarting
			bad 1.0 -> ; restarting
			at 1000 -> start 1.1; restarting
			over 0.0 -> start 0.1; restarting
			over 1.1 -> ; restarting
			over 0.1 -> ; over`, ""},
		{"also one that is told at the end", second, 2, `
			begin -> start 0.0, start 1.0; starting
			stopped -> ; starting
			over 0.0 -> ; starting
			bad 1.0 -> ; restarting
			at 1000 -> start 0.1, start 1.1; restarting
			over 0.1 -> ; restarting
			over 1.1 -> ; over`, ""},
		{"a cancelled job ends with its attempts", second, 3, `
			begin -> start 0.0, start 1.0, start 2.0; starting
			over 2.0 -> ; starting
			fail 0.0 -> stop 0; restarting
			cancel -> stop 0, stop 1; ending
			cancel -> ; ending
			fail 1.0 -> ; ending
			bad 0.0 -> ; ending
			bad 1.0 -> ; over`, "cancelled, before a restart after: failure of 0.0"},
		{"a job that is cancelled while it waits says after what", second, 1, `
			begin -> start 0.0; starting
			bad 0.0 -> ; restarting
			cancel -> ; over`, "cancelled, before a restart after: failure of 0.0"},
		{"a cancelled job may finish", second, 1, `
			begin -> start 0.0; starting
			cancel -> stop 0; ending
			over 0.0 -> ; over`, ""},
		{"user code that is stuck ends the job", second, 2, `
			begin -> start 0.0, start 1.0; starting
			fail 0.0 -> stop 0; restarting
			stuck 0.0 -> stop 1; ending
			bad 1.0 -> ; over`, "stuck after: failure of 0.0"},
		{"it is the job's error before the failure that it is stuck after", NoRestart{}, 2, `
			begin -> start 0.0, start 1.0; starting
			fail 0.0 -> stop 0, stop 1; ending
			bad 0.0 -> ; ending
			stuck 1.0 -> ; over`, "stuck after: failure of 1.0"},
	} {
		if d, ok := c.restart.(*FixedDelay); ok {
			c.restart = &FixedDelay{Attempts: d.Attempts, Delay: d.Delay}
		}
		r := newFailoverRig(c.restart, c.regions)
		for line := range strings.Lines(strings.TrimSpace(c.steps)) {
			step, want, _ := strings.Cut(strings.TrimSpace(line), " -> ")
			got := r.do(t, step)
			if got += "; " + words[r.Phase()]; got != want {
				t.Errorf("%s: %s: got %q, want %q", c.name, step, got, want)
			}
		}
		if r.Phase() != JobOver {
			continue
		}
		if d, ok := c.restart.(*FixedDelay); ok && r.Restarts() != min(d.failures, d.Attempts) {
			t.Errorf("%s: %d restarts", c.name, r.Restarts())
		}
		if got := fmt.Sprint(r.Err()); got != c.err && (c.err != "" || r.Err() != nil) {
			t.Errorf("%s: ended with %q, want %q", c.name, got, c.err)
		}
	}
}

func TestFailoverTellsItsNextTime(t *testing.T) {
	r := newFailoverRig(&FixedDelay{Attempts: 9, Delay: 1500 * time.Microsecond}, 2)
	r.do(t, "begin")
	if n := r.Next(); n != math.MaxInt64 {
		t.Errorf("nothing waits, next is %d", n)
	}
	r.now = 10
	r.do(t, "bad 1.0")
	if n := r.Next(); n != 12 {
		t.Errorf("a delay of 1.5 ms after 10 ends at %d, want 12", n)
	}
	if r.Err() == nil {
		t.Error("a job that is not over has no end yet")
	}
	if r.do(t, "at 11") != "" || r.do(t, "at 12") != "start 1.1" {
		t.Error("started at another time")
	}
}

// Whatever happens in whichever order: an attempt begins only when the one before is over, and the job ends once all are told.
func TestFailoverNeverRunsTwoAttemptsOfARegion(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 1))
		n := 1 + rng.IntN(4)
		r := newFailoverRig(&FixedDelay{Attempts: rng.IntN(12), Delay: time.Duration(rng.IntN(3)) * time.Millisecond}, n)
		attempt, runs := make([]int, n), make([]bool, n)
		take := func(actions []FailoverAction) {
			for _, a := range actions {
				switch a := a.(type) {
				case StartRegion:
					if runs[a.Region] || a.Attempt != 0 && a.Attempt != attempt[a.Region]+1 {
						t.Fatalf("seed %d: attempt %d of region %d is started after %d (runs: %v)", seed, a.Attempt, a.Region, attempt[a.Region], runs[a.Region])
					}
					attempt[a.Region], runs[a.Region] = a.Attempt, true
				case StopRegion:
					if !runs[a.Region] {
						t.Fatalf("seed %d: region %d is stopped and does not run", seed, a.Region)
					}
				}
			}
		}
		take(r.Start())
		for step := 0; r.Phase() != JobOver; step++ {
			if step > 10_000 {
				t.Fatalf("seed %d: no end", seed)
			}
			i := rng.IntN(n)
			switch rng.IntN(6) {
			case 0:
				r.Deployed(i, attempt[i])
			case 1:
				take(slices.Clone(r.Failed(r.now, i, attempt[i], errors.New("failure"))))
			case 2, 3:
				if runs[i] {
					runs[i] = false
					var err error
					if rng.IntN(2) == 0 {
						err = errors.New("failure at the end")
					}
					take(slices.Clone(r.Over(r.now, i, attempt[i], err, false)))
				}
			case 4:
				r.now++
				take(slices.Clone(r.Due(r.now)))
			case 5:
				switch rng.IntN(40) {
				case 0:
					take(slices.Clone(r.FailedAll(r.now, errors.New("failure of all"))))
				case 1:
					r.Stopped()
				case 2:
					take(slices.Clone(r.Cancel(errors.New("cancelled"))))
				}
			}
		}
		if slices.Contains(runs, true) {
			t.Errorf("seed %d: the job is over and a region runs", seed)
		}
	}
}

// hopeless is a failure that no attempt can do better about.
type hopeless struct{}

func (hopeless) Error() string   { return "too large" }
func (hopeless) Permanent() bool { return true }

func TestPermanentFailuresEndTheJob(t *testing.T) {
	r := newFailoverRig(&FixedDelay{Attempts: 5}, 1)
	r.Start()
	r.Deployed(0, 0)
	actions := r.Failed(0, 0, 0, fmt.Errorf("checkpoint 1: %w", hopeless{}))
	if got := written(actions); strings.Contains(got, "start") {
		t.Errorf("actions %s: it is tried again", got)
	}
	if due := written(r.Over(0, 0, 0, nil, false)); strings.Contains(due, "start") {
		t.Errorf("actions %s after the end of the attempt", due)
	}
	if got := written(r.Due(1 << 40)); got != "" {
		t.Errorf("actions %s later", got)
	}
}
