package main

import (
	"maps"
	"path/filepath"
	"strings"
	"testing"

	"github.com/flott-dev/flott/checkpoint"
	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/state"
	"github.com/flott-dev/flott/statebackend"
	"github.com/flott-dev/flott/statebackend/heap"
	"github.com/flott-dev/flott/statebackend/pebble"
	"github.com/flott-dev/flott/stream"
)

// holder keeps a value of each key.
type holder[V any] struct {
	process.NoTimers[string, string]
	count *state.Value[V]
}

func (h *holder[V]) ProcessElement(*process.KeyedContext[string], string, *process.Collector[string]) error {
	h.count.Get()
	return nil
}

// startHolder starts a job with such a state from a snapshot.
func startHolder[V any](t *testing.T, from string, b statebackend.Backend) error {
	t.Helper()
	env := stream.NewEnv(stream.WithSavepoint(from), stream.WithBackends(b)).SetParallelism(2)
	env.FromElements("key1", "key2").KeyBy(func(x string) string { return x }).
		Process(func(rt *process.Runtime) *holder[V] { return &holder[V]{count: state.NewValue[V](rt, "count")} }).UID("counts").
		Discard()
	job, err := env.ExecuteAsync(t.Context(), "job")
	if err == nil {
		_, err = job.Wait()
	}
	return err
}

// A checkpoint whose state lies in files of one state backend is refused by another one before anything runs, and so are values
// of a type that has changed.
func TestStateInFilesIsTriedBeforeAnythingRuns(t *testing.T) {
	dir := filepath.ToSlash(t.TempDir())
	draft := checkpoint.NewDraft("job")
	if err := draft.Operator("counts").SetValues("count", maps.All(map[string]int64{"key1": 1, "key2": 2})); err != nil {
		t.Fatal(err)
	}
	if err := draft.Write(t.Context(), nil, dir+"/savepoint"); err != nil {
		t.Fatal(err)
	}
	inFiles(t, dir+"/savepoint", dir+"/chk-5")
	for want, err := range map[string]error{
		`start job "job": the program can't go on from checkpoint 5`:                            startHolder[int64](t, dir+"/chk-5", heap.Backend{}),
		`its state is in files of the format "pebble/1", which the state backend heap does not`: startHolder[int64](t, dir+"/chk-5", heap.Backend{}),
		`"count": serde: type string: the snapshot has int64, the program string`:               startHolder[string](t, dir+"/chk-5", pebble.Backend{}),
		`start job "job"`: startHolder[string](t, dir+"/chk-5", pebble.Backend{}),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	if err := startHolder[int64](t, dir+"/chk-5", pebble.Backend{}); err != nil {
		t.Error(err)
	}
}
