package control

import (
	"fmt"

	"github.com/flott-dev/flott/internal/frame"
)

// SnapshotKind is what a snapshot is for.
type SnapshotKind uint8

const (
	// Checkpoint is taken by the job itself, to recover from failures. A newer one makes it needless.
	Checkpoint SnapshotKind = iota
	// Savepoint is asked for by a user, who owns it; the job goes on.
	Savepoint
	// StopSavepoint ends the job: sources stop at its barrier, and tasks end once it is complete.
	StopSavepoint
	// DrainSavepoint is a StopSavepoint before whose barrier sources send the last watermark, so that all timers fire.
	DrainSavepoint
)

// String gives the kind's name, as REST has it where it has one.
func (k SnapshotKind) String() string {
	return [...]string{"CHECKPOINT", "SAVEPOINT", "SYNC_SAVEPOINT", "SYNC_SAVEPOINT_DRAIN"}[k]
}

// Forced reports whether the snapshot is taken whatever the limits of checkpoints say, and never made needless by a newer
// one: savepoints are.
func (k SnapshotKind) Forced() bool { return k != Checkpoint }

// Stops reports whether the job ends with the snapshot.
func (k SnapshotKind) Stops() bool { return k == StopSavepoint || k == DrainSavepoint }

// Barrier is what a barrier says. It travels as the value of a mark; that of an ordinary aligned checkpoint is its id.
type Barrier struct {
	ID   int64 // 1 ... MaxCheckpointID
	Kind SnapshotKind
	// Unaligned barriers overtake what is in flight wherever they come to. Only checkpoints may be.
	Unaligned bool
	// Full snapshots build on no earlier one.
	Full bool
}

// MaxCheckpointID is the largest id of a checkpoint.
const MaxCheckpointID = 1<<56 - 1

const (
	kindShift      = 56
	unalignedShift = 58
	fullShift      = 59
	knownBits      = 1<<60 - 1
)

// Mark is the barrier as a mark, at position 0.
func (b Barrier) Mark() frame.Mark {
	if b.ID < 1 || b.ID > MaxCheckpointID || b.Unaligned && b.Kind != Checkpoint {
		panic(fmt.Sprintf("control: no such barrier: %+v", b))
	}
	v := b.ID | int64(b.Kind)<<kindShift
	if b.Unaligned {
		v |= 1 << unalignedShift
	}
	if b.Full {
		v |= 1 << fullShift
	}
	return frame.Mark{Kind: frame.Barrier, Value: v}
}

// BarrierOf reads the value of a barrier's mark. It fails on values that Mark does not make: the mark comes from a newer
// program, or is damaged.
func BarrierOf(value int64) (Barrier, error) {
	b := Barrier{
		ID: value & MaxCheckpointID, Kind: SnapshotKind(value >> kindShift & 3),
		Unaligned: value>>unalignedShift&1 != 0, Full: value>>fullShift&1 != 0,
	}
	if value&^knownBits != 0 || b.ID < 1 || b.Unaligned && b.Kind != Checkpoint {
		return Barrier{}, fmt.Errorf("read a checkpoint barrier: value %#x has no meaning", uint64(value))
	}
	return b, nil
}
