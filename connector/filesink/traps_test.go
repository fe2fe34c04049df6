package filesink_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flott-dev/flott/connector"
	"github.com/flott-dev/flott/connector/filesink"
	"github.com/flott-dev/flott/internal/vfs"
	"github.com/flott-dev/flott/stream"
)

// Trap B054: the end of bounded input makes everything visible, long before the next checkpoint or without any, also where
// subtasks have nothing, and where a commit fails once.
func TestB054TheEndOfTheInputMakesAllVisible(t *testing.T) {
	for name, sink := range map[string]*filesink.Sink[string]{
		"rows": lines(), "gzip": lines().Compress(filesink.Gzip), "whole files": bulk(), "held back": rolled().MaxPartSize(1).CompactAfter(100),
	} {
		for _, checkpoints := range []bool{true, false} {
			for _, fault := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/checkpoints %v/fault %v", name, checkpoints, fault), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						m := vfs.NewMem()
						disk := vfs.NewFaulty(m)
						if fault {
							disk.Fail(vfs.OpRename, 1, syscall.EIO)
						}
						env := stream.NewEnv().SetParallelism(4)
						if checkpoints {
							env.EnableCheckpointing(time.Hour)
						}
						env.FromSequence(1, 10).Map(func(x int64) string { return fmt.Sprint(x) }).
							PartitionCustom(func(x string, n int) int { return len(x) % 2 * 3 }, func(x string) string { return x }).
							CommitTo(sink.On(disk, ids()))
						start := time.Now()
						if _, err := env.Execute(context.Background(), "ten"); err != nil {
							t.Fatal(err)
						}
						if d := time.Since(start); d > time.Minute {
							t.Errorf("it took %v", d)
						}
						got, _, hidden := contents(t, m, "out")
						if len(got) != 10 || len(hidden) > 0 {
							t.Errorf("%q, hidden %q", got, hidden)
						}
					})
				})
			}
		}
	}
}

// Trap B056, as far as there is something like it on file systems: what was written behind the last sync when a job goes
// on, files that only a savepoint knows, and completions that fail or come twice.
func TestB056LargeFilesAreWholeAfterARestart(t *testing.T) {
	m := vfs.NewMem()
	h := byHand(t, m, lines().MaxPartSize(0).RolloverInterval(0).InactivityInterval(0))
	text := strings.Repeat("0123456", 1<<20)
	h.write(0, text[:5<<20])
	state := h.checkpoint(0)
	h.write(0, text[5<<20:]) // nobody will know
	h = h.restore(0, 1, own(state))
	h.write(0, text[5<<20:], "x")
	state = h.checkpoint(0) // a savepoint, after which the job is stopped
	h.ok(h.w.Close())
	m.Crash()
	h = h.restore(0, 1, own(state))
	cs, _ := h.prepare(0, true)
	disk := vfs.NewFaulty(m)
	disk.Fail(vfs.OpRename, 1, syscall.EIO)
	h.sink = h.sink.On(disk, nil)
	if err := h.commit(cs); !errors.Is(err, connector.ErrRetry) {
		t.Errorf("a commit that fails once: %v", err)
	}
	for range 2 {
		h.ok(h.commit(cs))
	}
	data, err := vfs.ReadFile(m, "out/part-0-0")
	h.ok(err)
	whole := text[:5<<20] + "\n" + text[5<<20:] + "\nx\n"
	if sha256.Sum256(data) != sha256.Sum256([]byte(whole)) {
		t.Errorf("%d bytes, want %d, equal up to %d", len(data), len(whole), len(commonPrefix(data, []byte(whole))))
	}
	nothingHidden(t, m)
}

func commonPrefix(a, b []byte) []byte {
	n := 0
	for n < min(len(a), len(b)) && bytes.Equal(a[n:n+1], b[n:n+1]) {
		n++
	}
	return a[:n]
}
