package jobmanager

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flott-dev/flott/internal/control"
	"github.com/flott-dev/flott/internal/operator"
)

// Nobody is told by an error while a job goes on, so failures are in the log: seldom, if it is always the same one.
func TestFailuresThatAreFollowedByRestartsAreLogged(t *testing.T) {
	before := slog.Default()
	t.Cleanup(func() { slog.SetDefault(before) })
	for name, c := range map[string]struct {
		cause func(attempt int) error
		want  []string // of the warnings: restarts and how often the same failure has come
	}{
		"the same one":  {func(int) error { return errBoom }, []string{"1 1", "2 2", "4 4", "8 8"}},
		"another after": {func(n int) error { return fmt.Errorf("%d: %w", n/3, errBoom) }, []string{"1 1", "2 2", "4 1", "5 2", "7 1", "8 2"}},
	} {
		synctest.Test(t, func(t *testing.T) {
			var said bytes.Buffer
			slog.SetDefault(slog.New(slog.NewTextHandler(&said, nil)))
			p := newProgram(t)
			p.source("failing", 1, hooks{poll: func(rt *operator.Runtime) (operator.Status, error) {
				return operator.Done, c.cause(rt.Attempt)
			}})
			ends(t, "failing", p.submit(t.Context(), &control.FixedDelay{Attempts: 9, Delay: time.Second}), Failed, errBoom)
			var got []string
			for line := range strings.Lines(said.String()) {
				var restarts, same int
				_, rest, _ := strings.Cut(line, `restarts=`)
				if _, err := fmt.Sscanf(rest, `%d "same failure in a row"=%d`, &restarts, &same); err != nil || !strings.Contains(line, "boom") {
					t.Errorf("%s: %q", name, line)
				}
				got = append(got, fmt.Sprint(restarts, " ", same))
			}
			if fmt.Sprint(got) != fmt.Sprint(c.want) {
				t.Errorf("%s: got %q, want %q", name, got, c.want)
			}
		})
	}
}

// A panic is logged on one line; its stack is for those who look for it.
func TestStacksAreLoggedApart(t *testing.T) {
	before := slog.Default()
	t.Cleanup(func() { slog.SetDefault(before) })
	synctest.Test(t, func(t *testing.T) {
		for level, stacks := range map[slog.Level]int{slog.LevelInfo: 0, slog.LevelDebug: 1} {
			var said bytes.Buffer
			slog.SetDefault(slog.New(slog.NewTextHandler(&said, &slog.HandlerOptions{Level: level})))
			p := newProgram(t)
			p.source("failing", 1, hooks{poll: func(*operator.Runtime) (operator.Status, error) { panic(errBoom) }})
			j := p.submit(t.Context(), &control.FixedDelay{Attempts: 1, Delay: time.Second})
			ends(t, "failing", j, Failed, errBoom)
			text := said.String()
			warning, _, _ := strings.Cut(text, "\n")
			if !strings.Contains(warning, "panic: boom (jobmanager/supervisor_test.go:") || strings.Contains(warning, "goroutine") {
				t.Errorf("%v: the warning is %s", level, warning)
			}
			if n := strings.Count(text, "stack=\"goroutine "); n != stacks || strings.Count(text, "debug.Stack") != stacks {
				t.Errorf("%v: %d stacks, want %d: %s", level, n, stacks, text)
			}
			if f := j.Record().Failures; !strings.Contains(f[0].Err.Error(), "\ngoroutine ") {
				t.Errorf("%v: the stack is not remembered: %v", level, f[0].Err)
			}
		}
	})
}
