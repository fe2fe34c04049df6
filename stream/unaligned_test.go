package stream_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/flott-dev/flott/stream"
)

// In front of a slow operator lie many elements: an aligned barrier waits for all of them, one that overtakes for none.
func TestUnalignedCheckpointsDontWaitForSlowOperators(t *testing.T) {
	took := func(opts ...stream.CheckpointOption) (slowest time.Duration, unaligned bool) {
		synctest.Test(t, func(t *testing.T) {
			env := stream.NewEnv().SetParallelism(2)
			env.EnableCheckpointing(time.Second, opts...)
			env.FromSequence(0, 40_000).KeyBy(func(x int64) int64 { return x % 100 }).
				Sum(func(x int64) int64 { return x }).
				Map(func(x stream.KeyValue[int64, int64]) int64 {
					time.Sleep(time.Millisecond)
					return x.Value
				}).Discard()
			job, err := env.ExecuteAsync(t.Context(), "slow")
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(10 * time.Second)
			for _, c := range job.Checkpoints().History {
				slowest = max(slowest, c.Duration)
				unaligned = unaligned || c.Unaligned && c.Persisted > 0
			}
			if len(job.Checkpoints().History) < 2 && len(opts) > 0 {
				t.Errorf("history: %+v", job.Checkpoints().History)
			}
			job.Cancel()
			<-job.Done()
		})
		return slowest, unaligned
	}
	if d, unaligned := took(stream.EnableUnalignedCheckpoints()); d > 50*time.Millisecond || !unaligned {
		t.Errorf("with barriers that overtake a checkpoint took %v, unaligned: %v", d, unaligned)
	}
	if d, unaligned := took(stream.EnableUnalignedCheckpoints(), stream.AlignedCheckpointTimeout(200*time.Millisecond)); d < 200*time.Millisecond || d > 700*time.Millisecond || !unaligned {
		t.Errorf("with a timeout of 200 ms a checkpoint took %v, unaligned: %v", d, unaligned)
	}
}
