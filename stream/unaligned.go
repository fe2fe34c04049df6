package stream

import (
	"time"

	"github.com/flott-dev/flott/internal/env"
)

// EnableUnalignedCheckpoints lets barriers overtake the elements that are in flight, which become part of the checkpoint: it
// is complete soon however much lies in front of a slow operator. It takes more room, and a restart begins with those
// elements. Only with ExactlyOnce and one checkpoint at a time. Savepoints stay aligned, and so do checkpoints where elements
// go by Forward, Broadcast or a custom partitioner, and in jobs with an iteration. The default leaves checkpoints aligned.
func EnableUnalignedCheckpoints() CheckpointOption {
	return func(c *env.Checkpoints) { c.Unaligned = true }
}

// AlignedCheckpointTimeout has checkpoints, with EnableUnalignedCheckpoints, begin aligned and become unaligned when a barrier
// has waited that long at a task; with 0, the default, they begin unaligned.
func AlignedCheckpointTimeout(d time.Duration) CheckpointOption {
	return func(c *env.Checkpoints) { c.AlignedTimeout = d }
}
