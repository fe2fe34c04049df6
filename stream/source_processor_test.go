package stream_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flott-dev/flott/connector/file"
	"github.com/flott-dev/flott/connector/filesink"
	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/state"
	"github.com/flott-dev/flott/stream"
)

// meter is a source that counts from where it was, two numbers at a time.
type meter struct {
	at, until int64
	kept      *state.OperatorList[int64]
	closed    *atomic.Int64
	inside    atomic.Bool // of Locked
	wrong     *atomic.Bool
}

func newMeter(rt *process.Runtime, until int64, closed *atomic.Int64, wrong *atomic.Bool) *meter {
	m := &meter{until: until, closed: closed, wrong: wrong}
	m.kept = rt.OperatorList(state.NewOperatorList[int64]("at", state.Split))
	for at := range m.kept.All() {
		m.at = at
	}
	return m
}

func (m *meter) Run(ctx context.Context, out *process.SourceContext[int64]) error {
	for m.at < m.until {
		out.Locked(func() {
			m.inside.Store(true)
			out.Collect(m.at)
			out.Collect(m.at + 1)
			m.at += 2
			m.inside.Store(false)
		})
		select {
		case <-time.After(time.Millisecond):
		case <-ctx.Done():
			return nil
		}
	}
	return nil
}

func (m *meter) SnapshotState(process.SnapshotContext) error {
	if m.inside.Load() {
		m.wrong.Store(true)
	}
	m.kept.Set([]int64{m.at})
	return nil
}

func (m *meter) Close() error {
	m.closed.Add(1)
	return nil
}

func TestSourceProcessorGoesOnWhereItWas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 400
		var closed, seen atomic.Int64
		var wrong atomic.Bool
		dir := t.TempDir()
		env := stream.NewEnv().SetParallelism(2).EnableCheckpointing(10 * time.Millisecond).
			SetRestartStrategy(stream.FixedDelayRestart(5, time.Millisecond))
		env.FromSourceProcessor[int64]("meter", func(rt *process.Runtime) *meter { return newMeter(rt, n, &closed, &wrong) }).UID("meter").
			TryMap(func(_ context.Context, x int64) (string, error) {
				if k := seen.Add(1); k == 123 || k == 321 {
					return "", errors.New("bad number")
				}
				return fmt.Sprint(x), nil
			}).CommitTo(filesink.New(dir, file.TextEncoding[string]("\n")).RollOnCheckpoint()).UID("files")
		if _, err := env.Execute(t.Context(), "meter"); err != nil {
			t.Fatal(err)
		}
		var want []string
		for i := range n {
			want = append(want, fmt.Sprint(i))
		}
		slices.Sort(want)
		if got := visible(t, dir); !slices.Equal(got, want) {
			t.Errorf("%d lines, want %d, or others", len(got), n)
		}
		if k := seen.Load(); k > n+100 {
			t.Errorf("%d numbers were read: restarts began anew", k)
		}
		if wrong.Load() {
			t.Error("a snapshot was taken while the source was in a section")
		}
		if closed.Load() != 3 {
			t.Errorf("closed %d times in three attempts", closed.Load())
		}
	})
}

// flood collects much more than the job takes, in one section.
type flood struct {
	*meter
	full chan struct{}
}

func (f *flood) Run(ctx context.Context, out *process.SourceContext[int64]) error {
	out.Locked(func() {
		for ; f.at < f.until; f.at++ {
			if f.at == f.until/2 {
				close(f.full)
			}
			out.Collect(f.at)
		}
	})
	<-ctx.Done()
	return nil
}

// A section that waits for room must not keep the checkpoint waiting that waits for the section.
func TestSnapshotDoesNotWaitForRoom(t *testing.T) {
	const n = 20_000
	var closed atomic.Int64
	var wrong atomic.Bool
	full := make(chan struct{})
	env := stream.NewEnv().SetParallelism(1)
	env.FromSourceProcessor[int64]("flood", func(rt *process.Runtime) *flood {
		return &flood{newMeter(rt, n, &closed, &wrong), full}
	}).UID("flood").Map(func(x int64) int64 { return x }).Discard()
	job, err := env.ExecuteAsync(t.Context(), "flood")
	if err != nil {
		t.Fatal(err)
	}
	<-full
	at, err := job.TriggerSavepoint(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	job.Cancel()
	<-job.Done()

	again := stream.NewEnv(stream.WithSavepoint(at)).SetParallelism(1)
	again.FromSourceProcessor[int64]("flood", func(rt *process.Runtime) *meter {
		m := newMeter(rt, n+1000, &closed, &wrong)
		if m.at != n {
			t.Errorf("the source goes on at %d, want %d", m.at, n)
		}
		return m
	}).UID("flood").Map(func(x int64) int64 { return x }).Discard()
	if _, err := again.Execute(t.Context(), "flood"); err != nil {
		t.Fatal(err)
	}
}
