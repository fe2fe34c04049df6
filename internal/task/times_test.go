package task

import (
	"fmt"
	"slices"
	"testing"

	"github.com/flott-dev/flott/internal/control"
	"github.com/flott-dev/flott/internal/exchange"
	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/graph"
	"github.com/flott-dev/flott/internal/host"
)

// The times of barriers are those of the last alignment, or of the present one as far as it has come, and of the way from the
// trigger to the first barrier. All modes tell them alike.
func TestTimesOfBarriersAreThoseOfTheLastOrPresentAlignment(t *testing.T) {
	for _, mode := range []string{"exactly once", "at least once", "unaligned"} {
		b, ws := overtakers(t, 0, 2)
		b.dep.Checkpoints.Unaligned = mode == "unaligned"
		if mode == "at least once" {
			b.dep.Checkpoints.Mode = control.AtLeastOnce
		}
		times := &BarrierTimes{}
		b.dep.Checkpoints.Times = times
		triggered := map[int64]int64{}
		b.dep.Checkpoints.Triggered = func(id int64) (int64, bool) {
			at, ok := triggered[id]
			return at, ok
		}
		b.build()
		trigger := func(id int64) { triggered[id] = b.clock.Nanos() }
		send := func(channel int, id int64) {
			if mode == "unaligned" {
				b.write(ws[channel], overtakingBarrier(id))
			} else {
				b.write(ws[channel], barrier(id))
			}
		}
		var seen []string
		look := func() { seen = append(seen, fmt.Sprint(times.Alignment(b.clock.Nanos()), " ", times.StartDelay())) }
		pass := func(ms int64) { b.clock.Set(b.clock.Millis() + ms) }
		err := b.run(
			func() { look(); trigger(1); pass(7); send(0, 1) },
			func() { look(); pass(3); look(); send(1, 1) },
			func() { pass(50); look(); trigger(2); pass(2); send(1, 2) },
			func() { pass(4); look(); b.write(ws[0], cancelBarrier(2)) }, // it is given up, or was taken and is not completed
			func() { pass(100); look(); trigger(3); send(0, 3) },
			func() { send(1, 3) },
			func() {
				look()
				for _, w := range ws {
					b.write(w, mark(frame.End))
				}
			},
		)
		if err != nil {
			t.Fatal(mode, err)
		}
		want := []string{"0s 0s", "0s 7ms", "3ms 7ms", "3ms 7ms", "4ms 2ms", "4ms 2ms", "0s 0s"}
		if !slices.Equal(seen, want) {
			t.Errorf("%s: alignment and delay were %q, not %q", mode, seen, want)
		}
	}
}

// One barrier alone aligns nothing, and a snapshot whose trigger nobody knows leaves the delay as it was.
func TestTimesOfOneBarrier(t *testing.T) {
	b, _ := savers(t, 1, 1)
	times := &BarrierTimes{}
	b.dep.Checkpoints.Times = times
	b.dep.Checkpoints.Triggered = func(id int64) (int64, bool) { return b.clock.Nanos() - 5, id == 1 }
	b.send(0, barrier(1))
	err := b.run(func() {
		if a, d := times.Alignment(b.clock.Nanos()+100), times.StartDelay(); a != 0 || d != 5 {
			t.Errorf("alignment %v, delay %v", a, d)
		}
		b.send(0, barrier(2), mark(frame.End))
	})
	if d := times.StartDelay(); err != nil || d != 5 {
		t.Errorf("delay %v, %v", d, err)
	}
}

// Failures name the operator by the UID that the user has given it.
func TestFailuresNameTheUIDThatTheUserKnows(t *testing.T) {
	for given, want := range map[string]string{
		"":        `operator "x" (0123), subtask 3, at element 1: boom`,
		"totals!": `operator "x" (UID "totals!"), subtask 3, at element 1: boom`,
	} {
		err := &Error{Operator: "x", UID: "0123", GivenUID: given, Subtask: 2, Record: "at element 1", Cause: fmt.Errorf("boom")}
		if err.Error() != want {
			t.Errorf("%q, not %q", err, want)
		}
	}
}

// A barrier that waits for room downstream is no part of the work on the snapshot.
func TestBarrierThatWaitsForRoomIsNoWork(t *testing.T) {
	b, _ := savers(t, 1, 1)
	out := b.edge(0, "", graph.Forward, 100, 1)[0]
	b.build()
	for range exchange.Depth {
		out.Offer(b.frame(0))
	}
	var metrics control.TaskMetrics
	took := b.task.checkpoints.Took
	b.task.checkpoints.Took = func(p *Part) { metrics = p.Metrics; took(p) }
	b.send(0, barrier(1))
	err := b.run(
		func() { b.clock.Set(b.clock.Millis() + 70); received(out) },
		func() { b.send(0, mark(frame.End)) },
	)
	if err != nil || len(b.reasons) != 2 || b.reasons[0] != host.Backpressured || metrics.Sync != 0 {
		t.Errorf("the task waited as %v and worked for %v, %v", b.reasons, metrics.Sync, err)
	}
}
