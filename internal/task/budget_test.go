package task

import (
	"testing"

	"github.com/flott-dev/flott/internal/control"
	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/host"
	"github.com/flott-dev/flott/internal/operator"
)

// Data in flight that is kept for a snapshot is of the process's budget until the snapshot is written.
func TestDataInFlightIsOfTheBudget(t *testing.T) {
	b, ws := overtakers(t, 0, 1)
	b.dep.Memory = host.NewMemory(0)
	var part *Part
	b.dep.Checkpoints.Took = func(p *Part) { part = p }
	b.build()
	b.write(ws[0], 1, watermark(5), 2)
	b.write(ws[0], 3, overtakingBarrier(1), mark(frame.End))
	if err := b.run(); err != nil {
		t.Fatal(err)
	}
	kept := recordedBytes(typeOf[int64](t), 2, 1) + recordedBytes(typeOf[int64](t), 1, 0)
	if used := b.dep.Memory.Used(); used != kept {
		t.Errorf("%d bytes are taken, want %d", used, kept)
	}
	if err := part.Seal(); err != nil {
		t.Fatal(err)
	}
	written := int64(0)
	for _, item := range part.States[0].Lists[len(part.States[0].Lists)-1].Items {
		written += int64(len(item))
	}
	if used := b.dep.Memory.Used(); used != written || written == 0 {
		t.Errorf("%d bytes are taken for %d encoded ones", used, written)
	}
	if part.Release(); b.dep.Memory.Used() != 0 {
		t.Errorf("%d bytes are still taken", b.dep.Memory.Used())
	}
}

// A snapshot whose data in flight finds no memory is declined, wherever that lies; the job goes on, and nothing stays taken.
func TestSnapshotsWithoutMemoryAreDeclined(t *testing.T) {
	full := recordedBytes(typeOf[int64](t), 1, 0) - 1
	for _, c := range []struct {
		name  string
		limit int64 // too little for the last frame of those before the barriers
		write func(a, z func(items ...any)) (later []func())
	}{
		{"before the first barrier", full, func(a, z func(...any)) []func() {
			a(1)
			a(overtakingBarrier(1))
			z(overtakingBarrier(1))
			return nil
		}},
		{"on another channel, in sight", full, func(a, z func(...any)) []func() {
			a(overtakingBarrier(1))
			z(1, overtakingBarrier(1))
			return nil
		}},
		{"later frames on another channel", full, func(a, z func(...any)) []func() {
			a(overtakingBarrier(1))
			return []func(){func() { z(1) }, func() { z(overtakingBarrier(1)) }}
		}},
		{"the second frame", 2*full + 1, func(a, z func(...any)) []func() {
			a(1)
			a(2)
			a(3, overtakingBarrier(1))
			z(overtakingBarrier(1))
			return nil
		}},
	} {
		b, ws := overtakers(t, 0, 2)
		b.dep.Memory = host.NewMemory(c.limit)
		var reasons []error
		declined := b.dep.Checkpoints.Declined
		b.build()
		b.task.checkpoints.Declined = func(id int64, r control.FailureReason, err error) {
			reasons = append(reasons, err)
			declined(id, r, err)
		}
		on := func(w int) func(items ...any) { return func(items ...any) { b.write(ws[w], items...) } }
		script := append(c.write(on(0), on(1)), func() {
			if used := b.dep.Memory.Used(); used != 0 {
				t.Errorf("%s: %d bytes are taken after that", c.name, used)
			}
			on(0)(overtakingBarrier(2), mark(frame.End))
			on(1)(overtakingBarrier(2), mark(frame.End))
		})
		if err := b.run(script...); err != nil {
			t.Fatal(c.name, err)
		}
		if len(reasons) != 1 || reasons[0] == nil {
			t.Errorf("%s: declined for %v", c.name, reasons)
		}
		counts := map[string]int{}
		for _, l := range b.log {
			counts[l]++
		}
		if counts["declined 1: declined"] != 1 || counts["dropped 1"] != 1 || counts["a cancel barrier"] != 1 || counts["took 2: a channels"] != 1 || counts["a end"] != 1 {
			t.Errorf("%s: %q", c.name, b.log)
		}
	}
}

// A snapshot that is dropped gives its data in flight back, and one that can't be encoded within the budget as well.
func TestDroppedDataInFlightIsGivenBack(t *testing.T) {
	b, ws := overtakers(t, 0, 1)
	size := recordedBytes(typeOf[int64](t), 1, 0)
	b.dep.Memory = host.NewMemory(size)
	var part *Part
	b.dep.Checkpoints.Took = func(p *Part) { part = p }
	b.build()
	b.write(ws[0], 1)
	b.write(ws[0], overtakingBarrier(1), mark(frame.End))
	if err := b.run(); err != nil {
		t.Fatal(err)
	}
	if err := part.Seal(); err == nil {
		t.Error("more was encoded than there is memory for")
	}
	if part.Release(); b.dep.Memory.Used() != 0 {
		t.Errorf("%d bytes are still taken", b.dep.Memory.Used())
	}

	b, ws = overtakers(t, 0, 2)
	b.dep.Memory = host.NewMemory(0)
	b.build()
	b.write(ws[0], 1, 2)
	b.write(ws[0], overtakingBarrier(1))
	err := b.run(func() {
		if b.dep.Memory.Used() == 0 {
			t.Error("nothing was kept")
		}
		b.task.Cancel()
	})
	if err == nil || b.dep.Memory.Used() != 0 {
		t.Errorf("after the task was cancelled (%v) %d bytes are taken", err, b.dep.Memory.Used())
	}
}

// An operator that can't add what it had to declines its checkpoint, and no other one.
func TestHeldSnapshotsCanFail(t *testing.T) {
	b, ss := savers(t, 1, 1)
	b.dep.Checkpoints.Dropped = func(id int64) { b.note("dropped %d", id) }
	var held []*operator.Snapshot
	ss[0].hold = func(s *operator.Snapshot) {
		s.Held = true
		held = append(held, s)
	}
	b.send(0, barrier(1))
	b.send(0, barrier(2))
	err := b.run(
		func() { held[1].Fail(errBoom) },
		func() { held[1].Complete(); held[0].Complete() },
		func() { b.send(0, mark(frame.End)) },
	)
	if err != nil {
		t.Fatal(err)
	}
	b.wants("a barrier 1", "a snapshot 1", "a barrier 2", "a snapshot 2", "dropped 2", "declined 2: declined", "took 1: a channels", "a end")
}
