package flotttest

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// leakPatience is how long goroutines may take to end after the tests.
const leakPatience = 10 * time.Second

// CheckLeaks runs the tests of a package and then fails if goroutines are left that the tests started, with their stacks:
//
//	func TestMain(m *testing.M) { os.Exit(flotttest.CheckLeaks(m)) }
//
// It waits up to ten seconds for goroutines that are about to end.
func CheckLeaks(m *testing.M) int {
	before := goroutines()
	code := m.Run()
	if code != 0 {
		return code
	}
	if left := leftOver(before, leakPatience); len(left) != 0 {
		fmt.Fprintf(os.Stderr, "%d goroutines are left:\n\n%s\n", len(left), strings.Join(left, "\n\n"))
		return 1
	}
	return 0
}

// NoLeaks fails the test if goroutines are left at its end that were not there at the call. Not for tests that run in
// parallel with others.
func NoLeaks(t testing.TB) {
	before := goroutines()
	t.Cleanup(func() {
		if left := leftOver(before, leakPatience); len(left) != 0 {
			t.Errorf("%d goroutines are left:\n\n%s", len(left), strings.Join(left, "\n\n"))
		}
	})
}

// leftOver waits for goroutines that were not there before to end, and returns the stacks of those that don't.
func leftOver(before map[string]string, patience time.Duration) []string {
	pause := time.Millisecond
	for limit := time.Now().Add(patience); ; pause = min(2*pause, 100*time.Millisecond) {
		var left []string
		for id, stack := range goroutines() {
			if _, old := before[id]; !old {
				left = append(left, stack)
			}
		}
		if len(left) == 0 || time.Now().After(limit) {
			slices.Sort(left)
			return left
		}
		time.Sleep(pause)
	}
}

// goroutines are the stacks of all goroutines but the caller's and those of the runtime and the testing package, by id.
func goroutines() map[string]string {
	buf := make([]byte, 1<<16)
	for {
		n := runtime.Stack(buf, true)
		if n < len(buf) {
			buf = buf[:n]
			break
		}
		buf = make([]byte, 2*len(buf))
	}
	out := map[string]string{}
	for i, stack := range bytes.Split(buf, []byte("\n\n")) {
		if i == 0 { // the caller
			continue
		}
		id, _, _ := strings.Cut(strings.TrimPrefix(string(stack), "goroutine "), " ")
		if !standing(string(stack)) {
			out[id] = string(stack)
		}
	}
	return out
}

// standing reports whether a goroutine belongs to the test binary rather than to a test.
func standing(stack string) bool {
	for _, f := range []string{
		"testing.Main(", "testing.tRunner(", "testing.(*T).Run(", "testing.(*M).", "testing.runFuzzing(", "testing.runFuzzTests(",
		"runtime.goexit0(", "runtime/trace.Start", "os/signal.signal_recv(", "os/signal.loop(", "runtime.ensureSigM(",
		"runtime.ReadTrace(", "runtime/pprof.profileWriter(", "created by runtime.gc", "created by runtime.main",
	} {
		if strings.Contains(stack, f) {
			return true
		}
	}
	return false
}
