package heap

import (
	"bytes"
	"testing"
	"unsafe"

	"github.com/flott-dev/flott/statebackend"
)

func newTestArena(t *testing.T, exposed bool) (*arena, *kit[int64]) {
	k := newKit[int64](t)
	return newArena(&ledger{store: k.store, state: "arena"}, exposed), k
}

func TestRoomsFitAndWasteLittle(t *testing.T) {
	last := 0
	for n := 1; n < ownChunk; n++ {
		class, room := roomOf(n)
		if room < n || room%8 != 0 || room > n+max(7, n/4) || class < last || class > last+1 || class >= rooms {
			t.Fatalf("%d bytes: class %d after %d, room %d", n, class, last, room)
		}
		last = class
	}
}

// write makes a record of n bytes of one value and checks that it lies alone.
func write(t *testing.T, a *arena, n int, b byte) ref {
	t.Helper()
	r, err := a.make(n)
	ok(t, err)
	copy(bytesAt(a.at(r), uintptr(n)), bytes.Repeat([]byte{b}, n))
	return r
}

func read(a *arena, r ref, n int) string { return string(bytesAt(a.at(r), uintptr(n))) }

func TestArenaNeverSharesRoom(t *testing.T) {
	for _, exposed := range []bool{false, true} {
		a, k := newTestArena(t, exposed)
		rnd := newRand(1)
		type record struct {
			r ref
			n int
			b byte
		}
		var live []record
		for i := range 20_000 {
			if len(live) > 200 || len(live) > 0 && rnd.IntN(3) == 0 {
				j := rnd.IntN(len(live))
				x := live[j]
				if got := read(a, x.r, x.n); got != string(bytes.Repeat([]byte{x.b}, x.n)) {
					t.Fatalf("record of %d bytes changed", x.n)
				}
				a.drop(x.r, x.n)
				live[j] = live[len(live)-1]
				live = live[:len(live)-1]
				continue
			}
			x := record{n: 1 + rnd.IntN(400), b: byte(i)}
			if rnd.IntN(100) == 0 {
				x.n = 1 + rnd.IntN(2*ownChunk)
			}
			x.r = write(t, a, x.n, x.b)
			live = append(live, x)
			if a.worthwhile() {
				a.begin()
			}
			if a.moving && rnd.IntN(20) == 0 {
				a.credit = 1 << 40
				for j := range live {
					var err error
					live[j].r, err = a.move(live[j].r, live[j].n)
					ok(t, err)
				}
				a.finish()
			}
		}
		for _, x := range live {
			a.drop(x.r, x.n)
		}
		a.close()
		if k.memory.held != 0 {
			t.Errorf("exposed %v: %d bytes are held by an empty arena", exposed, k.memory.held)
		}
	}
}

func TestFreedRoomIsUsedAgainUnlessExposed(t *testing.T) {
	for _, exposed := range []bool{false, true} {
		a, _ := newTestArena(t, exposed)
		write(t, a, 10, 1)
		r := write(t, a, 20, 2)
		a.drop(r, 20)
		if again := write(t, a, 18, 3); (again == r) == exposed {
			t.Errorf("exposed %v: room of %v went to %v", exposed, r, again)
		}
	}
}

// An arena that has become empty begins its chunk anew. Room that was freed while a snapshot was open is part of that: it must not
// be handed out a second time once it would become usable.
func TestRoomFreedForASnapshotIsForgottenWithTheChunk(t *testing.T) {
	a, k := newTestArena(t, false)
	r := write(t, a, 20, 1)
	kept := write(t, a, 10, 2)
	frozen, err := k.store.Freeze(statebackend.Freezing{})
	ok(t, err)
	a.freeze()
	a.drop(r, 20)
	frozen.Release()
	k.store.reap()
	a.drop(kept, 10)
	first := write(t, a, 20, 3)
	a.settle()
	if second := write(t, a, 20, 4); second == first || read(a, first, 20) != string(bytes.Repeat([]byte{3}, 20)) {
		t.Errorf("room %v was handed out twice", first)
	}
}

// A record with a chunk of its own goes on taking memory while a snapshot is open that has it, and no longer.
func TestLargeRecordOfASnapshotTakesMemoryUntilItIsReleased(t *testing.T) {
	a, k := newTestArena(t, false)
	old := write(t, a, ownChunk, 1)
	frozen, err := k.store.Freeze(statebackend.Freezing{})
	ok(t, err)
	a.freeze()
	with := k.memory.held
	a.drop(write(t, a, ownChunk, 2), ownChunk)
	if k.memory.held != with {
		t.Errorf("%d bytes are held, want %d: no snapshot has the newer record", k.memory.held, with)
	}
	a.drop(old, ownChunk)
	if k.memory.held != with {
		t.Errorf("%d bytes are held, want %d: the snapshot has the record", k.memory.held, with)
	}
	frozen.Release()
	if k.memory.held != with-ownChunk {
		t.Errorf("%d bytes are held, want %d: the snapshot is released", k.memory.held, with-ownChunk)
	}
}

func TestRoomFreedDuringACompactionIsNotUsed(t *testing.T) {
	a, _ := newTestArena(t, false)
	kept, dropped := write(t, a, 10, 1), write(t, a, 20, 2)
	a.begin()
	a.drop(dropped, 20)
	fresh := write(t, a, 20, 3)
	a.credit = 1
	kept, err := a.move(kept, 10)
	ok(t, err)
	if again, err := a.move(kept, 10); again != kept || err != nil {
		t.Error("a moved record moved again")
	}
	a.finish()
	if a.reach[fresh>>refOffsetBits] == nil || read(a, fresh, 20) != string(bytes.Repeat([]byte{3}, 20)) {
		t.Error("a record was made in a chunk that was being emptied")
	}
	if read(a, kept, 10) != string(bytes.Repeat([]byte{1}, 10)) {
		t.Error("a moved record changed")
	}
}

func TestExposedBytesOutliveTheArena(t *testing.T) {
	a, _ := newTestArena(t, true)
	r := write(t, a, 5, 'x')
	s := unsafe.String((*byte)(a.at(r)), 5)
	a.drop(r, 5)
	for range 10_000 {
		write(t, a, 100, 'y')
	}
	a.close()
	if s != "xxxxx" {
		t.Errorf("the string became %q", s)
	}
}
