package jobmanager

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flott-dev/flott/internal/control"
	"github.com/flott-dev/flott/internal/operator"
)

// fake is a coordinator of the test.
type fake struct {
	ctx    operator.CoordinatorContext
	start  func(ctx operator.CoordinatorContext) error
	handle func(subtask int, event []byte) error
	close  func() error
}

func (f *fake) Start(ctx operator.CoordinatorContext, _ []byte) error {
	f.ctx = ctx
	if f.start != nil {
		return f.start(ctx)
	}
	return nil
}

func (f *fake) Handle(subtask int, event []byte) error {
	if f.handle != nil {
		return f.handle(subtask, event)
	}
	return nil
}

func (f *fake) Snapshot(int64) ([]byte, error) { return nil, nil }

func (f *fake) Close() error {
	if f.close != nil {
		return f.close()
	}
	return nil
}

// talk is a program of one source with a coordinator: its subtasks end when they are told so.
func talk(t *testing.T, parallelism int, f *fake, u hooks) *program {
	p := newProgram(t)
	if u.poll == nil {
		over := make([]bool, parallelism) // each subtask looks at its own
		u.event = func(rt *operator.Runtime, event []byte) error {
			over[rt.Subtask] = string(event) == "end"
			return nil
		}
		u.poll = func(rt *operator.Runtime) (operator.Status, error) {
			if over[rt.Subtask] {
				return operator.Done, nil
			}
			return operator.Nothing, nil
		}
	}
	p.source("talker", parallelism, u).NewCoordinator = func() operator.Coordinator { return f }
	return p
}

func TestEventsComeInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n, parallelism = 200, 3
		var up, down [parallelism][]string
		f := &fake{}
		f.start = func(ctx operator.CoordinatorContext) error {
			if ctx.Parallelism() != parallelism || ctx.Context().Err() != nil {
				t.Errorf("parallelism %d, context %v", ctx.Parallelism(), ctx.Context().Err())
			}
			ctx.Send(parallelism, []byte("to nobody"))
			return nil
		}
		f.handle = func(subtask int, event []byte) error {
			up[subtask] = append(up[subtask], string(event))
			f.ctx.Send(subtask, fmt.Append(nil, "re ", string(event)))
			return nil
		}
		over := make([]bool, parallelism)
		p := talk(t, parallelism, f, hooks{
			open: func(rt *operator.Runtime) error {
				for i := range n {
					rt.ToCoordinator(fmt.Append(nil, i))
				}
				return nil
			},
			event: func(rt *operator.Runtime, event []byte) error {
				down[rt.Subtask] = append(down[rt.Subtask], string(event))
				over[rt.Subtask] = len(down[rt.Subtask]) == n
				return nil
			},
			poll: func(rt *operator.Runtime) (operator.Status, error) {
				if over[rt.Subtask] {
					return operator.Done, nil
				}
				return operator.Nothing, nil
			},
		})
		quiet := false
		p.source("other", 1, hooks{event: func(*operator.Runtime, []byte) error { quiet = true; return nil }}).NewCoordinator = func() operator.Coordinator {
			return &fake{handle: func(int, []byte) error { quiet = true; return nil }}
		}
		ends(t, "talk", p.run(), Finished)
		for s := range parallelism {
			for i := range n {
				if up[s][i] != fmt.Sprint(i) || down[s][i] != fmt.Sprint("re ", i) {
					t.Fatalf("subtask %d: event %d is %q, its answer %q", s, i, up[s][i], down[s][i])
				}
			}
			if len(up[s]) != n {
				t.Errorf("subtask %d: %d events", s, len(up[s]))
			}
		}
		if quiet {
			t.Error("an event reached another source")
		}
	})
}

func TestFailureOfACoordinatorIsTheJobs(t *testing.T) {
	for name, c := range map[string]struct {
		plant func(f *fake)
		want  string
	}{
		"start":         {func(f *fake) { f.start = func(operator.CoordinatorContext) error { return errBoom } }, `coordinate "talker": boom`},
		"start panics":  {func(f *fake) { f.start = func(operator.CoordinatorContext) error { panic("boom") } }, `coordinate "talker": panic: boom`},
		"handle":        {func(f *fake) { f.handle = func(int, []byte) error { return errBoom } }, `coordinate "talker": boom`},
		"handle panics": {func(f *fake) { f.handle = func(int, []byte) error { panic("boom") } }, `coordinate "talker": panic: boom`},
		"work": {func(f *fake) {
			f.start = func(ctx operator.CoordinatorContext) error {
				ctx.Do(0, func(context.Context) error { return errBoom }, nil)
				return nil
			}
		}, `coordinate "talker": boom`},
		"close": {func(f *fake) {
			f.handle = func(int, []byte) error { f.ctx.Send(0, []byte("end")); return nil }
			f.close = func() error { return errBoom }
		}, `coordinate "talker": close: boom`},
		"close panics": {func(f *fake) {
			f.handle = func(int, []byte) error { f.ctx.Send(0, []byte("end")); return nil }
			f.close = func() error { panic("boom") }
		}, `coordinate "talker": panic: boom`},
	} {
		inBubble(t, name, func(t *testing.T) {
			f := &fake{}
			c.plant(f)
			closed := 0
			shut := f.close
			f.close = func() error {
				closed++
				if shut != nil {
					return shut()
				}
				return nil
			}
			open := func(rt *operator.Runtime) error { rt.ToCoordinator([]byte("hello")); return nil }
			j := talk(t, 1, f, hooks{open: open}).run()
			if j.Status() != Failed || j.Err() == nil || !strings.Contains(j.Err().Error(), c.want) || closed != 1 {
				t.Errorf("%s: %s, %v; closed %d times", name, j.Status(), j.Err(), closed)
			}
			if !strings.Contains(name, "panic") && !errors.Is(j.Err(), errBoom) {
				t.Errorf("%s: the cause is not wrapped", name)
			}
		})
	}
}

func TestFailureOfACoordinatorIsFollowedByARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProgram(t)
		made := 0
		p.source("talker", 1, hooks{poll: func(rt *operator.Runtime) (operator.Status, error) {
			if rt.Attempt == 2 {
				return operator.Done, nil
			}
			return operator.Nothing, nil
		}}).NewCoordinator = func() operator.Coordinator {
			n := made
			made++
			return &fake{start: func(operator.CoordinatorContext) error {
				if n < 2 {
					return errBoom
				}
				return nil
			}}
		}
		ends(t, "talker", p.submit(t.Context(), &control.FixedDelay{Attempts: 2}), Finished)
		if made != 3 {
			t.Errorf("%d coordinators for three attempts", made)
		}
	})
}

// Work runs beside the coordinator, its outcome is told as one of the coordinator's calls; repeated work pauses between
// two turns and stops with the job.
func TestCoordinatorsWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var once, turns []time.Duration
		inside := 0
		enter := func() {
			if inside++; inside != 1 {
				t.Error("two calls at a time")
			}
			inside--
		}
		f := &fake{}
		f.start = func(ctx operator.CoordinatorContext) error {
			enter()
			ctx.Do(0, func(context.Context) error { time.Sleep(7 * time.Second); return errBoom }, func(err error) {
				enter()
				if err != errBoom {
					t.Errorf("done with %v", err)
				}
				once = append(once, time.Since(start))
			})
			n := 0
			ctx.Do(10_000, func(context.Context) error { time.Sleep(time.Second); n++; return fmt.Errorf("turn %d", n) }, func(err error) {
				enter()
				turns = append(turns, time.Since(start))
				if want := fmt.Sprint("turn ", len(turns)); err.Error() != want {
					t.Errorf("done with %v, want %s", err, want)
				}
			})
			ctx.Do(500, func(context.Context) error { return nil }, nil)
			return nil
		}
		p := talk(t, 1, f, hooks{})
		j := p.submit(t.Context(), control.NoRestart{})
		after(36*time.Second, func() { j.Tasks()[0].Event(0, []byte("end")) })
		ends(t, "talker", j, Finished)
		if want := []time.Duration{7 * time.Second}; !slices.Equal(once, want) {
			t.Errorf("done at %v, want %v", once, want)
		}
		if want := []time.Duration{1 * time.Second, 12 * time.Second, 23 * time.Second, 34 * time.Second}; !slices.Equal(turns, want) {
			t.Errorf("turns at %v, want %v", turns, want)
		}
	})
}

// At the job's end the coordinator's context ends, and what its work then says is nobody's failure.
func TestWorkThatEndsWithTheJobIsNoFailure(t *testing.T) {
	for range 50 {
		inBubble(t, "", func(t *testing.T) {
			f := &fake{}
			done := false
			f.start = func(ctx operator.CoordinatorContext) error {
				ctx.Do(0, func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }, nil)
				ctx.Do(0, func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }, func(error) { done = true })
				return nil
			}
			p := talk(t, 1, f, hooks{})
			j := p.submit(t.Context(), control.NoRestart{})
			synctest.Wait()
			j.Tasks()[0].Event(0, []byte("end"))
			ends(t, "talker", j, Finished)
			if f.ctx.Context().Err() == nil || done {
				t.Errorf("context %v; a call came after the end: %v", f.ctx.Context().Err(), done)
			}
		})
	}
}

// A coordinator that gives up with its context because the job is over has not failed; one that does so earlier has.
func TestCoordinatorThatGivesUp(t *testing.T) {
	for name, early := range map[string]bool{"early": true, "at the end": false} {
		inBubble(t, name, func(t *testing.T) {
			f := &fake{start: func(ctx operator.CoordinatorContext) error {
				if !early {
					<-ctx.Context().Done()
				}
				return context.Canceled
			}}
			j := talk(t, 1, f, hooks{}).submit(t.Context(), control.NoRestart{})
			synctest.Wait()
			if early {
				ends(t, name, j, Failed, context.Canceled)
				return
			}
			j.Tasks()[0].Event(0, []byte("end"))
			ends(t, name, j, Finished)
		})
	}
}
